// SPDX-License-Identifier: BSD-3-Clause
//
// Reports: plain structs that the engine fills, and the JSON that is made of them.
//
// Who: the engine and the C ABI (canele_counters_json, canele_info_json, CANELE_COUNTERS). Threads: values, no sharing.
// Surprise: nothing here knows the engine; so the text can be made outside its lock, from a copy of the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/config/settings.hpp"
#include "comm/core/samples.hpp"
#include "comm/observe/counters.hpp"
#include "drivers/driver.hpp"

namespace canele::comm {

/// The values of a table in the order of enum Counter.
template <Counter First, Counter Last>
std::vector<std::uint64_t> read_all(const CounterTable<First, Last>& table) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(Last));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = table.read(static_cast<Counter>(i));
  return values;
}

/// {"canele": version, "rank": r, "size": n, "counters": {name: value ...},
///  "peers": [{"rank": k, "driver": "shm", "counters": {...}} ...], "drivers": [{"name": "shm", "packets_sent": ...}
///  ...]}
struct CountersReport {
  struct Peer {
    int rank = 0;
    std::string driver;  ///< the rail in use; "" before the first contact
    std::vector<std::uint64_t> counters;
  };
  struct OneDriver {
    std::string name;
    drivers::Driver::Counters counters;
    std::uint64_t polls = 0;
  };

  std::string version;
  int rank = 0;
  int size = 1;
  std::vector<std::uint64_t> counters;
  std::vector<Peer> peers;  ///< those that were talked to
  std::vector<OneDriver> drivers;
};
std::string to_json(const CountersReport& report);

/// Everything canele-info shows. Parts that exist only with an engine stay empty without one.
struct InfoReport {
  struct OneDriver {
    std::string name;
    std::string summary;
    std::string unavailable;             ///< "" if it can run here, else why not
    bool open = false;                   ///< the engine uses it
    drivers::Capabilities capabilities;  ///< if it can run here
    strategies::Costs costs = {};        ///< likewise
  };
  struct Strategy {
    std::string name;
    std::string summary;
  };
  struct OneSetting {
    std::string variable, value, source, fallback, unit, values, help;
  };
  struct Topology {
    std::string summary;        ///< "1 package, 1 NUMA node, 2 cores, 2 PUs"; "" if hwloc failed
    std::string problem;        ///< why it failed
    std::string process_units;  ///< OS indexes that this process may use: "0-1"
    int units = 0;
  };
  struct Worker {
    bool active = false;  ///< a bound one runs
    std::string place;    ///< of what kind, and where it runs, or would run: "bound: on PU 1 (CANELE_WORKER_CORE)"
  };
  struct Job {
    int rank = 0;
    int size = 1;
    std::string bootstrap;  ///< "pmix", "singleton"
    std::string host;
  };

  std::string version;
  int abi = 0;
  bool has_engine = false;
  Job job;  ///< with an engine
  std::vector<OneDriver> drivers;
  Samples samples;
  std::vector<Strategy> strategies;
  std::vector<OneSetting> settings;
  std::string settings_error;  ///< "" or what canele_init would complain about
  Topology topology;
  Worker worker;
};
std::string to_json(const InfoReport& report);

/// The settings part of an InfoReport.
std::vector<InfoReport::OneSetting> describe(const Settings& settings);

/// The file name of CANELE_COUNTERS or CANELE_TRACE with every %r replaced by the rank.
std::string file_of_rank(std::string_view pattern, int rank);

/// Writes `json` (`what`, for the reason of a failure) where a setting says: a file (replaced as a whole, so that a
/// reader never sees half of it) or
/// "-", stderr. Returns "" or why it failed. Makes system calls: not under the engine's lock.
std::string write_json(const std::string& file, std::string_view json, std::string_view what);

/// The rule of the ..._json functions of the C ABI: copies at most `size` bytes with the final NUL; *needed (may be
/// null) is the size that holds all. False if it was cut. `out` may be null if size is 0.
bool copy_text(std::string_view json, char* out, std::size_t size, std::size_t* needed);

}  // namespace canele::comm
