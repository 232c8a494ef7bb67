// SPDX-License-Identifier: BSD-3-Clause
//
// RailPace: what one of several rails to a peer carries, and how quickly: measured by the data itself.
//
// The receiver reports how many bulk bytes have arrived by the rail. So the figures hold from memory to memory,
// whatever the driver keeps in buffers of its own.
//
//     handed    ──────── 5 slices ────────▶
//     confirmed ── 3 slices ──▶               ahead: 2 slices. A rail takes no more while `ahead` fills its window.
//
// Used by link/, under the engine's lock: by any thread. Part of Rail.
#pragma once

#include <algorithm>
#include <cstdint>

namespace canele::comm {

class RailPace {
 public:
  /// The receiver reports each time that so many bytes have arrived, and at the end of a transfer.
  static constexpr std::uint64_t report_every = 64 * 1024;
  /// Window of a rail whose rate is not known yet, and the shortest one, in bytes.
  static constexpr std::uint64_t shortest_window = 4 * report_every;
  /// A window lasts so long, or for two round trips: a small message waits so long behind bulk data.
  static constexpr std::uint64_t window_ns = 2'000'000;
  /// Probes of the latency that are sent, one after the other, when the rail has come up. The shortest one counts.
  static constexpr int probes = 4;

  // ---- sender
  /// Notes that the rail was given `bytes` bytes.
  void hand(std::uint64_t bytes, std::uint64_t now_ns) {
    if (handed_ == confirmed_) busy_since_ns_ = now_ns + 2 * latency_ns();
    handed_ += bytes;
  }
  /// Handles a report: `total` bytes have arrived so far. Returns false if the rail was not given as many.
  bool report(std::uint64_t total, std::uint64_t now_ns);
  /// Notes the duration of a round trip of a small packet.
  void note_round_trip(std::uint64_t ns) {
    round_trip_ns_ = round_trip_ns_ == 0 ? ns : std::min(round_trip_ns_, ns);
    ++probed_;
  }
  bool wants_probe() const { return probed_ < probes; }

  /// Returns the latency of a small packet, one way; 0: not known.
  std::uint64_t latency_ns() const { return round_trip_ns_ / 2; }
  /// Returns the bytes that were given to the rail, and have not arrived.
  std::uint64_t ahead() const { return handed_ - confirmed_; }
  /// Returns the rate; `declared` as long as none is measured. A rail that has brought nothing for long is slower than
  /// it was.
  double bytes_per_second(double declared, std::uint64_t now_ns) const;
  /// Returns whether the window has room.
  bool has_room(std::uint64_t now_ns) const { return ahead() < window(now_ns); }
  /// Returns whether small packets may go by this rail, beside one with the latency `least_ns`.
  bool is_quick(std::uint64_t least_ns) const { return latency_ns() <= 2 * least_ns + tolerated_ns; }

  // ---- receiver
  /// Notes that `bytes` bytes have arrived. Returns whether a report is due.
  bool arrived(std::uint64_t bytes) {
    arrived_ += bytes;
    return arrived_ - reported_ >= report_every;
  }
  bool has_unreported() const { return arrived_ != reported_; }
  /// Returns the number to report.
  std::uint64_t take_report() { return reported_ = arrived_; }

 private:
  static constexpr std::uint64_t tolerated_ns = 50'000;
  static constexpr std::uint64_t least_known = report_every / 2;  ///< bytes; fewer tell little of a rate
  static constexpr double remembered_ns = 20e6;                   ///< busy time by which older samples are outweighed

  void measured(double bytes, double ns);

  std::uint64_t window(std::uint64_t now_ns) const {
    const auto lasting = static_cast<double>(std::max(window_ns, 2 * round_trip_ns_));
    const double bytes = bytes_per_second(0, now_ns) * lasting * 1e-9;
    return std::max(shortest_window, static_cast<std::uint64_t>(bytes));
  }

  std::uint64_t handed_ = 0, confirmed_ = 0;
  std::uint64_t arrived_ = 0, reported_ = 0;
  std::uint64_t busy_since_ns_ = 0;  ///< since when data is under way without a gap, or was reported last
  std::uint64_t round_trip_ns_ = 0;  ///< 0: not known
  double bytes_ = 0, busy_ns_ = 0;   ///< of the rate: bytes that have arrived, and in which time
  int probed_ = 0;
};

}  // namespace canele::comm
