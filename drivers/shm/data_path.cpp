// SPDX-License-Identifier: BSD-3-Clause
//
// The data path of the shm driver, from top to bottom: sends, arrivals, sleep. See shm_driver.hpp.
//
// events()->packet() may send, and a send may find that the peer writes malformed data. Here, a peer is therefore only
// marked as failed. report() releases its memory, when no caller up the stack uses it any more.
#include <linux/membarrier.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "drivers/shm/shm_driver.hpp"

namespace canele::drivers::shm {
namespace {

constexpr int slice = 32;  ///< packets taken from one peer before the next one has its turn
constexpr int pieces_at_once = 16;

/// Pauses between two polls that found nothing: the next poll waits for the last one. Without it the processor
/// speculates ahead and must restart when the line changes. It then also takes more from the core's other hardware
/// thread, which may be the sender. A `pause` has a similar effect but takes longer.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Prefetches the first lines of a packet while the engine looks for the receive. Not all of them: further prefetches
/// would wait for each other. Not those of a packet that is only a little longer: it would take longer.
void fetch_ahead(std::span<const std::byte> bytes) {
  constexpr std::size_t worth_it = 1536, most = 1024;
  if (bytes.size() < worth_it) return;
  for (std::size_t at = line_size; at <= most; at += line_size) fetch_line(bytes.data() + at);
}

void gather(std::byte* to, const iovec* pieces, int count, [[maybe_unused]] std::size_t size) {
  [[maybe_unused]] const std::byte* end = to + size;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    assert(to + pieces[i].iov_len <= end);
    std::memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
    to += pieces[i].iov_len;
  }
  assert(to == end);
}

}  // namespace

// ------------------------------------------------------------------------------------------------------ sends

Peer* ShmDriver::open_peer(Rank rank) const {
  Peer* peer = peers_[rank].load(std::memory_order_relaxed);
  return peer != nullptr && peer->open ? peer : nullptr;
}

/// Checks, after a store that the peer must see, whether the peer is asleep. The line stays in this core's cache while
/// the peer is awake.
inline void ShmDriver::note_sleep(Peer& peer) {
  const std::uint32_t sleep = peer.sleep_page->sleep.load(std::memory_order_seq_cst);
  if (sleep == 0 || sleep == peer.rung) [[likely]]
    return;
  peer.rung = sleep;
  if (!peer.wake_due) ++wakes_due_;
  peer.wake_due = true;
}

Status ShmDriver::send_inline_impl(Rank rank, const void* head, std::size_t head_size, const void* body,
                                   std::size_t body_size) {
  Peer* peer = open_peer(rank);
  if (peer == nullptr) return Status::failed;
  if (head_size + body_size > line_payload) return send_lines(*peer, head, head_size, body, body_size);
  Line* line = peer->tx.line();
  if (line == nullptr) return starve(*peer, 0);
  copy_small(line->payload, head, head_size);
  copy_small(line->payload + head_size, body, body_size);
  peer->tx.publish_small(head_size + body_size);
  note_sleep(*peer);
  return Status::ok;
}

/// Sends a packet that is too long for one line: in several lines if they are free, else in the data ring.
Status ShmDriver::send_lines(Peer& peer, const void* head, std::size_t head_size, const void* body,
                             std::size_t body_size) {
  if (!peer.tx.put_in_lines(head, head_size, body, body_size)) [[unlikely]] {
    const iovec pieces[] = {{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}};
    return send_record(peer, pieces, 2, head_size + body_size);
  }
  note_sleep(peer);
  return Status::ok;
}

/// Publishes a packet or a piece in the data ring.
inline void ShmDriver::publish_record(Peer& peer, std::size_t size, Kind kind, Place place) {
  peer.tx.publish_data(size, kind, place);
  note_sleep(peer);
  if (peer.tx.wants_whole()) [[unlikely]]
    back_whole_ring(peer);
}

/// Gives all of a ring memory, for a stream. One system call for a peer, and only for the first peers: a host with many
/// ranks would need too much memory.
[[gnu::cold]] void ShmDriver::back_whole_ring(Peer& peer) {
  constexpr int most_whole = 64;
  if (whole_rings_ == most_whole) return;
  auto* const rest = peer.channel_out.as<std::byte>() + backed_size;
  if (!populate(rest, sizeof(Channel) - backed_size, true)) return;
  peer.tx.whole();
  ++whole_rings_;
}

