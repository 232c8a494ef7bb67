// SPDX-License-Identifier: BSD-3-Clause
//
// Everything of the shm driver that makes system calls: start, connections, deaths, end.
//
// Who, threads: see shm_driver.hpp.
// Surprise: two ranks may connect to each other at once. The rule of net::resolve_inbound() decides; a connection
//     that waits for its outcome is "held".
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "drivers/net/settings.hpp"
#include "drivers/shm/shm.hpp"
#include "drivers/shm/shm_driver.hpp"

namespace canele::drivers::shm {
namespace {

constexpr std::uint64_t look_every_ns = 100'000;  ///< between two looks at the sockets
constexpr std::uint64_t check_every_ns = 25'000;  ///< between two looks at the clock
constexpr int longest_check = 256;                ///< the same in polls, at most
constexpr int longest_look = 16384;               ///< polls between two looks, at most, should the clock stand still
constexpr int unsettled_polls = 16;               ///< the same while a connection is being set up
constexpr int seldom = 4;  ///< longer where ranks share processing units: looks are parts of turns
constexpr std::uint64_t stranger_ns = 30'000'000'000;  ///< how long an inbound connection may stay unproven
constexpr std::size_t most_connections = 4096;         ///< in set-up at once
constexpr int most_attempts = 4;
constexpr int most_names = 64;

// What an epoll event is about: kind in the upper half, connection or rank in the lower.
enum class Tag : std::uint64_t { listener, doorbell, connection, peer };
constexpr std::uint64_t tag(Tag kind, std::uint64_t id = 0) { return static_cast<std::uint64_t>(kind) << 32 | id; }

bool register_membarrier() {
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 &&
         ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool on_or_off(DriverContext& context, std::string_view name, bool* on, std::string* reason) {
  const std::string value = context.setting(name, "auto");
  *on = value != "off";
  if (value == "auto" || value == "off") return true;
  *reason = "CANELE_" + std::string(name) + "=" + value + ": must be auto or off";
  return false;
}

/// From which length on messages are copied by attach; -1: by what it costs here.
bool read_attach_from(DriverContext& context, int* from, std::string* reason) {
  *from = -1;
  return context.setting("SHM_CMA_FROM", "auto") == "auto" ||
         net::read_number(context, "SHM_CMA_FROM", "0", 0, "auto, or bytes", from, reason);
}

/// Long messages are copied by attach in any case: one end can do that alone, while the other computes. So are shorter
/// ones where others want the core: StarPU's Cholesky with tiles of 400 KiB is a fifth to two thirds faster by that.
/// A shelf pays where the kernel's copy costs more than two by hand.
void choose_attach_from(DriverContext& context, int set, const std::string& shelf, Capabilities* can) {
  constexpr std::size_t long_message = 512 * 1024, worth_a_switch = 64 * 1024;
  const bool dear = set < 0 && dearer_than_two_copies(context);
  const auto otherwise = static_cast<std::size_t>(std::max(set, 0));
  can->copy_from = dear ? long_message : otherwise;
  can->copy_from_shared_core = dear ? worth_a_switch : otherwise;
  can->shelf = shelf == "on" || (shelf == "auto" && dear) ? Shelf::longest : 0;
}

}  // namespace

// ------------------------------------------------------------------------------------------------ start and end

Status ShmDriver::open_impl(DriverContext& context, Address* address, std::string* reason) {
  context_ = &context;
  events_ = context.events;
  bool use_attach = false, use_membarrier = false;
  int from = 0;
  if (!on_or_off(context, "SHM_CMA", &use_attach, reason) || !read_attach_from(context, &from, reason) ||
      !on_or_off(context, "SHM_MEMBARRIER", &use_membarrier, reason)) {
    return Status::failed;
  }
  const std::string shelf = context.setting("SHM_SHELF", "auto");
  if (shelf != "auto" && shelf != "on" && shelf != "off") {
    *reason = "CANELE_SHM_SHELF=" + shelf + ": must be auto, on or off";
    return Status::failed;
  }
  party_ = net::Party(context, "shm");
  peers_ = std::make_unique<std::atomic<Peer*>[]>(static_cast<std::size_t>(context.size));
  if (!open_descriptors(reason)) return Status::failed;
  park_page_ = make_shared(Shelf::file_size, false, &park_memfd_, reason, sizeof(ParkPage));
  if (!park_page_) return Status::failed;
  park_ = park_page_.as<ParkPage>();
  shelf_.attach(park_page_.as<std::byte>(), park_memfd_.get());
  membarrier_ = use_membarrier && register_membarrier();
  attach_ = use_attach && try_attach();
  gives_way_ = context.crowded;
  greeting_ = {layout_version, membarrier_ ? 1u : 0u, reinterpret_cast<std::uint64_t>(nonce_.data()), nonce_};

  capabilities_.name = "shm";
  capabilities_.memory_only = true;
  capabilities_.max_inline = largest_in_lines;
  capabilities_.max_packet = largest_packet;
  capabilities_.reserves = true;
  capabilities_.bulk_stream = true;
  capabilities_.max_bulk = largest_packet;
  capabilities_.get = capabilities_.put = capabilities_.copies_anywhere = attach_;
  if (attach_) choose_attach_from(context, from, shelf, &capabilities_);
  capabilities_.shared_lines = shared_line_count;
  capabilities_.exposure_size = Exposure::max_size;
  capabilities_.wake_up = WakeUp::doorbell;
  capabilities_.reaches_local = true;
  capabilities_.detects_failure = true;
  capabilities_.latency_ns = 150;
  capabilities_.bandwidth = 8.0;
  *address = pack_address(address_);
  return Status::ok;
}

bool ShmDriver::open_descriptors(std::string* reason) {
  const auto failed = [reason](const char* what) {
    *reason = std::string(what) + ": " + net::error_text(errno);
    return false;
  };
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return failed("no descriptor for events (epoll_create1)");
  doorbell_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell_) return failed("no descriptor for a doorbell (eventfd)");
  spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!spare_) return failed("no spare descriptor (/dev/null)");
  // 128 random bits collide only where the randomness is not real, in tests.
  for (int i = 0; i < most_names && !listener_; ++i) {
    address_ = own_address(*context_);
    listener_ = listen_at(address_.name);
    if (!listener_ && errno != EADDRINUSE) break;
  }
  if (!listener_) return failed("cannot listen on an abstract unix socket");
  watch(doorbell_.get(), tag(Tag::doorbell), false, false);
  watch(listener_.get(), tag(Tag::listener), false, false);
  return true;
}

