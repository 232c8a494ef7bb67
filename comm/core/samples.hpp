// SPDX-License-Identifier: BSD-3-Clause
//
// Samples: what canele-perf sample has measured on this host, as the engine reads it at its start.
//
// Who: start.cpp; api/ for canele-info, where canele-perf learns which file to write. Threads: values, no sharing.
// Surprise: one mistaken line costs that line only; a file of another host, machine or library version is ignored as a
//     whole, and so is a record whose driver declares other costs now (another provider, another interface).
//
//   canele-samples 1                      the format
//   host node7
//   machine AMD EPYC, 2 PUs, Linux 6.1.0  what these figures hold for
//   library 0.1.0
//   driver tcp date=2025-01-31 latency_ns=9000 gap_ns=700 bytes_per_second=2000000000 declared_latency_ns=5000
//       declared_bytes_per_second=5000000000            (one line)
//   time tcp 65536 41000                  one way, ns; sizes of a driver ascend
//   end                                   without it the file was cut
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/config/settings.hpp"
#include "drivers/driver.hpp"
#include "ltask/platform.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

struct Sample {
  std::string driver;  ///< as CANELE_DRIVERS names it: "tcp", "tcp:eth1"
  std::string date;
  strategies::Costs costs;
  std::uint64_t declared_latency_ns = 0, declared_bytes_per_second = 0;  ///< at that time
};

struct Samples {
  enum class State : std::uint8_t {
    off,      ///< not asked for, or there is no place to look
    absent,   ///< no file
    read,     ///< `all` holds; some lines may have been bad
    stale,    ///< of another host, machine or version
    refused,  ///< no file of samples, cut, too long, or not readable
  };
  State state = State::off;
  std::string file;              ///< "" if there is no place for one
  std::string host, machine;     ///< as they are now
  std::string problem;           ///< "" or what is wrong with the file
  std::vector<Sample> all = {};  ///< in the order of the file
};

/// Looks for the file of this host, and reads it.
Samples read_samples(Platform& platform, const Settings& settings);

/// The text of a file: fills state, problem and all. In: file, host and machine are set.
void parse_samples(std::string_view text, Samples* samples);

/// What a driver costs, as CANELE_DRIVERS names it: measured if a record holds, else declared.
strategies::Costs costs_of(const Samples& samples, std::string_view driver, const drivers::Capabilities& capabilities);

std::string_view name_of(Samples::State state);

}  // namespace canele::comm
