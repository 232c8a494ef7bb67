// SPDX-License-Identifier: BSD-3-Clause
//
// Settings: the table of everything that a user can set, and the values in force for one engine.
//
// The engine reads the settings at start; canele-info prints them. A Settings object is immutable after construction,
// so any thread may read it. Each value has a source (default, environment, options), which canele-info shows. An
// unknown CANELE_* variable gives a warning with the nearest known name. A wrong value of a known variable is an error.
// The old name of a setting (SettingInfo::alias) gives a note. Both names in one source are an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ltask/platform.hpp"

namespace canele::comm {

/// Every setting, in the order of the table in settings_table.cpp, which has their names. The variable is
/// CANELE_<NAME>. Names of settings that no user needs begin with EXPERT_.
enum class Setting : int {
  drivers,          ///< "shm,tcp": drivers in order of preference ("self" is always there). "a+b": both at once.
  driver_path,      ///< directories with driver modules.
  decorators,       ///< decorators around drivers.
  strategy,         ///< fifo, aggregate, priority.
  matcher,          ///< table, or a baseline for comparison.
  cache_warmer,     ///< µs between passes over the matcher's blocks; 0: none.
  worker,           ///< none, auto, bound, idle, timer, bound+idle.
  worker_interval,  ///< µs between the turns of a timer worker.
  worker_core,      ///< core of the bound worker (logical index), or "auto": unpinned until the host runtime binds it.
  worker_place,     ///< auto, bind, numa, odd-even: place of the bound worker if no core is named.
  host_threads,     ///< busy: the program's threads use all cores all the time; or "auto".
  rank_affinity,    ///< auto: ranks that fill the host are pinned, each to its share of the units; or off.
  eager_limit,      ///< bytes up to which a message is sent eagerly, or "auto" (the driver decides).
  unexpected_memory,      ///< bytes for unexpected messages, or "auto".
  unexpected_per_peer,    ///< bytes for unexpected messages of one rank, or "auto".
  multicast,              ///< the shape of multicasts.
  multicast_memory,       ///< bytes for data that is forwarded before its receive has a buffer.
  collectives,            ///< the algorithms of collectives, by operation.
  split_tree,             ///< levels of a tree for the threads that compute, or "auto".
  receiver_initiated,     ///< on, off: large receives send an RTR to their senders.
  checksum,               ///< off, packets: a CRC32C for all that drivers carry.
  spin,                   ///< ns to spin before yielding when idle, or "auto".
  start_timeout,          ///< seconds to wait for all ranks at start.
  finalize_timeout,       ///< seconds to wait for all ranks at the end.
  counters,               ///< file to write the counters to at finalize; "%r" becomes the rank; "" none; "-" stderr.
  profile,                ///< file to write the profile of MPI functions to at MPI_Finalize, named as for counters.
  trace,                  ///< file to write the last events to at finalize, named as for counters.
  trace_events,           ///< number of events in the trace.
  verbose,                ///< 0 errors, 1 warnings, 2 info, 3 debug.
  tcp_interface,          ///< interface or address that the tcp driver listens on; "auto".
  tcp_port,               ///< first port to try; 0 any.
  tcp_peer_timeout,       ///< seconds without an answer from a host until its ranks have failed.
  tcp_send_buffer,        ///< bytes that the kernel may keep for each connection; 0: its choice.
  shm_cma,                ///< auto, off: whether cross-memory attach may be used.
  shm_cma_min,            ///< bytes from which cross-memory attach is used.
  shm_broadcast_segment,  ///< broadcast segment: one copy for several ranks.
  shm_membarrier,    ///< auto, off: whether going to sleep takes one membarrier() instead of a fence in every send.
  ofi_provider,      ///< libfabric provider; "": the best.
  ofi_domain,        ///< libfabric domain (interface, adapter); "": the first that other hosts reach.
  ofi_multi_recv,    ///< auto, on, off: whether one receive buffer takes many messages.
  ofi_peer_timeout,  ///< seconds without an answer from a host until its ranks have failed, for TCP providers.
  gpu,               ///< auto, cuda, off: whether addresses of messages may be device memory.
  gpu_library,       ///< file name of the device's library; "": the usual one.
  gpu_export_min,    ///< bytes from which a message may go from device to device.
  gpu_fragment,      ///< bytes that a message of device memory copies and sends at a time, at least.
  gpu_staging,       ///< bytes of pinned memory that are kept for the next messages.
  samples,           ///< directory of what canele-perf sample measured; "": the user's cache; "off".
  hang_report,       ///< seconds without progress before a report on stuck operations is written; 0 never.
  fault,             ///< faults for tests, e.g. "flip-byte:1000"; "": none.
  count
};

enum class Source : std::uint8_t { fallback, environment, options };

struct SettingInfo {
  std::string_view name = {};      ///< without CANELE_.
  std::string_view alias = {};     ///< the old name, without CANELE_; "": none. Works for two releases.
  std::string_view fallback = {};  ///< default value, as text.
  std::string_view unit = {};      ///< "", "bytes", "s", "us", "ns".
  std::string_view help = {};      ///< what it does, and its trade-offs.
  std::string_view values = {};    ///< for users: "fifo | aggregate | priority".
};

class Settings {
 public:
  enum class Warnings : bool { now, later };

  /// Reads the environment through `platform`, then `overrides` ("CANELE_NAME=value"). An error is kept in error().
  /// Warnings and notes are logged now, or kept so that one rank can log them for all.
  Settings(Platform& platform, std::span<const std::string> overrides, Warnings when = Warnings::now);

  /// Returns the warnings that were kept.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Returns a line for each old name in use, for VERBOSE=2, if they were kept.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Returns "", or what is wrong and what was expected.
  const std::string& error() const { return error_; }

  const std::string& text(Setting setting) const { return values_[static_cast<int>(setting)].text; }
  /// Returns the value as a number (sizes accept k, M, G; times are in the unit of the table). "auto" gives
  /// `automatic`.
  std::uint64_t number(Setting setting, std::uint64_t automatic = 0) const;
  /// Returns the number of this fault in CANELE_EXPERT_FAULT; 0 if it is not there.
  std::uint64_t fault(std::string_view name) const;
  Source source(Setting setting) const { return values_[static_cast<int>(setting)].source; }

  static const SettingInfo& info(Setting setting);
  /// Returns the value of a setting by its name ("TCP_PORT") or old name, or `fallback` if there is no such setting.
  /// Drivers use it. A driver that is a module may have settings of its own, CANELE_<ITS NAME>_..., which no table
  /// knows.
  std::string by_name(std::string_view name, std::string_view fallback) const;

 private:
  struct Value {
    std::string text;
    Source source = Source::fallback;
  };
  class Reader;
  bool belongs_to_a_module(std::string_view variable) const;
  void log_or_keep(Platform& platform, Warnings when, std::vector<std::string> warnings);

  std::vector<Value> values_;
  std::vector<std::pair<std::string, std::string>> unknown_;  ///< names without CANELE_
  std::string error_;
  std::vector<std::string> warnings_, notes_;
};

}  // namespace canele::comm
