// SPDX-License-Identifier: BSD-3-Clause
//
// The request of one post.
#include "comm/api/posted_use.hpp"

#include <string>

#include "comm/api/api.hpp"

namespace canele::comm::api {

int PostedUse::begin_send(canele_session_t* session, canele_request_t* given, const canele_completion_t& done, int peer,
                          const char* call) {
  if (given == nullptr || session == nullptr || request_of(given).stage != Request::Stage::begun)
    return begin(session, given, done, peer, call);
  request_ = &request_of(given);
  if (!sendable(request_, &session_of(session))) return reject(request_, &session_of(session));
  if (done.kind == CANELE_COMPLETE_POLL) return CANELE_OK;
  return error(CANELE_EBUSY, call,
               "the request was begun; expected: its completion by canele_request_on_event or "
               "canele_request_on_queue, and POLL here");
}

int PostedUse::begin(canele_session_t* session, canele_request_t* given, const canele_completion_t& done, int peer,
                     const char* call) {
  if (session == nullptr) return error(CANELE_EINVAL, call, "session is NULL");
  Session& s = session_of(session);
  request_ = given != nullptr ? &request_of(given) : nullptr;
  listening_ = listening_of(done);
  if (given != nullptr) {
    if (!postable(request_, &s)) return reject(request_, &s);
    if (is_unwatched(*request_) || listening_.mask == 0) return CANELE_OK;
    return error(CANELE_EBUSY, call, "the next use of the request has a callback or a queue already");
  }
  if (done.kind == CANELE_COMPLETE_POLL)
    return error(CANELE_EINVAL, call, "request is NULL, but the completion is POLL");
  if (fork::in_child) return reject_in_child(call);
  if (!s.open) return error(CANELE_ESTATE, "session \"" + s.label + "\" is closed");
  pooled_ = s.context->request_pool.take();
  if (pooled_ == nullptr) return error(CANELE_ENOMEM, call, "no memory for a request");
  pooled_->context = s.context;
  pooled_->done = done;
  pooled_->errors = {s.on_error, s.on_error_argument, session, peer};
  request_ = pooled_;
  listening_ = listening_of(*pooled_);
  return CANELE_OK;
}

void PostedUse::listen_first() {
  if (listening_.mask != 0) listen_next(*request_, listening_);
}

int PostedUse::undo(int code) {
  if (listening_.mask != 0) {
    request_->word.store(0, std::memory_order_relaxed);
    request_->callback = nullptr;
  }
  if (pooled_ != nullptr) request_->context->request_pool.give_back(*pooled_);
  return code;
}

int PostedUse::ended(bool may_finish) {
  if (!may_finish) {
    deliver_now(*request_, listening_);
    return CANELE_OK;
  }
  request_->tell();
  if (pooled_ != nullptr) request_->context->request_pool.give_back(*pooled_);
  return CANELE_DONE;
}

int PostedUse::listen_after(const char* call) {
  if (request_->finalized() && request_->status_error == CANELE_OK) return ended(true);
  return listening_.mask == 0 ? CANELE_OK : listen(*request_, listening_, call);
}

bool may_deliver_now(const canele_completion_t& done) {
  return done.kind != CANELE_COMPLETE_CALLBACK || (callback_depth() == 0 && !PostOnlyScope::on_this_thread());
}

}  // namespace canele::comm::api
