// SPDX-License-Identifier: BSD-3-Clause
//
// Completion queues in a program's own event loop.
//
// One thread at a time for each wakeup; not inside a callback.
#include <canele/wakeup.h>

#include <memory>
#include <string>
#include <utility>

#include "comm/api/api.hpp"
#include "comm/post/wakeup.hpp"

namespace canele::comm::api {
namespace {

using post::QueueEvents;
using post::Wakeup;

Wakeup& wakeup_of(canele_wakeup_t* wakeup) { return *reinterpret_cast<Wakeup*>(wakeup); }

/// Returns the error to answer, CANELE_OK if the call may go on.
int check_wakeup(const canele_wakeup_t* wakeup, const char* call) {
  if (wakeup == nullptr) return missing(call, "wakeup");
  if (fork::in_child) return reject_in_child(call);
  return callback_depth() == 0 ? CANELE_OK : error(CANELE_EDEADLK, call, "called in a callback");
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_wakeup_open(canele_engine_t* engine, canele_queue_t* queue, canele_wakeup_t** wakeup) try {
  constexpr const char* call = "canele_wakeup_open";
  if (engine == nullptr || queue == nullptr || wakeup == nullptr) return missing(call, "engine, queue and wakeup");
  if (fork::in_child) return reject_in_child(call);
  Engine& e = engine_of(engine);
  if (e.driver_set.lacks_wakeup || e.descriptor() < 0)
    return error(CANELE_EDRIVER, call, "a driver in use cannot wake a process; expected: drivers that can");
  std::string why;
  auto set = e.platform.make_wake_set(&why);
  if (set == nullptr) return error(CANELE_ENOMEM, std::string(call) + ": " + why);
  auto made = std::make_unique<Wakeup>(e, QueueEvents(queue_of(queue), e.platform), std::move(set));
  *wakeup = reinterpret_cast<canele_wakeup_t*>(made.release());
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_wakeup_descriptor(const canele_wakeup_t* wakeup) try {
  if (wakeup == nullptr) return missing("canele_wakeup_descriptor", "wakeup");
  return reinterpret_cast<const Wakeup*>(wakeup)->set().descriptor();
} catch (...) {
  return caught();
}

int canele_wakeup_arm(canele_wakeup_t* wakeup) try {
  if (const int code = check_wakeup(wakeup, "canele_wakeup_arm"); code != CANELE_OK) return code;
  return wakeup_of(wakeup).arm() ? CANELE_OK : CANELE_EAGAIN;
} catch (...) {
  return caught();
}

int canele_wakeup_disarm(canele_wakeup_t* wakeup) try {
  if (const int code = check_wakeup(wakeup, "canele_wakeup_disarm"); code != CANELE_OK) return code;
  wakeup_of(wakeup).disarm();
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_wakeup_close(canele_wakeup_t* wakeup) try {
  if (const int code = check_wakeup(wakeup, "canele_wakeup_close"); code != CANELE_OK) return code;
  delete &wakeup_of(wakeup);
  return CANELE_OK;
} catch (...) {
  return caught();
}
