/* SPDX-License-Identifier: BSD-3-Clause
 *
 * active_message.h - active messages beyond those of canele.h: handled by several threads at a time, placed in pieces,
 * delivered to a queue, kept by the program, sent with a completion or without a request, answered by a reply.
 *
 * A task runtime takes its messages on its own thread, and keeps their payload for as long as a task needs it. No copy
 * is made: the payload stays where it has arrived. A message of up to 1,024 bytes then takes some 1,500 bytes.
 *
 *     canele_am_open(session, 7, &queue, NULL);      instead of canele_am_register
 *     canele_queue_wait(engine, &queue, &entry, 1, UINT64_MAX);
 *     run(entry.source, canele_am_header(entry.payload, NULL), entry.payload, entry.length);
 *     canele_am_release(entry.payload);
 *
 * The conventions of canele.h and post.h hold for every function below. */
#ifndef CANELE_ACTIVE_MESSAGE_H
#define CANELE_ACTIVE_MESSAGE_H

#include <canele/post.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of canele_am_options_t. */
enum canele_am_flags {
  /** Calls of `arrived` may overlap, on several threads, and need not be in the order of their source. */
  CANELE_AM_CONCURRENT = 1
};

/** How a handler is called. Set struct_size = sizeof(canele_am_options_t); zero is the default of every other field.
 *
 * place_data is asked instead of the handler's `place`, for a payload of more than 1,024 bytes, with the handler's
 * argument. It describes in *where the memory for message->payload_length bytes, which may be several pieces, and
 * returns 1; 0: the library allocates the memory. The pieces, and what *where refers to, must live until `arrived` is
 * called, whose message then has payload = NULL. If *where is invalid or has another length, the payload is dropped,
 * and `arrived` has error = CANELE_EINVAL. */
typedef struct canele_am_options {
  size_t struct_size;
  uint32_t flags; /**< of enum canele_am_flags */
  int (*place_data)(const canele_am_message_t *message, canele_data_t *where, void *argument);
} canele_am_options_t;

/** Like canele_am_register, with options (NULL: none). CANELE_EINVAL: also for unknown flags. */
CANELE_API int canele_am_register_with(canele_session_t *session, uint64_t id, const canele_am_handler_t *handler,
                                       const canele_am_options_t *options);

/** Adds the messages to `id` of this session to `queue`, in place of a handler. An entry has kind
 * CANELE_ENTRY_ACTIVE_MESSAGE, `user`, `source`, `tag` = id, `error` as canele_am_message_t has it, `length` of the
 * payload in bytes, and `payload`. The payload, also one of 0 bytes, belongs to the program until canele_am_release.
 * Order: as the handler's calls. While 256 messages are in the queue, others wait as they do without a handler.
 * canele_am_unregister ends this. The queue must live until then, and until the entries left in it are taken. Does not
 * block. CANELE_EBUSY: the id has a handler or a queue. CANELE_ENOMEM. */
CANELE_API int canele_am_open(canele_session_t *session, uint64_t id, canele_queue_t *queue, void *user);

/** Keeps the message that a handler's `arrived` is called with. Called within that call. *payload is where the payload
 * lies (aligned to 16 bytes); it belongs to the program until canele_am_release. No copy is made. CANELE_ESTATE: the
 * call has returned, or the message is kept already. CANELE_EINVAL: `place` gave the memory, which is the program's
 * anyway; so did place_data. */
CANELE_API int canele_am_keep(const canele_am_message_t *message, void **payload);

/** Returns the header of a message that the program keeps, and writes its length in bytes to *length (may be NULL).
 * NULL: the payload is not kept. Valid until canele_am_release. */
CANELE_API const void *canele_am_header(const void *payload, size_t *length);

/** Gives a payload back that was kept, or taken out of a queue. Any thread, before canele_finalize. May post receives
 * and call handlers, like a call that makes progress. CANELE_EINVAL: it is not kept. */
