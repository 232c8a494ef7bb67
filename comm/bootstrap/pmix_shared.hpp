// SPDX-License-Identifier: BSD-3-Clause
//
// Shared: the state that libpmix's thread and ours share: dead ranks, open questions, whether the launcher lives.
//
// Used by pmix.cpp. Any thread; everything is under `mutex`. Deliver functions and the failure handler are called with
// the mutex unlocked, on libpmix's thread or the clock's. libpmix may call back long after the answer is of use. So
// each call carries a Call of its own that keeps Shared alive. A Call without a callback is freed when libpmix has
// stopped.
//
//   PmixBootstrap ──▶ Shared ◀── Call (one for each call that libpmix has not answered)
//                       │
//                       ├──▶ questions: number ──▶ Open (one for each get() that is not delivered)
//                       └──▶ by_time: (time of the next step, number): the clock's thread takes the first
//
// A get is tried again until its time is up: libpmix 4.2 answers all gets of one rank with the failure of the first.
// Rejected: letting libpmix's own PMIX_TIMEOUT end a get. It counts in seconds, and not every server honours it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/bounded.hpp"

namespace canele::comm {

/// One get() that waits for its answer.
struct Question {
  int rank;
  std::string key;
  Bootstrap::Deliver deliver;
};

struct Shared : std::enable_shared_from_this<Shared> {
  explicit Shared(Platform& p) : platform(p), changed(p) {}

  /// One call into libpmix that will call back.
  struct Call {
    std::shared_ptr<Shared> shared;
    std::uint64_t number = 0;                   ///< get: number of the question; fence and survey: number of the fence.
    int rank = -1;                              ///< survey: the rank that is asked.
    std::shared_ptr<void> arguments = nullptr;  ///< of a get: libpmix reads them until it calls back.
  };

  struct Open {
    Question question;
    std::uint64_t deadline;
    std::uint64_t next_step;  ///< when the clock acts next: to ask once more, or at the deadline.
    std::uint64_t pause;      ///< before asking once more; doubles.
  };

  Platform& platform;
  Signal changed;  ///< signalled after each change below

  std::mutex mutex;
  std::set<int> dead;
  bool launcher_lost = false;
  bool stopping = false;
  std::function<void(int)> died;
  std::uint64_t last_question = 0;
  std::map<std::uint64_t, Open> questions;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_time;
  /// Asks libpmix: (number, rank, key, ns left). Set once, before the clock starts.
  std::function<void(std::uint64_t, int, const std::string&, std::uint64_t)> ask_launcher;
  std::set<Call*> calls;

  std::uint64_t fence = 0;        ///< the last fence that was started.
  std::uint64_t fence_ended = 0;  ///< the last fence that libpmix has called back for.
  int fence_status = 0;           ///< the status of that callback.
  std::set<int> arrived;          ///< survey after a fence that failed: ranks known to have entered it.
  int survey_left = 0;            ///< answers still to come.

  /// Makes a Call to pass to libpmix as its context. finish() takes it back in the callback.
  static Call* start_call(const std::shared_ptr<Shared>& shared, std::uint64_t number, int rank);
  static Call finish(void* context);
  /// Frees the Calls for which libpmix will never call back. Only once libpmix has stopped.
  void drop_calls();

  /// Remembers a question until it is answered. Returns its number.
  std::uint64_t ask(Question question, std::uint64_t deadline);
  /// Schedules a question again, when the launcher has no answer now.
  void try_later(std::uint64_t number);
  /// Delivers an answer, unless another thread has delivered one before.
  void answer(std::uint64_t number, bool ok, Blob blob, const std::string& why);
  /// Answers the questions to a rank (-1: to all ranks) with an error.
  void fail_all(int rank, const std::string& why);
  /// Reports a rank's death to the handler and ends the questions to that rank.
  void report_death(int rank);
  void report_lost_launcher();
  /// Runs the clock's thread: asks again, and ends questions whose time is up, until `stopping`.
  void run_clock();

 private:
  std::uint64_t run_due_steps();
  void schedule(std::uint64_t number, Open& open, std::uint64_t when);
};

}  // namespace canele::comm