/// Sends a packet in the data ring.
[[gnu::noinline]] Status ShmDriver::send_record(Peer& peer, const iovec* pieces, int count, std::size_t size) {
  std::byte* to = peer.tx.data(size, Kind::packet);
  if (to == nullptr) return starve(peer, peer.tx.space_for(size, Kind::packet));
  gather(to, pieces, count, size);
  publish_record(peer, size, Kind::packet, {});
  return Status::ok;
}

Status ShmDriver::send_packet_impl(Rank rank, const iovec* pieces, int count, std::size_t size, Token) {
  Peer* peer = open_peer(rank);
  if (peer == nullptr) return Status::failed;
  assert(reserved_.peer != peer);
  if (size > line_payload) return send_record(*peer, pieces, count, size);
  Line* line = peer->tx.line();
  if (line == nullptr) return starve(*peer, 0);
  gather(line->payload, pieces, count, size);
  peer->tx.publish_small(size);
  note_sleep(*peer);
  return Status::ok;
}

Status ShmDriver::bulk_send_impl(Rank rank, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces,
                                 int count, std::size_t size, Token) {
  Peer* peer = open_peer(rank);
  if (peer == nullptr) return Status::failed;
  assert(reserved_.peer != peer && size <= largest_packet);
  std::byte* to = peer->tx.data(size, Kind::bulk);
  if (to == nullptr) return starve(*peer, peer->tx.space_for(size, Kind::bulk));
  gather(to, pieces, count, size);
  publish_record(*peer, size, Kind::bulk, {transfer_id, offset});
  return Status::ok;
}

std::span<std::byte> ShmDriver::reserve_impl(Rank rank, std::size_t size) {
  assert(reserved_.peer == nullptr);
  Peer* peer = open_peer(rank);
  if (peer == nullptr) return {};
  const bool in_line = size <= line_payload;
  Line* line = in_line ? peer->tx.line() : nullptr;
  std::byte* at = in_line ? (line == nullptr ? nullptr : line->payload) : peer->tx.data(size, Kind::packet);
  if (at == nullptr) {
    starve(*peer, in_line ? 0 : peer->tx.space_for(size, Kind::packet));
    return {};
  }
  reserved_ = {peer, in_line};
  return {at, size};
}

void ShmDriver::commit_impl([[maybe_unused]] Rank rank, std::size_t size) {
  const Reservation made = reserved_;
  assert(made.peer != nullptr && made.peer->rank == rank);
  reserved_ = {};
  if (size == 0 || !made.peer->open) return;
  if (!made.in_line) return publish_record(*made.peer, size, Kind::packet, {});
  made.peer->tx.publish_small(size);
  note_sleep(*made.peer);
}

/// Records that there is no room and that ready() is owed.
Status ShmDriver::starve(Peer& peer, std::size_t wanted) {
  if (peer.tx.broken()) {
    fail(peer, true, name_of(peer) + " wrote an impossible position into the shared ring");
    return Status::full;  // nothing was taken; failed() follows instead of ready()
  }
  peer.wanted = std::max(peer.wanted, wanted);
  if (!peer.starved) {
    peer.starved = true;
    slow_poll_due_ = true;
    starved_.push_back(&peer);  // has the capacity: see attach_memory()
    peer.tx.set_starved(true);
  }
  return Status::full;
}

bool ShmDriver::wants_wake_impl(Rank rank) {
  Peer* peer = peers_[rank].load(std::memory_order_relaxed);
  return peer != nullptr && std::exchange(peer->wake_due, false);
}

void ShmDriver::wake_impl(Rank rank) {
  const Peer* peer = peer_at(rank);
  const int doorbell = peer == nullptr ? -1 : peer->doorbell.load(std::memory_order_acquire);
  if (doorbell < 0) return;
  // If the peer cannot be woken, the end of its connection wakes it. This end sees it, too.
  if (!ring(doorbell)) ::shutdown(doorbell, SHUT_RDWR);
}

// --------------------------------------------------------------------------------------------------- arrivals

int ShmDriver::poll_impl(int budget) {
  if (--until_check_ <= 0 || slow_poll_due_) [[unlikely]]
    return poll_slow_path(budget);
  return poll_rings(budget);
}

/// Returns the ring whose turn it is. The list does not change between two calls within a poll: peers join in
/// check_sockets() and leave in report().
inline Peer& ShmDriver::next_ring() {
  if (++turn_ >= active_.size()) turn_ = 0;
  return *active_[turn_];
}

/// Returns true if there is something to take. A failed peer waits for report().
inline bool ShmDriver::takes(const Peer& peer, std::uint64_t mail) {
  return mail != 0 && peer.state != Peer::State::failed;
}