CANELE_API int canele_am_release(void *payload);

/** Like canele_am_send, with the options of canele_post_send, of which `header` must be 0. A queue's entry has
 * request = &message->request. Answers: as canele_post_send. */
CANELE_API int canele_am_post(canele_session_t *session, int destination, uint64_t id, const void *header,
                              size_t header_length, const canele_data_t *payload, const canele_post_options_t *options,
                              canele_am_t *message);

/** Sends a short active message without a request: header and payload are copied. Together they have at most
 * canele_limit(CANELE_LIMIT_INJECT) - 8 bytes. In order with other messages to the id. CANELE_EAGAIN: no room; nothing
 * was taken. Make progress, then try again, or post the message by canele_am_post; room that appears ends no blocking
 * wait. Errors after that go to canele_session_on_error. CANELE_ERANK, CANELE_EINVAL, CANELE_ENOMEM. */
CANELE_API int canele_am_inject(canele_session_t *session, int destination, uint64_t id, const void *header,
                                size_t header_length, const void *payload, size_t payload_length);

/* ------------------------------------------------------------------------------------------------- calls */

/** An active message that is answered by a reply. Memory of the caller, with the rules of a request; wait for the
 * member `request`, which is finalized when the reply is here. */
typedef struct canele_call {
  canele_request_t request;
  CANELE_ALIGNAS_16 unsigned char opaque[1152];
} canele_call_t;

/** Sends an active message like canele_am_post, and receives the reply of its receiver into `reply` (NULL: only a reply
 * of 0 bytes is expected). `payload`, and the memory for the reply, belong to the library until call->request is
 * finalized. Its status then has source = destination, tag = id, length = bytes of the reply as sent. options: flags
 * and header must be 0; the completion is that of the call. Does not block; allocates nothing.
 *
 * A call to an id that has no handler waits for one. It ends with CANELE_ECANCELED if its message is not answered: the
 * handler has returned without a token, the message was given back without one, or its session was closed. It ends with
 * CANELE_EPEER if the destination is lost, and with CANELE_ETRUNC if the reply is longer than `reply`. Until then
 * canele_session_close answers CANELE_EBUSY. Answers: as canele_post_send. */
CANELE_API int canele_am_call(canele_session_t *session, int destination, uint64_t id, const void *header,
                              size_t header_length, const canele_data_t *payload, const canele_data_t *reply,
                              const canele_post_options_t *options, canele_call_t *call);

/** The right to answer one call, once. Plain bytes, which any thread of this rank may use. */
typedef struct canele_am_token {
  uint64_t opaque[2];
} canele_am_token_t;

/** Takes the token of a message: the call is answered by canele_am_reply then, now or later. `message` is that of the
 * handler's call, or canele_am_message_of. canele_session_close answers CANELE_EBUSY until the reply has been posted.
 * CANELE_ESTATE: no reply is expected, or the token is taken already. */
CANELE_API int canele_am_take_token(const canele_am_message_t *message, canele_am_token_t *token);

/** Returns the message of a payload that the program keeps, or has taken out of a queue. NULL: the payload is not kept.
 * Valid until canele_am_release. */
CANELE_API const canele_am_message_t *canele_am_message_of(const void *payload);

/** Answers a call with `data` (NULL: 0 bytes). `session`: that of the handler. Else like canele_post_send to the rank
 * that called. If nothing was taken, the token stays valid. A token must not be used twice. */
CANELE_API int canele_am_reply(canele_session_t *session, const canele_am_token_t *token, const canele_data_t *data,
                               const canele_post_options_t *options, canele_request_t *request);

/** Answers a call with `length` bytes at `buffer` without a request. Else like canele_inject: the bytes are copied. */
CANELE_API int canele_am_inject_reply(canele_session_t *session, const canele_am_token_t *token, const void *buffer,
                                      size_t length);

#ifdef __cplusplus
}
#endif

#endif
