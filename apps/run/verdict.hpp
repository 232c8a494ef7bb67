// SPDX-License-Identifier: BSD-3-Clause
//
// Verdict: what the end of a rank means for the job, what to report, and the job's exit code.
//
// Job reports every end to it; tests call it directly. One thread; it makes no system calls and contains only rules. A
// rank may fail after it has left the job properly (exit 77 of a skipped test) or before any rank has joined. This is
// no reason to kill the other ranks at once, because they mostly end alike. Equal ends are reported in one line.
#pragma once

#include <string>
#include <vector>

namespace canele::run {

struct RankEnd {
  int rank;
  long pid;
  int status;          ///< as of waitpid
  bool joined;         ///< it has called canele_init, or the equivalent of its own library
  bool finalized;      ///< it has called canele_finalize
  bool anyone_joined;  ///< a rank of the job has joined
};

class Verdict {
 public:
  enum class Then {
    nothing,          ///< the job goes on, or is done
    wait_for_others,  ///< end the job if the other ranks do not end by themselves within the grace time
    end_job           ///< end the job now
  };

  Verdict(int ranks, bool keep_going) : ranks_(ranks), keep_going_(keep_going) {}

  Then rank_ended(const RankEnd& end);
  /// Called when a rank has joined: ranks that ended without joining are now missing.
  Then someone_joined();
  Then aborted(int rank, long pid, int code, const std::string& reason);
  /// Called when the user has sent a signal that ends processes: deaths are expected from now on.
  void interrupted() { quiet_ = true; }
  /// Records a failure that is reported elsewhere: a rank could not be started, or the user kills the ranks.
  void failed(int code) {
    if (code_ == 0) code_ = code;
  }
  /// Called when we kill the ranks: their exit status has no meaning from here on.
  void ending();

  /// A rank whose death was found since the last call of take_deaths(), with its code.
  struct Death {
    int rank;
    int code;
  };
  std::vector<Death> take_deaths();
  /// Returns lines to print now, without newline. What several ranks have in common is one line.
  std::vector<std::string> take_messages();
  /// Called when all ranks have ended, or the grace time is over: releases the messages that were deferred.
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
  bool failed_outside_ = false;  ///< a rank has failed before any rank joined
  int code_ = 0;
  std::vector<Bystander> bystanders_;
  std::vector<Death> deaths_;
  std::vector<Message> messages_, deferred_;
};

}  // namespace canele::run
