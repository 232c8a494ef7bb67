// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages: the loops of both ranks, and the order of batches.
//
//     rank 0 (Sender)     window of messages ─▶ waits for their requests ─▶ waits for the answer ─▶ next window
//     rank 1 (Receiver)        each is counted ─▶ the last one of a window is answered by an active message
//
// Each batch begins with a barrier, so that no message of it comes before the other rank has begun it.
#include "active.hpp"

#include <canele/active_message.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "active_arrivals.hpp"
#include "measure.hpp"

namespace canele::perf {
namespace {

constexpr std::uint64_t message_id = 1, answer_id = 2;
using Header = std::uint64_t;

canele_data_t data_of(const std::byte* bytes, std::size_t length) { return canele_data_contiguous(bytes, length); }

std::size_t inject_limit(Job& job) {
  std::size_t bytes = 0;
  must(canele_limit(job.engine.native(), job.peer(), CANELE_LIMIT_INJECT, &bytes), "canele_limit");
  return bytes;
}

/// Rank 0.
class Sender {
 public:
  Sender(Job& job, canele_session_t* session, const ActiveCase& one);
  /// Returns the nanoseconds of a message: half a round trip, or the share of a window.
  double batch(bool thorough);

 private:
  void post(std::size_t slot, Header number);
  void wait_for_window(bool thorough);
  std::byte* reply(std::size_t slot) { return replies_.data() + slot * static_cast<std::size_t>(one_.answer_size()); }

  Job& job_;
  canele_session_t* const session_;
  const ActiveCase& one_;
  const std::size_t window_;
  const Pattern pattern_;
  const canele_data_t data_;
  std::vector<canele_am_t> messages_;
  std::vector<canele_call_t> calls_;
  LineArray<std::byte> replies_;
  std::vector<canele_data_t> places_;       ///< of replies
  std::vector<canele_request_t*> pending_;  ///< the requests of messages or calls; none of kind inject
  std::vector<canele_status_t> statuses_;
  Arrivals arrivals_;
};

Sender::Sender(Job& job, canele_session_t* session, const ActiveCase& one)
    : job_(job),
      session_(session),
      one_(one),
      window_(static_cast<std::size_t>(one.window)),
      pattern_(one.size),
      data_(data_of(pattern_.data(), one.size)),
      statuses_(window_),
      arrivals_(
          job, session, one, {answer_id, one.answer_size(), 1},
          [](const canele_am_message_t&, std::uint64_t, void* sender) {
            static_cast<Sender*>(sender)->arrivals_.signal();
          },
          this) {
  if (one.kind == ActiveKind::call) {
    calls_.resize(window_);
    replies_.resize(std::max<std::size_t>(window_ * one.answer_size(), 1));
    for (std::size_t slot = 0; slot < window_; ++slot) places_.push_back(data_of(reply(slot), one.answer_size()));
    for (canele_call_t& call : calls_) pending_.push_back(&call.request);
  } else if (one.kind != ActiveKind::inject) {
    messages_.resize(window_);
    for (canele_am_t& message : messages_) pending_.push_back(&message.request);
  }
}

double Sender::batch(bool thorough) {
  const bool answered = one_.kind != ActiveKind::call;
  arrivals_.begin(thorough);
  job_.session.barrier();
  Header number = 0;
  const std::uint64_t start = job_.engine.now();
  for (int round = 0; round < one_.rounds; ++round) {
    arrivals_.clear();
    for (std::size_t slot = 0; slot < window_; ++slot) post(slot, number++);
    wait_for_window(thorough);
    if (answered) arrivals_.wait();
  }
  const auto ns = static_cast<double>(job_.engine.now() - start);
  arrivals_.end(answered ? static_cast<std::uint64_t>(one_.rounds) : 0);
  return ns / static_cast<double>(one_.messages()) / (one_.measure == Measure::latency ? 2 : 1);
}

void Sender::post(std::size_t slot, Header number) {
  int code = CANELE_OK;
  switch (one_.kind) {
    case ActiveKind::handler:
    case ActiveKind::concurrent:
      must(canele_am_send(session_, job_.peer(), message_id, &number, sizeof number, &data_, nullptr, &messages_[slot]),
           "canele_am_send");
      break;
    case ActiveKind::queue:
      must(canele_am_post(session_, job_.peer(), message_id, &number, sizeof number, &data_, nullptr, &messages_[slot]),
           "canele_am_post");
      break;
    case ActiveKind::inject:
      while ((code = canele_am_inject(session_, job_.peer(), message_id, &number, sizeof number, pattern_.data(),
                                      one_.size)) == CANELE_EAGAIN) {
        canele_progress(job_.engine.native());
      }
      must(code, "canele_am_inject");
      break;
    case ActiveKind::call:
      must(canele_am_call(session_, job_.peer(), message_id, &number, sizeof number, &data_, &places_[slot], nullptr,
                          &calls_[slot]),
           "canele_am_call");
      break;
  }
}

/// Waits for the requests of a window. Checks the replies of calls.
void Sender::wait_for_window(bool thorough) {
  if (pending_.empty()) return;
  if (window_ == 1) {
    must(canele_wait(pending_.front(), statuses_.data()), "canele_wait");
  } else {
    must(canele_wait_all(window_, pending_.data(), statuses_.data()), "canele_wait_all");
  }
  if (one_.kind != ActiveKind::call) return;
  for (std::size_t slot = 0; slot < window_; ++slot) {
    if (statuses_[slot].length != one_.answer_size() || !pattern_.fits(reply(slot), one_.answer_size(), thorough)) {
      arrivals_.note("a reply has a wrong length or wrong data");
    }
  }
}

/// Rank 1. A window's answer needs two parts: all its messages have come, and the former answer's memory is free.
class Receiver {
 public:
  Receiver(Job& job, canele_session_t* session, const ActiveCase& one);
  /// Answers all messages of a batch. Returns 0.
  double batch(bool thorough);

