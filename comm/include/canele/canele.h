/* SPDX-License-Identifier: BSD-3-Clause
 *
 * canele.h - the native API of Canelé, a communication engine for task runtimes.
 *
 * This C ABI is everything that a task runtime sees. <canele/canele.hpp> is a thin C++20 layer on top of it. Any thread
 * may call any function at any time, unless the comment of the function says otherwise. Completion callbacks run on the
 * thread that sees the event: a worker, a waiter, or the caller of another function of this library. A callback may do
 * anything except block: blocking calls return CANELE_EDEADLK there.
 *
 * Conventions of every function below, unless its comment says otherwise:
 * - It returns CANELE_OK (0) or a negative CANELE_E... code. canele_error_detail() then tells the calling thread what
 *   was wrong and what was expected. Outputs are written only on success.
 * - It does not block: it takes no lock that another thread can hold for long, and never waits for a peer.
 * - Lengths and offsets are in bytes. Times are in nanoseconds. Ranks run from 0 to canele_size() - 1.
 * - Objects passed by pointer remain the property of the caller.
 * - Zero bytes are a valid null request, message, pack, unpack, queue and condition.
 * - CANELE_EINVAL: a required pointer is NULL, a length is above PTRDIFF_MAX, or an unknown option is not 0.
 * - Forbidden: an exception out of a function given to the library; pthread_cancel or longjmp inside a call of ours. */
#ifndef CANELE_CANELE_H
#define CANELE_CANELE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
#define CANELE_ALIGNAS_16 __attribute__((aligned(16))) /* C99 and C++98 have no keyword for it */
#define CANELE_API __attribute__((visibility("default")))

/** Version of the ABI that this header describes. Raised when a structure or a meaning changes. */
#define CANELE_ABI_VERSION 1

/* ------------------------------------------------------------------------------------------------- errors */

enum canele_error {
  CANELE_OK = 0,
  CANELE_EINVAL = -1,     /**< an argument or a setting is invalid. */
  CANELE_ERANK = -2,      /**< no such rank. */
  CANELE_ETRUNC = -3,     /**< the message was longer than the receive; the part that fitted was delivered. */
  CANELE_ECANCELED = -4,  /**< a receive was cancelled before it matched; or the receiver dropped the message. */
  CANELE_EPEER = -5,      /**< the peer named in status.source died or its connection was closed. */
  CANELE_EDEADLK = -6,    /**< a blocking call was made inside a completion callback. */
  CANELE_ENOMEM = -7,     /**< no memory, or a limit on memory was reached. */
  CANELE_EBOOTSTRAP = -8, /**< the launcher could not be reached, or a rank is missing. */
  CANELE_EVERSION = -9,   /**< library versions differ between ranks, or from this header. */
  CANELE_ESTATE = -10,    /**< wrong state of the object (e.g. bind of a receive that has data). */
  CANELE_EDRIVER = -11,   /**< no driver can reach the peer. */
  CANELE_ETIMEOUT = -12,  /**< the time limit has passed. */
  CANELE_EBUSY = -13,     /**< requests are still pending, or a limited resource is in use. */
  CANELE_EPROTOCOL = -14, /**< the peer sent malformed data; its connection was closed. */
  CANELE_EFORK = -15,     /**< child of a fork: the engine belongs to the parent, and nothing was done. */
  CANELE_EAGAIN = -16,    /**< there is no room now, and nothing was taken: make progress, then try again. */
  CANELE_EACCESS = -17,   /**< the access is beyond the memory, or the key does not allow it. */
  CANELE_EREVOKED = -18,  /**< the memory or the notification slot is no longer there. */
  CANELE_ENOENT = -19,    /**< the rank has published no value under this key. */
  CANELE_EDEVICE = -20    /**< a device failed; the log names it, with the call that failed. */
};

/** Returns one line that names the error code. Never NULL; static storage. */
CANELE_API const char *canele_error_string(int error);
/** Returns a description of the last failed call of this thread; "" if none failed. Valid until the next call. */
CANELE_API const char *canele_error_detail(void);

/** Returns the version of the library, as "1.2.3". Static storage; may be called before canele_init. */
CANELE_API const char *canele_version(void);

/** Returns CANELE_OK if the library implements ABI version `abi`, else CANELE_EVERSION. May be called at any time. */
CANELE_API int canele_abi_check(int abi);

/* ------------------------------------------------------------------------------------------------- engine */

