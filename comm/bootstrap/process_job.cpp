// SPDX-License-Identifier: BSD-3-Clause
//
// Engines that share the connection to the launcher.
#include "comm/bootstrap/process_job.hpp"

#include <cassert>
#include <map>
#include <utility>
#include <vector>

#include "comm/bootstrap/bounded.hpp"

namespace canele::comm {

class Line {
 public:
  explicit Line(Platform& platform) : changed_(platform) {}

  /// Remembers a question. Returns the number under which its answer is to come.
  std::uint64_t ask(Bootstrap::Deliver deliver) {
    const std::lock_guard lock(mutex_);
    questions_.emplace(++last_question_, std::move(deliver));
    return last_question_;
  }

  void answer(std::uint64_t number, bool ok, Blob blob, std::string reason) {
    Bootstrap::Deliver deliver;
    {
      const std::lock_guard lock(mutex_);
      const auto found = questions_.find(number);
      if (found == questions_.end()) return;  // the engine has left
      deliver = std::move(found->second);
      questions_.erase(found);
      ++under_way_;
    }
    deliver(ok, std::move(blob), std::move(reason));
    came_back();
  }

  void listen(std::function<void(int)> died) {
    const std::lock_guard lock(mutex_);
    assert(!died_ && "at most one handler");
    died_ = std::move(died);
  }

  void tell_death(int rank) {
    std::function<void(int)> died;
    {
      const std::lock_guard lock(mutex_);
      if (!died_ || !told_.insert(rank).second) return;
      died = died_;
      ++under_way_;
    }
    died(rank);
    came_back();
  }

  /// Ends the open questions. No callback comes after it.
  void close() {
    std::map<std::uint64_t, Bootstrap::Deliver> left;
    {
      const std::lock_guard lock(mutex_);
      died_ = nullptr;
      left.swap(questions_);
    }
    changed_.wait(Signal::forever, [this] {
      const std::lock_guard lock(mutex_);
      return under_way_ == 0;
    });
    for (const auto& [number, deliver] : left) deliver(false, {}, "this rank is leaving the job");
  }

 private:
  void came_back() {
    {
      const std::lock_guard lock(mutex_);
      --under_way_;
    }
    changed_.change();
  }

  std::mutex mutex_;
  Signal changed_;
  std::function<void(int)> died_;
  std::set<int> told_;
  std::map<std::uint64_t, Bootstrap::Deliver> questions_;
  std::uint64_t last_question_ = 0;
  int under_way_ = 0;  ///< running callbacks
};

/// An engine's use of the connection.
class Seat final : public Bootstrap {
 public:
  Seat(ProcessJob& job, ProcessBootstrap& connection, std::shared_ptr<Line> line, std::unique_lock<std::mutex> creating)
      : job_(job),
        connection_(connection),
        line_(std::move(line)),
        creating_(std::move(creating)),
        number_(job.created_ + 1),
        suffix_("-of-" + std::to_string(number_)) {}
  ~Seat() override { finalize(); }

  std::string_view name() const override { return connection_.name(); }
  int rank() const override { return connection_.rank(); }
  int size() const override { return connection_.size(); }
  int local_rank() const override { return connection_.local_rank(); }
  int local_size() const override { return connection_.local_size(); }
  const std::string& host() const override { return connection_.host(); }
  /// Returns a job number that differs between the engines of one job, so that they do not connect to each other.
  std::uint64_t job() const override { return connection_.job() + (number_ - 1) * 0x9e3779b97f4a7c15u; }

  bool put(std::string_view key, const Blob& blob, std::string* why) override {
    return connection_.put(own(key), blob, why);
  }
  bool commit_and_fence(std::uint64_t timeout_ns, std::string* why) override {
    return meet(why, [&] { return connection_.commit_and_fence(timeout_ns, why); });
  }
  bool fence(std::uint64_t timeout_ns, std::string* why) override {
    return meet(why, [&] { return connection_.fence(timeout_ns, why); });
  }
  void get(int rank, std::string_view key, std::uint64_t timeout_ns, Deliver deliver) override {
    const std::uint64_t number = line_->ask(std::move(deliver));
    const auto deliver_to_line = [line = line_, number, suffix = suffix_](bool ok, Blob blob, std::string reason) {
      line->answer(number, ok, std::move(blob), without(suffix, std::move(reason)));
    };
    connection_.get(rank, own(key), timeout_ns, deliver_to_line);
  }
  void on_failure(std::function<void(int)> died) override {
    line_->listen(std::move(died));
    for (int rank = 0; rank < size(); ++rank)  // after listening, so that no death is missed
      if (connection_.has_died(rank)) line_->tell_death(rank);
  }
  bool has_died(int rank) const override { return connection_.has_died(rank); }
  void abort(int code, std::string_view reason) override { connection_.abort(code, reason); }
  void finalize() override {
    if (disconnected_) return;
    disconnected_ = true;
    job_.remove(line_);
    if (creating_.owns_lock()) creating_.unlock();
  }
  int descriptor() const override { return connection_.descriptor(); }
  bool progress(std::uint64_t wait_ns) override { return connection_.progress(wait_ns); }

