// SPDX-License-Identifier: BSD-3-Clause
//
// Singleton: a job of one rank, for a program that was started without any launcher.
//
// Used by join_job(), and by programs that want an engine alone. Threads: as bootstrap.hpp says. A get of a key that
// was never put fails at once, because no other rank could put it later.
#include <unistd.h>

#include <cassert>
#include <map>
#include <mutex>
#include <utility>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/limits.hpp"

namespace canele::comm {
namespace {

class Singleton final : public Bootstrap {
 public:
  explicit Singleton(Platform& platform) : platform_(platform), job_(platform.random()), host_(host_name()) {}

  std::string_view name() const override { return "singleton"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::uint64_t job() const override { return job_; }
  const std::string& host() const override { return host_; }

  bool put(std::string_view key, const Blob& blob, std::string* why) override {
    if (!check_entry(key, blob.size(), why)) return false;
    const std::lock_guard lock(mutex_);
    blobs_.insert_or_assign(std::string(key), blob);
    return true;
  }
  bool commit_and_fence(std::uint64_t, std::string*) override { return true; }
  bool fence(std::uint64_t, std::string*) override { return true; }

  void get(int rank, std::string_view key, std::uint64_t, Deliver deliver) override {
    if (rank != 0) return deliver(false, {}, "there is no rank " + std::to_string(rank) + " in a job of one rank");
    Blob blob;
    bool found = false;
    {
      const std::lock_guard lock(mutex_);
      if (const auto entry = blobs_.find(key); entry != blobs_.end()) {
        blob = entry->second;
        found = true;
      }
    }
    deliver(found, std::move(blob), found ? std::string() : "nothing was put under '" + std::string(key) + "'");
  }

  void on_failure(std::function<void(int)>) override {}  // there is no other rank that could die
  bool has_died(int) const override { return false; }
  void abort(int code, std::string_view reason) override {
    platform_.log(LogLevel::error, "the job ends with code " + std::to_string(code) + ": " + std::string(reason));
  }
  void finalize() override {}

 private:
  Platform& platform_;
  std::uint64_t job_;
  std::string host_;
  std::mutex mutex_;  ///< guards blobs_
  std::map<std::string, Blob, std::less<>> blobs_;
};

}  // namespace

std::unique_ptr<Bootstrap> make_singleton(Platform& platform) { return std::make_unique<Singleton>(platform); }

}  // namespace canele::comm
