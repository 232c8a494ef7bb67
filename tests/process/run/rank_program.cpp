// SPDX-License-Identifier: BSD-3-Clause
//
// A rank for the tests of canele-run and of the bootstrap: joins the job and does what its first argument says.
//
// Started by launcher_test.cpp under canele-run and mpirun.openmpi, by ../launchers under mpiexec.hydra and srun.
// Its threads are the bootstrap's. Exit code 9 means that the bootstrap did not behave; the text on stderr says how.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "comm/bootstrap/bootstrap.hpp"

namespace {

using canele::Platform;
using canele::comm::Blob;
using canele::comm::Bootstrap;

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t patience = 300 * second;  // an oversubscribed machine takes long to start 64 ranks

[[noreturn]] void misbehaved(const std::string& what) {
  std::fprintf(stderr, "rank program: %s\n", what.c_str());
  std::_Exit(9);
}

Blob blob_of(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

std::string text_of(const Blob& blob) { return {reinterpret_cast<const char*>(blob.data()), blob.size()}; }

/// A value that another thread delivers.
template <typename Value>
class Mailbox {
 public:
  void bring(Value value) {
    {
      const std::lock_guard lock(mutex_);
      if (full_) misbehaved("delivered twice");
      value_ = std::move(value);
      full_ = true;
    }
    word_ = 1;
    canele::posix_platform().unpark(word_);
  }
  Value wait(Bootstrap& job) {
    Platform& platform = canele::posix_platform();
    const std::uint64_t until = platform.now_ns() + 2 * patience;
    while (word_ == 0 && platform.now_ns() < until) {
      if (job.descriptor() >= 0)
        job.progress(until - platform.now_ns());
      else
        platform.park(word_, 0, until - platform.now_ns());
    }
    const std::lock_guard lock(mutex_);
    if (!full_) misbehaved("nothing was delivered");
    return std::move(value_);
  }

 private:
  std::atomic<std::uint32_t> word_{0};
  std::mutex mutex_;
  bool full_ = false;
  Value value_;
};

struct Answer {
  bool ok = false;
  std::string text;
};

/// Starts a get; the answer arrives in the mailbox.
std::shared_ptr<Mailbox<Answer>> ask(Bootstrap& job, int rank, const std::string& key, std::uint64_t timeout) {
  auto box = std::make_shared<Mailbox<Answer>>();
  job.get(rank, key, timeout, [box](bool ok, Blob blob, const std::string& why) {
    box->bring({ok, ok ? text_of(blob) : why});
  });
  return box;
}

std::unique_ptr<Bootstrap> join() {
  std::string why;
  std::unique_ptr<Bootstrap> job = canele::comm::join_job(canele::posix_platform(), patience, &why);
  if (job == nullptr) {
    std::fprintf(stderr, "cannot join: %s\n", why.c_str());
    std::exit(4);
  }
  return job;
}

void must(bool ok, const std::string& why) {
  if (!ok) misbehaved(why);
}

/// Gives every rank's blob to every rank: its own, one longer than a socket buffer takes at once, and an empty one.
int exchange(Bootstrap& job) {
  std::string why;
  const std::string longer(60'000, static_cast<char>('a' + job.rank() % 26));
  must(job.put("address", blob_of("address of " + std::to_string(job.rank())), &why), why);
  must(job.put("long", blob_of(longer), &why), why);
  must(job.put("empty", {}, &why), why);
  must(job.commit_and_fence(patience, &why), why);
  for (int rank = 0; rank < job.size(); ++rank) {
    const Answer address = ask(job, rank, "address", patience)->wait(job);
    must(address.ok && address.text == "address of " + std::to_string(rank), "address: " + address.text);
  }
  const int next = (job.rank() + 1) % job.size();
  const Answer theirs = ask(job, next, "long", patience)->wait(job);
  must(theirs.ok && theirs.text == std::string(60'000, static_cast<char>('a' + next % 26)), "long: " + theirs.text);
  const Answer empty = ask(job, next, "empty", patience)->wait(job);
  must(empty.ok && empty.text.empty(), "empty: " + empty.text);
  must(job.fence(patience, &why), why);
  std::printf("%s rank %d of %d, local %d of %d, job %016llx\n", std::string(job.name()).c_str(), job.rank(),
              job.size(), job.local_rank(), job.local_size(), static_cast<unsigned long long>(job.job()));
  job.finalize();
  return 0;
}

/// Gets a key before it is put, and one that never comes while other keys of its rank are requested.
int early_get(Bootstrap& job) {
  std::string why;
  if (job.rank() == 0) {
    const auto early = ask(job, 1, "late", patience);
    const auto never = ask(job, 1, "never", second);
    must(job.put("go", blob_of("go"), &why), why);
    must(job.commit_and_fence(patience, &why), why);
    const Answer late = early->wait(job);
    must(late.ok && late.text == "here", "late: " + late.text);
    const Answer missing = never->wait(job);
    must(!missing.ok && missing.text.find("rank 1 has not published 'never'") != std::string::npos,
         "never: " + missing.text);
    const Answer unknown_rank = ask(job, job.size(), "late", second)->wait(job);
    must(!unknown_rank.ok && unknown_rank.text.find("there is no rank") != std::string::npos,
         "unknown rank: " + unknown_rank.text);
  } else {
    must(job.put("late", blob_of("here"), &why), why);
    must(job.commit_and_fence(patience, &why), why);
  }
  must(job.fence(patience, &why), why);
  must(!job.put("large", Blob(65'537), &why) && why.find("65536") != std::string::npos, "a blob too long: " + why);
  job.finalize();
  return 0;
}

/// Rank `odd` dies by a signal; the others are told and end well.
int lose_one(Bootstrap& job, int odd, int signal) {
  Mailbox<int> told;
  std::string why;
  job.on_failure([&told](int rank) { told.bring(rank); });
  must(job.fence(patience, &why), why);
  if (job.rank() == odd) std::raise(signal);
  const int rank = told.wait(job);
  std::printf("told that rank %d has died\n", rank);
  must(rank == odd, "another rank than the dead one was named");
  const Answer answer = ask(job, odd, "address", patience)->wait(job);
  must(!answer.ok && answer.text.find("has died") != std::string::npos, "get from the dead: " + answer.text);
  must(!job.fence(patience, &why) && why.find("rank " + std::to_string(odd) + " has died") != std::string::npos, why);
  job.finalize();
  return 0;
}

/// Rank `odd` dies while the others wait for it in a fence, or are about to; libpmix may then leave it out.
int lose_in_fence(Bootstrap& job, int odd) {
  Mailbox<int> told;
  std::string why;
  job.on_failure([&told](int rank) { told.bring(rank); });
  must(job.fence(patience, &why), why);
  if (job.rank() == odd) std::raise(SIGKILL);
  if (job.fence(patience, &why)) why = "rank " + std::to_string(told.wait(job)) + " was left out";
  std::printf("fence: %s\n", why.c_str());
  job.finalize();
  return 0;
}

/// Rank `odd` never enters the fence.
int late_for_fence(Bootstrap& job, int odd) {
  std::string why;
  if (job.rank() == odd) {
    // Stays for 8 seconds: whether this rank still lives when the others give up does not change what they are told.
    must(!ask(job, (odd + 1) % job.size(), "never", 8 * second)->wait(job).ok, "a key that no rank put was found");
  } else {
    must(!job.commit_and_fence(10 * second, &why), "a fence without rank " + std::to_string(odd) + " succeeded");
    std::printf("fence: %s\n", why.c_str());
    must(!job.fence(second, &why), "a second fence succeeded");
  }
  job.finalize();
  return 0;
}

/// Prints whether glibc has registered this thread for restartable sequences.
int tell_sequences() {
  const auto* size = static_cast<const unsigned*>(dlsym(RTLD_DEFAULT, "__rseq_size"));
  std::puts(size == nullptr ? "too old" : *size != 0 ? "registered" : "not registered");
  return 0;
}

int print_lines(int rank, int lines) {
  for (int line = 0; line < lines; ++line) {
    std::printf("out %d of %d\n", line, rank);
    std::fprintf(stderr, "err %d of %d\n", line, rank);
  }
  return 0;
}

int number(char** arguments, int index) { return arguments[index] == nullptr ? -1 : std::atoi(arguments[index]); }

int launched_rank() {
  const char* rank = std::getenv("PMI_RANK");
  if (rank == nullptr) rank = std::getenv("PMIX_RANK");
  return rank == nullptr ? 0 : std::atoi(rank);
}

/// Does what needs no bootstrap, or decides before joining. Returns -1 to continue.
int before_joining(const std::string& what, char** arguments) {
  if (what == "lines") return print_lines(launched_rank(), number(arguments, 0));
  if (what == "sequences") return tell_sequences();
  if (what == "missing" && launched_rank() == number(arguments, 0)) return 0;
  if (what == "exit-before" && launched_rank() == number(arguments, 0)) return number(arguments, 1);
  return -1;
}

int run(const std::string& what, char** arguments) {
  if (const int code = before_joining(what, arguments); code >= 0) return code;
  const std::unique_ptr<Bootstrap> job = join();
  const bool odd = job->rank() == number(arguments, 0);
  std::string why;
  if (what == "exchange") return exchange(*job);
  if (what == "early-get") return early_get(*job);
  if (what == "lose-one") return lose_one(*job, number(arguments, 0), number(arguments, 1));
  if (what == "lose-in-fence") return lose_in_fence(*job, number(arguments, 0));
  if (what == "late-for-fence") return late_for_fence(*job, number(arguments, 0));
  if (what == "missing" || what == "exit-before") {
    job->fence(patience, &why);
    std::fprintf(stderr, "fence: %s\n", why.c_str());
    return 5;
  }
  if (what == "exit-joined") {
    must(job->fence(patience, &why), why);
    if (odd) std::_Exit(number(arguments, 1));
    pause();
  }
  if (what == "exit-after") {
    must(job->fence(patience, &why), why);
    job->finalize();
    return odd || number(arguments, 0) < 0 ? number(arguments, 1) : 0;
  }
  if (what == "abort") {
    must(job->fence(patience, &why), why);
    if (odd) job->abort(number(arguments, 1), "for a test");
    pause();
  }
  misbehaved("unknown order: " + what);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) misbehaved("what shall I do?");
  return run(words[1], words + 2);
}
