// SPDX-License-Identifier: BSD-3-Clause
//
// The file of samples.
//
// If two programs write at once, their files do not mix, but the one that ends last wins.
#include "sample_file.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace canele::perf {
namespace {

namespace fs = std::filesystem;

Record from_json(const nlohmann::json& one) {
  return {one.at("name"),
          one.at("date"),
          one.at("latency_ns"),
          one.at("gap_ns"),
          one.at("bytes_per_second"),
          one.at("declared_latency_ns"),
          one.at("declared_bytes_per_second"),
          one.at("times").get<std::vector<std::pair<std::uint64_t, std::uint64_t>>>()};
}

std::string lines_of(const Record& one) {
  std::string text = fmt::format(
      "driver {} date={} latency_ns={} gap_ns={} bytes_per_second={} declared_latency_ns={} "
      "declared_bytes_per_second={}\n",
      one.driver, one.date, one.latency_ns, one.gap_ns, one.bytes_per_second, one.declared_latency_ns,
      one.declared_bytes_per_second);
  for (const auto& [size, ns] : one.times) text += fmt::format("time {} {} {}\n", one.driver, size, ns);
  return text;
}

/// Replaces the file as a whole: a reader sees the old file or the new one.
void replace(const fs::path& file, const std::string& text) {
  const fs::path fresh = file.string() + "." + std::to_string(getpid()) + ".new";
  std::FILE* const out = std::fopen(fresh.c_str(), "wbe");
  bool good = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (out != nullptr) good = std::fclose(out) == 0 && good;  // a full disk may be reported only here
  if (good && std::rename(fresh.c_str(), file.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  std::remove(fresh.c_str());
  throw std::runtime_error("cannot write " + file.string() + ": " + why + "; CANELE_SAMPLES names another directory");
}

}  // namespace

std::string file_of(const nlohmann::json& info) {
  std::string file = info.at("samples").at("file");
  if (file.empty())
    throw std::runtime_error("there is no place for samples: set CANELE_SAMPLES to a directory, or HOME");
  return file;
}

void write_sample(const nlohmann::json& info, const Record& record) {
  const nlohmann::json& samples = info.at("samples");
  const fs::path file = file_of(info);
  std::string text =
      fmt::format("canele-samples 1\nhost {}\nmachine {}\nlibrary {}\n", samples.at("host").get<std::string>(),
                  samples.at("machine").get<std::string>(), info.at("canele").get<std::string>());
  for (const nlohmann::json& one : samples.at("drivers")) {
    const Record other = from_json(one);
    if (other.driver != record.driver) text += lines_of(other);
  }
  text += lines_of(record) + "end\n";
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  if (failed) {
    throw std::runtime_error("cannot make the directory " + file.parent_path().string() + ": " + failed.message() +
                             "; CANELE_SAMPLES names another one");
  }
  replace(file, text);
}

}  // namespace canele::perf