/// Does cross-memory attach work here at all? (Containers forbid it at times.)
bool ShmDriver::try_attach() {
  for (std::size_t i = 0; i < nonce_.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t bits = context_->random();
    std::memcpy(nonce_.data() + i, &bits, sizeof bits);
  }
  const bool works = can_read({::getpid(), reinterpret_cast<std::uint64_t>(nonce_.data()), nonce_});
  if (!works) context_->log(2, "shm: cross-memory attach is not allowed here; large messages are copied twice");
  return works;
}

void ShmDriver::close_impl() {
  connections_.clear();
  listener_.reset();
  news_.clear(), starved_.clear(), ending_.clear(), active_.clear();
  // The sockets close with their peers: the other side drains what was sent, then sees the end.
  peers_.reset();
  all_peers_.clear();
  nonce_ = {};
  park_ = nullptr;
  shelf_.detach();
  park_page_ = {};
  for (net::UniqueFd* fd : {&epoll_, &doorbell_, &park_memfd_, &spare_}) fd->reset();
}

// -------------------------------------------------------------------------------------------- a look at sockets

/// Is it time for a look? Reading the clock costs a tenth of one, and is itself done only every `planned_` polls: few
/// or many, depending on whether the engine polls once a millisecond or spins.
void ShmDriver::consider_look() {
  const std::uint64_t now = context_->now_ns();
  const std::uint64_t passed = std::max<std::uint64_t>(now - last_check_, 1);
  last_check_ = now;
  unlooked_ += planned_;
  const std::uint64_t longer = gives_way_ ? seldom : 1;
  const std::uint64_t scaled = static_cast<std::uint64_t>(planned_) * longer * check_every_ns / passed;
  // At most doubled at a time: one short interval proves little.
  planned_ = static_cast<int>(std::clamp<std::uint64_t>(scaled, 1, std::min(2 * planned_, longest_check)));
  if (now - last_look_ >= longer * look_every_ns || unlooked_ >= longest_look || !connections_.empty()) {
    look();
    last_look_ = context_->now_ns();  // only now: a slow look must not make the next one come sooner
    unlooked_ = 0;
  }
  until_check_ = connections_.empty() ? planned_ : std::min(planned_, unsettled_polls);
}