/** One instance of the library: peers, sessions, drivers, progress. A process may hold several, also beside MPI. All
 * ranks must then create them in the same order: the n-th engines of all ranks belong together. */
typedef struct canele_engine canele_engine_t;

/** Options of canele_init. Set struct_size = sizeof(canele_options_t); zero is the default of every other field. */
typedef struct canele_options {
  size_t struct_size;
  /** `settings_count` strings "NAME=value", e.g. "CANELE_DRIVERS=tcp"; they override the environment. Copied. */
  const char *const *settings;
  size_t settings_count;
} canele_options_t;

/** Joins the job that the launcher started (PMIx or PMI-1; without a launcher: a job of one rank) and starts the
 * engine. options may be NULL. Blocks until the launcher has answered and every rank has joined (CANELE_EBOOTSTRAP
 * after CANELE_START_TIMEOUT). Concurrent calls run one after the other. Not allowed in a callback. If a launcher's
 * variables are set but the launcher cannot be reached, the call fails; it never becomes a job of one rank.
 * CANELE_EINVAL: a setting is invalid, and canele_error_detail() names it. CANELE_EDRIVER: no driver can be used. May
 * be called again after canele_finalize, except under mpiexec.hydra: CANELE_EBOOTSTRAP, no process can join twice. */
CANELE_API int canele_init(const canele_options_t *options, canele_engine_t **engine);

/** Leaves the job: waits until the other ranks' libraries have this rank's sends, then for all ranks, then frees the
 * engine. Blocks. Call once, from one thread, when no other thread uses the engine. NULL is allowed. Posted receives
 * are cancelled (CANELE_ECANCELED) and their callbacks run. A message is dropped as in canele_session_close if no
 * receive takes it within one second, or if a receive without a buffer holds it. Messages for a registered handler are
 * not dropped. CANELE_EBUSY, and nothing is done, while tasks are in use. CANELE_ETIMEOUT after
 * CANELE_FINALIZE_TIMEOUT. Under PMIx the process stays in its job until it exits; if it ends by _exit, the launcher
 * reports an abnormal end. */
CANELE_API int canele_finalize(canele_engine_t *engine);

/** Asks the launcher to end the whole job with exit code `code`, then ends this process. Does not return. */
CANELE_API void canele_abort(canele_engine_t *engine, int code, const char *reason);

CANELE_API int canele_rank(const canele_engine_t *engine);
CANELE_API int canele_size(const canele_engine_t *engine);

/** This rank's index among the ranks of this job on this host, and the number of those ranks. */
CANELE_API int canele_local_rank(const canele_engine_t *engine);
CANELE_API int canele_local_size(const canele_engine_t *engine);

/** Returns the monotonic time in nanoseconds, comparable within this process. engine may be NULL. */
CANELE_API uint64_t canele_now(const canele_engine_t *engine);

/** Makes communication progress once: polls every driver, runs ready tasks and callbacks. Never blocks. Returns 1 if it
 * did any work, else 0. Meant for a host runtime's idle hook or its own progress loop. */
CANELE_API int canele_progress(canele_engine_t *engine);

/** Background progress modes, beside the progress of the program's own calls. Callbacks run on these threads, too.
 * AUTO: on-demand progress thread: polls while requests are pending and no application thread is in the library.
 * BOUND: a thread that makes all progress.
 * IDLE: like AUTO, but only on idle cores. With BOUND it takes over while BOUND is in a callback or has lost its core.
 * TIMER: a thread that makes progress once in every CANELE_EXPERT_WORKER_INTERVAL. */
enum canele_worker {
  CANELE_WORKER_NONE = 0,
  CANELE_WORKER_AUTO = 1,
  CANELE_WORKER_BOUND = 2,
  CANELE_WORKER_IDLE = 4,
  CANELE_WORKER_TIMER = 8
};

/** Starts the given workers (of enum canele_worker: one kind, or BOUND | IDLE) and stops all others. CANELE_WORKER does
 * this at the start. Blocks until the stopped workers have left their current task. Any thread. With
 * CANELE_HOST_THREADS=busy, AUTO may replace BOUND. CANELE_EINVAL: the kinds cannot be combined. CANELE_EDEADLK in a
 * callback. CANELE_ENOMEM: the system has no thread. */
CANELE_API int canele_worker_use(canele_engine_t *engine, unsigned kinds);

/** Index kinds for canele_worker_bind. */
enum canele_index_kind { CANELE_INDEX_LOGICAL = 0, CANELE_INDEX_OS = 1 };

