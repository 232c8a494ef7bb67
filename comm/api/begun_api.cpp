// SPDX-License-Identifier: BSD-3-Clause
//
// Requests whose use begins before their operation is known, and requests that the program completes.
//
// Any thread. Other threads may wait for a begun request. So its word changes by atomic operations only, and its engine
// and direction stay. Sends that use it: prepare_begun_send() in state/request_setup, send_begun_at_once() in post/.
#include <string>

#include "comm/api/api.hpp"

using namespace canele::comm;
using namespace canele::comm::api;

int canele_request_begin(canele_engine_t* engine, canele_request_t* request) try {
  constexpr const char* call = "canele_request_begin";
  if (engine == nullptr || request == nullptr) return missing(call, "engine and request");
  if (fork::in_child) return reject_in_child(call);
  Request& r = request_of(request);
  if (r.stage != Request::Stage::idle)
    return error(CANELE_EBUSY, call, "the request is in use (or its memory was not zeroed before its first use)");
  begin_use(r, engine_of(engine));
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_request_complete(canele_request_t* request, int code) try {
  constexpr const char* call = "canele_request_complete";
  constexpr int last = CANELE_EDEVICE;
  if (request == nullptr) return missing(call, "request");
  if (code > CANELE_OK || code < last) {
    return error(CANELE_EINVAL, std::string(call) + ": error is " + std::to_string(code) +
                                    "; expected: CANELE_OK, or a code of enum canele_error");
  }
  if (fork::in_child) return reject_in_child(call);
  Request& r = request_of(request);
  if (r.stage != Request::Stage::begun) return error(CANELE_ESTATE, call, "the request is not begun");
  Engine& engine = engine_of(*r.context);
  r.status_error = static_cast<std::int16_t>(code);
  r.PostOp::kind = OpKind::complete;
  engine.submit(static_cast<PostOp&>(r));
  engine.after_submit();
  return CANELE_OK;
} catch (...) {
  return caught();
}