/// Looks once at every ring. With few rings it looks several times, until a message is there, because a call of this
/// function costs more than a peek. Handling a message is another function, reached by a tail call, so that a peek
/// saves no registers.
///
/// Where ranks share the processing units, one peek is enough. The sender of a message that has not arrived yet needs
/// this unit to run. There, the lines of all rings are prefetched at once, because new messages lie in other units'
/// caches.
inline int ShmDriver::poll_rings(int budget) {
  const std::size_t patience = gives_way_ ? 0 : 8;
  const std::size_t count = active_.size(), relaxes_at = gives_way_ ? count : 0;
  const std::size_t most = count == 0 ? 0 : std::max(count, patience);
  if (gives_way_) [[unlikely]] {
    for (const Peer* peer : active_) peer->rx.expect();
  }
  for (std::size_t round = 1; round <= most; ++round) {
    Peer& peer = next_ring();
    const std::uint64_t mail = peer.rx.peek();
    if (takes(peer, mail)) return drain_rings(&peer, mail, round < count ? count - round : 0, budget);
    if (turn_ == relaxes_at) relax();  // once a round, or never
  }
  return 0;
}

/// Takes what one ring has, and then looks at `others` more, the rest of the round.
int ShmDriver::drain_rings(Peer* peer, std::uint64_t mail, std::size_t others, int budget) {
  for (int events = 0;;) {
    events += receive(*peer, mail, std::min(budget - events, slice));
    do {
      if (others-- == 0 || events >= budget) return events;
      peer = &next_ring();
      mail = peer->rx.peek();
    } while (!takes(*peer, mail));
  }
}

/// Polls with everything that is seldom needed. Out of line, to keep it away from poll_rings(), which spins.
int ShmDriver::poll_slow_path(int budget) {
  if (until_check_ <= 0) consider_check();
  int events = report();
  events += poll_rings(budget);
  events += offer_room(budget);
  finish_endings();
  events += report();
  slow_poll_due_ = !news_.empty() || !starved_.empty() || !ending_.empty();
  return events;
}

/// Shows the engine the future packets, the next one included.
[[gnu::noinline]] void ShmDriver::show_ahead(Peer& peer) {
  for (;;) {
    const std::span<const std::byte> bytes = peer.rx.show_next(peer.cursor, DriverEvents::hints_ahead);
    if (bytes.empty()) return;
    events_->prefetch_hint(peer.rank, bytes);
  }
}

/// Takes packets out of a ring; `mail` announces the first. The first is taken by itself. Its sender may be writing
/// the line behind it, and a peek there would delay the sender and so the next message.
[[gnu::always_inline]] inline int ShmDriver::receive(Peer& peer, std::uint64_t mail, int budget) {
  if (events_->wants_hints) [[unlikely]]
    return receive_more(peer, mail, budget);
  if (!receive_one(peer, mail)) return 0;
  mail = peer.rx.peek();
  return mail == 0 || budget == 1 || !peer.open ? 1 : 1 + receive_more(peer, mail, budget - 1);
}

/// Takes more packets after a first one: several at once, if they are there.
[[gnu::noinline]] int ShmDriver::receive_more(Peer& peer, std::uint64_t mail, int budget) {
  int events = 0;
  do {
    int most = budget - events;
    if (events_->wants_hints) [[unlikely]] {
      show_ahead(peer);
      most = 1;
    }
    const int taken = receive_run(peer, mail, most);
    if (taken == 0) break;
    events += taken;
    mail = peer.rx.peek();
  } while (mail != 0 && events < budget && peer.open);
  return events;
}

/// Applies the engine's answer to a packet. Returns false if the packet stays where it is.
inline bool ShmDriver::is_taken(Peer& peer, Take answer) {
  if (answer == Take::rejected) [[unlikely]] {
    if (peer.state != Peer::State::failed) fail(peer, true, "rejected by the engine");
    peer.quiet = true;
  }
  return answer == Take::taken;
}

/// Presents a packet. Returns false if the packet stays where it is.
inline bool ShmDriver::give(Peer& peer, std::span<const std::byte> bytes) {
  return is_taken(peer, events_->packet(peer.rank, bytes));
}

/// Takes the next message, usually a packet inside its line. Returns false if it stays there, or the peer has failed.
[[gnu::always_inline]] inline bool ShmDriver::receive_one(Peer& peer, std::uint64_t mail) {
  const auto bytes = peer.rx.small(mail);
  if (bytes.empty()) [[unlikely]]
    return receive_longer(peer, mail);
  if (!give(peer, bytes)) [[unlikely]]
    return false;
  if (peer.rx.pop_line()) wake_if_starved(peer);
  return true;
}