/** Starts the bound worker if it does not run, and pins it to the `count` processing units given by hwloc logical or OS
 * index. count = 0 starts it unpinned. A later call pins it anew. CANELE_EINVAL: this machine does not have such an
 * index; the worker then keeps its place. */
CANELE_API int canele_worker_bind(canele_engine_t *engine, enum canele_index_kind kind, const int *indexes, int count);

/** Stops all workers; progress is then made only inside wait, test and canele_progress. Blocks until the workers have
 * left their current task. CANELE_EDEADLK in a callback. */
CANELE_API int canele_worker_stop(canele_engine_t *engine);

/** Returns 1 if the bound worker makes progress for this engine, else 0. */
CANELE_API int canele_worker_active(const canele_engine_t *engine);

/* ------------------------------------------------------------------------------------------------ sessions */

/** A tag space: a receive of one session never matches a message of another. */
typedef struct canele_session canele_session_t;

enum canele_session_flags {
  CANELE_ORDER_PER_TAG = 0, /**< messages of one (source, tag) match in order; others may overtake (priorities work). */
  CANELE_ORDER_ACROSS_TAGS = 1 /**< MPI's rule: messages of one source match in the order sent, whatever the tag. */
};

/** Opens the session called `label` (1 to 63 bytes). Local operation. Ranks that open the same label share a tag space.
 * Messages that arrive before the session is opened here are kept. CANELE_EINVAL: the label begins with "canele.",
 * "barrier:", "active:" or "group:", which the library uses. CANELE_EBUSY: the label is already open here.
 * CANELE_ENOMEM: no memory, or 65,535 sessions are open. */
CANELE_API int canele_session_open(canele_engine_t *engine, const char *label, unsigned flags,
                                   canele_session_t **session);

/** Closes the session; the handle is invalid afterwards. CANELE_EBUSY while its requests are pending. Messages never
 * received are dropped, counted, and reported in a warning. A send that still waits for its receive ends with
 * CANELE_ECANCELED. Later messages are kept for the next opening of the label, or until this rank finalizes. */
CANELE_API int canele_session_close(canele_session_t *session);

/** Returns the engine that a session belongs to. */
CANELE_API canele_engine_t *canele_session_engine(const canele_session_t *session);

/* ---------------------------------------------------------------------------------------------------- data */

/** Describes user data by position: writes at most `max` (>= 1) contiguous pieces to out[] and returns their number (>=
 * 1). In order, the pieces hold the bytes of the message from `offset` (0 <= offset < length) on. They must not
 * overlap. The engine asks again for the bytes that follow. Any thread calls it, possibly several at once, under the
 * library's lock. It must be pure and fast, and must not call the library. */
typedef int (*canele_segments_fn)(const void *context, size_t offset, struct iovec *out, int max);

/** The data of a send or receive. Made by the three canele_data_... functions, or by hand. Calls copy this structure;
 * what it points to (memory, iovec array, context) must live until the request is finalized. */
typedef struct canele_data {
  size_t length;               /**< bytes of the whole message */
  void *base;                  /**< contiguous memory; NULL if `segments` is used */
  canele_segments_fn segments; /**< NULL if contiguous */
  const void *context;         /**< passed to `segments` */
} canele_data_t;

/** Returns a description of `length` bytes at `base`. */
CANELE_API canele_data_t canele_data_contiguous(const void *base, size_t length);

/** A list of `count` pieces, in order. 0 pieces, and pieces of length 0, are allowed. `vector` and the pieces must stay
 * alive until the request is finalized. */
typedef struct canele_iov {
  const struct iovec *pieces;
  int count;
} canele_iov_t;
CANELE_API canele_data_t canele_data_iov(const canele_iov_t *vector);

/** Returns a description by `segments` (see canele_segments_fn) of `length` bytes in all. */
CANELE_API canele_data_t canele_data_segments(canele_segments_fn segments, const void *context, size_t length);

/* ------------------------------------------------------------------------------------------------ requests */

#define CANELE_REQUEST_SIZE 384

/** One send or receive. Memory of the caller: 16-byte aligned, zeroed before its first use. It must neither move nor be
 * freed before the request is finalized; the library cannot detect that. It is then reusable without being zeroed. */
typedef struct canele_request {
  CANELE_ALIGNAS_16 unsigned char opaque[CANELE_REQUEST_SIZE];
} canele_request_t;

