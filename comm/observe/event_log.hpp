// SPDX-License-Identifier: BSD-3-Clause
//
// Event log: the last events of one engine, as fixed records in a ring.
//
// The engine records by Engine::trace(). Finalize (CANELE_TRACE) and canele-sim dump the log. One thread writes at a
// time (under the engine's lock); dump only while no thread writes.
//
// The ring keeps the newest records, and counts those that it overwrote: the end of a run is what users want to see.
//
//      ring_:  [ r8 | r9 | r2 | r3 | r4 | r5 | r6 | r7 ]      capacity 8, written_ = 10
//                         ▲ oldest kept: written_ - capacity; next record goes here: written_ & mask
//
// Rejected: a growing vector (an allocation under the engine's lock, and unbounded memory).
// Rejected: writing to a file immediately (a system call under the lock).
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canele::comm {

enum class Event : std::uint8_t {
  send_posted,
  send_done,
  receive_posted,
  receive_matched,
  receive_done,
  receive_cancelled,
  receive_failed,
  unexpected_stored,
  rts_sent,
  rts_received,
  cts_sent,
  cts_received,
  bulk_sent,
  bulk_received,
  packet_sent,
  packet_received,
  peer_connected,
  peer_failed,
  worker_parked,
  worker_woken,
  count
};

/// Returns the name in traces, such as "send_posted".
std::string_view event_name(Event event);

/// One event. Traces on disk contain it as well, so its layout is fixed: 32 bytes, little-endian, no padding.
struct EventRecord {
  std::uint64_t time_ns;
  std::uint64_t tag;
  std::uint64_t size;     ///< bytes of the message or packet.
  std::int32_t peer;      ///< rank; -1 if there is none.
  std::uint16_t session;  ///< index of the session in its engine; 0xffff if there is none
  Event kind;
  std::uint8_t reserved;  ///< 0
};
static_assert(sizeof(EventRecord) == 32 && alignof(EventRecord) == 8);

class EventLog {
 public:
  static constexpr std::uint16_t no_session = 0xffff;
  static constexpr std::int32_t no_peer = -1;

  /// Allocates room for at least `capacity` records (rounded up to a power of two). No later call allocates.
  explicit EventLog(std::size_t capacity) : ring_(std::bit_ceil(capacity < 2 ? 2 : capacity)) {}

  void add(const EventRecord& record) {
    ring_[written_ & (ring_.size() - 1)] = record;
    ++written_;
  }

  std::size_t kept() const { return written_ < ring_.size() ? static_cast<std::size_t>(written_) : ring_.size(); }
  std::uint64_t lost() const { return written_ - kept(); }

  /// Returns record `index` of those kept, oldest first.
  const EventRecord& at(std::size_t index) const {
    assert(index < kept());
    return ring_[(lost() + index) & (ring_.size() - 1)];
  }

  /// Returns all records kept, in the trace event format that Perfetto and chrome://tracing read; process = rank.
  std::string to_json(int rank) const;
  /// A log with its rank, to merge the logs of several ranks into one trace. The caller owns the log.
  struct OfRank {
    int rank;
    const EventLog* log;
  };
  static std::string to_json(std::span<const OfRank> logs);

 private:
  std::vector<EventRecord> ring_;
  std::uint64_t written_ = 0;
};

}  // namespace canele::comm