 private:
  /// Removes the engine's suffix from a text: users know a key by the name that the engine has given it.
  static std::string without(const std::string& suffix, std::string reason) {
    const std::size_t at = reason.find(suffix + "'");
    if (at != std::string::npos) reason.erase(at, suffix.size());
    return reason;
  }

  std::string own(std::string_view key) const { return std::string(key) + suffix_; }

  /// Runs a fence with all ranks. The first fence that succeeds makes the engine one that all ranks have.
  template <typename Wait>
  bool meet(std::string* why, Wait&& wait) {
    if (!creating_.owns_lock()) {
      const std::lock_guard turn(job_.creating_);
      return wait();
    }
    if (!wait()) {
      if (number_ > 1)
        *why += "; this is engine " + std::to_string(number_) +
                " of its process, and all ranks must create their engines in the same order";
      return false;
    }
    ++job_.created_;
    creating_.unlock();
    return true;
  }

  ProcessJob& job_;
  ProcessBootstrap& connection_;
  const std::shared_ptr<Line> line_;
  std::unique_lock<std::mutex> creating_;
  const std::uint64_t number_;
  const std::string suffix_;
  bool disconnected_ = false;
};

ProcessJob& ProcessJob::here() {
  struct Exit {
    explicit Exit(ProcessJob& j) : job(j) {}
    ~Exit() { job.process_ends(); }
    ProcessJob& job;
  };
  static ProcessJob& job = *new ProcessJob;
  static const Exit at_exit(job);
  return job;
}

void ProcessJob::process_ends() {
  const long process = process_.load();
  if (process == 0 || process != posix_platform().process()) return;  // the connection is the parent's
  const std::lock_guard lock(connecting_);
  exiting_ = true;
  {
    const std::lock_guard lines_lock(lines_mutex_);
    if (!lines_.empty()) return;
  }
  connection_->finalize();
}

std::unique_ptr<Bootstrap> ProcessJob::join(Platform& platform, std::uint64_t timeout_ns, const Connect& connect,
                                            std::string* why) {
  // Before any lock: a thread that does not exist after a fork may have held the lock.
  if (const long process = process_.load(); process != 0 && process != platform.process()) {
    *why = "this process is the child of rank " + std::to_string(connection_->rank()) +
           ", and a job has each rank once: call canele_init in a process that the launcher has started";
    return nullptr;
  }
  std::unique_lock creating(creating_);
  const auto line = std::make_shared<Line>(platform);
  const std::lock_guard lock(connecting_);
  bool first;
  {
    const std::lock_guard lines_lock(lines_mutex_);
    first = lines_.empty();
    lines_.insert(line);
  }
  if (connect_or_resume(platform, first, timeout_ns, connect, why))
    return std::make_unique<Seat>(*this, *connection_, line, std::move(creating));
  const std::lock_guard lines_lock(lines_mutex_);
  lines_.erase(line);
  return nullptr;
}

bool ProcessJob::connect_or_resume(Platform& platform, bool first, std::uint64_t timeout_ns, const Connect& connect,
                                   std::string* why) {
  if (connection_ != nullptr) return !first || connection_->resume(timeout_ns, why);
  connection_ = connect(why);
  if (connection_ == nullptr) return false;
  process_ = platform.process();
  connection_->on_failure([this](int rank) { tell_death(rank); });
  return true;
}

void ProcessJob::tell_death(int rank) {
  std::vector<std::shared_ptr<Line>> lines;
  {
    const std::lock_guard lock(lines_mutex_);
    lines.assign(lines_.begin(), lines_.end());
  }
  for (const auto& line : lines) line->tell_death(rank);
}

void ProcessJob::remove(const std::shared_ptr<Line>& line) {
  line->close();
  const std::lock_guard lock(connecting_);
  {
    const std::lock_guard lines_lock(lines_mutex_);
    lines_.erase(line);
    if (!lines_.empty()) return;
  }
  if (exiting_)
    connection_->finalize();
  else
    connection_->rest();
}

}  // namespace canele::comm
