// SPDX-License-Identifier: BSD-3-Clause
//
// From "can send to each other" to "proven", and the end of a peer. See psm2_driver.hpp.
//
// A peer object is never deleted where the driver finds that it is finished. It is marked closed, libpsm2's pointer to
// it is cleared, and sweep() deletes it at the end of poll().
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/psm2/psm2_driver.hpp"

namespace canele::drivers::psm2 {
namespace {

constexpr std::size_t most_unauthenticated = 64;
constexpr std::uint64_t authentication_patience_ns = 10'000'000'000;
constexpr std::size_t most_local_peers = 100;  ///< so that a queue of 1,024 slots holds everything that they may send
constexpr std::uint32_t remote_unacked_limit = 32;
constexpr int most_tries = 5;

}  // namespace

Status Psm2Driver::connect_impl(Rank rank, std::span<const std::byte> address) {
  Whereabouts where;
  if (rank == self_.rank || !unpack(address, &where) || where.endpoint == endpoint_.id()) return Status::failed;
  const auto index = static_cast<std::size_t>(rank);
  if (known_[index] == Known::failed || damaged_) return Status::failed;
  const bool here = where.host == own_.host;
  if (here && where.user != own_.user) return Status::failed;
  if (!here && (own_.memory_only || where.memory_only)) return Status::failed;
  if (peers_[index] != nullptr) return Status::pending;  // the peer connected first
  for (const auto& peer : unauthenticated_) {
    if (peer->expects != rank || peer->state == Peer::State::closed) continue;
    peer->wanted = true;  // the peer is about to connect
    return Status::pending;
  }
  if (here && coordinates_) {
    coordinator_->connect(rank, where);
  } else {
    attempts_.try_emplace(rank, Attempt{where, 0});
  }
  return Status::pending;
}

bool Psm2Driver::knows(Rank rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (damaged_) return true;
  const auto same = [rank](const auto& one) { return one->expects == rank && one->state != Peer::State::closed; };
  return known_[index] == Known::failed || peers_[index] != nullptr ||
         std::any_of(unauthenticated_.begin(), unauthenticated_.end(), same);
}

/// Advances all connections that are not up yet.
int Psm2Driver::connect_some() {
  bool moved = coordinator_->step(*this);
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    bool done = false;
    attempt(at->first, at->second, &done);
    moved = true;
    at = done ? attempts_.erase(at) : std::next(at);
  }
  drop_old_unauthenticated();
  return moved ? 1 : 0;
}

/// Connects to a peer of another host. There libpsm2's own thread answers, so this takes a moment, or two seconds if
/// the peer is dead.
void Psm2Driver::attempt(Rank rank, Attempt& attempt, bool* done) {
  psm2_epaddr_t address = nullptr;
  const psm2_error_t error = endpoint_.connect(attempt.where.endpoint, &address);
  *done = true;
  if (error == PSM2_OK) {
    Reached made;
    made.rank = rank;
    made.sought = true;
    made.address = address;
    made.incarnation = attempt.where.incarnation;
    if (attempt.where.host == own_.host) {
      made.pid = attempt.where.pid;
      made.process = net::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, made.pid, 0)));
    }
    reached(std::move(made));
  } else if (error == PSM2_TIMEOUT && ++attempt.tries < most_tries) {
    *done = false;
  } else {
    missed(rank, false, std::string("psm2_ep_connect: ") + psm2_error_get_string(error));
  }
}

void Psm2Driver::reached(Reached&& found) {
  Peer* peer = nullptr;
  if (found.sought) {
    auto& slot = peers_[static_cast<std::size_t>(found.rank)];
    if (slot != nullptr) return;  // accepted in the meantime
    if (auto* const faster = static_cast<Peer*>(psm2_epaddr_getctxt(found.address)); faster != nullptr) {
      faster->expects = found.rank;
      faster->wanted = true;
      return;
    }
    slot = std::make_unique<Peer>();
    peer = slot.get();
    peer->rank = found.rank;
    peer->address = found.address;
    psm2_epaddr_setctxt(found.address, peer);
  } else {
    peer = &add_unauthenticated(found.address);
    peer->expects = found.rank;
    peer->wanted = found.wanted;
  }
  peer->pid = found.pid;
  peer->process = std::move(found.process);
  alarm_.watch(peer->process.get());
  peer->lease_page = std::move(found.lease_page);
  psm2_epid_t id = 0;
  psm2_epaddr_to_epid(peer->address, &id);
  peer->local = endpoint_.shares_memory(id);
  peer->granted = peer->local ? local_unacked_limit_ : remote_unacked_limit;
  if (found.sought) {
    peer->handshake = net::Handshake::initiator(self_, *context_, found.rank, found.incarnation, own_terms(*peer));
    shake(*peer);
  }
}

