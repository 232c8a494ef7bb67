// SPDX-License-Identifier: BSD-3-Clause
//
// poll() from the top down: messages, packets, bulk data, acknowledgements. See psm2_driver.hpp.
//
// libpsm2 ends the process if the sender of bulk data is dead when libpsm2 fetches the data. The driver therefore reads
// a number in the sender's memory just before. A moment remains in which the sender can die (README.md).
#include <algorithm>
#include <cstring>

#include "drivers/psm2/psm2_driver.hpp"

namespace canele::drivers::psm2 {
namespace {

constexpr std::uint32_t control_interval =
    16;  ///< polls between two checks of the control socket when no peer is expected.
constexpr std::uint32_t death_interval = 128;   ///< polls between two checks of the peers' processes.
constexpr std::size_t most_incoming = 3 << 19;  ///< of 2 MiB that a process's queue of answers holds.
constexpr std::size_t most_handshake = 512;
constexpr int most_pieces = 64;
constexpr int most_completions = 256;

}  // namespace

int Psm2Driver::poll_impl(int budget) {
  reported_ = 0;
  ++polls_;
  const bool connecting = !coordinator_->idle() || !attempts_.empty() || !unauthenticated_.empty() || local_peers_ == 0;
  const bool woken = std::exchange(woken_, false);
  if (connecting || woken || polls_ % control_interval == 0) connect_some();
  if (woken || polls_ % death_interval == 0) {
    check_processes();
    ask_launcher();
    check_queues();
  }
  if (!busy_.empty()) go_on();
  const bool quiet = receive_some(budget);
  if (!running_.empty()) reap();
  if (!owed_.empty()) say_ready();
  if (deaths_) bury(quiet);
  if (has_closed_) sweep();
  if (reported_ > 0) nap_ns_ = first_nap_ns;
  return reported_;
}

/// Receives messages. Returns true if libpsm2 has nothing more for this process.
bool Psm2Driver::receive_some(int budget) {
  // Rejected peers cost no budget, but must not hold this loop for ever.
  for (int tries = 0; budget > reported_ && tries < budget + 1024; ++tries) {
    psm2_mq_tag_t any = {};
    psm2_mq_req_t request = nullptr;
    psm2_mq_status2_t status;
    if (psm2_mq_improbe2(endpoint_.queue(), PSM2_MQ_ANY_ADDR, &any, &any, &request, &status) != PSM2_OK) return true;
    on_message(request, status);
  }
  return false;
}

void Psm2Driver::on_message(psm2_mq_req_t request, const psm2_mq_status2_t& status) {
  Message message;
  message.size = status.msg_length;
  message.request = request;
  auto* peer = static_cast<Peer*>(psm2_epaddr_getctxt(status.msg_peer));
  const bool ours = read_tag(status.msg_tag, &message.kind);
  message.began = (status.msg_tag.tag2 & flag_began) != 0;
  message.offered = message.size > endpoint_.eager_limit() || (status.msg_tag.tag2 & flag_offered) != 0;
  if (peer == nullptr && ours && message.kind == Kind::handshake && message.began)
    peer = on_first_message(status.msg_peer);
  if (peer == nullptr) {
    ++unauthenticated_rejected_;
    return discard(request);
  }
  const char* const wrong = ours ? wrong_with(*peer, message) : "a message with a tag of another program";
  if (wrong != nullptr) {
    discard(request);
    return break_off(*peer, std::string("it sent ") + wrong);
  }
  if (peer->state == Peer::State::up) take_note(*peer, status.msg_tag.tag1);
  if (peer->state == Peer::State::closed || message.kind == Kind::taken) return discard(request);
  if (peer->inbox.empty() && !peer->incoming && present(*peer, message)) return;
  if (peer->state == Peer::State::closed) {
    if (message.request != nullptr) discard(message.request);
    return;
  }
  peer->inbox.push_back(message);
  make_busy(*peer);
}

/// Returns what is wrong with a message of this peer, judged by its tag and size; null: nothing.
const char* Psm2Driver::wrong_with(const Peer& peer, const Message& message) const {
  const bool up = peer.state == Peer::State::up;
  const bool counts = message.kind == Kind::packet || message.kind == Kind::bulk_data;
  if (message.kind == Kind::handshake) {
    if (up) return "a handshake after the handshake";
    return message.size > 0 && message.size <= most_handshake ? nullptr : "a handshake of a wrong size";
  }
  if (!up) return "a message before the handshake";
  if (counts && peer.inbox.size() >= 2 * std::size_t{peer.granted} + 2) return "more messages than it may send";
  switch (message.kind) {
    case Kind::packet:
      return message.size > 0 && message.size <= capabilities_.max_packet ? nullptr : "a packet of a wrong size";
    case Kind::bulk_head:
      return message.size == bulk_head_size ? nullptr : "a head of bulk data of a wrong size";
    case Kind::bulk_data:
      return message.size > 0 && message.size <= capabilities_.max_bulk ? nullptr : "bulk data of a wrong size";
    default:
      return message.size == 0 ? nullptr : "a control message with data";
  }
}

/// Records how many messages the peer has taken.
void Psm2Driver::take_note(Peer& peer, std::uint32_t taken) {
  if (taken - peer.acknowledged > peer.sent - peer.acknowledged) {
    return break_off(peer, "it acknowledged messages that were never sent");
  }
  peer.acknowledged = taken;
}

/// Takes a message off libpsm2 without its data.
void Psm2Driver::discard(psm2_mq_req_t request) {
  psm2_mq_status2_t status;
  psm2_mq_imrecv(endpoint_.queue(), 0, nullptr, 0, nullptr, &request);
  psm2_mq_test2(&request, &status);  // if it is not complete, reap() finds it
}

/// Returns true if the operation is complete already; libpsm2 has then forgotten it.
bool Psm2Driver::test_completion(psm2_mq_req_t request, Operation& operation) {
  psm2_mq_status2_t status;
  operation.finished = psm2_mq_test2(&request, &status) == PSM2_OK;
  return operation.finished;
}

void Psm2Driver::make_busy(Peer& peer) {
  if (!peer.busy) busy_.push_back(&peer);
  peer.busy = true;
}

/// Processes a message. Returns true if it is finished; false: it has to wait, with all messages behind it.
bool Psm2Driver::present(Peer& peer, Message& message) {
  if (message.offered && message.request != nullptr && is_lost(peer)) {
    discard(std::exchange(message.request, nullptr));
    peer.dead = deaths_ = true;
    return true;
  }
  if (message.kind == Kind::bulk_data) return start_bulk(peer, message);
  if (!has_arrived(peer, message)) return false;
  if (message.kind == Kind::packet) return present_packet(peer, message);
  Operation& operation = *message.receiving;
  message.receiving = nullptr;
  const BulkHead head = message.kind == Kind::bulk_head ? unpack_head(operation.copy.data()) : BulkHead();
  switch (message.kind) {
    case Kind::handshake:
      if (takes_part(peer, message.began)) on_handshake(peer, {operation.copy.data(), message.size});
      break;
    case Kind::bulk_head:
      if (peer.head || head.size == 0 || head.size > capabilities_.max_bulk || head.offset + head.size < head.offset) {
        break_off(peer, "it sent a malformed head of bulk data");
      } else {
        peer.head = head;
      }
      break;
    default:  // good-bye: the last message
      peer.left = true;
      fail(peer, true, "it left (pid " + std::to_string(peer.terms.pid) + ")");
  }
  end_operation(operation);
  return true;
}

/// Returns true if what the peer has offered cannot be fetched any more.
bool Psm2Driver::is_lost(const Peer& peer) const {
  int error = 0;
  return peer.dead || (peer.local && checks_cma_ && peer.terms.probe != 0 && !can_read(peer, &error));
}

/// Receives a short message. Returns true if all of it has arrived.
bool Psm2Driver::has_arrived(Peer& peer, Message& message) {
  if (message.receiving == nullptr) {
    Operation& operation = start_operation(peer, false);
    operation.copy = take_buffer();
    psm2_mq_req_t request = std::exchange(message.request, nullptr);
    message.receiving = &operation;
    psm2_mq_imrecv(endpoint_.queue(), 0, operation.copy.data(), message.size, &operation, &request);
    test_completion(request, operation);
  }
  return message.receiving->finished;
}

bool Psm2Driver::present_packet(Peer& peer, Message& message) {
  Operation& operation = *message.receiving;
  const Take take = context_->events->packet(peer.rank, {operation.copy.data(), message.size});
  if (take == Take::retry) return false;
  message.receiving = nullptr;
  end_operation(operation);
  ++reported_;
  if (take == Take::rejected) {
    known_[static_cast<std::size_t>(peer.rank)] = Known::failed;
    forget(peer);
  } else {
    count_taken(peer);
  }
  return true;
}

/// Asks the engine where bulk data goes, and starts to receive it. Returns false if it must wait: other peers bring
/// enough.
bool Psm2Driver::start_bulk(Peer& peer, Message& message) {
  if (!peer.head || peer.head->size != message.size) {
    discard(std::exchange(message.request, nullptr));
    break_off(peer, "it sent bulk data without its head");
    return true;
  }
  if (peer.local && incoming_bytes_ > 0 && incoming_bytes_ + message.size > most_incoming) return false;
  IncomingBulk incoming;
  incoming.head = *peer.head;
  incoming.pieces.resize(most_pieces);
  const int count = context_->events->bulk_destination(peer.rank, incoming.head.transfer_id, incoming.head.offset,
                                                       message.size, incoming.pieces.data(), most_pieces);
  incoming.pieces.resize(static_cast<std::size_t>(std::max(count, 0)));
  peer.head.reset();
  if (incoming.pieces.empty()) {
    discard(std::exchange(message.request, nullptr));
    count_taken(peer);
    return true;
  }
  incoming.direct = count == 1 && incoming.pieces[0].iov_len == message.size;
  Operation& operation = start_operation(peer, false);
  incoming.receiving = &operation;
  if (!incoming.direct) operation.copy.resize(message.size);
  psm2_mq_req_t request = std::exchange(message.request, nullptr);
  psm2_mq_imrecv(endpoint_.queue(), 0, incoming.direct ? incoming.pieces[0].iov_base : operation.copy.data(),
                 message.size, &operation, &request);
  test_completion(request, operation);
  if (peer.local) incoming_bytes_ += message.size;
  peer.incoming = std::move(incoming);
  if (!finish_bulk(peer)) make_busy(peer);
  return true;
}

/// Returns true if no bulk data of this peer is on its way.
bool Psm2Driver::finish_bulk(Peer& peer) {
  if (!peer.incoming) return true;
  if (!peer.incoming->receiving->finished) return false;
  IncomingBulk incoming = std::move(*peer.incoming);
  peer.incoming.reset();
  if (peer.local) incoming_bytes_ -= incoming.head.size;
  if (incoming.direct) {
    context_->events->bulk_written(peer.rank, incoming.head.transfer_id, incoming.head.offset, incoming.head.size);
  } else {
    put_down(peer, incoming);
  }
  end_operation(*incoming.receiving);
  ++reported_;
  count_taken(peer);
  return true;
}

/// Copies what came in one piece to where the engine wants it, in as many parts as the engine asks for.
void Psm2Driver::put_down(Peer& peer, IncomingBulk& incoming) {
  const BulkHead& head = incoming.head;
  const std::byte* const from = incoming.receiving->copy.data();
  for (std::uint64_t done = 0;;) {
    std::uint64_t part = 0;
    for (const iovec& piece : incoming.pieces) {
      const std::size_t size = std::min<std::uint64_t>(piece.iov_len, head.size - done - part);
      std::memcpy(piece.iov_base, from + done + part, size);
      part += size;
    }
    if (part > 0) context_->events->bulk_written(peer.rank, head.transfer_id, head.offset + done, part);
    done += part;
    if (part == 0 || done == head.size) return;
    incoming.pieces.resize(most_pieces);
    const int count = context_->events->bulk_destination(peer.rank, head.transfer_id, head.offset + done,
                                                         head.size - done, incoming.pieces.data(), most_pieces);
    incoming.pieces.resize(static_cast<std::size_t>(std::max(count, 0)));
  }
}

/// Counts one more taken message. The peer has to be told after half of the limit.
void Psm2Driver::count_taken(Peer& peer) {
  ++peer.taken;
  acknowledge(peer);
}

bool Psm2Driver::owes_note(const Peer& peer) const {
  return peer.state == Peer::State::up && !peer.dead && !peer.left &&
         peer.taken - peer.told >= std::max(1u, peer.granted / 2);
}

void Psm2Driver::acknowledge(Peer& peer) {
  if (!owes_note(peer)) return;
  if (!acquire_queue(peer)) return make_busy(peer);
  post_small(peer, Kind::taken, nullptr, 0);
  release_queue(peer);
}

/// Continues the peers that had to wait.
void Psm2Driver::go_on() {
  // Callbacks may make other peers busy. So this goes by index, and covers only the present ones.
  const std::size_t count = busy_.size();
  for (std::size_t i = 0; i < count; ++i) drain(*busy_[i]);
  const auto is_done = [this](Peer* peer) {
    if (peer->state == Peer::State::closed) return false;  // sweep() takes it
    if (owes_note(*peer) || (peer->state == Peer::State::shaking && peer->handshake->wants_write())) return false;
    if (!peer->inbox.empty() || peer->incoming || !peer->fault.empty()) return false;
    peer->busy = false;
    return true;
  };
  busy_.erase(std::remove_if(busy_.begin(), busy_.end(), is_done), busy_.end());
}

void Psm2Driver::drain(Peer& peer) {
  if (peer.state == Peer::State::shaking) shake(peer);
  acknowledge(peer);
  while (peer.state != Peer::State::closed && finish_bulk(peer) && !peer.inbox.empty()) {
    Message message = peer.inbox.front();
    peer.inbox.pop_front();
    if (present(peer, message)) continue;
    if (peer.state != Peer::State::closed) peer.inbox.push_front(message);
    break;
  }
  if (peer.state != Peer::State::closed && !peer.fault.empty() && !peer.incoming) break_off(peer, peer.fault);
}

/// Handles the operations that libpsm2 has finished.
void Psm2Driver::reap() {
  psm2_mq_req_t request = nullptr;
  for (int i = 0; i < most_completions && psm2_mq_ipeek2(endpoint_.queue(), &request, nullptr) == PSM2_OK; ++i) {
    psm2_mq_status2_t status;
    if (psm2_mq_test2(&request, &status) != PSM2_OK) return;
    auto* const operation = static_cast<Operation*>(status.context);
    if (operation == nullptr) continue;  // discarded
    operation->finished = true;
    if (operation->peer != nullptr && !operation->sends) continue;  // its message finds it
    const Token token = operation->peer != nullptr ? operation->token : nullptr;
    end_operation(*operation);
    if (token == nullptr) continue;
    ++reported_;
    context_->events->done(token, Status::ok);
  }
}

void Psm2Driver::say_ready() {
  // ready() sends, which may be answered full again. So this covers only the ranks that are owed now.
  std::vector<Rank> owed;
  owed.swap(owed_);
  for (const Rank rank : owed) {
    Peer* const peer = peers_[static_cast<std::size_t>(rank)].get();
    if (peer == nullptr || peer->state != Peer::State::up || !peer->owes_ready || peer->dead || peer->left) continue;
    // With another sender in the queue, it would be full again at once. This process would then seem busy while the
    // sender needs the core.
    if (!peer->has_room() || copies_ > (8u << 20) || (peer->lease_page && peer->lease_page.holder() != 0)) {
      owed_.push_back(rank);
      continue;
    }
    peer->owes_ready = false;
    ++reported_;
    context_->events->ready(rank);
  }
}

/// Reports the dead peers, after everything that they had sent.
void Psm2Driver::bury(bool quiet) {
  bool waiting = false;
  const auto check = [&](Peer* peer) {
    if (peer == nullptr || !peer->dead || peer->state == Peer::State::closed) return;
    // What has not arrived by now never will: libpsm2 has nothing more of the dead peer.
    const bool stuck = quiet && peer->incoming && !finish_bulk(*peer);
    if (!quiet || (!peer->inbox.empty() && !stuck)) {
      waiting = true;
    } else if (peer->rank >= 0) {
      fail(*peer, true, "it died (pid " + std::to_string(peer->pid) + ")");
    } else {
      break_off(*peer, "it died");
    }
  };
  for (const auto& peer : peers_) check(peer.get());
  for (const auto& peer : unauthenticated_) check(peer.get());
  deaths_ = waiting;
}

}  // namespace canele::drivers::psm2
