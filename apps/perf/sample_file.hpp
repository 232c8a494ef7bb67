// SPDX-License-Identifier: BSD-3-Clause
//
// The file of samples: where the library looks for it, what is in it, and writing it anew. One thread.
//
// comm/config/samples.hpp has the format and is its only reader. The contents of the file come from canele_info_json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace canele::perf {

/// The costs of one driver.
struct Record {
  std::string driver;  ///< as CANELE_DRIVERS names it
  std::string date;
  std::uint64_t latency_ns = 0, gap_ns = 0, bytes_per_second = 0;
  std::uint64_t declared_latency_ns = 0, declared_bytes_per_second = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> times = {};  ///< size, ns one way
};

/// Returns the path of this host's samples. Throws if there is no place for them. `info` is the text of
/// canele_info_json, parsed.
std::string file_of(const nlohmann::json& info);

/// Writes the record, and those of other drivers that are already valid, as one new file. Throws with the reason.
void write_sample(const nlohmann::json& info, const Record& record);

}  // namespace canele::perf
