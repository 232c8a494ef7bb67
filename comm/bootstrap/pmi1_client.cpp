// SPDX-License-Identifier: BSD-3-Clause
//
// The state machine of the PMI-1 client.
#include "comm/bootstrap/pmi1_client.hpp"

#include <algorithm>
#include <cassert>

#include "comm/bootstrap/limits.hpp"

namespace canele::comm {
namespace {

constexpr std::size_t least_key = 32, least_value = 64;
constexpr std::size_t longest_reason = 1000;

/// Encodes a text as one word of a line: "%20" stands for a space, and so on.
std::string one_word(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string word;
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (code > ' ' && code != '%' && code != '=' && code != 127) {
      word += character;
    } else {
      word.append({'%', digits[code / 16], digits[code % 16]});
    }
  }
  return word;
}

/// In the order of Kind. (The barrier's answer is handled separately.)
constexpr std::string_view answers_to[] = {"response_to_init", "maxes",       "my_kvsname",  "put_result",
                                           "get_result",       "barrier_out", "finalize_ack"};

}  // namespace

Pmi1Client::Pmi1Client(int rank, int size) : rank_(rank), size_(size) {
  assert(rank >= 0 && rank < size);
  send_hello(false);
}

void Pmi1Client::send_hello(bool again) {
  add(Kind::hello, std::string("cmd=init pmi_version=1 pmi_subversion=1") + (again ? " canele_again=1\n" : "\n"));
  add(Kind::limits, "cmd=get_maxes\n");
  add(Kind::space, "cmd=get_my_kvsname\n");
}

void Pmi1Client::add(Kind kind, std::string text, std::uint64_t question) {
  if (lost()) return;
  commands_.push_back({kind, std::move(text), question});
  send_next();
}

void Pmi1Client::send_next() {
  while (!under_way_ && !commands_.empty()) {
    current_ = std::move(commands_.front());
    commands_.pop_front();
    if (current_.kind == Kind::get && !questions_.contains(current_.question)) continue;  // its time is up
    output_ += current_.text;
    under_way_ = current_.kind != Kind::barrier;
  }
}

void Pmi1Client::hear(std::string_view bytes, std::uint64_t now) {
  lines_.add(bytes);
  std::string line;
  while (!lost() && lines_.next(&line)) execute(line, now);
  if (!lost() && lines_.too_long()) lose("the launcher has sent a line without an end");
}

void Pmi1Client::execute(const std::string& line, std::uint64_t now) {
  const std::optional<Pmi1Message> message = Pmi1Message::parse(line);
  if (!message) return lose("the launcher has sent '" + line.substr(0, 80) + "', which is not a line of PMI-1");
  if (message->command() == "barrier_out" && in_barrier()) {
    --barriers_left_;
  } else if (message->command() == "canele_died") {  // canele-run only
    const std::optional<long> rank = message->number("rank");
    if (!rank || *rank < 0 || *rank >= size_) return lose("the launcher has reported the death of an unknown rank");
    mourn(static_cast<int>(*rank));
  } else if (under_way_ && message->command() == answers_to[static_cast<int>(current_.kind)]) {
    answered(*message, now);
  } else {
    lose("the launcher has sent '" + line.substr(0, 80) + "'" +
         (under_way_ ? "; expected: '" + std::string(answers_to[static_cast<int>(current_.kind)]) + "'"
                     : "; expected: nothing"));
  }
}

/// Handles `message`, the answer to `current_`.
void Pmi1Client::answered(const Pmi1Message& message, std::uint64_t now) {
  under_way_ = false;
  const bool rejected = message.number("rc").value_or(0) != 0;
  switch (current_.kind) {
    case Kind::hello:
      if (rejected || message.number("pmi_version") != 1)
        return lose("the launcher does not speak PMI version 1 (it answers version '" +
                    std::string(message.word("pmi_version")) + "', code '" + std::string(message.word("rc")) + "')");
      break;
    case Kind::limits:
      if (!take_limits(message)) return lose("the launcher's limits on keys and values are malformed or too small");
      break;
    case Kind::space:
      space_ = message.word("kvsname");
      if (space_.empty()) return lose("the launcher has not named the job's key space");
      hello_done_ = true;
      break;
    case Kind::put:
      if (rejected) return lose("the launcher has refused to publish a value: " + std::string(message.word("msg")));
      break;
    case Kind::get:
      got_value(message, current_.question, now);
      break;
    case Kind::finalize:
      finalized_ = true;
      break;
    case Kind::barrier:
      assert(false && "it is never under way");
  }
  send_next();
}

bool Pmi1Client::take_limits(const Pmi1Message& message) {
  const long key = message.number("keylen_max").value_or(0), value = message.number("vallen_max").value_or(0);
  if (key < static_cast<long>(least_key) || value < static_cast<long>(least_value)) return false;
  limits_.key = static_cast<std::size_t>(key);
  // Above this limit the launcher would send lines longer than this client accepts.
  limits_.value = std::min(static_cast<std::size_t>(value), Pmi1Lines::longest_line / 2);
  return true;
}