 private:
  void arrived(const canele_am_message_t& message, std::uint64_t count);
  void reply(const canele_am_message_t& message);
  void end_part();
  void next();
  void answer(Header number);

  Job& job_;
  canele_session_t* const session_;
  const ActiveCase& one_;
  const Pattern pattern_;
  const canele_data_t data_;  ///< of an answer
  const std::size_t most_injected_;
  canele_am_t answer_{};
  std::atomic<int> missing_{0};  ///< parts
  int answers_ = 0;
  canele_completion_counter_t replied_{};  ///< of replies that were posted
  std::uint64_t replies_ = 0;
  Arrivals arrivals_;
};

Receiver::Receiver(Job& job, canele_session_t* session, const ActiveCase& one)
    : job_(job),
      session_(session),
      one_(one),
      pattern_(one.answer_size()),
      data_(data_of(pattern_.data(), one.answer_size())),
      most_injected_(inject_limit(job)),
      arrivals_(
          job, session, one, {message_id, one.size, static_cast<std::size_t>(one.window)},
          [](const canele_am_message_t& message, std::uint64_t count, void* receiver) {
            static_cast<Receiver*>(receiver)->arrived(message, count);
          },
          this) {}

double Receiver::batch(bool thorough) {
  arrivals_.begin(thorough);
  answers_ = 0;
  missing_.store(1, std::memory_order_relaxed);
  job_.session.barrier();
  arrivals_.wait();
  arrivals_.end(one_.messages());
  must(canele_completion_counter_wait(job_.engine.native(), &replied_, replies_, UINT64_MAX),
       "canele_completion_counter_wait");
  return 0;
}

void Receiver::arrived(const canele_am_message_t& message, std::uint64_t count) {
  if (one_.kind == ActiveKind::call) {
    reply(message);
    if (count == one_.messages()) arrivals_.signal();
  } else if (count % static_cast<std::uint64_t>(one_.window) == 0) {
    end_part();
  }
}

/// Replies to a call: without a request if it is short enough and there is room.
void Receiver::reply(const canele_am_message_t& message) {
  canele_am_token_t token;
  arrivals_.require(canele_am_take_token(&message, &token), "canele_am_take_token");
  if (data_.length <= most_injected_) {
    const int code = canele_am_inject_reply(session_, &token, pattern_.data(), data_.length);
    if (code != CANELE_EAGAIN) return arrivals_.require(code, "canele_am_inject_reply");
  }
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.done.kind = CANELE_COMPLETE_COUNTER;
  options.done.object = &replied_;
  arrivals_.require(canele_am_reply(session_, &token, &data_, &options, nullptr), "canele_am_reply");
  ++replies_;
}

void Receiver::end_part() {
  if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) next();  // partner: the other part's, on any thread
}

/// Answers a window. After the last answer has ended, the batch is over.
void Receiver::next() {
  if (answers_ == one_.rounds) return arrivals_.signal();
  const auto number = static_cast<Header>(answers_++);
  missing_.store(answers_ == one_.rounds ? 1 : 2, std::memory_order_relaxed);
  answer(number);
}

void Receiver::answer(Header number) {
  if (one_.kind == ActiveKind::inject) {
    const int code =
        canele_am_inject(session_, job_.peer(), answer_id, &number, sizeof number, pattern_.data(), data_.length);
    if (code == CANELE_OK) return end_part();
    if (code != CANELE_EAGAIN) return arrivals_.require(code, "canele_am_inject");
  }
  canele_post_options_t options{};
  options.struct_size = sizeof options;
  options.flags = CANELE_POST_MAY_FINISH;
  options.done.kind = CANELE_COMPLETE_CALLBACK;
  options.done.user = this;
  options.done.callback = [](canele_request_t* request, unsigned, void* receiver) {
    Receiver& self = *static_cast<Receiver*>(receiver);
    canele_status_t status{};
    canele_request_status(request, &status);
    self.arrivals_.require(status.error, "an answer");
    self.end_part();
  };
  const int code = canele_am_post(session_, job_.peer(), answer_id, &number, sizeof number, &data_, &options, &answer_);
  arrivals_.require(code, "canele_am_post");
  if (code == CANELE_DONE) end_part();
}

/// The same exchange by sends and receives. A window's receives have a buffer each, as our messages have.
class PlainMessages {
 public:
  PlainMessages(Job& job, const ActiveCase& one) : job_(job), one_(one), stream_(job, one.size, one.window) {
    stream_.step = one.size;
    const std::size_t all = std::max<std::size_t>(one.size * static_cast<std::size_t>(one.window), 1);
    stream_.in = MessageMemory(MemoryKind::host, all);
  }
  double batch() {
    return one_.measure == Measure::latency ? ping_pong(job_, stream_, one_.size, one_.rounds)
                                            : one_way(job_, stream_, one_.size, one_.rounds);
  }

