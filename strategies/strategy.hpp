// SPDX-License-Identifier: BSD-3-Clause
//
// The strategy contract: which of the queued items leave in the next packet to one peer.
//
//     add(item) ──▶ [ index of the strategy ] ──plan(rail)──▶ Plan: items, in order, of ONE packet
//
// Any thread of the engine calls a strategy, under the engine's lock, so that its calls are serialised. There is one
// Strategy object per peer, made at first contact. A strategy includes this header only.
//
// A strategy is pure bookkeeping: no clock, no lock, no I/O, no allocation per item. It links the items into its own
// index through Item::scratch. Order per flow (session, tag) is the strategy's duty: the engine does not sort behind
// it. Envelopes are numbered in the order in which plan() puts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace canele::strategies {

/// The kind of an item.
enum class Kind : std::uint8_t {
  control,   ///< CTS, FIN, acknowledgement …: small, in order among themselves. Leaves before any envelope that is
             ///< planned later.
  envelope,  ///< eager message or RTS: ordered per flow
  access,    ///< one-sided operation, or the answer to one: ordered per flow, like an envelope
  bulk       ///< a piece of a granted large transfer: goes alone, as a bulk packet
};

/// One thing to send. It is embedded in the engine's objects. The strategy reads the first part, and owns `scratch`.
struct Item {
  Kind kind = Kind::envelope;
  bool queued = false;             ///< between add() and plan()/remove(). Kept by the engine's wrappers
  std::int32_t priority = 0;       ///< higher leaves sooner
  std::uint32_t size = 0;          ///< bytes it takes in a packet, header included. bulk: 0
  std::uint64_t flow_session = 0;  ///< the flow, with flow_tag: for envelopes and accesses
  union {
    std::uint64_t flow_tag = 0;
    std::uint64_t bytes_left;  ///< bulk, of a peer with several rails: bytes that no packet has taken
  };
  std::uint64_t age = 0;  ///< grows with every item given to this peer
  void* scratch[10];      ///< the strategy's links; add() writes those it reads
};

/// What a rail costs: measured by canele-perf sample on this host, or declared by its driver.
struct Costs {
  struct Point {
    std::uint64_t size, ns;
  };
  std::uint64_t latency_ns = 0;        ///< 8 bytes one way
  std::uint64_t gap_ns = 0;            ///< per message in a stream of small ones
  std::uint64_t bytes_per_second = 1;  ///< of a stream of large ones
  bool measured = false;
  std::vector<Point> times;  ///< one way, sizes ascending; empty if not measured

  /// Returns the estimated time one way, in ns. Between two measured sizes it is on the line that joins them.
  double time_ns(std::uint64_t size) const {
    Point below{0, latency_ns};
    for (const Point& above : times) {
      if (size <= above.size) {
        const auto share = static_cast<double>(size - below.size) / static_cast<double>(above.size - below.size);
        return static_cast<double>(below.ns) + share * (static_cast<double>(above.ns) - static_cast<double>(below.ns));
      }
      below = above;
    }
    const auto beyond = static_cast<double>(size - below.size);
    return static_cast<double>(below.ns) + beyond * 1e9 / static_cast<double>(bytes_per_second);
  }
};

/// What is known of a rail of a peer that has several.
struct RailLoad {
  double bytes_per_second = 1;   ///< rate of large data
  std::uint64_t latency_ns = 0;  ///< of a small packet, one way
  std::uint64_t ahead = 0;       ///< bytes of bulk data that were sent on it, and have not arrived
  bool usable = false;           ///< it may carry bulk data
};

/// What the rail can take now.
struct RailView {
  static constexpr std::size_t most_rails = 64;
  std::size_t room = 0;                  ///< bytes of the packet; 0: it takes bulk data only
  bool bulk_allowed = true;              ///< a bulk item may be planned now
  const Costs* costs = nullptr;          ///< of this rail, where a peer has several
  std::span<const RailLoad> rails = {};  ///< all rails of the peer, where it has several that are up
  std::size_t asking = 0;                ///< index of this rail in `rails`
};

/// One packet. It holds either up to max_items control and envelope items, whose sizes sum to at most `room`, or
/// exactly one bulk item.
struct Plan {
  static constexpr int max_items = 64;
  int count = 0;
  Item* items[max_items];
  std::size_t size = 0;
  std::uint64_t bulk_bytes = 0;  ///< of a bulk item: most bytes that this packet may take; 0: no limit

  void put(Item& item) {
    items[count++] = &item;
    size += item.size;
  }
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Adds a new item. The items of a session that is ordered across tags all have flow_tag 0.
  virtual void add(Item& item) = 0;

  /// Takes out an item that has not been planned (for example because its peer died).
  virtual void remove(Item& item) = 0;

  /// Handles that the engine has changed item.priority; it was `before`.
  virtual void reprioritized(Item& item, std::int32_t before) = 0;

  /// Fills `plan` (empty on entry) with the next packet, and takes its items out of the index. An item that alone is
  /// larger than rail.room stays; the engine guarantees that every non-bulk item fits an empty packet. A bulk item is
  /// left in the index while bytes remain: the engine calls remove() when all have left.
  virtual void plan(const RailView& rail, Plan& plan) = 0;

  virtual bool empty() const = 0;

  /// Returns any one item, to drain a dead peer's queue by remove(); nullptr if there is none.
  virtual Item* any() = 0;

  /// Calls visit() for every item, in no promised order, for reports. Nothing changes meanwhile.
  virtual void each(const std::function<void(const Item&)>& visit) const = 0;
};

struct StrategyFactory {
  std::string_view name;     ///< "aggregate"
  std::string_view summary;  ///< one line for canele-info
  std::unique_ptr<Strategy> (*create)();
};

extern const StrategyFactory fifo_factory;
extern const StrategyFactory aggregate_factory;
extern const StrategyFactory priority_factory;

/// Returns a strategy for a peer with several rails: `base`, but each bulk item is split over the rails so that all of
/// them end together. See strategies/split.hpp.
std::unique_ptr<Strategy> make_split(std::unique_ptr<Strategy> base);

}  // namespace canele::strategies