/** Events of a request, a bit mask. Each is delivered at most once. */
enum canele_event {
  CANELE_EVENT_HEADER = 1,   /**< a message has matched a receive posted without a buffer: peek, then bind. */
  CANELE_EVENT_RECEIVED = 2, /**< data is complete. Read only: the library may still be forwarding it. */
  CANELE_EVENT_FINALIZED = 4 /**< the library no longer accesses request or buffer. Delivered last. */
};

/** The outcome of a request. */
typedef struct canele_status {
  int error;     /**< CANELE_OK or a CANELE_E... code. */
  int source;    /**< rank of the peer. */
  uint64_t tag;  /**< tag of the message. */
  size_t length; /**< bytes of the message as sent; with CANELE_ETRUNC more than was delivered. */
  int cancelled; /**< 1 if cancelled */
} canele_status_t;

/** Called once per event with the bits that happened; one call may carry several. Calls for one request never overlap.
 * After the call that has CANELE_EVENT_FINALIZED the library does not access the request: it may be freed or reused. */
typedef void (*canele_callback_fn)(canele_request_t *request, unsigned events, void *argument);

/** Registers `callback` for the events in `mask`, for one use of the request:
 * - a pending request, or a finalized one whose end the program has not been told: this use. Events that have happened
 *   are delivered soon, possibly inside this call.
 * - a null request: the next use. A finalized request becomes null when a wait, a test, canele_request_status, its
 *   callback or its queue has told the program that it is finalized.
 *
 * CANELE_EBUSY: this use has a callback or a queue already, or its event is still to come. */
CANELE_API int canele_request_on_event(canele_request_t *request, unsigned mask, canele_callback_fn callback,
                                       void *argument);

/** Writes the outcome of a finalized request to *status. CANELE_ESTATE if it is not finalized. */
CANELE_API int canele_request_status(const canele_request_t *request, canele_status_t *status);

/* --------------------------------------------------------------------------------------------------- send */

enum canele_send_flags {
  CANELE_SEND_SYNCHRONOUS = 1 /**< finalized only after the receiver has matched it */
};

/** Options of a send. Set struct_size = sizeof(canele_send_options_t); zero is the default of every other field. */
typedef struct canele_send_options {
  size_t struct_size;
  int32_t priority; /**< higher is sent sooner, if the strategy supports it. */
  uint32_t flags;   /**< enum canele_send_flags */
  size_t header;    /**< first bytes (up to CANELE_HEADER_MAX) to send ahead, for peek. */
} canele_send_options_t;
#define CANELE_HEADER_MAX 256

/** Sends `length` bytes at `buffer` to rank `destination` (own rank allowed). The buffer must not change until the
 * request is finalized. Does not block. A small message is usually finalized before it is received. If
 * unexpected-message memory at the destination (CANELE_UNEXPECTED_MEMORY) is full, the message stays here until a
 * receive matches. A program must therefore not rely on a send to end before the other side posts the receive.
 * CANELE_ERANK, CANELE_EINVAL. Later errors are in the status. */
CANELE_API int canele_isend(canele_session_t *session, int destination, uint64_t tag, const void *buffer, size_t length,
                            canele_request_t *request);

/** Like canele_isend, for described data and with options (NULL: defaults). */
CANELE_API int canele_isend_data(canele_session_t *session, int destination, uint64_t tag, const canele_data_t *data,
                                 const canele_send_options_t *options, canele_request_t *request);

/** Changes the priority of a send that is still queued; CANELE_ESTATE once it has been sent. */
CANELE_API int canele_send_set_priority(canele_request_t *request, int32_t priority);

/* ----------------------------------------------------------------------------------------------- multicast */

/** Shapes of a multicast: which rank forwards the data to which. */
enum canele_shape {
  CANELE_SHAPE_AUTO = 0, /**< expected to end first, by number of ranks, size and network cost. */
  CANELE_SHAPE_FLAT,     /**< the root sends to all. */
  CANELE_SHAPE_CHAIN,    /**< each rank forwards to the next. */
  CANELE_SHAPE_BINOMIAL, /**< binomial tree: each rank with the data sends to 1 more per step; below: 3, 7. */
  CANELE_SHAPE_4_NOMIAL,
  CANELE_SHAPE_8_NOMIAL
};

/** Options of a multicast. Set struct_size = sizeof(canele_multicast_options_t); other members: 0 = default. */
typedef struct canele_multicast_options {
  size_t struct_size;
  const int32_t *priorities; /**< one for each destination, higher is sent sooner; NULL: `priority` for all. */
  int32_t priority;
  int shape;     /**< enum canele_shape; where this is AUTO, the setting CANELE_EXPERT_MULTICAST decides. */
  size_t header; /**< as in canele_send_options_t. */
  int *outcomes; /**< `count` entries, or NULL: for each destination CANELE_OK if it has the data, else the error.
                    Written until the request is finalized. */
} canele_multicast_options_t;

