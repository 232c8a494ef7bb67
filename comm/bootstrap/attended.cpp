// SPDX-License-Identifier: BSD-3-Clause
//
// A thread for a bootstrap that has none.
#include "comm/bootstrap/attended.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace canele::comm {
namespace {

class Attended final : public ProcessBootstrap {
 public:
  Attended(std::unique_ptr<ProcessBootstrap> inner, int bell) : inner_(std::move(inner)), bell_(bell) {}
  ~Attended() override {
    stop();
    close(bell_);
  }

  /// Starts the thread. Returns false if the system has none.
  bool start(Platform& platform) {
    thread_ = platform.start_thread("canele-launcher", [this] { listen(); });
    return thread_ != nullptr;
  }
  /// Returns the bootstrap unchanged, after start() has failed.
  std::unique_ptr<ProcessBootstrap> give_back() { return std::move(inner_); }

  std::string_view name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int local_rank() const override { return inner_->local_rank(); }
  int local_size() const override { return inner_->local_size(); }
  std::uint64_t job() const override { return inner_->job(); }
  const std::string& host() const override { return inner_->host(); }
  bool put(std::string_view key, const Blob& blob, std::string* why) override { return inner_->put(key, blob, why); }
  bool commit_and_fence(std::uint64_t timeout_ns, std::string* why) override {
    const std::lock_guard lock(listening_);
    return inner_->commit_and_fence(timeout_ns, why);
  }
  bool fence(std::uint64_t timeout_ns, std::string* why) override {
    const std::lock_guard lock(listening_);
    return inner_->fence(timeout_ns, why);
  }
  void get(int rank, std::string_view key, std::uint64_t timeout_ns, Deliver deliver) override {
    inner_->get(rank, key, timeout_ns, std::move(deliver));
  }
  void on_failure(std::function<void(int rank)> died) override { inner_->on_failure(std::move(died)); }
  bool has_died(int rank) const override { return inner_->has_died(rank); }
  /// Not under the mutex: an abort does not wait for a fence, and needs no answer.
  void abort(int code, std::string_view reason) override { inner_->abort(code, reason); }
  void rest() override {
    const std::lock_guard lock(listening_);
    inner_->rest();
  }
  bool resume(std::uint64_t timeout_ns, std::string* why) override {
    const std::lock_guard lock(listening_);
    return inner_->resume(timeout_ns, why);
  }
  void finalize() override {
    stop();
    inner_->finalize();
  }

 private:
  void stop() {
    // The system calls of the bell order this store before the thread's load.
    ended_.store(true, std::memory_order_relaxed);
    eventfd_write(bell_, 1);
    thread_.reset();  // waits for the end of the thread
  }

  void listen() {
    pollfd watched[] = {{inner_->descriptor(), POLLIN, 0}, {bell_, POLLIN, 0}};
    while (!ended_.load(std::memory_order_relaxed)) {
      poll(watched, 2, -1);
      const std::lock_guard lock(listening_);
      if (watched[0].revents != 0) inner_->progress(1);  // not 0: with 0, only every 256th call reads
    }
  }

  std::unique_ptr<ProcessBootstrap> inner_;
  const int bell_;
  std::atomic<bool> ended_{false};
  std::mutex listening_;  ///< held by a call that waits for the launcher's answer: it reads the answer itself, and the
                          ///< thread must not
  std::unique_ptr<PlatformThread> thread_;
};

}  // namespace

std::unique_ptr<ProcessBootstrap> attend(Platform& platform, std::unique_ptr<ProcessBootstrap> inner) {
  if (inner == nullptr || inner->descriptor() < 0) return inner;
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell < 0) return inner;
  auto attended = std::make_unique<Attended>(std::move(inner), bell);
  if (!attended->start(platform)) return attended->give_back();
  return attended;
}

}  // namespace canele::comm