void Pmi1Client::got_value(const Pmi1Message& message, std::uint64_t number, std::uint64_t now) {
  const auto found = questions_.find(number);
  if (found == questions_.end()) return;  // too late
  Open& open = found->second;
  if (message.number("rc").value_or(-1) != 0) {
    if (!open.question.patient) return answer(number, false, {}, "not published");
    open.blob = {};
    schedule(number, open, now + open.pause);
    open.pause = std::min(2 * open.pause, longest_pause);
  } else if (!open.blob.add(message.word("value"))) {
    answer(number, false, {},
           "what rank " + std::to_string(open.question.rank) + " has published as '" + open.question.key +
               "' is malformed: does that rank have another version of Canelé?");
  } else if (open.blob.complete()) {
    answer(number, true, open.blob.take(), {});
  } else {
    ask_launcher(number, open);
  }
}

void Pmi1Client::ask_launcher(std::uint64_t number, const Open& open) {
  add(Kind::get,
      "cmd=get kvsname=" + space_ + " key=" + pmi1_key(open.question.rank, open.question.key, open.blob.next_part()) +
          "\n",
      number);
}

void Pmi1Client::schedule(std::uint64_t number, Open& open, std::uint64_t when) {
  [[maybe_unused]] const std::size_t erased = by_time_.erase({open.next_step, number});
  assert(erased == 1);
  open.next_step = std::min(when, open.deadline);
  by_time_.emplace(open.next_step, number);
}

void Pmi1Client::pass_time(std::uint64_t now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const std::uint64_t number = by_time_.begin()->second;
    Open& open = questions_.at(number);
    if (open.deadline <= now) {
      answer(number, false, {},
             "rank " + std::to_string(open.question.rank) + " has not published '" + open.question.key +
                 "' in the time given");
    } else {
      schedule(number, open, open.deadline);
      ask_launcher(number, open);
    }
  }
}

void Pmi1Client::ask(Question question, std::uint64_t deadline, std::uint64_t now) {
  const std::uint64_t number = ++last_question_;
  const int rank = question.rank;
  const auto [entry, made] = questions_.emplace(number, Open{std::move(question), deadline, deadline, first_pause});
  assert(made);
  by_time_.emplace(deadline, number);
  if (lost()) return answer(number, false, {}, loss_);
  if (dead_.contains(rank)) return answer(number, false, {}, "rank " + std::to_string(rank) + " has died");
  ask_launcher(number, entry->second);
  if (deadline <= now) pass_time(now);
}

void Pmi1Client::answer(std::uint64_t number, bool ok, Blob blob, const std::string& why) {
  const auto found = questions_.find(number);
  assert(found != questions_.end());
  [[maybe_unused]] const std::size_t erased = by_time_.erase({found->second.next_step, number});
  assert(erased == 1);
  news_.answers.push_back({std::move(found->second.question.deliver), ok, std::move(blob), why});
  questions_.erase(found);
}

void Pmi1Client::fail_all(const std::string& why) {
  while (!questions_.empty()) answer(questions_.begin()->first, false, {}, why);
}

void Pmi1Client::mourn(int rank) {
  if (!dead_.insert(rank).second) return;
  news_.deaths.push_back(rank);
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, open] : questions_)
    if (open.question.rank == rank) numbers.push_back(number);
  for (const std::uint64_t number : numbers) answer(number, false, {}, "rank " + std::to_string(rank) + " has died");
}

void Pmi1Client::lose(const std::string& why) {
  if (lost()) return;
  loss_ = why;
  commands_.clear();
  under_way_ = false;
  output_.clear();
  fail_all(why);
}

bool Pmi1Client::put(std::string_view key, const Blob& blob, std::string* why) {
  assert(hello_done_);
  std::vector<std::string> values;
  if (!pmi1_parts(rank_, key, blob, limits_, &values, why)) return false;
  for (std::size_t part = 0; part < values.size(); ++part)
    add(Kind::put,
        "cmd=put kvsname=" + space_ + " key=" + pmi1_key(rank_, key, part) + " value=" + values[part] + "\n");
  return true;
}

void Pmi1Client::enter_barrier() {
  ++barriers_left_;
  add(Kind::barrier, "cmd=barrier_in\n");
}

void Pmi1Client::abort(int code, std::string_view reason) {
  if (lost()) return;
  commands_.clear();  // no answer comes, so the abort need not wait for one
  output_ += "cmd=abort exitcode=" + std::to_string(code);
  if (launcher_is_ours() && !reason.empty()) output_ += " canele_reason=" + one_word(reason.substr(0, longest_reason));
  output_ += "\n";
}

void Pmi1Client::come_back() {
  assert(finalized_ && launcher_is_ours());
  hello_done_ = finalized_ = false;
  barriers_left_ = 0;
  send_hello(true);  // else canele-run would take this process for another program, and forget what it has published
}

void Pmi1Client::finalize() {
  fail_all("this rank is leaving the job");
  commands_.clear();
  add(Kind::finalize, "cmd=finalize\n");
}

}  // namespace canele::comm
