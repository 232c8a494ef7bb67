// SPDX-License-Identifier: BSD-3-Clause
//
// Start and end of the shm driver, and its checks of sockets: unauthenticated peers, rings, deaths. See shm_driver.hpp.
//
// The socket of a peer that has ended stays open until close(), because another thread may be in wake(). It is shut
// down instead, which is what the peer has to see.
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

constexpr std::uint64_t pending_limit_ns = 30'000'000'000;  ///< how long an inbound connection may stay unproven.
constexpr std::uint64_t sockets_every_ns = 100'000;         ///< between two checks of the sockets.
constexpr std::uint64_t clock_every_ns = 25'000;            ///< between two checks of the clock.
constexpr int longest_clock_gap = 256;                      ///< most polls between two checks of the clock.
constexpr int longest_socket_gap =
    16384;                 ///< most polls between two checks of the sockets, even if the clock stands still.
constexpr int seldom = 4;  ///< factor for both times where ranks share processing units: checks are parts of turns.
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
bool read_rma_min(DriverContext& context, int* from, std::string* reason) {
  *from = -1;
  return context.setting("EXPERT_SHM_CMA_MIN", "auto") == "auto" ||
         net::read_number(context, "EXPERT_SHM_CMA_MIN", "0", 0, "auto, or bytes", from, reason);
}

/// Sets from which length on cross-memory attach is used: `set`, or -1: as the engine measures. Where other threads
/// want the core, shorter messages are left to shared buffers if the kernel's copy costs more than two copies by
/// memcpy(); a broadcast segment is worthwhile then, too.
void choose_rma_min(DriverContext& context, int set, const std::string& segment, Capabilities* can) {
  constexpr std::size_t worth_a_switch = 64 * 1024;
  const bool dear = set < 0 && dearer_than_two_copies(context);
  can->rma_min_is_guess = set < 0;
  can->rma_min = static_cast<std::size_t>(std::max(set, 0));
  can->rma_min_shared_core = dear ? worth_a_switch : can->rma_min;
  can->broadcast_segment = segment == "on" || (segment == "auto" && dear) ? BroadcastSegment::longest : 0;
}

}  // namespace

// ------------------------------------------------------------------------------------------------ start and end

Status ShmDriver::open_impl(DriverContext& context, Address* address, std::string* reason) {
  context_ = &context;
  events_ = context.events;
  bool use_cma = false, use_membarrier = false;
  int from = 0;
  if (!on_or_off(context, "SHM_CMA", &use_cma, reason) || !read_rma_min(context, &from, reason) ||
      !on_or_off(context, "EXPERT_SHM_MEMBARRIER", &use_membarrier, reason)) {
    return Status::failed;
  }
  const std::string segment = context.setting("EXPERT_SHM_BROADCAST_SEGMENT", "auto");
  if (segment != "auto" && segment != "on" && segment != "off") {
    *reason = "CANELE_EXPERT_SHM_BROADCAST_SEGMENT=" + segment + "; expected: auto, on or off";
    return Status::failed;
  }
  party_ = net::Party(context, "shm");
  peers_ = std::make_unique<std::atomic<Peer*>[]>(static_cast<std::size_t>(context.size));
  if (!open_descriptors(reason)) return Status::failed;
  sleep_mapping_ = make_shared(BroadcastSegment::file_size, sizeof(SleepPage), false, &sleep_memfd_, reason);
  if (!sleep_mapping_) return Status::failed;
  sleep_page_ = sleep_mapping_.as<SleepPage>();
  segment_.attach(sleep_mapping_.as<std::byte>(), sleep_memfd_.get());
  membarrier_ = use_membarrier && register_membarrier();
  cma_ = use_cma && try_cma();
  gives_way_ = context.oversubscribed;
  payload_ = {layout_version, membarrier_ ? 1u : 0u, reinterpret_cast<std::uint64_t>(nonce_.data()), nonce_};

  capabilities_.name = "shm";
  capabilities_.memory_only = true;
  capabilities_.max_inline = largest_in_lines;
  capabilities_.max_packet = largest_packet;
  capabilities_.reserves = true;
  capabilities_.bulk_stream = true;
  capabilities_.max_bulk = largest_packet;
  capabilities_.get = capabilities_.put = capabilities_.rma_any_thread = cma_;
  if (cma_) choose_rma_min(context, from, segment, &capabilities_);
  capabilities_.shared_lines = shared_line_count;
  capabilities_.rkey_size = MemoryKey::max_size;
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
  if (!accept_failures_.open()) return failed("no spare descriptor (/dev/null)");
  // 128 random bits collide only in tests, where the randomness is not real.
  for (int i = 0; i < most_names && !listener_; ++i) {
    address_ = own_address(*context_);
    listener_ = listen_at(address_.name);
    if (!listener_ && errno != EADDRINUSE) break;
  }
  if (!listener_) return failed("cannot listen on an abstract unix socket");
  if (!limiter_.open(epoll_.get(), tag(Tag::limiter)) || !watch_listener(context_->size > 1)) {
    return failed("cannot watch the listening socket (epoll)");
  }
  return true;
}

