// SPDX-License-Identifier: BSD-3-Clause
//
// The kit's list of tests, and what Canelé's own drivers must declare. Constants: any thread.
//
// Before a test starts, the driver's declared capabilities decide whether it applies. For our own drivers a table fixes
// what these must be, so that no test is skipped because a driver declares less.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/job.hpp"

namespace canele::conformance {

using drivers::Capabilities;

struct TestCase {
  std::string_view name;
  int ranks = 2;  ///< one for a driver that reaches only its own rank
  void (*body)(Job&) = nullptr;
  /// Returns "", or why the test does not apply to such a driver.
  std::string (*not_for)(const Capabilities&, const Options&) = nullptr;
  void (*adjust)(Node&) = nullptr;  ///< called before open()
  bool threads = false;             ///< ranks are threads of one process
  int slow_ranks = 0;               ///< for a slow driver; 0: as many as `ranks`
};

std::span<const TestCase> connection_tests();
std::span<const TestCase> exchange_tests();
std::span<const TestCase> flow_tests();
std::span<const TestCase> copy_tests();
std::span<const TestCase> failure_tests();

/// What one of our own drivers must declare, and what it may skip.
struct KnownDriver {
  std::string_view variant;
  std::string_view name;
  std::size_t min_inline = 0, min_packet = 1024;
  bool memory_only = false, reserves = false, bulk_stream = false, get = false, put = false, rma_any_thread = false;
  int shared_lines = 0;
  drivers::WakeUp wake_up = drivers::WakeUp::none;
  bool self = false, local = false, remote = false;
  bool detects_failure = false;
  int max_instances = 0;
  bool authenticates = true, dials = false, slow = false, parts_survivors = false;
  std::string_view cannot = {}, because = {};  ///< a test that the driver's fabric cannot pass, and why
};
/// Returns nullptr for a driver that is not one of our own.
const KnownDriver* known_driver(std::string_view variant);

inline bool is_only_self(const Capabilities& can) {
  return can.reaches_self && !can.reaches_local && !can.reaches_remote;
}
inline std::string needs_others(const Capabilities& can, const Options&) {
  return is_only_self(can) ? "reaches only its own rank" : "";
}

}  // namespace canele::conformance
