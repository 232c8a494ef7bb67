// SPDX-License-Identifier: BSD-3-Clause
//
// delay: holds packets and bulk pieces back on the sending side, in order, by the context's clock. See decorators.hpp.
//
// drivers/driver.hpp gives the threading. All data is copied (a send answers ok at once). Delayed data is sent from
// poll(), which then rings the receiver's doorbell itself. rma() is not delayed.
//
//   Lane (by peer):  | delayed | delayed | delayed |      front is sent when it is due and the wrapped driver takes it
//   in_flight_:      token ──▶ delayed              the wrapped driver still reads its bytes
//
// Rejected: one queue for all peers. A peer that reads nothing would delay the others.
#include <deque>
#include <unordered_map>

#include "drivers/decorators/decorator.hpp"

namespace canele::drivers {
namespace {

constexpr int close_polls = 10'000;  ///< for the data that is still delayed at the end

class Delay final : public Decorator {
 public:
  Delay(std::unique_ptr<Driver> wrapped, std::uint64_t ns, std::size_t room)
      : Decorator(std::move(wrapped)), delay_ns_(ns), room_(room) {}

 private:
  struct DelayedPacket {
    std::uint64_t due_ns = 0;
    bool bulk = false;
    std::uint64_t transfer_id = 0, offset = 0;
    std::vector<std::byte> bytes;
    Rank peer = -1;
  };
  struct Lane {
    std::deque<std::unique_ptr<DelayedPacket>> delayed;
    bool blocked = false;     ///< the wrapped driver owes this decorator a ready()
    bool owes_ready = false;  ///< this decorator owes the engine a ready()
    bool failed = false;
  };

  bool has_room(Lane& lane, std::size_t size) {
    if (delayed_bytes_ == 0 || delayed_bytes_ + size <= room_) return true;
    lane.owes_ready = true;
    return false;
  }
  Status delay(Rank peer, std::unique_ptr<DelayedPacket> delayed) {
    Lane& lane = lanes_[peer];
    if (lane.failed) return Status::failed;
    if (!has_room(lane, delayed->bytes.size())) return Status::full;
    append(peer, lane, std::move(delayed));
    return Status::ok;
  }
  void append(Rank peer, Lane& lane, std::unique_ptr<DelayedPacket> delayed) {
    delayed->due_ns = context().now_ns() + delay_ns_;
    delayed->peer = peer;
    delayed_bytes_ += delayed->bytes.size();
    lane.delayed.push_back(std::move(delayed));
  }
  Status delay(Rank peer, const iovec* pieces, int count, std::size_t size) {
    auto delayed = std::make_unique<DelayedPacket>();
    delayed->bytes = gather(pieces, count, size);
    return delay(peer, std::move(delayed));
  }

  Status send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override {
    const iovec pieces[2] = {{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}};
    return delay(peer, pieces, 2, head_size + body_size);
  }
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token) override {
    return delay(peer, pieces, count, size);
  }
  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token) override {
    auto delayed = std::make_unique<DelayedPacket>();
    delayed->bulk = true;
    delayed->transfer_id = transfer_id;
    delayed->offset = offset;
    delayed->bytes = gather(pieces, count, size);
    return delay(peer, std::move(delayed));
  }
  std::span<std::byte> reserve_impl(Rank peer, std::size_t size) override {
    Lane& lane = lanes_[peer];
    if (lane.failed || !has_room(lane, size)) return {};
    reserved_ = std::make_unique<DelayedPacket>();
    reserved_->bytes.resize(size);
    delayed_bytes_ += size;  // promised to the reservation
    return reserved_->bytes;
  }
  void commit_impl(Rank peer, std::size_t size) override {
    auto delayed = std::move(reserved_);
    delayed_bytes_ -= delayed->bytes.size();
    Lane& lane = lanes_[peer];
    if (size == 0 || lane.failed) return;
    delayed->bytes.resize(size);
    append(peer, lane, std::move(delayed));
  }

