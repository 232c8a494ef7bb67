// SPDX-License-Identifier: BSD-3-Clause
//
// Settings: the one table of everything a user can set, and the values in force for one engine.
//
// Who: the engine reads them at start; canele-info prints them. Threads: immutable after construction.
// Surprise: a value has a source (default, environment, options), which canele-info shows; an unknown CANELE_*
//     variable is a warning with the nearest known name, a wrong value of a known one is an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ltask/platform.hpp"

namespace canele::comm {

/// Every setting; the order is that of the table in settings_table.cpp. The variable is CANELE_<NAME>.
enum class Setting : int {
  drivers,          ///< "shm,tcp": drivers to use, in order of preference ("self" is always there); "a+b": both at once
  driver_path,      ///< directories with driver modules
  decorators,       ///< what is wrapped around drivers
  strategy,         ///< fifo, aggregate, priority
  matcher,          ///< table, or what it is compared with
  heater,           ///< µs between passes over the matcher's blocks; 0: none
  worker,           ///< none, auto, bound, idle, timer, bound+idle
  worker_interval,  ///< us between the turns of a timer worker
  worker_core,     ///< logical index of the core for the bound worker, or "auto" (unpinned until the host runtime binds
                   ///< it)
  worker_place,    ///< auto, bind, numa, odd-even: where it runs if no core is named
  worker_company,  ///< busy: the program's threads want all cores all the time; or "auto"
  spread,          ///< auto: ranks that fill the host settle, each on its share; off
  eager_limit,     ///< bytes up to which a message is sent without asking, or "auto" (the driver decides)
  unexpected_memory,    ///< bytes for messages that no receive has asked for, or "auto"
  unexpected_per_peer,  ///< the same for those of one rank
  multicast,            ///< the shape of multicasts
  multicast_memory,     ///< for data that is handed on before its receive has a buffer
  collectives,          ///< the algorithms of collectives, by operation
  split_tree,           ///< levels of a tree for the threads that compute, or "auto"
  push,                 ///< on, off: large receives are offered to their senders
  checksum,             ///< off, packets: a CRC32C for all that drivers carry
  spin,                 ///< ns to spin before yielding when idle, or "auto"
  start_timeout,        ///< seconds to wait for all ranks at start
  finalize_timeout,     ///< seconds to wait for all ranks at the end
  counters,             ///< file to write the counters to at finalize; "%r" becomes the rank; "" none; "-" stderr
  profile,              ///< file to write the profile of MPI functions to at MPI_Finalize; as counters
  trace,                ///< file to write the last events to at finalize; as counters
  trace_events,         ///< how many of them
  verbose,              ///< 0 errors, 1 warnings, 2 info, 3 debug
  tcp_interface,        ///< interface or address the tcp driver listens on; "auto"
  tcp_port,             ///< first port to try; 0 any
  tcp_silence,          ///< seconds without an answer from a host until its ranks are lost
  tcp_send_buffer,      ///< bytes that the kernel may keep for each connection; 0: its choice
  shm_cma,              ///< auto, off: whether cross-memory attach may be used
  shm_cma_from,         ///< from which length on
  shm_shelf,            ///< one copy for several ranks
  shm_membarrier,       ///< auto, off: whether going to sleep takes one membarrier() instead of a fence in every send
  ofi_provider,         ///< libfabric provider; "": the best
  ofi_domain,           ///< libfabric domain (interface, adapter); "": the first that other hosts reach
  ofi_multi_recv,       ///< auto, on, off: whether one receive buffer takes many messages
  ofi_silence,          ///< seconds without an answer from a host until its ranks are lost, by TCP providers
  samples,              ///< directory of what canele-perf sample measured; "": the user's cache; "off"
  hang_report,          ///< seconds of silence, with something stuck, before a report is written; 0 never
  fault,                ///< faults for tests, e.g. "flip-byte:1000" ("" none)
  count
};

enum class Source : std::uint8_t { fallback, environment, options };

struct SettingInfo {
  std::string_view name;      ///< without CANELE_
  std::string_view fallback;  ///< default value, as text
  std::string_view unit;      ///< "", "bytes", "s", "ns"
  std::string_view help;      ///< what it does and what it trades
  std::string_view values;    ///< for people: "fifo | aggregate | priority"
};

class Settings {
 public:
  enum class Warnings : bool { now, later };

  /// Reads the environment through `platform`, then `overrides` ("CANELE_NAME=value"). Problems are kept in error();
  /// warnings are logged, or kept: one rank says them for all.
  Settings(Platform& platform, std::span<const std::string> overrides, Warnings when = Warnings::now);

  /// Those that were kept.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// "" or what is wrong and what would be right.
  const std::string& error() const { return error_; }

  const std::string& text(Setting setting) const { return values_[static_cast<int>(setting)].text; }
  /// The value as a number (sizes accept k, M, G; times are in the unit of the table); "auto" gives `automatic`.
  std::uint64_t number(Setting setting, std::uint64_t automatic = 0) const;
  /// The number of this fault in CANELE_FAULT; 0: it is not there.
  std::uint64_t fault(std::string_view name) const;
  Source source(Setting setting) const { return values_[static_cast<int>(setting)].source; }

  static const SettingInfo& info(Setting setting);
  /// The value of a setting by name ("TCP_PORT"), or `fallback` if there is no such setting: for drivers. A driver that
  /// is a module may have settings of its own, CANELE_<ITS NAME>_..., which no table knows.
  std::string by_name(std::string_view name, std::string_view fallback) const;

 private:
  struct Value {
    std::string text;
    Source source = Source::fallback;
  };
  bool belongs_to_a_module(std::string_view variable) const;

  std::vector<Value> values_;
  std::vector<std::pair<std::string, std::string>> unknown_;  ///< variables of the environment, without CANELE_
  std::string error_;
  std::vector<std::string> warnings_;
};

}  // namespace canele::comm
