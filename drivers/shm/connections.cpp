// SPDX-License-Identifier: BSD-3-Clause
//
// How the shm driver makes connections: attempts, handshakes, the exchange of memory. See shm_driver.hpp.
//
// Two ranks may connect to each other at once. The rule of net::resolve_inbound() decides; a connection that waits for
// the outcome is deferred.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "drivers/shm/shm_driver.hpp"

namespace canele::drivers::shm {
namespace {

constexpr int most_attempts = 4;

std::string cannot_watch() { return "its socket cannot be watched (epoll_ctl): " + net::error_text(errno); }

}  // namespace

// ----------------------------------------------------------------------------------------- beginning a connection

Status ShmDriver::connect_impl(Rank rank, std::span<const std::byte> address) {
  AddressForm form;
  if (!unpack_address(address, &form) || form.host != address_.host) return Status::failed;
  if (rank == party_.rank) return Status::failed;
  Peer& peer = make_peer(rank);
  if (peer.state == Peer::State::failed) return Status::failed;
  if (form.user != address_.user) {
    fail(peer, false,
         "rank " + std::to_string(rank) + " belongs to another user (id " + std::to_string(form.user) +
             "; this rank to id " + std::to_string(address_.user) + "); shared memory is for ranks of one user");
    return Status::pending;
  }
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
  auto handshake = net::Handshake::initiator(party_, *context_, peer.rank, peer.address.incarnation, payload());
  auto& connection = *(connections_[id] = std::make_unique<Connection>(id, std::move(handshake)));
  connection.peer = &peer;
  ++waiting_;
  try_connect(connection);
  until_check_ = std::min(until_check_, setup_polls);
}

void ShmDriver::try_connect(Connection& connection) {
  connection.socket = connect_to(connection.peer->address.name);
  if (!connection.socket && net::is_out_of_descriptors(errno) && pending_count_ > 0) {
    drop_pending();
    connection.socket = connect_to(connection.peer->address.name);
  }
  if (!connection.socket) {
    if (errno == EAGAIN) return;  // check_sockets() tries again
    const bool exited = errno == ECONNREFUSED;
    const std::string why = exited ? "it has left: no socket listens at its address" : net::error_text(errno);
    return connection_failed(connection, !exited, why);
  }
  --waiting_;
  connection.phase = Connection::Phase::handshake;
  Credentials who;
  if (!credentials_of(connection.socket.get(), &who) || who.user != ::geteuid()) {
    return connection_failed(connection, false, "its socket belongs to another user");
  }
  connection.pid = who.pid;
  watch_connection(connection, true, false);
}

/// Watches the connection. Returns false if that failed; the connection has then failed, and no longer exists.
bool ShmDriver::watch_connection(Connection& connection, bool write, bool change) {
  connection.watches_write = write;
  if (watch(connection.socket.get(), tag(Tag::connection, connection.id), write, change)) return true;
  connection_failed(connection, true, cannot_watch());
  return false;
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

Connection* ShmDriver::find(std::uint32_t connection) {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : found->second.get();
}

void ShmDriver::drop(std::uint32_t connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  if (found->second->phase == Connection::Phase::waiting) --waiting_;
  if (found->second->pending) --pending_count_;
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
    case Connection::Phase::deferred:
      // The peer must send nothing before this end answers: it has given up, or violates the protocol.
      connection.peer->deferred = 0;
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
      // A pending connection is not watched for room: a fresh socket takes the few bytes of an answer; otherwise its
      // rank connects again.
      if (connection.pending && connection.handshake.wants_write()) {
        return connection_failed(connection, true, "its socket has no room for an answer");
      }
      if (connection.handshake.wants_write() != connection.watches_write) {
        watch_connection(connection, !connection.watches_write, true);
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
  net::Rejection rejection = net::Rejection::already_connected;
  if (peer.state == Peer::State::failed || peer.state == Peer::State::ending) rejection = net::Rejection::peer_failed;
  const bool up = peer.taken != 0 || peer.state != Peer::State::connecting;
  limiter_.proven();
  net::Inbound what =
      peer.deferred != 0 ? net::Inbound::reject : net::resolve_inbound(party_.rank, rank, peer.attempt != 0, up);
  if (what != net::Inbound::reject && !join(connection)) {
    once_.log(*context_, 1, "a rank is rejected: its connection cannot be watched (epoll_ctl)");
    what = net::Inbound::reject;
    rejection = net::Rejection::no_resources;
  }
  switch (what) {
    case net::Inbound::take:
      connection.peer = &peer;
      take(connection);
      break;
    case net::Inbound::defer:
      connection.peer = &peer;
      connection.phase = Connection::Phase::deferred;
      peer.deferred = connection.id;
      break;
    case net::Inbound::reject:
      connection.handshake.reject(rejection);
      step_handshake(connection);
      break;
  }
}

/// Moves a connection whose peer has proven to be a rank from behind the limiter to the connections that are served at
/// once.
bool ShmDriver::join(Connection& connection) {
  limiter_.forget(connection.socket.get());
  if (!watch(connection.socket.get(), tag(Tag::connection, connection.id), false, false)) return false;
  connection.pending = false;
  --pending_count_;
  return true;
}

/// Answers an inbound connection: it becomes the connection of its peer.
void ShmDriver::take(Connection& connection) {
  Peer& peer = *connection.peer;
  drop(std::exchange(peer.attempt, 0));
  peer.deferred = 0;
  peer.taken = connection.id;
  connection.phase = Connection::Phase::handshake;
  connection.handshake.accept(payload());
  step_handshake(connection);
}

/// Continues after the handshake: makes the memory to receive from the peer, and lends it.
void ShmDriver::begin_exchange(Connection& connection) {
  Peer& peer = *connection.peer;
  connection.phase = Connection::Phase::exchange;
  peer.taken = connection.id;
  peer.attempt = 0;
  HandshakePayload theirs;
  const auto payload = connection.handshake.payload();
  if (payload.size() == sizeof theirs) std::memcpy(&theirs, payload.data(), sizeof theirs);
  if (theirs.layout != layout_version) {
    return connection_failed(connection, false,
                             "its shared memory has layout " + std::to_string(theirs.layout) + ", that of this rank " +
                                 std::to_string(layout_version) + "; use one version of Canelé in all ranks");
  }
  connection.strict = !membarrier_ || theirs.membarrier == 0;
  connection.process = {connection.pid, theirs.nonce_address, theirs.nonce};
  connection.can_read = cma_ && theirs.nonce != Nonce{} && can_read(connection.process);
  std::string reason;
  connection.channel_in = make_shared(sizeof(Channel), backed_size, true, &connection.memfd, &reason);
  if (!connection.channel_in && pending_count_ > 0) {
    drop_pending();
    connection.channel_in = make_shared(sizeof(Channel), backed_size, true, &connection.memfd, &reason);
  }
  if (!connection.channel_in) return connection_failed(connection, true, reason);
  step_exchange(connection);
}

void ShmDriver::step_exchange(Connection& connection) {
  if (!connection.fds_sent) {
    const FdMessage own{FdMessage::expected_magic, connection.can_read ? 1u : 0u};
    const Transfer sent = send_fds(connection.socket.get(), own, connection.memfd.get(), sleep_memfd_.get());
    if (sent == Transfer::again) {
      if (!connection.watches_write) watch_connection(connection, true, true);
      return;
    }
    if (sent != Transfer::ok) return connection_failed(connection, true, "the connection ended during its set-up");
    connection.fds_sent = true;
    connection.memfd.reset();
    if (connection.watches_write && !watch_connection(connection, false, true)) return;
  }
  FdMessage fd_message;
  Lent lent;
  switch (receive_fds(connection.socket.get(), &fd_message, &lent)) {
    case Transfer::ok:
      return finish_exchange(connection, fd_message, std::move(lent));
    case Transfer::again:
      return;
    case Transfer::ended:
      return connection_failed(connection, true, "the connection ended during its set-up");
    case Transfer::no_descriptors:
      return connection_failed(connection, true, "no descriptors left; raise the limit (ulimit -n)");
    case Transfer::malformed:
      return connection_failed(connection, false, "its set-up message is malformed");
  }
}

void ShmDriver::finish_exchange(Connection& connection, const FdMessage& fd_message, Lent lent) {
  Peer& peer = *connection.peer;
  std::string reason;
  if (!is_lendable(lent.channel.get(), sizeof(Channel), &reason) ||
      !is_lendable(lent.sleep_page.get(), BroadcastSegment::file_size, &reason)) {
    return connection_failed(connection, false, reason);
  }
  peer.channel_out = map_shared(lent.channel.get(), sizeof(Channel), backed_size, true, &reason);
  if (peer.channel_out)
    peer.sleep_mapping =
        map_shared(lent.sleep_page.get(), BroadcastSegment::file_size, sizeof(SleepPage), false, &reason);
  if (!peer.sleep_mapping) return connection_failed(connection, true, reason);
  // Only a process that has proven its identity is watched: after a fork the socket may carry the parent's process id.
  if (connection.can_read) peer.process_end = watch_process(connection.pid);
  if (connection.can_read && !peer.process_end && (net::is_out_of_descriptors(errno) || errno == ENOMEM)) {
    return connection_failed(connection, true, "no descriptor to watch its process: " + net::error_text(errno));
  }
  const auto rank = static_cast<std::uint32_t>(peer.rank);
  if (!watch(connection.socket.get(), tag(Tag::peer, rank), false, true) ||
      (peer.process_end && !watch(peer.process_end.get(), tag(Tag::process, rank), false, false))) {
    return connection_failed(connection, true, cannot_watch());
  }
  peer.socket = std::move(connection.socket);
  peer.doorbell.store(peer.socket.get(), std::memory_order_release);
  peer.process = connection.process;
  peer.reads_us = cma_ && fd_message.reads_you == 1;
  attach_memory(connection);
  drop(std::exchange(peer.deferred, 0));
  drop(connection.id);
  count_up(1);
}

/// Completes the set-up once the memory of both ends is there: the peer is up.
void ShmDriver::attach_memory(Connection& connection) {
  Peer& peer = *connection.peer;
  peer.channel_in = std::move(connection.channel_in);
  peer.rx.attach(peer.channel_in.as<Channel>(), connection.strict);
  peer.cursor = {};
  peer.tx.attach(peer.channel_out.as<Channel>(), connection.strict, peer.rx.taken());
  met(peer.rank, connection.handshake.peer_incarnation());
  share_lines(peer.rank,
              {peer.channel_in.as<Channel>()->shared, peer.channel_out.as<Channel>()->shared, shared_line_count});
  peer.sleep_page = peer.sleep_mapping.as<SleepPage>();
  peer.segment.store(peer.sleep_mapping.as<std::byte>(), std::memory_order_release);
  peer.readable.store(connection.can_read, std::memory_order_release);
  peer.state = Peer::State::up;
  peer.open = peer.was_up = true;
  active_.push_back(&peer);
  // Lists that grow on the data path get their capacity here. Exact sizes would make the cost quadratic in the number
  // of peers.
  if (starved_.capacity() < active_.size()) starved_.reserve(2 * active_.size());
  if (news_.capacity() < 2 * active_.size()) news_.reserve(4 * active_.size());
  news_.push_back(&peer);
  slow_poll_due_ = true;
}

/// Ends a connection that failed. `local`: for lack of a resource here, or for an unknown reason (the next driver may
/// do better).
void ShmDriver::connection_failed(Connection& connection, bool local, const std::string& why) {
  const std::uint32_t id = connection.id;
  Peer* peer = connection.peer;
  const bool again = connection.handshake.may_retry();
  if (peer == nullptr) {
    limiter_.note_unauthenticated();
    once_.log(*context_, 2, "rejected a connection: " + why);
    return drop(id);
  }
  const pid_t pid = connection.pid;
  const std::string text = why;  // a copy: `why` may live in the connection
  drop(id);
  if (peer->state != Peer::State::connecting) return;
  if (peer->attempt == id) peer->attempt = 0;
  if (peer->taken == id) peer->taken = 0;
  if (Connection* deferred = find(peer->deferred)) return take(*deferred);
  if (again && peer->attempts < most_attempts) return begin_attempt(*peer);
  peer->process.pid = pid;
  fail(*peer, !local && !again, "rank " + std::to_string(peer->rank) + " cannot be reached: " + text);
}

}  // namespace canele::drivers::shm
