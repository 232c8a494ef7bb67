// SPDX-License-Identifier: BSD-3-Clause
//
// Samples: what canele-perf sample has measured on this host, as the engine reads it at its start.
//
// Used by engine/start.cpp, and by api/ for canele-info, from which canele-perf learns which file to write. The
// functions take and return values, so any thread may call them.
//
// A malformed line affects only that line. A file of another host, machine or library version is ignored as a whole. A
// record is ignored if its driver now declares other costs (another provider, another interface).
//
//   canele-samples 1                      the format.
//   host node7
//   machine AMD EPYC, 2 PUs, Linux 6.1.0  what these figures hold for.
//   library 0.1.0
//   driver tcp date=2025-01-31 latency_ns=9000 gap_ns=700 bytes_per_second=2000000000 declared_latency_ns=5000
//       declared_bytes_per_second=5000000000            (one line)
//   time tcp 65536 41000                  one way, ns; sizes of a driver ascend.
//   end                                   without it the file was cut.
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
  std::uint64_t declared_latency_ns = 0, declared_bytes_per_second = 0;  ///< declared when the sample was taken
};

struct Samples {
  enum class State : std::uint8_t {
    off,       ///< not asked for, or no directory to search.
    absent,    ///< no file.
    read,      ///< `all` is valid; some lines may have been bad.
    stale,     ///< of another host, machine or version.
    rejected,  ///< not a file of samples, cut, too long, or not readable.
  };
  State state = State::off;
  std::string file;              ///< "" if there is no directory for one
  std::string host, machine;     ///< current values
  std::string problem;           ///< "", or what is wrong with the file
  std::vector<Sample> all = {};  ///< in the order of the file
};

/// Finds and reads the file of this host.
Samples read_samples(Platform& platform, const Settings& settings);

/// Parses the text of a file; sets `state`, `problem` and `all`. The caller has set `file`, `host` and `machine`.
void parse_samples(std::string_view text, Samples* samples);

/// Returns the costs of a driver, as CANELE_DRIVERS names it: measured if a record is valid, else declared.
strategies::Costs costs_of(const Samples& samples, std::string_view driver, const drivers::Capabilities& capabilities);

std::string_view name_of(Samples::State state);

}  // namespace canele::comm