 private:
  Job& job_;
  const ActiveCase& one_;
  Stream stream_;
};

template <typename Rank>
void run_batches(Job& job, canele_session_t* session, const Options& options, ActiveResult& result) {
  const ActiveCase& one = result.what;
  Rank rank(job, session, one);
  PlainMessages floor(job, one);
  rank.batch(true);  // warm-up: connects, fills caches
  if (options.floor) floor.batch();
  for (int i = 0; i < options.batches; ++i) {
    result.ours.push_back(in_unit(one.measure, rank.batch(false)));
    if (options.floor) result.floor.push_back(in_unit(one.measure, floor.batch()));
  }
  rank.batch(true);
}

ActiveCase case_of(const Options& options, ActiveKind kind, Measure measure, std::uint64_t size) {
  const int window = measure == Measure::latency ? 1 : options.window_of_active(size);
  return {kind, measure, size, window, options.rounds(size, window), options.active.poll};
}

}  // namespace

const char* name_of(ActiveKind kind) {
  switch (kind) {
    case ActiveKind::handler:
      return "handler";
    case ActiveKind::queue:
      return "queue";
    case ActiveKind::concurrent:
      return "concurrent";
    case ActiveKind::inject:
      return "inject";
    case ActiveKind::call:
      return "call";
  }
  return "";
}

ActiveResults measure_active(Job& job, const Options& options) {
  ActiveResults results;
  canele::session session(job.engine, "canele-perf am");
  job.session.barrier();
  results.driver = job.driver();
  check_driver(options, results.driver);
  constexpr std::size_t beside = sizeof(std::uint64_t) + sizeof(Header);  // the library's word, and our header
  results.most_injected = inject_limit(job) - beside;
  for (const ActiveKind kind : options.active.kinds) {
    for (const std::uint64_t size : options.sizes) {
      if (kind == ActiveKind::inject && size > results.most_injected) {
        results.too_long.push_back(size);
        continue;
      }
      for (const Measure measure : options.active.measures) {
        ActiveResult& row = results.rows.emplace_back(ActiveResult{case_of(options, kind, measure, size), {}, {}});
        job.first() ? run_batches<Sender>(job, session.native(), options, row)
                    : run_batches<Receiver>(job, session.native(), options, row);
      }
    }
  }
  job.session.barrier();
  return results;
}

}  // namespace canele::perf
