// SPDX-License-Identifier: BSD-3-Clause
//
// Completion queues by entries, completion counters, and waits with a deadline.
//
// Any thread; the waits not inside a callback.
#include "comm/api/api.hpp"

namespace canele::comm::api {
namespace {

CompletionCounter& counter_of(canele_completion_counter_t* counter) { return CompletionCounter::of(counter); }
const CompletionCounter& counter_of(const canele_completion_counter_t* counter) {
  return CompletionCounter::of(const_cast<canele_completion_counter_t*>(counter));
}

int check_entries(canele_engine_t* engine, canele_queue_t* queue, const canele_entry_t* entries, int max,
                  const char* call) {
  if (engine != nullptr && queue != nullptr && entries != nullptr && max > 0) return CANELE_OK;
  return missing(call, "engine, queue, entries and max > 0");
}

int tell_late(int code, const char* call) {
  return code == CANELE_ETIMEOUT ? error(code, std::string(call) + ": the deadline has passed") : code;
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_queue_take(canele_engine_t* engine, canele_queue_t* queue, canele_entry_t* entries, int max) try {
  if (const int code = check_entries(engine, queue, entries, max, "canele_queue_take"); code != CANELE_OK) return code;
  Engine& e = engine_of(engine);
  int count = take_entries(e, queue_of(queue), entries, max);
  if (count > 0) return count;
  if (!may_progress(e)) return reject_in_child("canele_queue_take");
  const int did = e.step();
  count = take_entries(e, queue_of(queue), entries, max);
  if (count == 0 && did == 0) e.progress.empty_polls.found_nothing();
  return count;
} catch (...) {
  return caught();
}

int canele_queue_wait(canele_engine_t* engine, canele_queue_t* queue, canele_entry_t* entries, int max,
                      uint64_t deadline) try {
  if (const int code = check_entries(engine, queue, entries, max, "canele_queue_wait"); code != CANELE_OK) return code;
  return tell_late(wait_for_entries(engine_of(engine), queue_of(queue), entries, max, deadline), "canele_queue_wait");
} catch (...) {
  return caught();
}

int canele_completion_counter_init(canele_completion_counter_t* counter, uint64_t threshold,
                                   const canele_completion_t* then) try {
  constexpr const char* call = "canele_completion_counter_init";
  if (counter == nullptr) return error(CANELE_EINVAL, call, "counter is NULL");
  if (then != nullptr) {
    if (const int code = check_completion(*then, call); code != CANELE_OK) return code;
    if (then->kind == CANELE_COMPLETE_CALLBACK && (then->bits & ~unsigned{CANELE_EVENT_FINALIZED}) != 0)
      return error(CANELE_EINVAL, call, "a counter has no event but FINALIZED");
  }
  counter_of(counter).init(threshold, then != nullptr ? *then : canele_completion_t{});
  return CANELE_OK;
} catch (...) {
  return caught();
}

uint64_t canele_completion_counter_value(const canele_completion_counter_t* counter) {
  return counter != nullptr ? counter_of(counter).value() : 0;
}

uint64_t canele_completion_counter_errors(const canele_completion_counter_t* counter, int* first) {
  return counter != nullptr ? counter_of(counter).errors(first) : 0;
}

void canele_completion_counter_add(canele_completion_counter_t* counter, uint64_t n) {
  if (counter != nullptr) counter_of(counter).add(n, CANELE_OK);
}

int canele_completion_counter_wait(canele_engine_t* engine, canele_completion_counter_t* counter, uint64_t threshold,
                                   uint64_t deadline) try {
  constexpr const char* call = "canele_completion_counter_wait";
  if (engine == nullptr || counter == nullptr) return missing(call, "engine and counter");
  return tell_late(wait_for_count(engine_of(engine), counter_of(counter), threshold, deadline), call);
} catch (...) {
  return caught();
}

int canele_wait_until(canele_request_t* request, uint64_t deadline, canele_status_t* status) try {
  if (request == nullptr) return error(CANELE_EINVAL, "canele_wait_until: request is NULL");
  Request& r = request_of(request);
  if (r.kind != Request::Kind::null && !r.finalized()) {
    const int code = wait_until(engine_of(*r.context), end_of(r), deadline, BlockedThread::In::wait);
    if (code != CANELE_OK) return tell_late(code, "canele_wait_until");
  }
  return canele_wait(request, status);
} catch (...) {
  return caught();
}
