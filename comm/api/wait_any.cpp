// SPDX-License-Identifier: BSD-3-Clause
//
// The wait for one of many requests, or for some of them, and the search for finalized requests in a list.
//
// Any thread, except inside a callback. A search starts behind the position where this thread's last search has found a
// request. So each request of a list has its turn, and a search costs one request if they end in order. If the requests
// belong to several engines, the wait makes progress on each engine in turn.
#include <algorithm>

#include "comm/api/api.hpp"
#include "comm/matching/prefetch.hpp"

namespace canele::comm::api {
namespace {

/// The result of a search through all requests of a list.
struct Scan {
  std::size_t done;          ///< index of a finalized or null request; their number if there is none.
  Engine* engine = nullptr;  ///< of the pending requests; nullptr: none is pending.
  bool several = false;      ///< they belong to different engines.
};

bool is_done(const canele_request_t* request) {
  const Request& r = request_of(request);
  return r.kind == Request::Kind::null || r.finalized();
}

/// Searches all requests, from index `from` on. Prefetches the cache lines of later requests.
Scan scan_all(canele_request_t* const* requests, std::size_t count, std::size_t from) {
  constexpr std::size_t ahead = 16;
  Scan scan{count};
  for (std::size_t left = count, i = from; left > 0; --left, ++i) {
    if (i == count) i = 0;
    if (i + ahead < count) prefetch_to_read(requests[i + ahead]);
    if (requests[i] == nullptr) continue;
    if (is_done(requests[i])) {
      scan.done = i;
      return scan;
    }
    Engine& engine = engine_of(*request_of(requests[i]).context);
    scan.several |= scan.engine != nullptr && scan.engine != &engine;
    scan.engine = &engine;
  }
  return scan;
}

/// Searches the next requests first, and then makes progress before it searches many others: a turn of progress costs
/// less.
Scan scan_some(canele_request_t* const* requests, std::size_t count, std::size_t from) {
  constexpr std::size_t some = 32;
  if (count <= some) return scan_all(requests, count, from);
  const std::size_t next = std::min(some, count - from);
  Scan scan = scan_all(requests + from, next, 0);
  if (scan.done < next) {
    scan.done += from;
    return scan;
  }
  Engine* const engine = scan.engine;
  if (engine != nullptr && may_progress(*engine) && !engine->progress.worker.active()) engine->step();
  return scan_all(requests, count, from);
}

/// Makes progress once on each engine that has pending requests here. An engine whose requests are not adjacent in the
/// list gets several turns.
int step_each(canele_request_t* const* requests, std::size_t count) {
  int did = 0;
  const Engine* last = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (requests[i] == nullptr || request_of(requests[i]).kind == Request::Kind::null) continue;
    Engine& engine = engine_of(*request_of(requests[i]).context);
    if (&engine == last) continue;
    last = &engine;
    if (may_progress(engine) && !engine.progress.worker.active()) did += engine.step();
  }
  return did;
}

/// Waits for requests of several engines. No event of all engines wakes one thread, so it naps between turns of
/// progress. `one` is any of the engines.
int wait_on_several(Engine& one, canele_request_t* const* requests, std::size_t count) {
  constexpr std::uint64_t nap_ns = 500'000;
  if (callback_depth() != 0 || fork::in_child) return wait_for_any(nullptr, requests, count, 0);  // returns the error
  const Awaited awaited{nullptr, requests, count};
  ltask::Idle idle(one.platform, one.progress.idle, one.progress.waiters.contention);
  while (!awaited.any_done()) {
    if (step_each(requests, count) > 0) {
      idle.worked();
    } else if (idle.next() == ltask::Idle::Action::sleep) {
      wait_for_any(nullptr, requests, count, posix_platform().now_ns() + nap_ns);
    }
  }
  return CANELE_OK;
}

/// Makes progress once, for a caller that has found no request done.
int step_once(Engine& engine) {
  if (!may_progress(engine)) return reject_in_child("wait");
  const int did = engine.progress.worker.active() ? 0 : engine.step();
  if (did == 0) engine.progress.empty_polls.found_nothing();
  return CANELE_OK;
}

/// Blocks until a pending request of the list is done, with a deadline of the program.
int wait_for_some(Engine& engine, canele_request_t* const* requests, std::size_t count, std::uint64_t deadline) {
  if (deadline != 0) return wait_for_any(&engine, requests, count, deadline == UINT64_MAX ? 0 : deadline);
  if (const int code = step_once(engine); code != CANELE_OK) return code;
  return scan_all(requests, count, 0).done < count ? CANELE_OK : CANELE_ETIMEOUT;
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_wait_any(size_t count, canele_request_t* const* requests, size_t* index, canele_status_t* status) try {
  if (index == nullptr || (count != 0 && requests == nullptr)) {
    return error(CANELE_EINVAL, "canele_wait_any: requests and index must be given");
  }
  const std::size_t from = poller_state.next_place < count ? poller_state.next_place : 0;
  Scan scan = scan_some(requests, count, from);
  if (scan.engine != nullptr && scan.done == count) {
    const int code =
        scan.several ? wait_on_several(*scan.engine, requests, count) : wait_for_any(scan.engine, requests, count, 0);
    if (code != CANELE_OK) return code;
    scan = scan_all(requests, count, from);
    if (scan.done == count) {
      return error(CANELE_ESTATE, "canele_wait_any: a request was finalized and used again while it was waited for");
    }
  }
  *index = scan.done;
  if (scan.done == count) return CANELE_OK;
  poller_state.next_place = scan.done + 1;
  return canele_wait(requests[scan.done], status);
} catch (...) {
  return caught();
}

int canele_wait_some(size_t count, canele_request_t* const* requests, size_t* indexes, canele_status_t* statuses,
                     size_t* done, uint64_t deadline) try {
  if (done == nullptr || (count != 0 && (requests == nullptr || indexes == nullptr)))
    return error(CANELE_EINVAL, "canele_wait_some: requests, indexes and done must be given");
  const Scan scan = scan_all(requests, count, 0);
  if (scan.engine != nullptr && scan.done == count) {
    const int code = wait_for_some(*scan.engine, requests, count, deadline);
    if (code == CANELE_ETIMEOUT) return error(code, "canele_wait_some: the deadline has passed");
    if (code != CANELE_OK) return code;
  }
  std::size_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    if (requests[i] == nullptr || !is_done(requests[i])) continue;
    int done_already = 0;
    canele_test(requests[i], &done_already, statuses != nullptr ? &statuses[found] : nullptr);
    indexes[found++] = i;
  }
  *done = found;
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_test_any(size_t count, canele_request_t* const* requests, size_t* index, canele_status_t* status) try {
  if (index == nullptr || (count != 0 && requests == nullptr))
    return error(CANELE_EINVAL, "canele_test_any: requests and index must be given");
  const std::size_t from = poller_state.next_place < count ? poller_state.next_place : 0;
  Scan scan = scan_all(requests, count, from);
  if (scan.done == count && scan.engine != nullptr) {
    if (const int code = step_once(*scan.engine); code != CANELE_OK) return code;
    scan = scan_all(requests, count, from);
  }
  *index = scan.done;
  if (scan.done == count) return CANELE_OK;
  poller_state.next_place = scan.done + 1;
  int done_already = 0;
  return canele_test(requests[scan.done], &done_already, status);
} catch (...) {
  return caught();
}

size_t canele_find_done(size_t count, canele_request_t* const* requests, size_t first) {
  for (std::size_t i = first; requests != nullptr && i < count; ++i) {
    if (requests[i] == nullptr) continue;
    Request& r = request_of(requests[i]);
    if (r.kind != Request::Kind::null && !r.finalized()) continue;
    r.tell();
    return i;
  }
  return count;
}