/** Sends one message to `count` other ranks, which receive it by ordinary receives from this rank, posted before or
 * after. Local operation: there is no group and nothing to agree on. At each destination the message is in order with
 * the other sends of this rank (same session, same tag). Destinations forward large data to each other as it arrives,
 * even before their own receive is posted:
 *
 *     root ──▶ a ──▶ c            each destination gets an envelope of the root that names the rank to ask for the
 *       └────▶ b                  data; if that rank has failed or cannot forward, the root sends the data
 *
 * After CANELE_EVENT_RECEIVED other ranks may still read the data of a receive. It may be read, but not changed, until
 * CANELE_EVENT_FINALIZED, which depends only on the library in that process, not on another rank's application.
 *
 * `destinations` are distinct ranks, without this one; they are copied, like the priorities. `data` (its memory, and
 * what its iterator needs) must not change until the request is finalized. Each destination then has the data, or its
 * outcome tells the error; the request's error is one of these. CANELE_EINVAL, CANELE_ERANK, CANELE_ENOMEM. */
CANELE_API int canele_imulticast(canele_session_t *session, const int *destinations, size_t count, uint64_t tag,
                                 const canele_data_t *data, const canele_multicast_options_t *options,
                                 canele_request_t *request);

/* ------------------------------------------------------------------------------------------------- receive */

#define CANELE_ANY_SOURCE (-1)
#define CANELE_TAG_EXACT UINT64_MAX /**< mask: every bit of the tag counts */
#define CANELE_TAG_ANY UINT64_C(0)  /**< mask: no bit counts */

/** Receives the next message from `source` (or any) whose tag equals `tag` in the bits of `mask`, into `length` bytes
 * at `buffer`. A longer message fills the buffer, and the request ends with CANELE_ETRUNC. Does not block. */
CANELE_API int canele_irecv(canele_session_t *session, int source, uint64_t tag, uint64_t mask, void *buffer,
                            size_t length, canele_request_t *request);

/** Like canele_irecv, for described data. */
CANELE_API int canele_irecv_data(canele_session_t *session, int source, uint64_t tag, uint64_t mask,
                                 const canele_data_t *data, canele_request_t *request);

/** Posts a receive without a buffer: it matches, delivers CANELE_EVENT_HEADER, then waits for canele_receive_bind. */
CANELE_API int canele_irecv_late(canele_session_t *session, int source, uint64_t tag, uint64_t mask,
                                 canele_request_t *request);

/** Copies the first `length` bytes of the message that a receive without a buffer, or a matched probe, holds. Call
 * before bind. Available: the header that the sender declared, or all of an eager message. CANELE_EINVAL for more. */
CANELE_API int canele_receive_peek(canele_request_t *request, void *buffer, size_t length);

/** Gives a receive without a buffer its buffer. Data moves from now on. Once, in or after CANELE_EVENT_HEADER. */
CANELE_API int canele_receive_bind(canele_request_t *request, const canele_data_t *data);

/** Writes source, tag and full length of the message that such a receive holds. CANELE_ESTATE before event HEADER. */
CANELE_API int canele_receive_envelope(const canele_request_t *request, canele_status_t *status);

/** Cancels a receive. It ends with CANELE_ECANCELED if no message had matched; otherwise the receive completes
 * normally. In either case it is finalized in the normal way. CANELE_EINVAL for a send: sends cannot be cancelled. A
 * call on a finalized request is harmless while the request is alive. */
CANELE_API int canele_cancel(canele_request_t *request);

/* -------------------------------------------------------------------------------------------------- probe */

/** Looks for a message that a receive with the same arguments would get now. Sets *found = 1 and fills *status (may be
 * NULL), or sets *found = 0. Makes progress once. CANELE_ENOMEM; if none is there, the error of a lost `source`. */
CANELE_API int canele_iprobe(canele_session_t *session, int source, uint64_t tag, uint64_t mask, int *found,
                             canele_status_t *status);

/** Like canele_iprobe, but takes the message out of matching. `request` (null or finalized) becomes a receive without a
 * buffer, past its CANELE_EVENT_HEADER, which is not delivered. Only canele_receive_bind completes the request. Two
 * threads never get the same message. */
