// SPDX-License-Identifier: BSD-3-Clause
//
// The self driver: a rank sends to itself through a bounded ring in its own memory.
//
// This is the worked example for authors of drivers. It implements every function of the contract that a memory driver
// supports, in the simplest correct form. self_factory makes it; drivers/driver.hpp says how it is called. The engine
// serialises all calls, except wake() and rma().
//
// It is memory_only: except for open, close and wake, nothing here makes a system call, and no call copies more than
// max_packet bytes. Bulk data therefore moves by at most that much per poll().
//
//   ring_:  … | size kind  bytes … | size kind  bytes … | (skip) |    records, 8-byte aligned, never split: what does
//              head_ ──▶ poll()                       tail_ ◀── send    not fit before the end goes to the front
//
// Rejected: a list of packets. It would allocate for each, and have no natural bound.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "drivers/self/self.hpp"

namespace canele::drivers {
namespace {

constexpr std::size_t ring_size = 64 * 1024;  // a power of two
constexpr std::size_t max_packet = 16 * 1024;
constexpr std::size_t most_pieces = (MemoryKey::max_size - sizeof(std::uint64_t)) / sizeof(iovec);

enum class Kind : std::uint32_t { packet, bulk, skip };
struct Record {
  std::uint32_t size;  ///< number of payload bytes that follow, without padding
  Kind kind;
};
constexpr std::size_t record_size(std::size_t payload) { return sizeof(Record) + ((payload + 7) & ~std::size_t{7}); }

/// Begins the payload of a bulk record.
struct BulkHead {
  std::uint64_t transfer_id, offset;
};

/// Content of a MemoryKey's bytes: pointers of this process, as the rkey never leaves it.
struct RegisteredPieces {
  std::uint64_t count;
  iovec pieces[most_pieces];
};

class SelfDriver final : public Driver {
 public:
  ~SelfDriver() override { close_impl(); }

 private:
  Status open_impl(DriverContext& context, Address* address, std::string* reason) override {
    context_ = &context;
    bell_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (bell_ < 0) {
      *reason = "self: no descriptor for the doorbell left (ulimit -n)";
      return Status::failed;
    }
    address->assign(1, std::byte{0});  // only this rank connects to it; its presence says that the driver runs
    capabilities_.name = "self";
    capabilities_.memory_only = true;
    capabilities_.max_inline = 64;
    capabilities_.max_packet = max_packet;
    capabilities_.reserves = true;
    capabilities_.bulk_stream = true;
    capabilities_.max_bulk = max_packet - sizeof(BulkHead);
    capabilities_.get = capabilities_.put = capabilities_.rma_any_thread = true;
    capabilities_.rkey_size = MemoryKey::max_size;
    capabilities_.wake_up = WakeUp::doorbell;
    capabilities_.reaches_self = true;
    capabilities_.latency_ns = 100;
    capabilities_.bandwidth = 10.0;
    return Status::ok;
  }

  Status connect_impl(Rank peer, std::span<const std::byte>) override {
    if (peer != context_->rank || state_ == State::failed) return Status::failed;
    if (state_ == State::unknown) {
      ring_.resize(ring_size);  // allocated here: most ranks never send to themselves
      state_ = State::connecting;
    }
    return Status::pending;
  }

  Status send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override {
    const iovec pieces[2] = {{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}};
    return send_packet_impl(peer, pieces, 2, head_size + body_size, nullptr);
  }

  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token) override {
    if (state_ == State::failed) return Status::failed;
    const std::span<std::byte> room = reserve_impl(peer, size);
    if (room.empty()) return Status::full;
    std::byte* to = room.data();
    for (int i = 0; i < count; ++i) {
      std::copy_n(static_cast<const std::byte*>(pieces[i].iov_base), pieces[i].iov_len, to);
      to += pieces[i].iov_len;
    }
    commit_impl(peer, size);
    return Status::ok;
  }