void Psm2Driver::missed(Rank rank, bool lost, const std::string& reason) { report_failed(rank, lost, reason); }

/// Adds an unauthenticated peer: the two processes can send to each other. If there are too many, the oldest is
/// dropped.
Peer& Psm2Driver::add_unauthenticated(psm2_epaddr_t address) {
  if (unauthenticated_.size() >= most_unauthenticated) {
    ++unauthenticated_rejected_;
    forget(*unauthenticated_.front());
  }
  unauthenticated_.push_back(std::make_unique<Peer>());
  Peer& made = *unauthenticated_.back();
  made.address = address;
  made.since_ns = context_->now_ns();
  made.handshake = net::Handshake::acceptor(self_, *context_);
  psm2_epaddr_setctxt(address, &made);
  return made;
}

/// Handles the first message of an unknown process: from another host, or without the coordinator. Returns null in all
/// other cases.
Peer* Psm2Driver::on_first_message(psm2_epaddr_t address) {
  psm2_epid_t id = 0;
  if (psm2_epaddr_to_epid(address, &id) != PSM2_OK || (coordinates_ && endpoint_.shares_memory(id))) return nullptr;
  psm2_epaddr_t back = nullptr;
  if (endpoint_.connect(id, &back) != PSM2_OK || back != address) return nullptr;
  Reached made;
  made.address = address;
  if (endpoint_.shares_memory(id)) {
    made.pid = static_cast<std::int32_t>(id >> 32);  // how libpsm2 makes the id without hardware
    made.process = net::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, made.pid, 0)));
  }
  reached(std::move(made));
  return unauthenticated_.back().get();
}

/// Returns true if the message belongs to the handshake that continues. If both ends began one, the lower rank's
/// continues. False: the message belongs to an abandoned handshake.
bool Psm2Driver::takes_part(Peer& peer, bool began) {
  if (!peer.handshake || peer.state != Peer::State::shaking) return false;
  if (peer.handshake->is_initiator() != began) return true;
  if (!began || self_.rank < peer.rank) return false;
  peer.handshake = net::Handshake::acceptor(self_, *context_);
  return true;
}

void Psm2Driver::on_handshake(Peer& peer, std::span<const std::byte> bytes) {
  while (!bytes.empty() && peer.state == Peer::State::shaking) {
    const std::size_t part = std::min(peer.handshake->wanted(), bytes.size());
    if (part == 0) return break_off(peer, "more bytes than a handshake has");
    peer.handshake->feed(bytes.first(part));
    bytes = bytes.subspan(part);
    shake(peer);
  }
}

/// Sends what the handshake wants to send, and does what its state requires.
void Psm2Driver::shake(Peer& peer) {
  net::Handshake& handshake = *peer.handshake;
  while (peer.state == Peer::State::shaking) {
    if (handshake.wants_write()) {
      if (!acquire_queue(peer)) return make_busy(peer);
      const auto out = handshake.output();
      post_small(peer, Kind::handshake, out.data(), out.size());
      release_queue(peer);
      handshake.sent(out.size());
      continue;
    }
    std::string problem;
    switch (handshake.state()) {
      case net::Handshake::State::working:
        return;
      case net::Handshake::State::identified:
        on_identified(peer);
        break;
      case net::Handshake::State::done:
        if (!take_terms(peer, &problem)) return break_off(peer, problem);
        come_up(peer);
        break;
      case net::Handshake::State::failed:
        return break_off(peer, handshake.reason());
    }
  }
}

/// Handles an unauthenticated peer that has proven which rank it is.
void Psm2Driver::on_identified(Peer& peer) {
  const Rank rank = peer.handshake->peer();
  const auto index = static_cast<std::size_t>(rank);
  std::string problem;
  if (known_[index] == Known::failed) return peer.handshake->reject(net::Rejection::peer_failed);
  if (!take_terms(peer, &problem)) {
    context_->log(1, "rank " + std::to_string(rank) + " is rejected: " + problem);
    return peer.handshake->reject(net::Rejection::no_resources);
  }
  if ((peer.expects >= 0 && rank != peer.expects) || (peer.rank >= 0 && rank != peer.rank)) {
    return peer.handshake->reject(net::Rejection::wrong_rank);
  }
  if (peers_[index] != nullptr && peers_[index]->state == Peer::State::up) {
    return peer.handshake->reject(net::Rejection::already_connected);
  }
  accept(peer);
}