CANELE_API int canele_improbe(canele_session_t *session, int source, uint64_t tag, uint64_t mask, int *found,
                              canele_request_t *request, canele_status_t *status);

/* --------------------------------------------------------------------------------------------------- wait */

/** Makes progress once, unless the request is finalized or a bound worker polls. Sets *done = 1 and fills *status (may
 * be NULL) if the request is finalized or null, else *done = 0. If nothing happened, yields the core. */
CANELE_API int canele_test(canele_request_t *request, int *done, canele_status_t *status);

/** Blocks until the request is finalized. Returns CANELE_OK, or the error in its status. At most one thread waits for
 * one request. CANELE_EDEADLK in a callback. */
CANELE_API int canele_wait(canele_request_t *request, canele_status_t *status);

/** Blocks until all `count` requests are finalized (NULL entries are skipped). Returns the first error in their
 * statuses, or CANELE_OK. statuses: `count` entries, or NULL. */
CANELE_API int canele_wait_all(size_t count, canele_request_t *const *requests, canele_status_t *statuses);

/** Blocks until one of `count` requests is finalized or null. *index is its position; `count` if all entries are NULL.
 * If several are done, calls with the same list return them in turn. The requests may belong to several engines. */
CANELE_API int canele_wait_any(size_t count, canele_request_t *const *requests, size_t *index, canele_status_t *status);

/** Returns the position of the first finalized or null request from position `first` on; `count` if there is none. NULL
 * entries are skipped. Only reads each request: makes no progress. */
CANELE_API size_t canele_find_done(size_t count, canele_request_t *const *requests, size_t first);

/** Blocks until every rank has called it on a session with the same label. Ranks call the barriers of one session in
 * the same order, one thread at a time. */
CANELE_API int canele_barrier(canele_session_t *session);

/* -------------------------------------------------------------------------------------- completion queue */

/** A queue of finalized requests, polled by its owner. Zero bytes are an empty queue; the memory must not move. */
typedef struct canele_queue {
  CANELE_ALIGNAS_16 unsigned char opaque[64];
} canele_queue_t;

/** Puts `request` into `queue` when it is finalized, instead of a callback; polling also returns `argument`. Use of the
 * request, and errors: as for canele_request_on_event. A request in a queue cannot be posted (CANELE_EBUSY). */
CANELE_API int canele_request_on_queue(canele_request_t *request, canele_queue_t *queue, void *argument);

/** Takes at most `max` finalized requests and returns their number. arguments may be NULL. Several threads may poll. If
 * the queue is empty, makes progress once (of `engine`). */
CANELE_API int canele_queue_poll(canele_engine_t *engine, canele_queue_t *queue, canele_request_t **requests,
                                 void **arguments, int max);

/* ---------------------------------------------------------------------------------- incremental messages */

#define CANELE_PACK_INLINE 16

/** A message assembled from pieces. Nothing is copied: the pieces must live until the request is finalized. */
typedef struct canele_pack {
  CANELE_ALIGNAS_16 unsigned char opaque[CANELE_PACK_INLINE * 16 + 64];
} canele_pack_t;

/** Makes `pack` empty. Frees the memory of an earlier use that was not sent. */
CANELE_API void canele_pack_begin(canele_pack_t *pack);

/** Adds `length` bytes at `piece`. The first CANELE_PACK_INLINE pieces need no allocation. CANELE_ENOMEM. */
CANELE_API int canele_pack_add(canele_pack_t *pack, const void *piece, size_t length);

/** Sends the pieces as one message, which a receive of any data shape matches. pack must live until the request is
 * finalized; then call canele_pack_end. */
CANELE_API int canele_pack_isend(canele_session_t *session, int destination, uint64_t tag, canele_pack_t *pack,
                                 const canele_send_options_t *options, canele_request_t *request);

/** Receives one message into the pieces, in order. pack must live as for canele_pack_isend. */
CANELE_API int canele_pack_irecv(canele_session_t *session, int source, uint64_t tag, uint64_t mask,
                                 canele_pack_t *pack, canele_request_t *request);

/** Frees what canele_pack_add allocated. */
CANELE_API void canele_pack_end(canele_pack_t *pack);

/* ---------------------------------------------------------------------------------------- active messages */

#define CANELE_AM_HEADER_MAX 248

/** An active message as its handler sees it. Its pointers refer to memory of the library and are valid during the call
 * only; memory that `place` returned stays the program's. */
