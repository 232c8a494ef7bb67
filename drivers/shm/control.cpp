// SPDX-License-Identifier: BSD-3-Clause
//
// Start and end of the shm driver, and its looks at sockets: unauthenticated peers, rings, deaths. See shm_driver.hpp.
//
// The socket of a peer that has ended stays open until close(), because another thread may be in wake(). It is shut
// down instead, which is what the peer has to see.
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/socket.h>
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

constexpr std::uint64_t stranger_ns = 30'000'000'000;  ///< how long an inbound connection may stay unproven.
constexpr std::uint64_t look_every_ns = 100'000;       ///< between two looks at the sockets.
constexpr std::uint64_t check_every_ns = 25'000;       ///< between two looks at the clock.
constexpr int longest_check = 256;                     ///< most polls between two looks at the clock.
constexpr int longest_look = 16384;  ///< most polls between two looks at the sockets, even if the clock stands still.
constexpr int seldom = 4;  ///< factor for both times where ranks share processing units: looks are parts of turns.
constexpr int most_names = 64;

bool register_membarrier() {
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 &&
         ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool on_or_off(DriverContext& context, std::string_view name, bool* on, std::string* reason) {
  const std::string value = context.setting(name, "auto");
  *on = value != "off";
  if (value == "auto" || value == "off") return true;
  *reason = "CANELE_" + std::string(name) + "=" + value + "; expected: auto or off";
  return false;
}

/// Reads from which length on messages are copied by attach; -1: decided by its cost on this machine.
bool read_attach_from(DriverContext& context, int* from, std::string* reason) {
  *from = -1;
  return context.setting("EXPERT_SHM_CMA_MIN", "auto") == "auto" ||
         net::read_number(context, "EXPERT_SHM_CMA_MIN", "0", 0, "auto, or bytes", from, reason);
}

/// Sets the lengths from which cross-memory attach is used. Long messages use it in any case: one end can copy alone
/// while the other computes. Shorter ones use it where other threads want the core, which measurably helps applications
/// such as StarPU's Cholesky. A shelf is worthwhile where the kernel's copy costs more than two copies by memcpy().
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
      !on_or_off(context, "EXPERT_SHM_MEMBARRIER", &use_membarrier, reason)) {
    return Status::failed;
  }
  const std::string shelf = context.setting("EXPERT_SHM_BROADCAST_SEGMENT", "auto");
  if (shelf != "auto" && shelf != "on" && shelf != "off") {
    *reason = "CANELE_EXPERT_SHM_BROADCAST_SEGMENT=" + shelf + "; expected: auto, on or off";
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
  spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!spare_) return failed("no spare descriptor (/dev/null)");
  // 128 random bits collide only in tests, where the randomness is not real.
  for (int i = 0; i < most_names && !listener_; ++i) {
    address_ = own_address(*context_);
    listener_ = listen_at(address_.name);
    if (!listener_ && errno != EADDRINUSE) break;
  }
  if (!listener_) return failed("cannot listen on an abstract unix socket");
  if (!door_.open(epoll_.get(), tag(Tag::door)) || !watch_listener(context_->size > 1)) {
    return failed("cannot watch the listening socket (epoll)");
  }
  return true;
}

/// Returns true if cross-memory attach works here. (Containers sometimes forbid it.)
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
  guests_ = 0;
  door_.close();
  listener_.reset();
  news_.clear(), starved_.clear(), ending_.clear(), active_.clear();
  // The sockets close with their peers: the other side drains what was sent, then sees the end.
  peers_.reset();
  all_peers_.clear();
  nonce_ = {};
  park_ = nullptr;
  shelf_.detach();
  park_page_ = {};
  for (net::UniqueFd* fd : {&epoll_, &park_memfd_, &spare_}) fd->reset();
}

// -------------------------------------------------------------------------------------------- a look at sockets

/// Looks at the sockets if it is time. Reading the clock costs a tenth of a look and is itself done only every
/// `planned_` polls. `planned_` adapts: the engine may poll once a millisecond, or spin.
void ShmDriver::consider_look() {
  const std::uint64_t now = context_->now_ns();
  const std::uint64_t passed = std::max<std::uint64_t>(now - last_check_, 1);
  last_check_ = now;
  unlooked_ += planned_;
  const std::uint64_t longer = gives_way_ ? seldom : 1;
  const std::uint64_t scaled = static_cast<std::uint64_t>(planned_) * longer * check_every_ns / passed;
  // At most doubled at a time: one short interval proves little.
  planned_ = static_cast<int>(std::clamp<std::uint64_t>(scaled, 1, std::min(2 * planned_, longest_check)));
  if (now - last_look_ >= longer * look_every_ns || unlooked_ >= longest_look || hurries()) {
    look();
    last_look_ = context_->now_ns();  // set after the look: a slow look must not make the next one come sooner
    unlooked_ = 0;
  }
  until_check_ = hurries() ? std::min(planned_, unsettled_polls) : planned_;
}

