// SPDX-License-Identifier: BSD-3-Clause
//
// WireDriver: a driver without a fabric. The fuzz target is the fabric: it sees what the engine sends, and decides what
// arrives, what completes and which peers fail.
//
// One thread. It keeps the driver contract to the letter, whatever the input says, so that any fault is the engine's.
// It calls back from poll() only, returns no token twice, and reports nothing for a rank that has failed.
#pragma once

#include <deque>
#include <functional>
#include <set>

#include "comm/wire/wire.hpp"
#include "fuzz.hpp"

namespace canele::fuzz {

using drivers::Rank;
using drivers::Status;

/// The driver of ours whose behaviour it has.
enum class Like : std::uint8_t { shm, tcp, ofi, count };

class WireDriver final : public drivers::Driver {
 public:
  static constexpr int lines = 17;

  explicit WireDriver(Like like);

  /// Queues an action of the fabric for the next poll.
  void at_poll(std::function<void(drivers::DriverEvents&)> what) { due_.push_back(std::move(what)); }
  bool idle() const { return due_.empty(); }
  void connect_now(Rank rank);
  void arrives(Rank from, Bytes packet);
  /// Delivers bulk data: asks for its destination and fills it. `hold`: the data is delayed; hold_ends() is its
  /// arrival.
  void bulk_arrives(Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length, bool hold);
  void hold_ends(std::size_t which);
  void operation_ends(std::size_t which, bool well);
  void room(Rank rank);
  void fails(Rank rank);

  bool is_up(Rank rank) const { return up_.contains(rank); }
  bool has_failed(Rank rank) const { return failed_.contains(rank); }
  drivers::SharedLine& line(bool ours, std::size_t which) { return (ours ? ours_ : theirs_)[which % lines]; }

  // Set by the target: how the next calls answer.
  bool full = false, later = false, copies_fail = false;
  /// Handles that the engine has named to peers: sends, receives.
  std::vector<std::uint64_t> handles;
  /// The RTRs that the engine has sent.
  std::vector<comm::wire::Rtr> rtrs;

 private:
  struct Operation {
    Rank rank;
    drivers::Token token;
    std::vector<iovec> memory;  ///< the driver's until it ends: a copy fills it, a send reads it
    bool copy;
  };
  struct IncomingBulk {
    Rank from;
    std::uint64_t key, offset, length;
    std::vector<iovec> pieces;
  };

  void sent(std::span<const std::byte> packet);
  void forget(Rank rank);
  bool has_bulk(Rank from) const;
  Status answer(Rank rank);
  IncomingBulk begin_bulk(drivers::DriverEvents& events, Rank from, std::uint64_t key, std::uint64_t offset,
                          std::uint64_t length);
  void end_bulk(drivers::DriverEvents& events, const IncomingBulk& incoming);

  Status open_impl(drivers::DriverContext& context, drivers::Address* address, std::string*) override;
  Status connect_impl(Rank rank, std::span<const std::byte> address) override;
  Status send_inline_impl(Rank rank, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override;
  Status send_packet_impl(Rank rank, const iovec* pieces, int count, std::size_t size, drivers::Token token) override;
  std::span<std::byte> reserve_impl(Rank rank, std::size_t size) override;
  void commit_impl(Rank rank, std::size_t size) override;
  Status bulk_send_impl(Rank rank, std::uint64_t, std::uint64_t, const iovec* pieces, int count, std::size_t size,
                        drivers::Token token) override;
  Status register_memory_impl(Rank, drivers::RmaOp, const iovec*, int, drivers::MemoryKey* rkey) override;
  void deregister_impl(std::uint64_t handle) override;
  Status rma_impl(Rank rank, drivers::RmaOp op, std::span<const std::byte> rkey, std::uint64_t, const iovec* pieces,
                  int count, std::size_t size, drivers::Token token) override;
  int poll_impl(int) override;
  bool arm_impl(bool) override { return due_.empty(); }
  void close_impl() override;

  Like like_;
  drivers::DriverContext* context_ = nullptr;
  std::deque<std::function<void(drivers::DriverEvents&)>> due_;
  std::set<Rank> up_, failed_, owes_room_;
  std::vector<Operation> operations_;
  std::vector<IncomingBulk> held_;
  std::set<std::uint64_t> registrations_;
  std::uint64_t last_registration_ = 0;
  Bytes reserved_;
  std::vector<drivers::SharedLine> ours_, theirs_;
};

/// Returns the factory whose create() makes a driver of that kind. made() lists the drivers made, oldest first, while
/// they live.
const drivers::DriverFactory& wire_factory(Like like);
std::vector<WireDriver*>& made();

}  // namespace canele::fuzz