typedef struct canele_am_message {
  int source;
  uint64_t id;
  const void *header;
  size_t header_length;
  void *payload; /**< NULL in `place` */
  size_t payload_length;
  int error; /**< CANELE_OK, or why the payload is missing. CANELE_EPEER: the sender died. CANELE_ENOMEM: the header may
                be missing, too; then both lengths are 0. */
} canele_am_message_t;

/** The functions for the messages of one id. Set struct_size = sizeof(canele_am_handler_t). Both run like callbacks of
 * requests: on the bound worker if it runs, else on a thread that makes progress. They must not block, and may send.
 * `arrived` is called when header and payload are complete. `place` returns the memory for a payload of more than
 * 1,024 bytes. If `place` is NULL or returns NULL, the library allocates that memory. */
typedef struct canele_am_handler {
  size_t struct_size;
  void (*arrived)(const canele_am_message_t *message, void *argument);
  void *(*place)(const canele_am_message_t *message, void *argument);
  void *argument;
} canele_am_handler_t;

/** An active message in transfer. Memory of the caller, with the rules of a request; wait for the member `request`. */
typedef struct canele_am {
  canele_request_t request;
  CANELE_ALIGNAS_16 unsigned char opaque[320];
} canele_am_t;

/** Registers `handler` (copied) for messages to `id` of this session on this rank. Ids and tags are separate. Messages
 * that came earlier have been kept like unexpected messages. Does not block. CANELE_EBUSY: the id has a handler. */
CANELE_API int canele_am_register(canele_session_t *session, uint64_t id, const canele_am_handler_t *handler);

/** Removes the handler and blocks until it runs on no thread. Messages that it has not begun to handle wait for the
 * next handler of the id. Closing the session removes all handlers and drops waiting messages. CANELE_ESTATE: there is
 * no handler. CANELE_EDEADLK in a callback. */
CANELE_API int canele_am_unregister(canele_session_t *session, uint64_t id);

/** Sends `header` (at most CANELE_AM_HEADER_MAX bytes, copied) and `payload` (NULL: none) to the handler of `id` on
 * rank `destination`. The payload must not change until message->request is finalized. Does not block; allocates
 * nothing. Each message calls `arrived` once. Its calls never overlap, and come in the order in which one source has
 * sent; a long one delays those of its source. options: as for a send, with `header` 0. CANELE_ERANK, CANELE_EINVAL. */
CANELE_API int canele_am_send(canele_session_t *session, int destination, uint64_t id, const void *header,
                              size_t header_length, const canele_data_t *payload, const canele_send_options_t *options,
                              canele_am_t *message);

/* -------------------------------------------------------------------------------------------------- tasks */

#define CANELE_TASK_SIZE 64

/** A small piece of the program's own work, done by threads that make progress: workers, on-demand and waiting threads,
 * callers of canele_progress. Memory of the caller, zeroed before its first use; must not move while in use. */
typedef struct canele_task {
  CANELE_ALIGNAS_16 unsigned char opaque[CANELE_TASK_SIZE];
} canele_task_t;

/** Return values of a task's function. */
enum canele_task_outcome {
  CANELE_TASK_DONE = 0,  /**< it has ended, and may be submitted again. */
  CANELE_TASK_AGAIN = 1, /**< call it again soon; meanwhile no thread that makes progress goes to sleep. */
  CANELE_TASK_GONE = 2   /**< it has ended, and its memory may be freed already. */
};

/** The function of a task. cancelled is not 0 in its last call, after canele_task_cancel; it then returns DONE or GONE
 * (AGAIN is treated as DONE). Calls never overlap; any thread may make them. Like a callback of a request, it may call
 * anything that does not block. It should take a few microseconds at most: it delays the thread's other work. */
typedef int (*canele_task_fn)(canele_task_t *task, int cancelled, void *argument);

/** Where a task runs: on any thread, or on one that runs on this part of the machine (hwloc logical index). The library
 * starts no thread there. Name an object on which a worker, or another thread that makes progress, runs. */
enum canele_place {
  CANELE_PLACE_ANY = 0, /**< the index is ignored */
  CANELE_PLACE_PACKAGE,
  CANELE_PLACE_NUMA_NODE,
  CANELE_PLACE_CORE,
  CANELE_PLACE_UNIT /**< processing unit */
};

/** Submits a task: `function` is called once, and again as long as it returns CANELE_TASK_AGAIN. Never waits, and does
 * not call `function` itself. Any thread, also inside the function of another task. A masked task stays masked.
 * canele_finalize fails while tasks are in use (CANELE_EBUSY). CANELE_EINVAL: this machine does not have the place.
 * CANELE_EBUSY: the task is in use. */
