// SPDX-License-Identifier: BSD-3-Clause
//
// Registration for the events of a request: a callback, or a queue.
//
// Any thread. A registration is for the current use of the request, or for its next one.
#include "comm/api/api.hpp"

namespace canele::comm::api {
namespace {

/// Returns true if the registration belongs to the next use: the request is null, or the program knows of its end. No
/// other thread then accesses the request.
bool is_of_next_use(Request& r, std::uint64_t seen) {
  return r.kind == Request::Kind::null || ((seen & event::finalized) != 0 && r.told_of_end(seen));
}

/// Returns true if an event of a finalized request is still to come, or if the request is in a queue.
bool is_owed_event(const Request& r, std::uint64_t seen) {
  // Taking the request out of the queue clears the callback.
  if (r.callback == push_to_queue) return true;
  return (RequestWord::delivered(seen) & event::finalized) == 0 && (seen & RequestWord::queued_bit) != 0;
}

[[gnu::cold]] int reject_second(bool ended, const char* call) {
  return error(CANELE_EBUSY,
               std::string(call) + (ended ? ": the request has ended, and its event is still to come: "
                                            "register for its next use in the callback, or when the queue "
                                            "has given it back"
                                          : ": this use of the request has a callback or a queue already"));
}

/// Records the events that a callback is wanted for. Returns true if some have happened, and the caller has to queue
/// the delivery.
inline bool want_events(Request& r, std::uint64_t seen, unsigned mask) {
  const bool pending = (seen & event::finalized) == 0;  // a finalized request may have outlived its engine
  const RequestWordGuard guard(pending ? r.context : nullptr);
  std::uint64_t next;
  do {
    next = seen | (std::uint64_t{mask} << RequestWord::wanted_shift);
    if (RequestWord::due(next) != 0) next |= RequestWord::queued_bit;
  } while (!r.word.compare_exchange_weak(seen, next, std::memory_order_acq_rel));
  return (next & RequestWord::queued_bit) != 0 && (seen & RequestWord::queued_bit) == 0;
}

/// Registers for the current use.
inline void listen_now(Request& r, std::uint64_t seen, const Listening& what) {
  Engine* const engine = static_cast<Engine*>(r.context);  // the callback may free the request
  keep(r, what);
  if (!want_events(r, seen, what.mask)) return;
  engine->queue_delivery(r);
  engine->after_submit();
}

/// Registers for a request that is not pending, or that has a callback already.
[[gnu::cold, gnu::noinline]] int listen_slow(Request& r, std::uint64_t seen, const Listening& what, const char* call) {
  const bool next_use = is_of_next_use(r, seen), ended = (seen & event::finalized) != 0;
  if (next_use && ended ? is_owed_event(r, seen) : RequestWord::wanted(seen) != 0) return reject_second(ended, call);
  if (!next_use && fork::in_child) return reject_in_child(call);
  if (!next_use) {
    listen_now(r, seen, what);
    return CANELE_OK;
  }
  // It becomes a null request with a callback, which the next post keeps, as for a new request.
  r.kind = Request::Kind::null;
  listen_next(r, what);
  return CANELE_OK;
}

}  // namespace

/// Registers, inlined into the calls that are made for each message.
[[gnu::always_inline]] static inline int listen_inline(Request& r, const Listening& what, const char* call) {
  const std::uint64_t seen = r.word.load(std::memory_order_acquire);
  const bool pending = r.kind != Request::Kind::null && (seen & event::finalized) == 0;
  if (!pending || RequestWord::wanted(seen) != 0) [[unlikely]]
    return listen_slow(r, seen, what, call);
  if (fork::in_child) [[unlikely]]
    return reject_in_child(call);
  listen_now(r, seen, what);
  return CANELE_OK;
}

int listen(Request& r, const Listening& what, const char* call) { return listen_inline(r, what, call); }

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_request_on_event(canele_request_t* request, unsigned mask, canele_callback_fn callback, void* argument) try {
  if (request == nullptr || callback == nullptr || mask == 0 || (mask & ~event::all) != 0) {
    return error(CANELE_EINVAL, "canele_request_on_event: request, callback and a mask of events must be given");
  }
  return listen_inline(request_of(request), {mask, callback, argument, nullptr}, "canele_request_on_event");
} catch (...) {
  return caught();
}
