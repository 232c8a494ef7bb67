// SPDX-License-Identifier: BSD-3-Clause
//
// Reports: plain structs that the engine fills, and the JSON that is made of them.
//
// Used by the engine and the C ABI (canele_counters_json, canele_info_json, CANELE_COUNTERS). Reports are values:
// threads do not share them.
//
// No code here knows the engine. So the text can be made outside of its lock, from a copy of the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/config/samples.hpp"
#include "comm/config/settings.hpp"
#include "comm/observe/counters.hpp"
#include "drivers/driver.hpp"

namespace canele::comm {

/// Returns the values of a table in the order of enum Counter.
template <Counter First, Counter Last>
std::vector<std::uint64_t> read_all(const CounterTable<First, Last>& table) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(Last));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = table.read(static_cast<Counter>(i));
  return values;
}

/// {"canele": version, "rank": r, "size": n, "counters": {name: value ...},
///  "peers": [{"rank": k, "driver": "shm", "counters": {...}} ...],
///  "drivers": [{"name": "shm", "packets_sent": ...} ...]}
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
  std::vector<Peer> peers;  ///< peers with which this rank has communicated
  std::vector<OneDriver> drivers;
};
std::string to_json(const CountersReport& report);

/// Everything that canele-info shows. The fields that require an engine stay empty without one.
struct InfoReport {
  struct OneDriver {
    std::string name;
    std::string summary;
    std::string unavailable;             ///< "" if it can run here, otherwise the reason.
    bool open = false;                   ///< the engine uses it.
    drivers::Capabilities capabilities;  ///< if it can run here.
    strategies::Costs costs = {};        ///< likewise
    std::vector<drivers::NetworkAddress> network = {};
  };
  struct Strategy {
    std::string name;
    std::string summary;
  };
  struct OneSetting {
    std::string variable, alias, value, source, fallback, unit, values, help;  ///< alias: the old variable, or "".
  };
  struct Topology {
    std::string summary;        ///< "1 package, 1 NUMA node, 2 cores, 2 PUs"; "" if hwloc failed
    std::string problem;        ///< why it failed
    std::string process_units;  ///< OS indexes that this process may use: "0-1"
    int units = 0;
  };
  struct Worker {
    bool active = false;  ///< a bound worker runs.
    std::string place;    ///< its kind, and where it runs, or would run: "bound: on PU 1 (CANELE_WORKER_CORE)"
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
  std::string settings_error;  ///< "" or the error that canele_init would report
  Topology topology;
  Worker worker;
};
std::string to_json(const InfoReport& report);

/// Returns the settings of an InfoReport.
std::vector<InfoReport::OneSetting> describe(const Settings& settings);

/// Returns the file name of CANELE_COUNTERS or CANELE_TRACE, with every %r replaced by the rank.
std::string file_of_rank(std::string_view pattern, int rank);

/// Writes `json` to the place that a setting names: a file, or "-" for stderr. A file is replaced as a whole, so that a
/// reader never sees half of it. Returns "", or the reason of a failure, in which `what` names the data. Makes system
/// calls: not under the engine's lock.
std::string write_json(const std::string& file, std::string_view json, std::string_view what);

/// Implements the ..._json functions of the C ABI. Copies at most `size` bytes, including the final NUL. *needed (may
/// be null) becomes the size for the whole text. Returns false if the text was cut. `out` may be null if size is 0.
bool copy_text(std::string_view json, char* out, std::size_t size, std::size_t* needed);

}  // namespace canele::comm
