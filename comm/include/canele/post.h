/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post.h - operations that say where their completion goes: sends, receives, completion queues, completion counters.
 *
 * A post takes the completion together with the operation. One call does both, so no event can be lost or delivered to
 * the wrong use of a request. The functions of canele.h do the same in two calls.
 *
 *     canele_post_options_t options = {.struct_size = sizeof options};
 *     options.done = (canele_completion_t){.kind = CANELE_COMPLETE_QUEUE, .object = &queue, .user = tile};
 *     canele_post_send(session, rank, tag, &data, &options, NULL);
 *     canele_queue_wait(engine, &queue, entries, 16, UINT64_MAX);
 *
 * The conventions of canele.h hold for every function below. In addition:
 * - A deadline is a time of canele_now(). 0: look once. UINT64_MAX: never give up.
 * - Objects that a completion names must live until that completion has been delivered. */
#ifndef CANELE_POST_H
#define CANELE_POST_H

#include <canele/canele.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------------- completions */

/** Where the completion of an operation goes. */
enum canele_completion_kind {
  CANELE_COMPLETE_POLL = 0,  /**< nowhere: the program tests the request, or waits for it. */
  CANELE_COMPLETE_CALLBACK,  /**< `callback` is called with `user`, for the events in `bits` (0: FINALIZED). */
  CANELE_COMPLETE_QUEUE,     /**< an entry with `user` is added to the canele_queue_t `object`. */
  CANELE_COMPLETE_COUNTER,   /**< `bits` (0: 1) is added to the canele_completion_counter_t `object`. */
  CANELE_COMPLETE_CONDITION, /**< the low 16 bits of `bits` are set in the canele_condition_t `object`. */
  CANELE_COMPLETE_NONE       /**< nowhere, and no request is needed: an error goes to canele_session_on_error. */
};

/** One destination of a completion. Zero bytes are CANELE_COMPLETE_POLL. Its size never changes. */
typedef struct canele_completion {
  uint32_t kind; /**< enum canele_completion_kind */
  uint32_t bits;
  void *object;
  canele_callback_fn callback;
  void *user;
} canele_completion_t;

/** What a post answers beside CANELE_OK and the errors. */
enum canele_post_answer {
  CANELE_DONE = 1 /**< the operation has ended within its post, with success. */
};

enum canele_post_flags {
  CANELE_POST_SYNCHRONOUS = 1, /**< a send is finalized only after the receiver has matched it. */
  CANELE_POST_MAY_FINISH = 2,  /**< if the operation ends within the post: CANELE_DONE, and no completion. */
  CANELE_POST_TRY = 4          /**< if a send would be held back for want of room or credit: CANELE_EAGAIN. */
};

/** Options of a post. Set struct_size = sizeof(canele_post_options_t); zero is the default of every other field. They
 * hold for this use of the request only. */
typedef struct canele_post_options {
  size_t struct_size;
  canele_completion_t done; /**< the operation is over: request and memory are the program's again. */
  int32_t priority;         /**< of a send: higher is sent sooner, if the strategy supports it. */
  uint32_t flags;           /**< enum canele_post_flags */
  size_t header;            /**< of a send: first bytes (up to CANELE_HEADER_MAX) to send ahead, for peek. */
} canele_post_options_t;

/** Sends `data` like canele_isend_data. options may be NULL (defaults).
 *
 * request = NULL: the library takes a request of its own, and the completion must not be POLL. A callback then gets a
 * request that it may read by canele_request_status until it returns. Queue entries have request = NULL.
 *
 * Returns CANELE_OK: the completion is delivered once, possibly within this call. CANELE_DONE (only with MAY_FINISH):
 * the send has ended with success, and no completion is delivered. CANELE_EAGAIN (only with TRY): nothing was taken;
 * make progress, then try again. CANELE_EBUSY: the request is in use, or its next use has a callback already.
 * CANELE_EINVAL, CANELE_ERANK, CANELE_ENOMEM, CANELE_ESTATE (the session is closed): nothing was taken. */
CANELE_API int canele_post_send(canele_session_t *session, int destination, uint64_t tag, const canele_data_t *data,
                                const canele_post_options_t *options, canele_request_t *request);

/** Receives like canele_irecv_data; data = NULL: like canele_irecv_late, with a request of the program's. Options,
 * request = NULL and the answers: as for canele_post_send. SYNCHRONOUS, TRY, priority and header must be 0. With
 * MAY_FINISH, CANELE_DONE means that the receive has ended with success; its status has the message. */
CANELE_API int canele_post_receive(canele_session_t *session, int source, uint64_t tag, uint64_t mask,
                                   const canele_data_t *data, const canele_post_options_t *options,
                                   canele_request_t *request);