void ShmDriver::look() {
  epoll_event found[32];
  const int count = ::epoll_wait(epoll_.get(), found, 32, 0);
  for (int i = 0; i < count; ++i) handle(found[i].data.u64);
  if (waiting_ > 0) retry_waiting();
  if (!connections_.empty()) drop_strangers();
}

void ShmDriver::handle(std::uint64_t what) {
  const auto id = static_cast<std::uint32_t>(what);
  switch (static_cast<Tag>(what >> 32)) {
    case Tag::listener:
      accept_all();
      break;
    case Tag::doorbell:
      // A ring that came late. While armed it stays, or the sleep would miss it.
      if (park_->sleep.load(std::memory_order_relaxed) == 0) {
        std::uint64_t rings = 0;
        [[maybe_unused]] const ssize_t read = ::read(doorbell_.get(), &rings, sizeof rings);
      }
      break;
    case Tag::connection:
      if (Connection* connection = find(id)) step(*connection);
      break;
    case Tag::peer:
      if (Peer* peer = peer_at(static_cast<Rank>(id))) socket_event(*peer);
      break;
  }
}

/// The socket of a peer that is up, or its pidfd, has news: they have only one kind.
void ShmDriver::socket_event(Peer& peer) {
  if (peer.state != Peer::State::up) return;
  char byte = 0;
  const ssize_t got = ::recv(peer.socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  const int error = errno;
  peer.process_end.reset();
  peer.socket.reset();
  if (got > 0) return fail(peer, true, name_of(peer) + " sent nonsense over its socket");
  // EAGAIN: it was the pidfd; a child that it forked keeps the socket open.
  peer.reason = name_of(peer) + " died or left";
  if (got < 0 && error != EAGAIN && error != ECONNRESET) peer.reason += " (" + net::error_text(error) + ")";
  peer.state = Peer::State::ending;
  peer.readable.store(false, std::memory_order_release);
  ending_.push_back(&peer);
  chores_ = true;
}

void ShmDriver::fail(Peer& peer, bool lost, std::string reason) {
  assert(peer.state != Peer::State::failed);
  peer.state = Peer::State::failed;
  peer.open = false;
  peer.readable.store(false, std::memory_order_release);
  peer.lost = lost;
  peer.reason = std::move(reason);
  peer.socket.reset();
  peer.process_end.reset();
  news_.push_back(&peer);
  chores_ = true;
}

std::string ShmDriver::name_of(const Peer& peer) const {
  const std::string pid = peer.process.pid > 0 ? " (pid " + std::to_string(peer.process.pid) + ")" : "";
  return "rank " + std::to_string(peer.rank) + pid;
}

void ShmDriver::watch(int fd, std::uint64_t what, bool write, bool change) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP | (write ? EPOLLOUT : 0u);
  event.data.u64 = what;
  [[maybe_unused]] const int done = ::epoll_ctl(epoll_.get(), change ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
  if (done != 0) context_->log(1, "shm: cannot watch a descriptor: " + net::error_text(errno));
}

// ----------------------------------------------------------------------------------------- beginning a connection

Status ShmDriver::connect_impl(Rank rank, std::span<const std::byte> address) {
  AddressForm form;
  if (!unpack_address(address, &form) || form.host != address_.host || form.user != address_.user) {
    return Status::failed;
  }
  if (rank == party_.rank) return Status::failed;
  Peer& peer = make_peer(rank);
  if (peer.state == Peer::State::failed) return Status::failed;
  peer.address = form;
  // The peer may have been first.
  if (peer.taken == 0 && peer.attempt == 0) begin_attempt(peer);
  return Status::pending;
}

Peer& ShmDriver::make_peer(Rank rank) {
  Peer* known = peer_at(rank);
  if (known != nullptr) return *known;
  all_peers_.push_back(std::make_unique<Peer>(rank));
  peers_[rank].store(all_peers_.back().get(), std::memory_order_release);
  return *all_peers_.back();
}

void ShmDriver::begin_attempt(Peer& peer) {
  ++peer.attempts;
  const std::uint32_t id = ++last_connection_;
  peer.attempt = id;
  auto handshake = net::Handshake::initiator(party_, *context_, peer.rank, peer.address.incarnation, greeting());
  auto& connection = *(connections_[id] = std::make_unique<Connection>(id, std::move(handshake)));
  connection.peer = &peer;
  ++waiting_;
  try_connect(connection);
  until_check_ = std::min(until_check_, unsettled_polls);
}

void ShmDriver::try_connect(Connection& connection) {
  connection.socket = connect_to(connection.peer->address.name);
  if (!connection.socket) {
    if (errno == EAGAIN) return;  // look() tries again
    const bool gone = errno == ECONNREFUSED;
    const std::string why = gone ? "it has left: nobody listens at its address" : net::error_text(errno);
    return connection_failed(connection, !gone, why);
  }
  --waiting_;
  connection.phase = Connection::Phase::handshake;
  Credentials who;
  if (!credentials_of(connection.socket.get(), &who) || who.user != ::geteuid()) {
    return connection_failed(connection, false, "its socket belongs to another user");
  }
  connection.pid = who.pid;
  watch(connection.socket.get(), tag(Tag::connection, connection.id), true, false);
  connection.watches_write = true;
}

void ShmDriver::retry_waiting() {
  std::vector<std::uint32_t> ids;
  for (const auto& [id, connection] : connections_) {
    if (connection->phase == Connection::Phase::waiting) ids.push_back(id);
  }
  for (const std::uint32_t id : ids) {
    if (Connection* connection = find(id)) try_connect(*connection);
  }
}

void ShmDriver::accept_all() {
  // Bounded, so that a flood of strangers does not keep the engine here.
  for (int i = 0; i < 32; ++i) {
    net::UniqueFd socket = net::accept_one(listener_.get());
    if (!socket && (errno == EMFILE || errno == ENFILE) && spare_) {
      // Free one descriptor to turn the caller away: left waiting, it would keep our epoll readable for ever.
      spare_.reset();
      net::accept_one(listener_.get());
      spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      context_->log(1, "shm: no descriptors left for another peer; raise the limit (ulimit -n)");
      continue;
    }
    if (!socket) return;
    Credentials who;
    if (!credentials_of(socket.get(), &who) || who.user != ::geteuid() || connections_.size() >= most_connections) {
      context_->log(2, "shm: turned away a connection of user " + std::to_string(who.user));
      continue;
    }
    const std::uint32_t id = ++last_connection_;
    auto made = std::make_unique<Connection>(id, net::Handshake::acceptor(party_, *context_));
    made->phase = Connection::Phase::handshake;
    made->socket = std::move(socket);
    made->pid = who.pid;
    made->since = context_->now_ns();
    watch(made->socket.get(), tag(Tag::connection, id), false, false);
    Connection& connection = *(connections_[id] = std::move(made));
    step(connection);
  }
}

/// Who has not proven to be a rank of this job in time has no business here.
void ShmDriver::drop_strangers() {
  const std::uint64_t now = context_->now_ns();
  std::erase_if(connections_, [now](const auto& entry) {
    const Connection& connection = *entry.second;
    return connection.peer == nullptr && now - connection.since > stranger_ns;
  });
}

Connection* ShmDriver::find(std::uint32_t connection) {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : found->second.get();
}

void ShmDriver::drop(std::uint32_t connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  if (found->second->phase == Connection::Phase::waiting) --waiting_;
  connections_.erase(found);
}

// ------------------------------------------------------------------------------------------- steps of a connection

void ShmDriver::step(Connection& connection) {
  switch (connection.phase) {
    case Connection::Phase::waiting:
      break;
    case Connection::Phase::handshake:
      step_handshake(connection);
      break;
    case Connection::Phase::held:
      // It has nothing to say before we answer: it has given up, or babbles.
      connection.peer->held = 0;
      drop(connection.id);
      break;
    case Connection::Phase::exchange:
      step_exchange(connection);
      break;
  }
}

void ShmDriver::step_handshake(Connection& connection) {
  switch (connection.handshake.step(connection.socket.get())) {
    case net::Handshake::State::working:
      if (connection.handshake.wants_write() != connection.watches_write) {
        connection.watches_write = !connection.watches_write;
        watch(connection.socket.get(), tag(Tag::connection, connection.id), connection.watches_write, true);
      }
      break;
    case net::Handshake::State::identified:
      decide_inbound(connection);
      break;
    case net::Handshake::State::done:
      begin_exchange(connection);
      break;
    case net::Handshake::State::failed:
      connection_failed(connection, false, connection.handshake.reason());
      break;
  }
}

void ShmDriver::decide_inbound(Connection& connection) {
  const Rank rank = connection.handshake.peer();
  Peer& peer = make_peer(rank);
  net::Refusal refusal = net::Refusal::already_connected;
  if (peer.state == Peer::State::failed || peer.state == Peer::State::ending) refusal = net::Refusal::peer_failed;
  const bool up = peer.taken != 0 || peer.state != Peer::State::connecting;
  switch (peer.held != 0 ? net::Inbound::refuse : net::resolve_inbound(party_.rank, rank, peer.attempt != 0, up)) {
    case net::Inbound::take:
      connection.peer = &peer;
      take(connection);
      break;
    case net::Inbound::hold:
      connection.peer = &peer;
      connection.phase = Connection::Phase::held;
      peer.held = connection.id;
      break;
    case net::Inbound::refuse:
      connection.handshake.refuse(refusal);
      step_handshake(connection);
      break;
  }
}

/// Answers an inbound connection: it becomes the one of its peer.
void ShmDriver::take(Connection& connection) {
  Peer& peer = *connection.peer;
  drop(std::exchange(peer.attempt, 0));
  peer.held = 0;
  peer.taken = connection.id;
  connection.phase = Connection::Phase::handshake;
  connection.handshake.accept(greeting());
  step_handshake(connection);
}

/// The peer is proven. Makes the memory to receive from it, and lends it.
void ShmDriver::begin_exchange(Connection& connection) {
  Peer& peer = *connection.peer;
  connection.phase = Connection::Phase::exchange;
  peer.taken = connection.id;
  peer.attempt = 0;
  Greeting greeting;
  const auto payload = connection.handshake.payload();
  if (payload.size() == sizeof greeting) std::memcpy(&greeting, payload.data(), sizeof greeting);
  if (greeting.layout != layout_version) {
    return connection_failed(connection, false,
                             "its shared memory has layout " + std::to_string(greeting.layout) + ", ours has " +
                                 std::to_string(layout_version) + "; use one version of Canelé in all ranks");
  }
  connection.strict = !membarrier_ || greeting.membarrier == 0;
  connection.process = {connection.pid, greeting.nonce_address, greeting.nonce};
  connection.can_read = attach_ && greeting.nonce != Nonce{} && can_read(connection.process);
  std::string reason;
  connection.area_in = make_shared(sizeof(Area), true, &connection.memfd, &reason);
  if (!connection.area_in) return connection_failed(connection, true, reason);
  step_exchange(connection);
}

void ShmDriver::step_exchange(Connection& connection) {
  if (!connection.introduced) {
    const Introduction own{Introduction::expected_magic, connection.can_read ? 1u : 0u};
    const Transfer sent =
        send_introduction(connection.socket.get(), own, connection.memfd.get(), park_memfd_.get(), doorbell_.get());
    if (sent == Transfer::again) {
      if (!connection.watches_write) watch(connection.socket.get(), tag(Tag::connection, connection.id), true, true);
      connection.watches_write = true;
      return;
    }
    if (sent != Transfer::ok) return connection_failed(connection, true, "the connection ended during its set-up");
    connection.introduced = true;
    connection.memfd.reset();
    if (connection.watches_write) watch(connection.socket.get(), tag(Tag::connection, connection.id), false, true);
    connection.watches_write = false;
  }
  Introduction introduction;
  Lent lent;
  switch (receive_introduction(connection.socket.get(), &introduction, &lent)) {
    case Transfer::ok:
      return finish_exchange(connection, introduction, std::move(lent));
    case Transfer::again:
      return;
    case Transfer::ended:
      return connection_failed(connection, true, "the connection ended during its set-up");
    case Transfer::no_descriptors:
      return connection_failed(connection, true, "no descriptors left; raise the limit (ulimit -n)");
    case Transfer::nonsense:
      return connection_failed(connection, false, "its introduction makes no sense");
  }
}

void ShmDriver::finish_exchange(Connection& connection, const Introduction& introduction, Lent lent) {
  Peer& peer = *connection.peer;
  std::string reason;
  peer.area_out = map_shared(lent.area.get(), sizeof(Area), true, &reason);
  if (peer.area_out) peer.park_page = map_shared(lent.park.get(), Shelf::file_size, false, &reason, false);
  if (!peer.park_page) return connection_failed(connection, false, reason);
  if (!is_doorbell(lent.doorbell.get())) return connection_failed(connection, false, "its doorbell is no eventfd");
  peer.area_in = std::move(connection.area_in);
  peer.in.attach(peer.area_in.as<Area>(), connection.strict);
  peer.scout = {};
  peer.out.attach(peer.area_out.as<Area>(), connection.strict);
  met(peer.rank, connection.handshake.peer_incarnation());
  share_lines(peer.rank, {peer.area_in.as<Area>()->shared, peer.area_out.as<Area>()->shared, shared_line_count});
  peer.park = peer.park_page.as<ParkPage>();
  peer.shelf.store(peer.park_page.as<std::byte>(), std::memory_order_release);
  peer.reads_us = attach_ && introduction.reads_you == 1;
  peer.process = connection.process;
  peer.readable.store(connection.can_read, std::memory_order_release);
  peer.doorbell_fd = std::move(lent.doorbell);
  peer.doorbell.store(peer.doorbell_fd.get(), std::memory_order_release);
  peer.socket = std::move(connection.socket);
  watch(peer.socket.get(), tag(Tag::peer, static_cast<std::uint32_t>(peer.rank)), false, true);
  // Only a process that has proven to be this one: after a fork the socket may carry the parent's id.
  if (connection.can_read) peer.process_end = watch_process(connection.pid);
  if (peer.process_end) {
    watch(peer.process_end.get(), tag(Tag::peer, static_cast<std::uint32_t>(peer.rank)), false, false);
  }
  peer.state = Peer::State::up;
  peer.open = peer.was_up = true;
  active_.push_back(&peer);
  // Lists that grow on the data path get their room now. Not exact sizes: that would be quadratic over many peers.
  if (starved_.capacity() < active_.size()) starved_.reserve(2 * active_.size());
  if (news_.capacity() < 2 * active_.size()) news_.reserve(4 * active_.size());
  news_.push_back(&peer);
  chores_ = true;
  drop(std::exchange(peer.held, 0));
  drop(connection.id);
}

/// A connection is of no use. `local`: for want of something here, or for a reason unknown (the next driver may do
/// better).
void ShmDriver::connection_failed(Connection& connection, bool local, const std::string& why) {
  const std::uint32_t id = connection.id;
  Peer* peer = connection.peer;
  const bool again = connection.handshake.may_retry();
  if (peer == nullptr) {
    context_->log(2, "shm: turned away a connection: " + why);
    return drop(id);
  }
  const pid_t pid = connection.pid;
  const std::string text = why;  // it may live in the connection
  drop(id);
  if (peer->state != Peer::State::connecting) return;
  if (peer->attempt == id) peer->attempt = 0;
  if (peer->taken == id) peer->taken = 0;
  if (Connection* held = find(peer->held)) return take(*held);
  if (again && peer->attempts < most_attempts) return begin_attempt(*peer);
  peer->process.pid = pid;
  fail(*peer, !local && !again, "rank " + std::to_string(peer->rank) + " cannot be reached: " + text);
}

}  // namespace canele::drivers::shm

namespace canele::drivers {
namespace {

std::string shm_unavailable() {
  const std::string no_memory = shm::shared_memory_unavailable();
  if (!no_memory.empty()) return no_memory;
  const net::UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe ? "" : "this system has no unix sockets: " + net::error_text(errno);
}

}  // namespace

const DriverFactory shm_factory = {contract_version, "shm", "shared memory, for ranks of one host",
                                   []() -> std::unique_ptr<Driver> { return std::make_unique<shm::ShmDriver>(); },
                                   shm_unavailable};

}  // namespace canele::drivers