/// Turns an unauthenticated peer into a peer.
void Psm2Driver::accept(Peer& peer) {
  const Rank rank = peer.handshake->peer();
  auto& slot = peers_[static_cast<std::size_t>(rank)];
  coordinator_->drop(rank);
  attempts_.erase(rank);
  if (slot.get() != &peer) {
    const auto is_it = [&](const auto& one) { return one.get() == &peer; };
    const auto here = std::find_if(unauthenticated_.begin(), unauthenticated_.end(), is_it);
    assert(here != unauthenticated_.end());
    if (slot != nullptr) {  // this end's attempt to reach the peer by another way
      forget(*slot);
      unauthenticated_.push_back(std::move(slot));
    }
    slot = std::move(*here);
    unauthenticated_.erase(here);
  }
  peer.rank = rank;
  peer.handshake->accept(own_terms(peer));
}

std::array<std::byte, Terms::size> Psm2Driver::own_terms(const Peer& peer) const {
  Terms terms;
  terms.unacked_limit = peer.granted;
  terms.pid = own_.pid;
  terms.probe = reinterpret_cast<std::uintptr_t>(&probe_);
  terms.probe_value = probe_;
  terms.largest = capabilities_.max_packet;
  return pack(terms);
}

/// Reads the terms that the peer sent. Returns false, and why the peer does not fit.
bool Psm2Driver::take_terms(Peer& peer, std::string* problem) {
  Terms terms;
  if (!unpack(peer.handshake->payload(), &terms)) {
    *problem = "its psm2 driver has another version";
    return false;
  }
  if (terms.largest < capabilities_.max_packet) {
    *problem = "its packets are shorter than those of this rank (" + std::to_string(terms.largest) + " and " +
               std::to_string(capabilities_.max_packet) + " bytes): set PSM2_MQ_RNDV_*_THRESH alike in all ranks";
    return false;
  }
  if (peer.local && local_peers_ >= most_local_peers) {
    *problem = "libpsm2's queue has no room: this host has " + std::to_string(most_local_peers) + " peers already";
    return false;
  }
  peer.terms = terms;
  peer.unacked_limit = std::min(terms.unacked_limit, remote_unacked_limit);
  int error = 0;
  const bool fetches = capabilities_.max_bulk > capabilities_.max_packet;
  if (peer.local && fetches && checks_cma_ && !can_read(peer, &error) && error == EPERM) {
    *problem =
        "this process may not read the peer's memory, and libpsm2 ends a process that tries; set "
        "PSM2_KASSIST_MODE=none and CANELE_PSM2_CMA=off, or use another driver";
    return false;
  }
  return true;
}

/// Returns true if the number that the peer announced is where the peer said.
bool Psm2Driver::can_read(const Peer& peer, int* error) const {
  std::uint64_t value = 0;
  const iovec here = {&value, sizeof value};
  const iovec there = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(peer.terms.probe)), sizeof value};
  const ssize_t got = ::process_vm_readv(peer.pid, &here, 1, &there, 1, 0);
  *error = got < 0 ? errno : 0;
  return got == static_cast<ssize_t>(sizeof value) && value == peer.terms.probe_value;
}

void Psm2Driver::come_up(Peer& peer) {
  const auto index = static_cast<std::size_t>(peer.rank);
  peer.state = Peer::State::up;
  if (peer.local) ++local_peers_;
  ++reported_;
  Driver::met(peer.rank, peer.handshake->peer_incarnation());
  context_->events->connected(peer.rank);
  if (early_[index]) owe_ready(peer);
  early_[index] = false;
}

/// Ends a peer that breaks the protocol, or does not fit.
void Psm2Driver::break_off(Peer& peer, const std::string& reason) {
  if (peer.state == Peer::State::closed) return;
  const bool known = peer.rank >= 0 && peers_[static_cast<std::size_t>(peer.rank)].get() == &peer;
  if (known) return fail(peer, peer.state == Peer::State::up || peer.dead, reason);
  ++unauthenticated_rejected_;
  context_->log(2, "rejected an unauthenticated peer: " + reason);
  forget(peer);
  if (peer.wanted && known_[static_cast<std::size_t>(peer.expects)] != Known::failed) {
    report_failed(peer.expects, peer.dead, reason);
  }
}