  int poll_impl(int budget) override {
    int events = Decorator::poll_impl(budget);
    if (delayed_bytes_ > 0) events += send_due(false);
    for (auto& [rank, lane] : lanes_) {
      if (!lane.owes_ready || lane.failed || delayed_bytes_ > room_ / 2) continue;
      lane.owes_ready = false;
      engine().ready(rank);
      ++events;
    }
    return events;
  }

  /// Sends what is due, or everything. Returns how many it sent: a poll that sent something must not return 0.
  int send_due(bool all) {
    int sent = 0;
    const std::uint64_t now = context().now_ns();
    for (auto& [rank, lane] : lanes_) {
      while (!lane.delayed.empty() && !lane.blocked && !lane.failed && (all || lane.delayed.front()->due_ns <= now)) {
        if (!send_front(rank, lane)) break;
        ++sent;
      }
    }
    return sent;
  }
  bool send_front(Rank rank, Lane& lane) {
    DelayedPacket& delayed = *lane.delayed.front();
    const iovec piece = {delayed.bytes.data(), delayed.bytes.size()};
    const Status status =
        delayed.bulk ? inner().bulk_send(rank, delayed.transfer_id, delayed.offset, &piece, 1, piece.iov_len, &delayed)
                     : inner().send_packet(rank, &piece, 1, piece.iov_len, &delayed);
    if (status == Status::full) {
      lane.blocked = true;
      return false;
    }
    delayed_bytes_ -= piece.iov_len;
    if (status == Status::pending) in_flight_[&delayed] = std::move(lane.delayed.front());
    lane.delayed.pop_front();  // failed: the wrapped driver reports it, or has done so
    if (inner().wants_wake(rank)) inner().wake(rank);
    return true;
  }

  bool arm_impl(bool on) override {
    // The descriptor does not become readable when delayed data is due.
    if (on && waits_for_time()) return false;
    return Decorator::arm_impl(on);
  }
  bool waits_for_time() const {
    for (const auto& [rank, lane] : lanes_) {
      if (!lane.failed && (lane.owes_ready || (!lane.delayed.empty() && !lane.blocked))) return true;
    }
    return false;
  }

  void close_impl() override {
    closing_ = true;
    for (int i = 0; i < close_polls && delayed_bytes_ > 0; ++i) {
      send_due(true);
      inner().poll(64);
    }
    Decorator::close_impl();
  }

  Take packet(Rank from, std::span<const std::byte> bytes) override {
    return closing_ ? Take::retry : Decorator::packet(from, bytes);
  }
  int bulk_destination(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length, iovec* out,
                       int max) override {
    return closing_ ? 0 : Decorator::bulk_destination(from, transfer_id, offset, length, out, max);
  }
  void bulk_written(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length) override {
    if (!closing_) Decorator::bulk_written(from, transfer_id, offset, length);
  }
  void done(Token token, Status status) override {
    if (in_flight_.erase(token) > 0 || closing_) return;
    Decorator::done(token, status);  // of an rma()
  }
  void ready(Rank rank) override { lanes_[rank].blocked = false; }
  void connected(Rank rank) override {
    if (!closing_) Decorator::connected(rank);
  }
  void failed(Rank rank, bool lost, std::string_view reason) override {
    Lane& lane = lanes_[rank];
    lane.failed = true;
    for (const auto& delayed : lane.delayed) delayed_bytes_ -= delayed->bytes.size();
    lane.delayed.clear();
    std::erase_if(in_flight_, [rank](const auto& entry) { return entry.second->peer == rank; });
    if (!closing_) Decorator::failed(rank, lost, reason);
  }

  const std::uint64_t delay_ns_;
  const std::size_t room_;
  std::size_t delayed_bytes_ = 0;
  std::map<Rank, Lane> lanes_;
  std::unordered_map<Token, std::unique_ptr<DelayedPacket>> in_flight_;
  std::unique_ptr<DelayedPacket> reserved_;
  bool closing_ = false;
};

}  // namespace

std::unique_ptr<Driver> make_delay(std::unique_ptr<Driver> inner, const OptionValues& options) {
  return std::make_unique<Delay>(std::move(inner), static_cast<std::uint64_t>(options.at("us") * 1000),
                                 static_cast<std::size_t>(options.at("room")));
}

}  // namespace canele::drivers