/** Begins a use of `request` before its operation is known. The request is then pending: threads may wait for it and
 * test it, and a completion may be registered (canele_request_on_event, canele_request_on_queue). One of two calls, of
 * any thread, ends that state:
 * - a send with this request on a session of the same engine (canele_isend, canele_isend_data, canele_post_send with
 * the completion POLL). The request is then that send's. If the call fails, the request is begun as before.
 * - canele_request_complete.
 * canele_finalize does not end a begun request. Does not block. CANELE_EBUSY: the request is in use. CANELE_EINVAL. */
CANELE_API int canele_request_begin(canele_engine_t *engine, canele_request_t *request);

/** Ends a begun request without an operation, with the outcome `error` (CANELE_OK or a CANELE_E... code): it stands for
 * work of the program's own. Its status has source -1, tag 0 and length 0. Any thread, once; before canele_finalize.
 * The memory of the request may be freed as soon as another thread has seen the end. Does not block.
 * CANELE_ESTATE: the request is not begun. CANELE_EINVAL. */
CANELE_API int canele_request_complete(canele_request_t *request, int error);

/** Sends `length` bytes (at most the limit CANELE_LIMIT_INJECT) at `buffer` without a request. The buffer may change at
 * once. Same order as other sends. CANELE_EAGAIN: there is no room now, and nothing was taken. Room that appears
 * ends no blocking wait. A later error goes to canele_session_on_error. */
CANELE_API int canele_inject(canele_session_t *session, int destination, uint64_t tag, const void *buffer,
                             size_t length);

/** An operation that repeats: what it does, and the request of its current use. Memory of the caller, with the rules of
 * a request; zero bytes before its first use. Wait for the member `request`, or give the operation a completion. */
typedef struct canele_persistent {
  canele_request_t request;
  CANELE_ALIGNAS_16 unsigned char opaque[192];
} canele_persistent_t;

/** Describes a send that repeats, as canele_post_send does it. Sends nothing. What `data` and the options refer to must
 * live as long as the operation is started. Does not block. May be called again, between uses. CANELE_EBUSY: it is in
 * use. CANELE_EINVAL, CANELE_ERANK. */
CANELE_API int canele_send_init(canele_session_t *session, int destination, uint64_t tag, const canele_data_t *data,
                                const canele_post_options_t *options, canele_persistent_t *operation);

/** Describes a receive that repeats, as canele_post_receive does it. data must be given. Else like canele_send_init. */
CANELE_API int canele_receive_init(canele_session_t *session, int source, uint64_t tag, uint64_t mask,
                                   const canele_data_t *data, const canele_post_options_t *options,
                                   canele_persistent_t *operation);

/** Posts the operation that canele_send_init, canele_receive_init or canele_put_init (see <canele/one_sided.h>) has
 * described, with operation->request. Any thread. Does not block. Answers: as the post. CANELE_EINVAL: nothing was
 * described. */
CANELE_API int canele_start(canele_persistent_t *operation);

/** Returns 1 if a send of `length` bytes to `destination` would leave now, or as soon as the driver takes it; 0 if it
 * would be held back. Other threads may change that before the next call. Negative: CANELE_EINVAL, CANELE_ERANK. */
CANELE_API int canele_send_room(canele_session_t *session, int destination, size_t length);

/** Limits that a program may ask for. */
enum canele_limit_kind {
  CANELE_LIMIT_INJECT = 0, /**< bytes of canele_inject. */
  CANELE_LIMIT_EAGER,      /**< bytes of a message that the peer receives without being asked. */
  CANELE_LIMIT_HEADER,     /**< bytes of a header, see canele_post_options_t. */
  CANELE_LIMIT_AM_HEADER   /**< bytes of the header of an active message. */
};

/** Writes a limit towards `peer` to *value. The eager limit of a peer is known once this rank has been in contact with
 * it; before, it is the setting CANELE_EAGER, or 0 if that is not given. CANELE_ERANK, CANELE_EINVAL. */
CANELE_API int canele_limit(canele_engine_t *engine, int peer, enum canele_limit_kind kind, size_t *value);

/** Receives the errors of this session's operations that had no other destination for them. `peer`: the rank that the
 * operation was for. Called like the callback of a request. */
typedef void (*canele_error_fn)(canele_session_t *session, int peer, int error, void *argument);

/** Sends these errors to `callback`; NULL: they are dropped, as before the first call. Any thread, between operations
 * of the session: an operation under way may still use the former callback. */
CANELE_API int canele_session_on_error(canele_session_t *session, canele_error_fn callback, void *argument);

/* ------------------------------------------------------------------------------------------ completion queues */

enum canele_entry_kind {
  CANELE_ENTRY_REQUEST = 1,       /**< an operation has ended. */
  CANELE_ENTRY_COUNTER = 2,       /**< a completion counter has reached its threshold; `error` is its first error. */
  CANELE_ENTRY_NOTIFICATION = 3,  /**< another rank has notified this one: see <canele/one_sided.h>. */
  CANELE_ENTRY_ACTIVE_MESSAGE = 4 /**< an active message has come: see <canele/active_message.h>. */
};