void Psm2Driver::fail(Peer& peer, bool lost, const std::string& reason) {
  const Rank rank = peer.rank;
  forget(peer);
  report_failed(rank, lost, reason);
}

void Psm2Driver::report_failed(Rank rank, bool lost, const std::string& reason) {
  known_[static_cast<std::size_t>(rank)] = Known::failed;
  ++reported_;
  context_->events->failed(rank, lost, "psm2: rank " + std::to_string(rank) + ": " + reason);
}

/// Ends all work for this peer. What libpsm2 still does for it ends in this driver's memory.
void Psm2Driver::forget(Peer& peer) {
  if (peer.state == Peer::State::closed) return;
  if (peer.state == Peer::State::up && peer.local) --local_peers_;
  if (peer.incoming && peer.local) incoming_bytes_ -= peer.incoming->head.size;
  peer.incoming.reset();
  peer.state = Peer::State::closed;
  has_closed_ = true;
  if (psm2_epaddr_getctxt(peer.address) == &peer) psm2_epaddr_setctxt(peer.address, nullptr);
  for (Message& message : peer.inbox) {
    if (message.request != nullptr) discard(message.request);
  }
  peer.inbox.clear();
  for (Operation& operation : running_) {
    if (operation.peer == &peer) operation.peer = nullptr;
  }
}

void Psm2Driver::sweep() {
  const auto is_closed = [](const auto& peer) { return peer != nullptr && peer->state == Peer::State::closed; };
  busy_.erase(std::remove_if(busy_.begin(), busy_.end(), is_closed), busy_.end());
  unauthenticated_.remove_if(is_closed);
  for (auto& peer : peers_) {
    if (is_closed(peer)) peer.reset();
  }
  has_closed_ = false;
}

void Psm2Driver::drop_old_unauthenticated() {
  if (unauthenticated_.empty()) return;
  const std::uint64_t now = context_->now_ns();
  for (const auto& peer : unauthenticated_) {
    if (peer->state == Peer::State::shaking && now - peer->since_ns > authentication_patience_ns) {
      break_off(*peer, "it has not authenticated itself within 10 s");
    }
  }
}

/// Fails the peers whose queues in shared memory may be damaged. If a process died inside a queue, it is unknown which
/// locks and slots it left taken.
void Psm2Driver::check_queues() {
  const auto is_dead = [](const SenderLeasePage& lease_page, std::int32_t* who) {
    *who = lease_page ? lease_page.holder() : 0;
    return *who != 0 && has_exited(*who) && lease_page.holder() == *who;
  };
  std::int32_t who = 0;
  damaged_ = damaged_ || is_dead(coordinator_->lease_page(), &who);
  for (const auto& peer : peers_) {
    if (peer == nullptr || !peer->local || peer->dead || peer->state == Peer::State::closed || peer->incoming) continue;
    if (damaged_) {
      fail(*peer, false, "a process died while it sent to this rank: libpsm2's queue in shared memory may be damaged");
    } else if (is_dead(peer->lease_page, &who)) {
      fail(*peer, false,
           "process " + std::to_string(who) + " died while it sent to that rank: libpsm2's queue may be damaged");
    }
  }
}

/// Asks the launcher for deaths: with hardware nothing else reports them. Reported after everything that the dead
/// process had sent.
void Psm2Driver::ask_launcher() {
  for (Rank rank = context_->next_failed_rank(); rank >= 0; rank = context_->next_failed_rank()) {
    Peer* const peer = peers_[static_cast<std::size_t>(rank)].get();
    if (peer != nullptr && peer->state != Peer::State::closed) peer->dead = deaths_ = true;
  }
}

/// Checks all known processes with one system call.
void Psm2Driver::check_processes() {
  std::vector<pollfd> polled;
  std::vector<Peer*> who;
  const auto add = [&](Peer* peer) {
    if (peer == nullptr || peer->dead || peer->state == Peer::State::closed || !peer->process) return;
    polled.push_back({peer->process.get(), POLLIN, 0});
    who.push_back(peer);
  };
  for (const auto& peer : peers_) add(peer.get());
  for (const auto& peer : unauthenticated_) add(peer.get());
  if (polled.empty() || ::poll(polled.data(), polled.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) who[i]->dead = deaths_ = true;
  }
}

}  // namespace canele::drivers::psm2