/// Takes the next message, and those behind it that lie in lines of the same length. Returns how many were taken.
inline int ShmDriver::receive_run(Peer& peer, std::uint64_t mail, int most) {
  const auto bytes = peer.rx.small(mail);
  const int count = bytes.empty() ? 1 : peer.rx.count_small(mail, most);
  if (count == 1) return receive_one(peer, mail) ? 1 : 0;
  const RunTaken answer = events_->packets(peer.rank, {bytes.data(), line_size, bytes.size(), count});
  is_taken(peer, answer.next);
  if (answer.count != 0 && peer.rx.pop_each(answer.count)) wake_if_starved(peer);
  return answer.count;
}

/// Takes a packet in several lines. Returns as receive_one().
bool ShmDriver::receive_longer(Peer& peer, std::uint64_t mail) {
  const auto bytes = peer.rx.lines(mail);
  if (bytes.empty()) return receive_record(peer, mail);
  if (!give(peer, bytes)) [[unlikely]]
    return false;
  if (peer.rx.pop_lines(bytes.size())) wake_if_starved(peer);
  return true;
}

/// Takes a packet or a bulk piece in the data ring. Returns as receive_one().
bool ShmDriver::receive_record(Peer& peer, std::uint64_t mail) {
  const Arrival arrival = peer.rx.large(mail);
  if (!arrival.sound) return malformed(peer);
  if (arrival.kind == Kind::bulk) {
    write_bulk(peer, arrival);
  } else {
    fetch_ahead(arrival.bytes);
    if (!give(peer, arrival.bytes)) return false;
  }
  if (peer.rx.pop(arrival)) wake_if_starved(peer);
  return true;
}

bool ShmDriver::malformed(Peer& peer) {
  if (peer.state != Peer::State::failed) fail(peer, true, name_of(peer) + " wrote malformed data into the shared ring");
  return false;
}

/// Copies a bulk piece to where the engine wants it.
void ShmDriver::write_bulk(Peer& peer, const Arrival& arrival) {
  std::span<const std::byte> left = arrival.bytes;
  std::uint64_t at = arrival.place.at;
  while (!left.empty()) {
    iovec pieces[pieces_at_once];
    const int count =
        events_->bulk_destination(peer.rank, arrival.place.transfer_id, at, left.size(), pieces, pieces_at_once);
    if (count <= 0) return;  // no receive wants the bytes
    std::size_t written = 0;
    for (int i = 0; i < count; ++i) {
      const std::size_t size = pieces[i].iov_len;
      if (size == 0) continue;
      assert(size <= left.size());
      std::memcpy(pieces[i].iov_base, left.data(), size);
      left = left.subspan(size);
      written += size;
    }
    assert(written > 0);
    events_->bulk_written(peer.rank, arrival.place.transfer_id, at, written);
    at += written;
  }
}

/// Wakes the sender after progress was published. A sender that sleeps because it had no room must be woken here; no
/// send of the engine would wake it. One system call, at most once per sleep of that sender.
void ShmDriver::wake_if_starved(Peer& peer) {
  if (!peer.rx.sender_starved()) return;
  const std::uint32_t sleep = peer.sleep_page->sleep.load(std::memory_order_seq_cst);
  if (sleep == 0 || sleep == peer.rung) return;
  peer.rung = sleep;
  wake_impl(peer.rank);
}

int ShmDriver::offer_room(int budget) {
  int events = 0;
  for (std::size_t i = 0; i < starved_.size() && events < budget;) {
    Peer& peer = *starved_[i];
    const bool room = peer.open && peer.tx.room(peer.wanted);
    if (peer.open && peer.tx.broken()) {
      fail(peer, true, name_of(peer) + " wrote an impossible position into the shared ring");
    }
    if (peer.open && !room) {
      ++i;
      continue;
    }
    starved_[i] = starved_.back();
    starved_.pop_back();
    peer.starved = false;
    peer.wanted = 0;
    if (!peer.open) continue;
    peer.tx.set_starved(false);
    events_->ready(peer.rank);
    ++events;
  }
  return events;
}

/// Fails the peers that have ended, once everything that they sent is delivered.
void ShmDriver::finish_endings() {
  for (std::size_t i = 0; i < ending_.size();) {
    Peer& peer = *ending_[i];
    if (peer.state == Peer::State::ending && !peer.rx.empty()) {
      ++i;
      continue;
    }
    ending_[i] = ending_.back();
    ending_.pop_back();
    if (peer.state == Peer::State::ending) fail(peer, true, peer.reason);
  }
}