/// Returns true if cross-memory attach works here. (Containers sometimes forbid it.)
bool ShmDriver::try_cma() {
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
  pending_count_ = 0;
  limiter_.close();
  listener_.reset();
  news_.clear(), starved_.clear(), ending_.clear(), active_.clear();
  // The sockets close with their peers: the other side drains what was sent, then sees the end.
  peers_.reset();
  all_peers_.clear();
  nonce_ = {};
  sleep_page_ = nullptr;
  segment_.detach();
  sleep_mapping_ = {};
  accept_failures_.close();
  for (net::UniqueFd* fd : {&epoll_, &sleep_memfd_}) fd->reset();
}

// -------------------------------------------------------------------------------------------- a check of sockets

/// Checks the sockets if it is time. Reading the clock costs a tenth of a check and is itself done only every
/// `planned_` polls. `planned_` adapts: the engine may poll once a millisecond, or spin.
void ShmDriver::consider_check() {
  const std::uint64_t now = context_->now_ns();
  const std::uint64_t passed = std::max<std::uint64_t>(now - last_check_, 1);
  last_check_ = now;
  unchecked_ += planned_;
  const std::uint64_t longer = gives_way_ ? seldom : 1;
  const std::uint64_t scaled = static_cast<std::uint64_t>(planned_) * longer * clock_every_ns / passed;
  // At most doubled at a time: one short interval proves little.
  planned_ = static_cast<int>(std::clamp<std::uint64_t>(scaled, 1, std::min(2 * planned_, longest_clock_gap)));
  if (now - last_socket_check_ >= longer * sockets_every_ns || unchecked_ >= longest_socket_gap || hurries()) {
    check_sockets();
    last_socket_check_ =
        context_->now_ns();  // set after the check: a slow check must not make the next one come sooner
    unchecked_ = 0;
  }
  until_check_ = hurries() ? std::min(planned_, setup_polls) : planned_;
}

/// Returns true while connections are being set up: checks then come sooner. Unauthenticated peers no longer count once
/// they have used up their budget.
bool ShmDriver::hurries() const {
  return connections_.size() > pending_count_ || (pending_count_ > 0 && !limiter_.resting());
}

void ShmDriver::check_sockets() {
  epoll_event found[32];
  const int count = ::epoll_wait(epoll_.get(), found, 32, 0);
  for (int i = 0; i < count; ++i) handle(found[i].data.u64);
  if (waiting_ > 0) retry_waiting();
  serve_pending();
}

