// SPDX-License-Identifier: BSD-3-Clause
//
// SimDriver: the driver contract on a simulated fabric, as unpredictable as the contract allows.
//
// Made by sim_factory. The engine calls it as drivers/driver.hpp says, and its Fabric calls it when something arrives.
// Everything runs on one thread, in fibers; every function that the engine calls may lose its core in `breathe`.
//
//   Fabric ──arrived()──▶ inbox_ ──poll()──▶ DriverEvents::packet      retry: back to the front of inbox_
//                         due_   ──poll()──▶ connected, failed, ready, done
//
// Memory fabrics deliver at once, as shared memory has no wire with frames in flight: the sender spends the time.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/sim/fabric.hpp"

namespace canele::drivers::sim {

class SimDriver final : public Driver {
 public:
  static constexpr int shared_line_count = 17;

  Rank rank() const { return context_->rank; }
  std::uint64_t incarnation() const { return context_->incarnation; }

  // by the fabric
  void arrived(Rank from, Frame frame);
  bool knows(Rank peer) const { return links_.contains(peer); }
  bool is_up(Rank peer) const {
    const auto link = links_.find(peer);
    return link != links_.end() && link->second.state == State::up && !link->second.ending;
  }
  /// Makes failed() follow, after everything that has arrived, unless it was called already.
  void lose(Rank peer, const std::string& why, bool peer_lost = true);
  /// Drops the unread arrivals from `peer`, as the reset of a connection does.
  void discard(Rank peer) {
    std::erase_if(inbox_, [peer](const Arrival& arrival) {
      const Frame::Type type = arrival.frame.type;
      return arrival.from == peer && (type == Frame::Type::packet || type == Frame::Type::bulk);
    });
  }
  void lose_incarnation(Rank peer, std::uint64_t incarnation);
  void sent(Rank peer, Token token) { owe({Due::Kind::done, peer, {}, token, Status::ok}); }

 private:
  enum class State : std::uint8_t { unknown, connecting, up, failed };
  struct Link {
    State state = State::unknown;
    std::uint64_t incarnation = 0;  ///< of the peer
    std::size_t in_flight = 0;
    std::uint64_t shut_until = 0;  ///< back-pressure
    bool owes_ready = false;
    bool rings = false;   ///< the last send found the receiver asleep
    bool ending = false;  ///< failed() will follow
  };
  struct Due {
    enum class Kind : std::uint8_t { connected, failed, ready, done };
    Kind kind;
    Rank peer;
    std::string why = {};
    Token token = nullptr;
    Status status = Status::ok;
    bool peer_lost = true;
  };
  struct Arrival {
    Rank from;
    Frame frame;
  };
  /// Content of an rkey's bytes.
  struct RegionName {
    std::uint64_t region;
    std::int64_t rank;
  };

  Status open_impl(DriverContext& context, Address* address, std::string* reason) override;
  Status connect_impl(Rank peer, std::span<const std::byte> address) override;
  Status send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override;
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) override;
  std::span<std::byte> reserve_impl(Rank peer, std::size_t size) override;
  void commit_impl(Rank peer, std::size_t size) override;
  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override;
  Status register_memory_impl(Rank peer, RmaOp op, const iovec* pieces, int count, MemoryKey* rkey) override;
  void deregister_impl(std::uint64_t handle) override;
  Status rma_impl(Rank peer, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces,
                  int count, std::size_t size, Token token) override;
  int poll_impl(int budget) override;
  int descriptor_impl() const override { return bell_; }
  bool arm_impl(bool on) override;
  bool wants_wake_impl(Rank peer) override;
  void wake_impl(Rank peer) override;
  void close_impl() override;

  void fill_capabilities();
  bool has_memory() const { return kind_ == Kind::memory || kind_ == Kind::ring; }
  Link& link_to(Rank peer) { return links_[peer]; }
  Status check_room(Link& link, Rank peer, std::size_t size);
  Status send(Rank peer, Frame frame, const iovec* pieces, int count, std::size_t size, Token token);
  void post(Rank peer, Frame frame);
  void hand_over(Rank peer, Link& link, Frame frame);
  void returned(Rank peer, std::uint64_t incarnation, std::size_t bytes);
  void check_ready(Rank peer);
  void owe(Due due);
  void ring();
  void on_control(Rank from, const Frame& frame);
  void connection_up(Rank peer, Link& link, std::uint64_t incarnation);
  int pay(int budget);
  bool owes_connected(Rank peer) const;
  void fail(Rank peer, std::string why, bool peer_lost);
  void close_link(Rank peer, Link& link);
  void tell_rejected(Rank peer);
  Take deliver(Rank from, Frame& frame);
  Take deliver_bulk(Rank from, Frame& frame);
  bool ask_where(Rank from, Frame& frame);
  void done_with(Rank from, const Frame& frame);
  Status copy_now(Rank peer, RmaOp op, const RegionName& what, std::uint64_t offset, const iovec* pieces, int count,
                  std::size_t size);
  std::uint64_t arrival_of_copy(Rank peer, RmaOp op, std::size_t size);
  Status copy_later(Rank peer, RmaOp op, const RegionName& what, std::uint64_t offset, const iovec* pieces, int count,
                    std::size_t size, Token token);
  void breathe(std::uint64_t ns) { fabric_->world.breathe(ns); }

  DriverContext* context_ = nullptr;
  Fabric* fabric_ = nullptr;
  Kind kind_ = Kind::stream;
  CountedMap<Rank, Link> links_;
  std::deque<Arrival, Counted<Arrival>> inbox_;
  std::deque<Due, Counted<Due>> due_;
  std::vector<std::byte, Counted<std::byte>> reserved_;
  int bell_ = -1;
  bool armed_ = false, in_poll_ = false;
  int wakes_owed_ = 0;  ///< calls that wants_wake() asked for, and wake() has not seen yet
};

}  // namespace canele::drivers::sim
