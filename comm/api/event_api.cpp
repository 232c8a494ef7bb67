// SPDX-License-Identifier: BSD-3-Clause
//
// Completion queues and conditions of the C ABI.
//
// Any thread.
#include <algorithm>

#include "comm/api/api.hpp"
#include "comm/state/condition.hpp"

namespace canele::comm::api {
namespace {

/// Takes entries, for a caller that wants only the requests and the arguments.
int poll_queue(Engine& engine, CompletionQueue& queue, canele_request_t** requests, void** arguments, int max) {
  constexpr int at_a_time = 16;
  canele_entry_t entries[at_a_time];
  int count = 0;
  for (int wanted = 0, got = 0; count < max && got == wanted;) {
    wanted = std::min(at_a_time, max - count);
    got = take_entries(engine, queue, entries, wanted);
    for (int i = 0; i < got; ++i, ++count) {
      requests[count] = entries[i].request;
      if (arguments != nullptr) arguments[count] = entries[i].user;
    }
  }
  return count;
}

}  // namespace

}  // namespace canele::comm::api

using namespace canele;
using namespace canele::comm;
using namespace canele::comm::api;

int canele_request_on_queue(canele_request_t* request, canele_queue_t* queue, void* argument) try {
  if (request == nullptr || queue == nullptr)
    return error(CANELE_EINVAL, "canele_request_on_queue: request and queue must be given");
  return listen(request_of(request), {CANELE_EVENT_FINALIZED, push_to_queue, queue, argument},
                "canele_request_on_queue");
} catch (...) {
  return caught();
}

int canele_queue_poll(canele_engine_t* engine, canele_queue_t* queue, canele_request_t** requests, void** arguments,
                      int max) try {
  if (engine == nullptr || queue == nullptr || requests == nullptr || max < 0) {
    return error(CANELE_EINVAL, "canele_queue_poll: engine, queue and requests must be given");
  }
  Engine& e = engine_of(engine);
  CompletionQueue& q = queue_of(queue);
  int did = 0;
  int count = poll_queue(e, q, requests, arguments, max);
  if (count == 0) {
    if (!may_progress(e)) return reject_in_child("canele_queue_poll");
    did = e.step();
    count = poll_queue(e, q, requests, arguments, max);
  }
  if (count == 0 && did == 0) e.progress.empty_polls.found_nothing();
  return count;
} catch (...) {
  return caught();
}

void canele_condition_signal(canele_condition_t* condition, uint16_t mask) {
  if (condition == nullptr) return;
  reinterpret_cast<Condition*>(condition)->signal(mask);
}

uint16_t canele_condition_test(const canele_condition_t* condition, uint16_t mask) {
  if (condition == nullptr) return 0;
  return reinterpret_cast<const Condition*>(condition)->test(mask);
}

int canele_condition_wait(canele_engine_t* engine, canele_condition_t* condition, uint16_t mask) try {
  if (condition == nullptr || mask == 0)
    return error(CANELE_EINVAL, "canele_condition_wait: condition and mask must be given");
  Target target{&reinterpret_cast<Condition*>(condition)->word, mask, nullptr};
  if (target.done()) return CANELE_OK;
  return wait_for_one(engine != nullptr ? &engine_of(engine) : nullptr, &target, 1, 0, BlockedThread::In::condition);
} catch (...) {
  return caught();
}