void ShmDriver::handle(std::uint64_t what) {
  const auto id = static_cast<std::uint32_t>(what);
  switch (static_cast<Tag>(what >> 32)) {
    case Tag::limiter:
      limiter_.ring();
      break;
    case Tag::listener:
      break;  // behind the limiter
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
  if (peer.state != Peer::State::up) return disconnect(peer);
  // A late ring is consumed. While armed it stays; otherwise the sleep would miss it.
  const bool armed = sleep_page_->sleep.load(std::memory_order_relaxed) != 0;
  switch (take_rings(peer.socket.get(), armed)) {
    case Rung::nothing:
    case Rung::rings:
      break;
    case Rung::malformed:
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
  disconnect(peer);
  peer.reason = name_of(peer) + " died or left" + more;
  peer.state = Peer::State::ending;
  peer.readable.store(false, std::memory_order_release);
  ending_.push_back(&peer);
  slow_poll_due_ = true;
}

/// Shows the peer the end of the connection, and stops watching its descriptors.
void ShmDriver::disconnect(Peer& peer) {
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
  disconnect(peer);
  news_.push_back(&peer);
  slow_poll_due_ = true;
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
  if (on == listening_ || !listener_) return true;
  listening_ = on;
  ::listen(listener_.get(), on ? SOMAXCONN : 0);
  if (!on) {
    limiter_.forget(listener_.get());
  } else if (!limiter_.watch(listener_.get(), tag(Tag::listener)) && errno != EEXIST) {
    listening_ = false;  // serve_pending() tries again
  }
  return listening_ == on;
}

/// Serves some of the unauthenticated peers: see net::AcceptLimiter.
void ShmDriver::serve_pending() {
  if (!listening_ && up_ < context_->size - 1) watch_listener(true);
  const bool patient = pending_count_ == 0 || pending_to_drop(true) == nullptr;
  if (!patient) limiter_.ring();
  if (!limiter_.rung() && !limiter_.resting()) return;
  const std::uint64_t now = context_->now_ns();
  if (!limiter_.begin_turn(now)) return;
  while (Connection* silent = pending_to_drop(true)) connection_failed(*silent, false, "silent for 30 s");
  epoll_event found[net::AcceptLimiter::most_events];
  const int count = limiter_.ready(found);
  // Pending ones first: each new connection may require that an old one is dropped.
  for (const Tag which : {Tag::connection, Tag::listener}) {
    for (int i = 0; i < count && limiter_.may_act(); ++i) {
      if (static_cast<Tag>(found[i].data.u64 >> 32) != which) continue;
      if (which == Tag::connection) {
        limiter_.act();
        if (Connection* pending = find(static_cast<std::uint32_t>(found[i].data.u64))) step(*pending);
      } else {
        while (limiter_.may_act() && listener_ && accept_pending()) {
        }
      }
    }
  }
  limiter_.end_turn(now);
}

/// Returns a pending connection that has been silent for too long, or (`silent` false) one to drop for another
/// connection. It is the one that has sent the fewest bytes, and the oldest of those.
Connection* ShmDriver::pending_to_drop(bool silent) {
  const std::uint64_t now = context_->now_ns();
  Connection* found = nullptr;
  for (const auto& [id, connection] : connections_) {
    if (!connection->pending || now - connection->since < (silent ? pending_limit_ns : net::pending_grace_ns)) continue;
    if (found == nullptr || connection->handshake.heard() < found->handshake.heard()) found = connection.get();
  }
  return found;
}

/// Accepts one connection from the kernel's queue. Returns false if there is none, or no room for it at present.
bool ShmDriver::accept_pending() {
  Connection* const goes = pending_count_ >= net::pending_allowed() ? pending_to_drop(false) : nullptr;
  if (goes == nullptr && pending_count_ >= net::pending_allowed()) return limiter_.note_unauthenticated(), false;
  net::UniqueFd socket = net::accept_one(listener_.get());
  if (!socket && (errno == EAGAIN || errno == EINTR)) return false;
  limiter_.act();
  if (!socket) {
    limiter_.note_unauthenticated();
    if (!accept_failures_.handle(*context_, listener_.get(), errno)) stop_listening();
    return false;
  }
  accept_failures_.note_accepted();
  Credentials who;
  if (!credentials_of(socket.get(), &who) || who.user != ::geteuid()) {
    limiter_.note_unauthenticated();
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
  made->pending = true;
  ++pending_count_;
  Connection& connection = *(connections_[id] = std::move(made));
  if (!limiter_.watch(connection.socket.get(), tag(Tag::connection, id))) {
    return connection_failed(connection, true, "it cannot be watched (epoll_ctl): " + net::error_text(errno)), true;
  }
  if (!limiter_.may_act()) return true;
  limiter_.act();
  step(connection);  // its first bytes are usually there already
  return true;
}

/// Closes the listener, which ends the attempts of peers that wait there.
void ShmDriver::stop_listening() {
  watch_listener(false);
  listener_.reset();
}

/// Drops all pending connections: descriptors are for ranks first.
void ShmDriver::drop_pending() {
  std::erase_if(connections_, [](const auto& entry) { return entry.second->pending; });
  pending_count_ = 0;
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