/// Tells the engine which peers came up or failed. Called where no callback is in progress.
int ShmDriver::report() {
  int events = 0;
  while (!news_.empty()) {
    Peer& peer = *news_.back();
    news_.pop_back();
    if (peer.was_up && !peer.told_up) {
      peer.told_up = true;
      events_->connected(peer.rank);
      ++events;
    }
    if (peer.state != Peer::State::failed || peer.told_failed) continue;
    peer.told_failed = true;
    active_.erase(std::remove(active_.begin(), active_.end(), &peer), active_.end());
    peer.rx.detach();
    if (peer.quiet) continue;  // the engine has asked for it
    events_->failed(peer.rank, peer.lost, peer.reason);
    ++events;
  }
  return events;
}

// ------------------------------------------------------------------------------------------------------ sleep

bool ShmDriver::arm_impl(bool on) {
  if (!on) {
    disarm();
    return true;
  }
  if (!news_.empty() || !ending_.empty() || waiting_ > 0) return false;
  if (limiter_.resting() && !limiter_.may_sleep(context_->now_ns())) return false;
  for (Peer* peer : active_) {
    if (peer->rx.tell()) wake_if_starved(*peer);
  }
  if (++sleeps_ == 0) ++sleeps_;
  sleep_page_->sleep.store(sleeps_, std::memory_order_seq_cst);
  // Each registered process now passes a full fence: it sees the store, or what it sent before is seen below. The
  // partner is note_sleep(). If the fence fails (it sometimes needs memory), there is no sleep.
  const bool fenced = !membarrier_ || ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
  if (fenced && !anything_there()) return true;
  sleep_page_->sleep.store(0, std::memory_order_release);
  return false;
}

bool ShmDriver::anything_there() {
  for (const Peer* peer : active_) {
    if (!peer->rx.empty()) return true;
  }
  for (Peer* peer : starved_) {
    if (!peer->open || peer->tx.room(peer->wanted) || peer->tx.broken()) return true;
  }
  return false;
}

void ShmDriver::disarm() {
  sleep_page_->sleep.store(0, std::memory_order_release);
  check_sockets();  // a socket woke this process: consume the ring, or see the end
  last_socket_check_ = context_->now_ns();
}

// ------------------------------------------------------------------------------------------------------- bulk

Status ShmDriver::register_memory_impl(Rank rank, RmaOp, const iovec* pieces, int count, MemoryKey* rkey) {
  if (rank == all_peers) return segment_.put(pieces, count, rkey) ? Status::ok : Status::failed;
  const Peer* peer = open_peer(rank);
  if (peer == nullptr || !peer->reads_us) return Status::failed;
  return write_rkey(pieces, count, rkey) ? Status::ok : Status::failed;
}

/// Returns whether the peer's process is the one that it was, so that its memory may be copied.
bool ShmDriver::is_same_process(const Peer& peer) const {
  const std::uint64_t now = context_->now_ns();
  const std::uint64_t proven = peer.proven_ns.load(std::memory_order_relaxed);
  if (proven != 0 && now - proven < proof_lasts_ns) return true;
  if (!can_read(peer.process)) return false;
  peer.proven_ns.store(now, std::memory_order_relaxed);
  return true;
}

Status ShmDriver::rma_impl(Rank rank, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset,
                           const iovec* pieces, int count, std::size_t size, Token) {
  const Peer* peer = peer_at(rank);
  if (peer == nullptr) return Status::failed;
  const bool in_segment = op == RmaOp::get && BroadcastSegment::is_named_by(rkey);
  if (!in_segment && (!peer->readable.load(std::memory_order_acquire) || !is_same_process(*peer)))
    return Status::failed;
  constexpr std::size_t worth_asking = 128 * 1024;
  const bool asks = op == RmaOp::get && size >= worth_asking;
  const std::uint64_t begin = asks ? context_->now_ns() : 0;
  if (asks) fresh_pages_.make(pieces, count);
  const bool well = in_segment ? BroadcastSegment::copy_out(peer->segment.load(std::memory_order_acquire), rkey, offset,
                                                            pieces, count, size)
                               : copy_remote(peer->process, op, rkey, offset, pieces, count, size);
  if (asks) fresh_pages_.copied(size, context_->now_ns() - begin);
  return well ? Status::ok : Status::failed;
}

}  // namespace canele::drivers::shm
