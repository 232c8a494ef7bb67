// SPDX-License-Identifier: BSD-3-Clause
//
// EarlyRanges: bytes of a transfer that have arrived before those in front of them, because several rails bring it.
//
// Used by rendezvous/rendezvous.cpp, under the engine's lock: by any thread. Ranges may overlap: a peer decides what it
// sends.
//
//     [ prefix │ ░░░░ │ range │ ░░ │ range ]      ░: has not arrived
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace canele::comm {

class EarlyRanges {
 public:
  /// Adds [begin, end) and returns how far all bytes have arrived, if they had arrived up to `prefix`.
  std::uint64_t add(std::uint64_t prefix, std::uint64_t begin, std::uint64_t end) {
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ranges_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    if (begin > prefix) {
      ranges_.emplace(begin, end);
      return prefix;
    }
    return std::max(prefix, end);
  }
  /// Returns whether any of the bytes [begin, end) has arrived.
  bool overlap(std::uint64_t begin, std::uint64_t end) const {
    const auto behind = ranges_.lower_bound(end);
    return behind != ranges_.begin() && std::prev(behind)->second > begin;
  }
  bool empty() const { return ranges_.empty(); }
  std::size_t size() const { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  ///< end by begin; neither overlapping nor touching
};

}  // namespace canele::comm