  std::span<std::byte> reserve_impl(Rank, std::size_t size) override {
    // The record must not be split: skip the rest of the ring if it is too short.
    const std::size_t to_end = ring_size - tail_ % ring_size;
    const std::size_t skipped = to_end < record_size(size) ? to_end : 0;
    if (state_ != State::up || tail_ - head_ + skipped + record_size(size) > ring_size) {
      owes_ready_ = true;  // poll() calls ready() when there is room
      return {};
    }
    reserved_ = tail_ + skipped;
    return {at(reserved_) + sizeof(Record), size};
  }

  void commit_impl(Rank, std::size_t size) override {
    if (size > 0) append(Kind::packet, size);
  }

  /// Ends the reservation with a record of `size` bytes.
  void append(Kind kind, std::size_t size) {
    if (reserved_ != tail_)
      write_record(tail_, {static_cast<std::uint32_t>(reserved_ - tail_ - sizeof(Record)), Kind::skip});
    write_record(reserved_, {static_cast<std::uint32_t>(size), kind});
    tail_ = reserved_ + record_size(size);
    rings_ = armed_;
    wakes_due_ = rings_ ? 1 : 0;
  }

  /// Copies the bytes into the ring, in order with the packets.
  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token) override {
    if (state_ == State::failed) return Status::failed;
    const std::span<std::byte> room = reserve_impl(peer, sizeof(BulkHead) + size);
    if (room.empty()) return Status::full;
    const BulkHead head = {transfer_id, offset};
    std::memcpy(room.data(), &head, sizeof head);
    const iovec to = {room.data() + sizeof head, size};
    [[maybe_unused]] const std::size_t copied = copy({pieces, static_cast<std::size_t>(count)}, 0, {&to, 1}, size);
    assert(copied == size);
    append(Kind::bulk, sizeof head + size);
    return Status::ok;
  }

  Status register_memory_impl(Rank, RmaOp, const iovec* pieces, int count, MemoryKey* rkey) override {
    if (count < 0 || static_cast<std::size_t>(count) > most_pieces) return Status::failed;
    RegisteredPieces registered = {static_cast<std::uint64_t>(count), {}};
    std::copy_n(pieces, count, registered.pieces);
    rkey->size = static_cast<std::uint16_t>(sizeof(std::uint64_t) + static_cast<std::size_t>(count) * sizeof(iovec));
    std::memcpy(rkey->bytes, &registered, rkey->size);
    return Status::ok;
  }

  /// Uses no member, so any thread may call it at any time.
  Status rma_impl(Rank, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces, int count,
                  std::size_t size, Token) override {
    RegisteredPieces named = {};
    if (rkey.size() < sizeof named.count || rkey.size() > sizeof named) return Status::failed;
    std::memcpy(&named, rkey.data(), rkey.size());
    if (named.count > most_pieces || rkey.size() != sizeof named.count + named.count * sizeof(iovec))
      return Status::failed;
    const std::span<const iovec> theirs{named.pieces, static_cast<std::size_t>(named.count)};
    const std::span<const iovec> ours{pieces, static_cast<std::size_t>(count)};
    const bool get = op == RmaOp::get;
    return copy(theirs, offset, ours, size, get) == size ? Status::ok : Status::failed;
  }

  /// Copies up to `size` bytes between `from`, beginning at `offset`, and `to`; returns how many. `forth` false
  /// reverses the direction.
  static std::size_t copy(std::span<const iovec> from, std::uint64_t offset, std::span<const iovec> to,
                          std::size_t size, bool forth = true) {
    std::size_t copied = 0, to_at = 0, to_done = 0;
    for (const iovec& piece : from) {
      if (offset >= piece.iov_len) {
        offset -= piece.iov_len;
        continue;
      }
      while (offset < piece.iov_len && copied < size && to_at < to.size()) {
        const std::size_t part = std::min({piece.iov_len - offset, size - copied, to[to_at].iov_len - to_done});
        char* const there = static_cast<char*>(to[to_at].iov_base) + to_done;
        char* const here = static_cast<char*>(piece.iov_base) + offset;
        std::memcpy(forth ? there : here, forth ? here : there, part);
        copied += part;
        offset += part;
        to_done += part;
        if (to_done == to[to_at].iov_len) ++to_at, to_done = 0;
      }
      offset = 0;
    }
    return copied;
  }

