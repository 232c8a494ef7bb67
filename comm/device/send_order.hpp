// SPDX-License-Identifier: BSD-3-Clause
//
// SendOrder: sends that wait for their data, and those that must not overtake them.
//
// A send of device memory is given to the engine when its data is in host memory. Until then, later sends of the same
// order wait here: those of the same tag and rank; in a session that is ordered across tags, all to the rank. A
// multicast counts as a send to every rank.
//
//   post ─▶ list: [device, copying] [host, ready] [device, ready] ...   ─release()─▶ engine
//
// A post, and a look for sends that may leave, cost the same however many wait.
//
// Threading: any thread adds; one at a time releases. A spin lock guards the list. It is never held across a call into
// the engine, but may be taken under the engine's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "comm/state/session.hpp"
#include "comm/state/spin_guard.hpp"
#include "ltask/platform.hpp"

namespace canele::comm {
struct Multicast;
struct Request;
}  // namespace canele::comm

namespace canele::comm::device {

inline constexpr int every_rank = -1;

/// A send that waits.
struct WaitingSend {
  Session* session;
  int destination;  ///< every_rank: a multicast
  std::uint64_t tag;
  Request* request = nullptr;
  Multicast* multicast = nullptr;  ///< owned
  enum class State : std::uint8_t { copying, ready, leaving } state = State::ready;
  int error = 0;  ///< why its data could not be read
};

/// A set of sends, asked which later ones must stay behind them.
class Predecessors {
 public:
  void add(const WaitingSend& send);
  void remove(const WaitingSend& send);
  bool keep_back(const Session& session, int destination, std::uint64_t tag) const;

 private:
  static constexpr int some_rank = -2;  ///< counts the sends to any rank, for multicasts

  /// tag: 0 in a session that is ordered across tags.
  struct Key {
    const Session* session;
    int destination;
    std::uint64_t tag;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  static Key key_of(const Session& session, int destination, std::uint64_t tag);
  void remove(const Key& key);

  std::unordered_map<Key, std::size_t, Hash> counts_;
};

class SendOrder {
 public:
  explicit SendOrder(Platform& platform) : platform_(platform) {}

  /// Returns whether a send that is posted now must wait for an earlier one.
  bool must_wait(const Session& session, int destination, std::uint64_t tag);
  void add(const WaitingSend& send);
  /// Adds a send only if it must wait. Returns whether it has done so.
  bool add_if_it_must_wait(const WaitingSend& send);
  /// The data of a send is there, or could not be read.
  void copied(const Request& request, int error);
  /// Returns the sends that nothing keeps back, in their order. They stay in the list, so that later ones wait for
  /// them, until remove_leaving().
  std::vector<WaitingSend> take_ready();
  void remove_leaving();
  /// Calls visit(send) for each send that waits, in their order. Under the engine's lock, so that their requests live.
  template <typename Visit>
  void each_waiting(Visit visit) {
    const SpinGuard guard(guard_, platform_);
    for (const WaitingSend& one : sends_) {
      if (one.state != WaitingSend::State::leaving) visit(one);
    }
  }

 private:
  void insert(const WaitingSend& send);

  Platform& platform_;
  std::atomic<bool> guard_{false};
  std::list<WaitingSend> sends_;
  Predecessors waiting_;     ///< all of `sends_`
  std::size_t leaving_ = 0;  ///< number of sends in this state
  bool may_leave_ = false;   ///< a send may have become free to leave since take_ready() looked
};

}  // namespace canele::comm::device
