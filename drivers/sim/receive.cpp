// SPDX-License-Identifier: BSD-3-Clause
//
// SimDriver: arrivals, and poll(). See sim_driver.hpp.
//
// A packet's bytes return to its sender's limit one latency after the receiver has taken the packet. A receiver
// that does not poll therefore blocks its senders.
#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "drivers/sim/sim_driver.hpp"

namespace canele::drivers::sim {

void SimDriver::arrived(Rank from, Frame frame) {
  if (frame.type == Frame::Type::packet || frame.type == Frame::Type::bulk || frame.type == Frame::Type::bye) {
    inbox_.push_back({from, std::move(frame)});
    return ring();
  }
  on_control(from, frame);
}

void SimDriver::on_control(Rank from, const Frame& frame) {
  Link& link = link_to(from);
  if (frame.type == Frame::Type::reject) return lose(from, "no process is there, or it rejects this rank");
  const bool other = link.incarnation != 0 && link.incarnation != frame.incarnation;
  if (other || link.state == State::failed) {  // a restarted process: it does not belong to this job
    Frame answer;
    answer.type = Frame::Type::reject;
    answer.incarnation = incarnation();
    answer.peer_incarnation = frame.incarnation;
    if (frame.type == Frame::Type::hello) fabric_->transmit(rank(), from, std::move(answer));
    return;
  }
  if (link.state == State::up) return;
  connection_up(from, link, frame.incarnation);
  Frame welcome;
  welcome.type = Frame::Type::welcome;
  if (frame.type == Frame::Type::hello) post(from, std::move(welcome));
}

void SimDriver::connection_up(Rank peer, Link& link, std::uint64_t its_incarnation) {
  link.state = State::up;
  link.incarnation = its_incarnation;
  met(peer, its_incarnation);
  if (capabilities_.shared_lines > 0)
    share_lines(peer, fabric_->lines(*this, peer, its_incarnation, shared_line_count));
  owe({Due::Kind::connected, peer});
  check_ready(peer);
}

void SimDriver::lose(Rank peer, const std::string& why, bool peer_lost) {
  Link& link = link_to(peer);
  if (link.state == State::failed || std::exchange(link.ending, true)) return;
  Frame end;
  end.type = Frame::Type::lost;
  end.why = why;
  end.peer_lost = peer_lost;
  inbox_.push_back({peer, std::move(end)});
  ring();
}

void SimDriver::lose_incarnation(Rank peer, std::uint64_t its_incarnation) {
  if (link_to(peer).incarnation == its_incarnation) lose(peer, "its process has ended");
}

/// Returns what this driver holds for that peer to the engine.
void SimDriver::fail(Rank peer, std::string why, bool peer_lost) {
  link_to(peer).state = State::failed;
  fabric_->forget_pending(rank(), peer);
  std::erase_if(due_, [peer](const Due& due) { return due.peer == peer; });
  owe({Due::Kind::failed, peer, "sim: rank " + std::to_string(peer) + ": " + std::move(why), nullptr, Status::failed,
       peer_lost});
}

/// Closes a peer that the engine rejected, for a reason that it knows; the peer is told.
void SimDriver::close_link(Rank peer, Link& link) {
  link.state = State::failed;
  fabric_->forget_pending(rank(), peer);
  std::erase_if(due_, [peer](const Due& due) { return due.peer == peer; });
  tell_rejected(peer);
}

void SimDriver::tell_rejected(Rank peer) {
  Frame reject;
  reject.type = Frame::Type::reject;
  post(peer, std::move(reject));
}

int SimDriver::poll_impl(int budget) {
  if (std::exchange(in_poll_, true)) fabric_->world.complain("poll() was entered twice");
  breathe(has_memory() ? 10 : 300);
  if (!capabilities_.detects_failure) {
    for (Rank dead = context_->next_failed_rank(); dead >= 0; dead = context_->next_failed_rank()) {
      lose(dead, "the launcher says that it died");
      tell_rejected(dead);  // in case another process has taken its place
    }
  }
  int events = pay(budget);  // connected() comes before packets
  std::set<Rank> deferred;   // keeps the packets of a peer in order
  std::vector<Arrival> kept;
  while (budget > events && !inbox_.empty()) {
    Arrival arrival = std::move(inbox_.front());
    inbox_.pop_front();
    Link& link = link_to(arrival.from);
    if (link.state == State::failed) continue;
    const bool early =
        (link.state != State::up && arrival.frame.type != Frame::Type::lost) || owes_connected(arrival.from);
    const Take take = early || deferred.contains(arrival.from) ? Take::retry : deliver(arrival.from, arrival.frame);
    if (take == Take::retry) {
      deferred.insert(arrival.from);
      kept.push_back(std::move(arrival));
      continue;
    }
    ++events;
    if (take == Take::rejected) close_link(arrival.from, link);
    done_with(arrival.from, arrival.frame);
  }
  inbox_.insert(inbox_.begin(), std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
  events += pay(budget);
  in_poll_ = false;
  return events;
}

/// Returns true if connected() is still owed. Time passes during a poll, so a connection may have come up that the
/// engine does not know yet.
bool SimDriver::owes_connected(Rank peer) const {
  return std::any_of(due_.begin(), due_.end(),
                     [peer](const Due& due) { return due.peer == peer && due.kind == Due::Kind::connected; });
}

/// Makes the callbacks that are owed.
int SimDriver::pay(int budget) {
  int events = 0;
  while (events < budget && !due_.empty()) {
    const Due due = std::move(due_.front());
    due_.pop_front();
    ++events;
    switch (due.kind) {
      case Due::Kind::connected:
        context_->events->connected(due.peer);
        break;
      case Due::Kind::failed:
        context_->events->failed(due.peer, due.peer_lost, due.why);
        break;
      case Due::Kind::ready:
        context_->events->ready(due.peer);
        break;
      case Due::Kind::done:
        context_->events->done(due.token, due.status);
        break;
    }
  }
  return events;
}

Take SimDriver::deliver(Rank from, Frame& frame) {
  switch (frame.type) {
    case Frame::Type::bulk:
      return deliver_bulk(from, frame);
    case Frame::Type::bye:
      fail(from, "it has closed the connection", true);
      return Take::taken;
    case Frame::Type::lost:
      fail(from, frame.why, frame.peer_lost);
      return Take::taken;
    default:
      return context_->events->packet(from, frame.bytes);
  }
}

/// Delivers bulk data piece by piece, as a socket would. There may be polls between asking where a piece goes and
/// writing it.
Take SimDriver::deliver_bulk(Rank from, Frame& frame) {
  while (frame.done < frame.bytes.size() && link_to(from).state == State::up) {
    if (frame.destination.empty() && !ask_where(from, frame)) return Take::taken;  // no receive wants the bytes
    if (fabric_->strikes(Fault::short_write, fabric_->rates.short_write)) return Take::retry;
    std::size_t part = 0;
    for (const iovec& piece : frame.destination) {
      std::memcpy(piece.iov_base, frame.bytes.data() + frame.done + part, piece.iov_len);
      part += piece.iov_len;
    }
    frame.destination.clear();
    frame.done += part;
    context_->events->bulk_written(from, frame.transfer_id, frame.offset + frame.done - part, part);
  }
  return Take::taken;
}

bool SimDriver::ask_where(Rank from, Frame& frame) {
  std::array<iovec, 8> pieces;
  std::size_t length = frame.bytes.size() - frame.done, covered = 0;
  if (length > 1 && fabric_->dice.chance(fabric_->rates.short_write)) length = 1 + fabric_->dice.under(length - 1);
  const int count = context_->events->bulk_destination(from, frame.transfer_id, frame.offset + frame.done, length,
                                                       pieces.data(), static_cast<int>(pieces.size()));
  frame.destination.assign(pieces.begin(), pieces.begin() + count);
  for (const iovec& piece : frame.destination) covered += piece.iov_len;
  if (covered > length) fabric_->world.complain("bulk_destination() gave more room than requested");
  return count > 0;
}

/// Returns the frame's bytes to the sender's limit.
void SimDriver::done_with(Rank from, const Frame& frame) {
  if (frame.charged == 0) return;
  fabric_->world.timeline.after(
      fabric_->options().model.latency_ns,
      [fabric = fabric_, from, to = rank(), peer = frame.incarnation, self = incarnation(), bytes = frame.charged] {
        SimDriver* const sender = fabric->driver_of(from);
        if (sender != nullptr && sender->incarnation() == peer) sender->returned(to, self, bytes);
      });
}

void SimDriver::returned(Rank peer, std::uint64_t its_incarnation, std::size_t bytes) {
  Link& link = link_to(peer);
  if (link.incarnation != its_incarnation) return;
  link.in_flight -= std::min(link.in_flight, bytes);
  check_ready(peer);
}

}  // namespace canele::drivers::sim