  int poll_impl(int budget) override {
    int events = 0;
    if (state_ == State::connecting) {
      state_ = State::up;
      ++events;
      context_->events->connected(context_->rank);
    }
    while (budget-- > 0 && head_ != tail_ && state_ == State::up) {
      Record record;
      std::memcpy(&record, at(head_), sizeof record);
      if (record.kind == Kind::bulk) {
        events += move_bulk(record.size);
      } else if (record.kind == Kind::packet) {
        const Take take = context_->events->packet(context_->rank, {at(head_) + sizeof record, record.size});
        if (take == Take::rejected) state_ = State::failed;
        if (take != Take::taken) return events;
        ++events;
      }
      head_ += record_size(record.size);
    }
    if (owes_ready_ && state_ == State::up && ring_size - (tail_ - head_) >= 2 * record_size(max_packet)) {
      owes_ready_ = false;
      ++events;
      context_->events->ready(context_->rank);
    }
    return events;
  }

  /// Moves the bytes of a bulk record where the engine says. Drops the rest of a transfer that no receive wants.
  int move_bulk(std::size_t size) {
    BulkHead head;
    std::memcpy(&head, at(head_) + sizeof(Record), sizeof head);
    const iovec from = {at(head_) + sizeof(Record) + sizeof head, size - sizeof head};
    std::array<iovec, 64> pieces;
    for (std::size_t moved = 0; moved < from.iov_len;) {
      const int count =
          context_->events->bulk_destination(context_->rank, head.transfer_id, head.offset + moved,
                                             from.iov_len - moved, pieces.data(), static_cast<int>(pieces.size()));
      if (count <= 0) return 1;
      const std::size_t part =
          copy({&from, 1}, moved, {pieces.data(), static_cast<std::size_t>(count)}, from.iov_len - moved);
      assert(part > 0);
      context_->events->bulk_written(context_->rank, head.transfer_id, head.offset + moved, part);
      moved += part;
    }
    return 1;
  }

  int descriptor_impl() const override { return bell_; }
  bool arm_impl(bool on) override {
    if (!on) {
      disarm();
      return true;
    }
    armed_ = head_ == tail_ && state_ != State::connecting;
    return armed_;
  }
  void disarm() {
    armed_ = rings_ = false;
    wakes_due_ = 0;
    std::uint64_t rings;
    [[maybe_unused]] const ssize_t n = ::read(bell_, &rings, sizeof rings);
  }
  bool wants_wake_impl(Rank) override { return std::exchange(rings_, false); }
  void wake_impl(Rank) override {
    const std::uint64_t one = 1;
    // A full counter fails, but the bell is already readable.
    [[maybe_unused]] const ssize_t n = ::write(bell_, &one, sizeof one);
  }
  void close_impl() override {
    if (bell_ >= 0) ::close(std::exchange(bell_, -1));
  }

  std::byte* at(std::uint64_t position) { return ring_.data() + position % ring_size; }
  void write_record(std::uint64_t position, Record record) { std::memcpy(at(position), &record, sizeof record); }

  enum class State : std::uint8_t { unknown, connecting, up, failed };
  DriverContext* context_ = nullptr;
  State state_ = State::unknown;
  bool owes_ready_ = false, armed_ = false, rings_ = false;
  int bell_ = -1;
  std::uint64_t head_ = 0, tail_ = 0, reserved_ = 0;  ///< monotonic positions
  std::vector<std::byte> ring_;
};

}  // namespace

const DriverFactory self_factory = {contract_version, "self", "a rank to itself, through its own memory",
                                    []() -> std::unique_ptr<Driver> { return std::make_unique<SelfDriver>(); },
                                    []() { return std::string(); }};

}  // namespace canele::drivers