/// Returns true while connections are being set up: looks then come sooner. Unauthenticated peers no longer count once
/// they have used up their budget.
bool ShmDriver::hurries() const { return connections_.size() > guests_ || (guests_ > 0 && !door_.resting()); }

void ShmDriver::look() {
  epoll_event found[32];
  const int count = ::epoll_wait(epoll_.get(), found, 32, 0);
  for (int i = 0; i < count; ++i) handle(found[i].data.u64);
  if (waiting_ > 0) retry_waiting();
  serve_strangers();
}

void ShmDriver::handle(std::uint64_t what) {
  const auto id = static_cast<std::uint32_t>(what);
  switch (static_cast<Tag>(what >> 32)) {
    case Tag::door:
      door_.ring();
      break;
    case Tag::listener:
      break;  // behind the door
    case Tag::connection:
      if (Connection* connection = find(id)) step(*connection);
      break;
    case Tag::peer:
      if (Peer* peer = peer_at(static_cast<Rank>(id))) socket_event(*peer);
      break;
    case Tag::process:
      if (Peer* peer = peer_at(static_cast<Rank>(id)); peer != nullptr && peer->state == Peer::State::up)
        end(*peer, "");
      break;
  }
}

/// Handles an event of a peer's socket: a ring, or its end.
void ShmDriver::socket_event(Peer& peer) {
  if (peer.state != Peer::State::up) return leave(peer);
  // A late ring is consumed. While armed it stays; otherwise the sleep would miss it.
  const bool armed = park_->sleep.load(std::memory_order_relaxed) != 0;
  switch (take_rings(peer.socket.get(), armed)) {
    case Rung::nothing:
    case Rung::rings:
      break;
    case Rung::nonsense:
      fail(peer, true, name_of(peer) + " sent malformed data over its socket");
      break;
    case Rung::ended:
      end(peer, errno == 0 || errno == ECONNRESET ? "" : " (" + net::error_text(errno) + ")");
      break;
  }
}

/// Handles the death or departure of a peer; what it sent before is delivered first.
void ShmDriver::end(Peer& peer, const std::string& more) {
  count_up(-1);
  leave(peer);
  peer.reason = name_of(peer) + " died or left" + more;
  peer.state = Peer::State::ending;
  peer.readable.store(false, std::memory_order_release);
  ending_.push_back(&peer);
  chores_ = true;
}

/// Shows the peer the end of the connection, and stops watching its descriptors.
void ShmDriver::leave(Peer& peer) {
  peer.process_end.reset();
  if (!peer.socket) return;
  ::shutdown(peer.socket.get(), SHUT_RDWR);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
}

void ShmDriver::fail(Peer& peer, bool lost, std::string reason) {
  assert(peer.state != Peer::State::failed);
  if (peer.state == Peer::State::up) count_up(-1);
  peer.state = Peer::State::failed;
  peer.open = false;
  peer.readable.store(false, std::memory_order_release);
  peer.lost = lost;
  peer.reason = std::move(reason);
  leave(peer);
  news_.push_back(&peer);
  chores_ = true;
}

std::string ShmDriver::name_of(const Peer& peer) const {
  const std::string pid = peer.process.pid > 0 ? " (pid " + std::to_string(peer.process.pid) + ")" : "";
  return "rank " + std::to_string(peer.rank) + pid;
}

/// Watches a descriptor. False and errno: it is in no epoll set, so its events would be lost.
bool ShmDriver::watch(int fd, std::uint64_t what, bool write, bool change) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP | (write ? EPOLLOUT : 0u);
  event.data.u64 = what;
  return ::epoll_ctl(epoll_.get(), change ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0;
}

// ------------------------------------------------------------------------------------------ unauthenticated peers

void ShmDriver::count_up(int change) {
  up_ += change;
  watch_listener(up_ < context_->size - 1);
}

