// SPDX-License-Identifier: BSD-3-Clause
//
// Pmi1Client: the client's half of PMI-1 as a state machine. Bytes and times go in; bytes and answers come out.
//
// Used by pmi1.cpp, which owns the descriptor and the clock; tests drive it without either. One thread at a time. It
// never waits and makes no callbacks; take_news() returns what is to be delivered. One command is in flight at a time,
// except the barrier, whose answer comes when the last rank has entered. Gets therefore go on meanwhile, and after a
// barrier that was given up.
//
//   questions: number ──▶ Open ◀── by_time: (time of the next step, number)
//                           │
//                           └──▶ "get" of its next part in `commands` ──▶ `under_way` ──▶ answer ──▶ next part, or news
//
// Rejected: sending commands in a row without waiting. The answers of PMI-1 do not say to what they belong, and one
// lost answer would shift all others.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/pmi1_wire.hpp"

namespace canele::comm {

class Pmi1Client {
 public:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  struct Question {
    int rank;
    std::string key;
    Bootstrap::Deliver deliver;
    bool patient = true;  ///< asks again until its time is up; else "not there" is an answer
  };
  struct Answer {
    Bootstrap::Deliver deliver;
    bool ok;
    Blob blob;
    std::string why;
  };
  struct News {
    std::vector<Answer> answers;
    std::vector<int> deaths;
    bool empty() const { return answers.empty() && deaths.empty(); }
  };

  /// Starts with the hello.
  Pmi1Client(int rank, int size);

  /// Processes bytes that the launcher has sent.
  void hear(std::string_view bytes, std::uint64_t now);
  /// Ends every question, when the connection is lost.
  void lose(const std::string& why);
  /// Asks again, or ends, the questions whose time has come.
  void pass_time(std::uint64_t now);
  /// Returns when to call pass_time next.
  std::uint64_t next_time() const { return by_time_.empty() ? never : by_time_.begin()->first; }
  /// Returns the bytes for the launcher. The caller erases what it has sent.
  std::string& output() { return output_; }
  News take_news() { return std::exchange(news_, {}); }

  bool put(std::string_view key, const Blob& blob, std::string* why);
  /// Enters the barrier, after all puts.
  void enter_barrier();
  bool in_barrier() const { return barriers_left_ > 0; }
  void ask(Question question, std::uint64_t deadline, std::uint64_t now);
  /// Aborts the job. The reason is sent to canele-run only: other launchers have no field for it.
  void abort(int code, std::string_view reason);
  /// Returns true for canele-run, which accepts a reason for an abort, and a new hello from a process that has left.
  bool launcher_is_ours() const { return space_.starts_with("canele-run."); }
  void finalize();
  /// Joins again after finalize(), with a new hello.
  void come_back();
  bool finalized() const { return finalized_; }
  /// Ends all questions with an error.
  void fail_all(const std::string& why);

  bool hello_done() const { return hello_done_; }
  bool lost() const { return !loss_.empty(); }
  const std::string& loss() const { return loss_; }
  const std::string& space() const { return space_; }  ///< the key space, which names the job
  const std::set<int>& dead() const { return dead_; }
  bool idle() const { return questions_.empty() && !under_way_ && commands_.empty(); }

 private:
  enum class Kind { hello, limits, space, put, get, barrier, finalize };
  struct Command {
    Kind kind;
    std::string text;
    std::uint64_t question = 0;  ///< get: the question that it serves
  };
  struct Open {
    Question question;
    std::uint64_t deadline;
    std::uint64_t next_step;
    std::uint64_t pause;  ///< before asking once more; doubles
    Pmi1Blob blob = {};
  };

  void send_hello(bool again);
  void add(Kind kind, std::string text, std::uint64_t question = 0);
  void send_next();
  void execute(const std::string& line, std::uint64_t now);
  void answered(const Pmi1Message& message, std::uint64_t now);
  bool take_limits(const Pmi1Message& message);
  void got_value(const Pmi1Message& message, std::uint64_t number, std::uint64_t now);
  void ask_launcher(std::uint64_t number, const Open& open);
  void answer(std::uint64_t number, bool ok, Blob blob, const std::string& why);
  void schedule(std::uint64_t number, Open& open, std::uint64_t when);
  void mourn(int rank);

  int rank_, size_;
  Pmi1Limits limits_;
  std::string space_, loss_, output_;
  Pmi1Lines lines_;
  std::deque<Command> commands_;
  bool under_way_ = false;  ///< the command below waits for its answer
  Command current_ = {};
  int barriers_left_ = 0;
  bool hello_done_ = false, finalized_ = false;
  std::set<int> dead_;
  std::uint64_t last_question_ = 0;
  std::map<std::uint64_t, Open> questions_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_time_;
  News news_;
};

}  // namespace canele::comm
