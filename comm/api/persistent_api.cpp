// SPDX-License-Identifier: BSD-3-Clause
//
// Operations that repeat: described once, then started again and again.
//
// Any thread; one at a time for each operation. The description is checked once. A start is a post with the request
// that lies in front of the description.
#include <canele/one_sided.h>
#include <canele/post.h>

#include <cstddef>
#include <string>

#include "comm/api/api.hpp"
#include "comm/api/one_sided_objects.hpp"

namespace canele::comm::api {
namespace {

/// What is in a canele_persistent_t, the program's memory.
struct Persistent {
  enum class Kind : std::uint32_t { none, send, receive, put };

  canele_request_t request;
  Kind kind;
  std::int32_t peer;
  union {
    canele_session_t* session;
    canele_key_t* key;
  };
  std::uint64_t tag;  ///< of a put: the offset
  std::uint64_t mask;
  canele_data_t data;
  union {
    canele_post_options_t post;
    canele_access_options_t access;
  };
};
static_assert(sizeof(Persistent) <= sizeof(canele_persistent_t) &&
              offsetof(Persistent, request) == offsetof(canele_persistent_t, request));

/// Finds the place of a description. nullptr: *code is the error to answer.
Persistent* description(canele_persistent_t* operation, const void* object, const canele_data_t* data, const char* call,
                        int* code) {
  if (operation == nullptr || object == nullptr) {
    *code = missing(call, "operation, and the session or key");
    return nullptr;
  }
  if (fork::in_child) {
    *code = reject_in_child(call);
    return nullptr;
  }
  if ((*code = check_data(data, call)) != CANELE_OK) return nullptr;
  auto* const persistent = reinterpret_cast<Persistent*>(operation);
  if (request_of(&persistent->request).stage == Request::Stage::idle) return persistent;
  *code = error(CANELE_EBUSY, call, "the operation is in use (or its memory was not zeroed before its first use)");
  return nullptr;
}

/// Describes a send or a receive.
int describe(Persistent::Kind kind, canele_session_t* session, int peer, const canele_data_t* data,
             const canele_post_options_t* options, const char* call, Persistent** out, canele_persistent_t* operation) {
  int code = CANELE_OK;
  Persistent* const one = description(operation, session, data, call, &code);
  if (one == nullptr) return code;
  const bool any = kind == Persistent::Kind::receive && peer == CANELE_ANY_SOURCE;
  if (!any && (code = check_peer(public_of(engine_of(*session_of(session).context)), peer, call)) != CANELE_OK)
    return code;
  canele_post_options_t read;
  code = copy_options(options, call, "canele_post_options_t", &read);
  if (code == CANELE_OK) code = check_completion(read.done, call);
  if (code != CANELE_OK) return code;
  one->kind = kind;
  one->peer = peer;
  one->session = session;
  one->data = *data;
  one->post = read;
  *out = one;
  return CANELE_OK;
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_send_init(canele_session_t* session, int destination, uint64_t tag, const canele_data_t* data,
                     const canele_post_options_t* options, canele_persistent_t* operation) try {
  Persistent* one = nullptr;
  const int code =
      describe(Persistent::Kind::send, session, destination, data, options, "canele_send_init", &one, operation);
  if (code == CANELE_OK) one->tag = tag;
  return code;
} catch (...) {
  return caught();
}

int canele_receive_init(canele_session_t* session, int source, uint64_t tag, uint64_t mask, const canele_data_t* data,
                        const canele_post_options_t* options, canele_persistent_t* operation) try {
  Persistent* one = nullptr;
  const int code =
      describe(Persistent::Kind::receive, session, source, data, options, "canele_receive_init", &one, operation);
  if (code != CANELE_OK) return code;
  one->tag = tag;
  one->mask = mask;
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_put_init(canele_key_t* key, uint64_t offset, const canele_data_t* data,
                    const canele_access_options_t* options, canele_persistent_t* operation) try {
  constexpr const char* call = "canele_put_init";
  int code = CANELE_OK;
  Persistent* const one = description(operation, key, data, call, &code);
  if (one == nullptr) return code;
  canele_access_options_t read;
  code = copy_options(options, call, "canele_access_options_t", &read);
  if (code == CANELE_OK) code = check_completion(read.done, call);
  if (code != CANELE_OK) return code;
  one->kind = Persistent::Kind::put;
  one->key = key;
  one->tag = offset;
  one->data = *data;
  one->access = read;
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_start(canele_persistent_t* operation) try {
  constexpr const char* call = "canele_start";
  if (operation == nullptr) return missing(call, "operation");
  auto& one = *reinterpret_cast<Persistent*>(operation);
  switch (one.kind) {
    case Persistent::Kind::send:
      return canele_post_send(one.session, one.peer, one.tag, &one.data, &one.post, &one.request);
    case Persistent::Kind::receive:
      return canele_post_receive(one.session, one.peer, one.tag, one.mask, &one.data, &one.post, &one.request);
    case Persistent::Kind::put:
      return canele_put(one.key, one.tag, &one.data, &one.access, &one.request);
    case Persistent::Kind::none:
      break;
  }
  return fork::in_child ? reject_in_child(call) : error(CANELE_EINVAL, call, "no operation was described");
} catch (...) {
  return caught();
}