/// Turns the listener on or off. It is off once all ranks are up: new connections then wait in the kernel's queue,
/// which is made short. Returns false and errno if it could not be turned on.
bool ShmDriver::watch_listener(bool on) {
  if (on == listening_) return true;
  listening_ = on;
  ::listen(listener_.get(), on ? SOMAXCONN : 0);
  if (!on) {
    door_.forget(listener_.get());
  } else if (!door_.watch(listener_.get(), tag(Tag::listener)) && errno != EEXIST) {
    listening_ = false;  // serve_strangers() tries again
  }
  return listening_ == on;
}

/// Serves some of the unauthenticated peers: see net::Door.
void ShmDriver::serve_strangers() {
  if (!listening_ && up_ < context_->size - 1) watch_listener(true);
  const bool patient = guests_ == 0 || guest_to_go(true) == nullptr;
  if (!patient) door_.ring();
  if (!door_.rung() && !door_.resting()) return;
  const std::uint64_t now = context_->now_ns();
  if (!door_.begin_turn(now)) return;
  while (Connection* silent = guest_to_go(true)) connection_failed(*silent, false, "silent for 30 s");
  epoll_event found[net::Door::most_events];
  const int count = door_.ready(found);
  // Guests first: each new connection may require that an old one is dropped.
  for (const Tag which : {Tag::connection, Tag::listener}) {
    for (int i = 0; i < count && door_.may_act(); ++i) {
      if (static_cast<Tag>(found[i].data.u64 >> 32) != which) continue;
      if (which == Tag::connection) {
        door_.act();
        if (Connection* guest = find(static_cast<std::uint32_t>(found[i].data.u64))) step(*guest);
      } else {
        while (door_.may_act() && accept_guest()) {
        }
      }
    }
  }
  door_.end_turn(now);
}

/// Returns a guest that has been silent for too long, or (`silent` false) one to drop for another connection. It is the
/// one that has sent the fewest bytes, and the oldest of those.
Connection* ShmDriver::guest_to_go(bool silent) {
  const std::uint64_t now = context_->now_ns();
  Connection* found = nullptr;
  for (const auto& [id, connection] : connections_) {
    if (!connection->guest || now - connection->since < (silent ? stranger_ns : net::guest_grace_ns)) continue;
    if (found == nullptr || connection->handshake.heard() < found->handshake.heard()) found = connection.get();
  }
  return found;
}

/// Accepts one connection from the kernel's queue. Returns false if there is none, or no room for it at present.
bool ShmDriver::accept_guest() {
  Connection* const goes = guests_ >= net::guests_allowed() ? guest_to_go(false) : nullptr;
  if (goes == nullptr && guests_ >= net::guests_allowed()) return door_.met_stranger(), false;
  net::UniqueFd socket = net::accept_one(listener_.get());
  if (!socket && (errno == EAGAIN || errno == EINTR)) return false;
  door_.act();
  if (!socket) return turn_away(), false;
  Credentials who;
  if (!credentials_of(socket.get(), &who) || who.user != ::geteuid()) {
    door_.met_stranger();
    once_.log(*context_, 2, "rejected a connection of user " + std::to_string(who.user));
    return true;
  }
  if (goes != nullptr) connection_failed(*goes, false, "too many unauthenticated connections at a time");
  const std::uint32_t id = ++last_connection_;
  auto made = std::make_unique<Connection>(id, net::Handshake::acceptor(party_, *context_));
  made->phase = Connection::Phase::handshake;
  made->socket = std::move(socket);
  made->pid = who.pid;
  made->since = context_->now_ns();
  made->guest = true;
  ++guests_;
  Connection& connection = *(connections_[id] = std::move(made));
  if (!door_.watch(connection.socket.get(), tag(Tag::connection, id))) {
    return connection_failed(connection, true, "it cannot be watched (epoll_ctl): " + net::error_text(errno)), true;
  }
  if (!door_.may_act()) return true;
  door_.act();
  step(connection);  // its first bytes are usually there already
  return true;
}

/// Closes a connection that cannot be accepted for lack of descriptors. Left in the queue it would keep the listener
/// readable.
void ShmDriver::turn_away() {
  const int error = errno;
  door_.met_stranger();
  if (!net::is_out_of_descriptors(error)) {
    return once_.log(*context_, 1, "an inbound connection cannot be accepted: " + net::error_text(error));
  }
  if (spare_) {
    spare_.reset();
    net::accept_one(listener_.get()).reset();
  }
  spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  once_.log(*context_, 1, "no descriptors left for another peer; raise the limit (ulimit -n)");
}

/// Drops all guests: descriptors are for ranks first.
void ShmDriver::drop_guests() {
  std::erase_if(connections_, [](const auto& entry) { return entry.second->guest; });
  guests_ = 0;
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
