// SPDX-License-Identifier: BSD-3-Clause
//
// Verdict: what the end of a rank means for the job, what to say about it, and the job's exit code.
//
// Who: Job tells it of every end; tests drive it directly. Threads: one. No system calls: only rules.
// Surprise: a rank that fails after it has left the job properly (exit 77 of a skipped test, say) or before any rank
// has
//      joined is no reason to kill the others at once: they mostly do the same. What ends alike is said in one line.
#pragma once

#include <string>
#include <vector>

namespace canele::run {

struct RankEnd {
  int rank;
  long pid;
  int status;          ///< as of waitpid
  bool joined;         ///< it has called canele_init, or what its own library calls so
  bool left;           ///< and canele_finalize
  bool anyone_joined;  ///< some rank of the job has
};

class Verdict {
 public:
  enum class Then {
    nothing,          ///< the job goes on, or is done
    wait_for_others,  ///< end the job if the others do not end by themselves within the grace time
    end_job           ///< now
  };

  Verdict(int ranks, bool keep_going) : ranks_(ranks), keep_going_(keep_going) {}

  Then rank_ended(const RankEnd& end);
  /// A rank has joined: those that ended without joining are now missing.
  Then someone_joined();
  Then aborted(int rank, long pid, int code, const std::string& reason);
  /// The user has sent a signal that ends processes: deaths are no news now.
  void interrupted() { quiet_ = true; }
  /// The job ends for a reason of its own, told elsewhere: a rank could not be started, the user kills the ranks.
  void failed(int code) {
    if (code_ == 0) code_ = code;
  }
  /// We are killing the ranks: how they end from here on says nothing.
  void ending();

  /// Ranks whose death was found since the last call, with their codes.
  struct Death {
    int rank;
    int code;
  };
  std::vector<Death> take_deaths();
  /// Lines to print now, without newline. What several ranks have in common is one line.
  std::vector<std::string> take_messages();
  /// All ranks have ended, or the grace time is over: says what was held back.
  void conclude();
  int code() const { return code_; }

 private:
  struct Bystander {
    int rank;
    long pid;
  };
  struct Message {
    int rank;
    long pid;
    std::string what;
  };
  Then fail(Message message, int code, Then then);

  int ranks_;
  bool keep_going_;
  bool quiet_ = false;
  bool ending_ = false;
  bool failed_outside_ = false;  ///< a rank has failed before anybody joined
  int code_ = 0;
  std::vector<Bystander> bystanders_;
  std::vector<Death> deaths_;
  std::vector<Message> messages_, held_back_;
};

}  // namespace canele::run
