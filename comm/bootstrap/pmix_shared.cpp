// SPDX-License-Identifier: BSD-3-Clause
//
// Open questions and deaths of the PMIx client.
#include "comm/bootstrap/pmix_shared.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "comm/bootstrap/limits.hpp"

namespace canele::comm {

Shared::Call* Shared::start_call(const std::shared_ptr<Shared>& shared, std::uint64_t number, int rank) {
  auto call = std::make_unique<Call>(Call{shared, number, rank, nullptr});
  const std::lock_guard lock(shared->mutex);
  shared->calls.insert(call.get());
  return call.release();
}

Shared::Call Shared::finish(void* context) {
  const std::unique_ptr<Call> call(static_cast<Call*>(context));
  {
    const std::lock_guard lock(call->shared->mutex);
    [[maybe_unused]] const std::size_t erased = call->shared->calls.erase(call.get());
    assert(erased == 1);
  }
  return std::move(*call);
}

void Shared::drop_calls() {
  std::set<Call*> left;
  {
    const std::lock_guard lock(mutex);
    left.swap(calls);
  }
  for (Call* call : left) delete call;
}

std::uint64_t Shared::ask(Question question, std::uint64_t deadline) {
  std::uint64_t number;
  {
    const std::lock_guard lock(mutex);
    number = ++last_question;
    questions.emplace(number, Open{std::move(question), deadline, deadline, first_pause});
    by_time.emplace(deadline, number);
  }
  changed.change();  // the clock may have to wake earlier
  return number;
}

void Shared::schedule(std::uint64_t number, Open& open, std::uint64_t when) {
  [[maybe_unused]] const std::size_t erased = by_time.erase({open.next_step, number});
  assert(erased == 1);
  open.next_step = std::min(when, open.deadline);
  by_time.emplace(open.next_step, number);
}

void Shared::try_later(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex);
    const auto open = questions.find(number);
    if (open == questions.end()) return;
    schedule(number, open->second, platform.now_ns() + open->second.pause);
    open->second.pause = std::min(2 * open->second.pause, longest_pause);
  }
  changed.change();
}

void Shared::answer(std::uint64_t number, bool ok, Blob blob, const std::string& why) {
  Bootstrap::Deliver deliver;
  {
    const std::lock_guard lock(mutex);
    const auto open = questions.find(number);
    if (open == questions.end()) return;
    [[maybe_unused]] const std::size_t erased = by_time.erase({open->second.next_step, number});
    assert(erased == 1);
    deliver = std::move(open->second.question.deliver);
    questions.erase(open);
  }
  deliver(ok, std::move(blob), why);
}

void Shared::fail_all(int rank, const std::string& why) {
  std::vector<std::uint64_t> numbers;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [number, open] : questions)
      if (rank < 0 || open.question.rank == rank) numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) answer(number, false, {}, why);
}

void Shared::report_death(int rank) {
  std::function<void(int)> handler;
  {
    const std::lock_guard lock(mutex);
    if (!dead.insert(rank).second) return;  // the launcher may report a death twice, in two ways
    handler = died;
  }
  changed.change();
  fail_all(rank, "rank " + std::to_string(rank) + " has died");
  if (handler) handler(rank);
}

void Shared::report_lost_launcher() {
  {
    const std::lock_guard lock(mutex);
    launcher_lost = true;
  }
  changed.change();
  fail_all(-1, "the connection to the launcher is lost");
}

/// Runs the steps that are due. Returns the time of the next step.
std::uint64_t Shared::run_due_steps() {
  while (true) {
    std::uint64_t number, left;
    int rank;
    std::string key;
    {
      const std::lock_guard lock(mutex);
      if (by_time.empty()) return Signal::forever;
      const std::uint64_t now = platform.now_ns();
      if (by_time.begin()->first > now) return by_time.begin()->first;
      number = by_time.begin()->second;
      Open& open = questions.at(number);
      rank = open.question.rank;
      key = open.question.key;
      left = open.deadline > now ? open.deadline - now : 0;
      if (left > 0) schedule(number, open, open.deadline);
    }
    if (left == 0)
      answer(number, false, {}, "rank " + std::to_string(rank) + " has not published '" + key + "' in the time given");
    else
      ask_launcher(number, rank, key, left);
  }
}

void Shared::run_clock() {
  while (true) {
    const std::uint64_t next = run_due_steps();
    bool stop = false;
    changed.wait(next, [this, next, &stop] {
      const std::lock_guard lock(mutex);
      stop = stopping;
      return stop || (!by_time.empty() && by_time.begin()->first < next);
    });
    if (stop) return;
  }
}

}  // namespace canele::comm