CANELE_API int canele_task_submit(canele_engine_t *engine, canele_task_t *task, canele_task_fn function, void *argument,
                                  enum canele_place kind, int index);

/** Requests one last call of the task, with `cancelled` set. The call comes when it is the task's turn, even if masked;
 * or after a running call, if that returns CANELE_TASK_AGAIN. Until then its memory is in use. Never waits. Any
 * thread, as long as the task has not ended with CANELE_TASK_GONE. CANELE_ESTATE: the task was not in use. */
CANELE_API int canele_task_cancel(canele_task_t *task);

/** Prevents calls of the task from starting until canele_task_unmask; a running call continues. A task may be masked
 * before it is submitted. Never waits. Any thread, as for canele_task_cancel. */
CANELE_API void canele_task_mask(canele_task_t *task);
CANELE_API void canele_task_unmask(canele_task_t *task);

/** Returns 1 from the submission of a task to its end, else 0. */
CANELE_API int canele_task_in_use(const canele_task_t *task);

/* --------------------------------------------------------------------------------------------- conditions */

/** Sixteen bits that a thread waits for while communication progresses. For runtimes whose own events end a wait. */
typedef struct canele_condition {
  CANELE_ALIGNAS_16 unsigned char opaque[32];
} canele_condition_t;

/** Sets the bits of `mask` and wakes the waiter. After the store the function does not access the condition: a thread
 * that sees the bit may free it. */
CANELE_API void canele_condition_signal(canele_condition_t *condition, uint16_t mask);

/** Returns the bits of `mask` that are set. */
CANELE_API uint16_t canele_condition_test(const canele_condition_t *condition, uint16_t mask);

/** Blocks until a bit of `mask` is set; makes progress on `engine` unless its worker does (engine = NULL: no progress).
 * At most one thread waits for one condition. CANELE_EDEADLK in a callback. */
CANELE_API int canele_condition_wait(canele_engine_t *engine, canele_condition_t *condition, uint16_t mask);

/* ------------------------------------------------------------------------------------------------ observe */

/** Number of counters, the name of counter `index`, and its help text. The table never changes. Old names end it. */
CANELE_API int canele_counter_count(void);
CANELE_API const char *canele_counter_name(int index);
CANELE_API const char *canele_counter_help(int index);

/** Reads counter `index`. peer = -1: the whole engine; else the share of that peer (0 if it is not kept per peer).
 * driver: NULL for all, else a driver's name. */
CANELE_API int canele_counter_read(canele_engine_t *engine, int index, int peer, const char *driver, uint64_t *value);

/** Writes the counters of the engine, its peers and drivers as JSON to `text`: at most `size` bytes, including the
 * final NUL. *needed (may be NULL) gets the size of the whole text. CANELE_ENOMEM if the text was cut.
 * CANELE_COUNTERS=<file> writes this JSON at finalize. */
CANELE_API int canele_counters_json(canele_engine_t *engine, char *text, size_t size, size_t *needed);

/** Describes the library as JSON: version, build, drivers (and why one is missing), strategies, settings with value,
 * source, default, unit and help, topology. engine may be NULL (before init). Arguments: see canele_counters_json. */
CANELE_API int canele_info_json(canele_engine_t *engine, char *text, size_t size, size_t *needed);

/** Writes a report for people to `text`: pending requests with state and age, peers with their rails, worker, blocked
 * threads, drivers. If the cause of a problem is plain, one sentence names it. Arguments: as for canele_counters_json.
 * For a thread that monitors the program, at any time. A lack of progress is visible only by comparing two reports. */
CANELE_API int canele_report(canele_engine_t *engine, char *text, size_t size, size_t *needed);

/** Receives a hang report. `report` has several lines and lives until the call returns. Called like the callback of a
 * request, by a thread that makes progress. */
typedef void (*canele_hang_fn)(canele_engine_t *engine, const char *report, void *argument);

/** Sends hang reports to `callback`; NULL: to stderr again. Without a callback the engine writes one to stderr after
 * CANELE_HANG_REPORT seconds without a packet or completion, and again only after progress. A report needs a thread
 * blocked in a wait for a request, a barrier or finalize, or a send pending for that long. A report that was begun
 * before this call may still arrive. */
CANELE_API int canele_on_hang(canele_engine_t *engine, canele_hang_fn callback, void *argument);

#ifdef __cplusplus
}
#endif

#endif