/** What a completion queue tells of one completion. Its size never changes. */
typedef struct canele_entry {
  void *user;                /**< from the completion, or the argument of canele_request_on_queue. */
  canele_request_t *request; /**< NULL: the library's own, which may not be used any more. */
  uint32_t kind;             /**< enum canele_entry_kind */
  int32_t error;             /**< CANELE_OK or a CANELE_E... code. */
  int32_t source;            /**< rank of the peer. */
  uint32_t slot;             /**< of a notification: its slot. */
  uint64_t tag;              /**< of the message; its id if active; of a put's notification: the offset of the data. */
  uint64_t length;           /**< bytes of the message as sent, of the payload, or of the put. */
  uint64_t immediate;        /**< of a counter: its value; of a notification: what it carries. */
  void *payload;             /**< of an active message; the program gives it back. Else NULL. */
} canele_entry_t;

/** Takes at most `max` entries out of the queue, in the order of completion, and returns their number. If the queue is
 * empty, makes progress once (of `engine`). Several threads may take. Negative: CANELE_EINVAL. */
CANELE_API int canele_queue_take(canele_engine_t *engine, canele_queue_t *queue, canele_entry_t *entries, int max);

/** Like canele_queue_take, but blocks until there is an entry. Several threads may wait; each entry wakes one of them.
 * Returns the number of entries (at least 1), CANELE_ETIMEOUT at the deadline, CANELE_EDEADLK in a callback. */
CANELE_API int canele_queue_wait(canele_engine_t *engine, canele_queue_t *queue, canele_entry_t *entries, int max,
                                 uint64_t deadline);

/* ---------------------------------------------------------------------------------------- completion counters */

/** Counts completions. Memory of the caller; zero bytes are a counter at 0 without a threshold. It must not move while
 * operations refer to it. It may be freed when no operation will add to it any more. */
typedef struct canele_completion_counter {
  CANELE_ALIGNAS_16 unsigned char opaque[128];
} canele_completion_counter_t;

/** Sets the counter to 0. When it reaches `threshold` (0: never), `then` is delivered once, as the completion of an
 * operation would be: n arrivals give one event. A callback gets request = NULL. then = NULL: nothing is delivered. No
 * other thread may use the counter during the call. */
CANELE_API int canele_completion_counter_init(canele_completion_counter_t *counter, uint64_t threshold,
                                              const canele_completion_t *then);

/** Returns what has been added so far, by operations that succeeded or failed. */
CANELE_API uint64_t canele_completion_counter_value(const canele_completion_counter_t *counter);

/** Returns how many of the operations failed. *first (may be NULL) gets the error of the first one, or CANELE_OK. */
CANELE_API uint64_t canele_completion_counter_errors(const canele_completion_counter_t *counter, int *first);

/** Adds `n`, as if operations of the program's own had ended. Any thread. */
CANELE_API void canele_completion_counter_add(canele_completion_counter_t *counter, uint64_t n);

/** Blocks until the value is at least `threshold`; makes progress on `engine`. Several threads may wait. Returns
 * CANELE_OK, or the first error that was counted; CANELE_ETIMEOUT at the deadline, CANELE_EDEADLK in a callback. */
CANELE_API int canele_completion_counter_wait(canele_engine_t *engine, canele_completion_counter_t *counter,
                                              uint64_t threshold, uint64_t deadline);

/* ----------------------------------------------------------------------------------------- waits and tests */

/** Like canele_wait, with a deadline: CANELE_ETIMEOUT, and *status is not written. */
CANELE_API int canele_wait_until(canele_request_t *request, uint64_t deadline, canele_status_t *status);

/** Blocks until at least one of `count` requests is finalized or null, then writes the positions of all that are to
 * `indexes`, their outcomes to `statuses` (NULL: not wanted), and their number to *done. NULL entries are skipped; if
 * all are NULL, *done = 0. Both arrays have room for `count`. The requests belong to one engine. CANELE_ETIMEOUT at the
 * deadline, CANELE_EDEADLK in a callback. The outcomes do not change the answer. */
CANELE_API int canele_wait_some(size_t count, canele_request_t *const *requests, size_t *indexes,
                                canele_status_t *statuses, size_t *done, uint64_t deadline);

/** Looks for one finalized or null request, after progress if there is none yet. *index is its position; `count` if
 * there is none. status (may be NULL) gets its outcome. If several are done, calls return them in turn. */
CANELE_API int canele_test_any(size_t count, canele_request_t *const *requests, size_t *index, canele_status_t *status);

#ifdef __cplusplus
}
#endif

#endif
