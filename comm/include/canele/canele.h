/* SPDX-License-Identifier: BSD-3-Clause
 *
 * canele.h - the native API of Canelé, a communication engine for task runtimes.
 *
 * What: everything a task runtime sees. A C ABI; <canele/canele.hpp> is a thin C++20 layer on top.
 * Threads: every function may be called by any thread at any time, unless its comment says otherwise.
 * Surprise: completion callbacks run on whatever thread sees the event (a worker, a waiter, the caller of
 * another function of this library). Inside a callback everything is allowed except what blocks: blocking calls
 * return CANELE_EDEADLK there.
 *
 * Conventions used by every function below, unless said otherwise:
 *  - It returns CANELE_OK (0) or a negative CANELE_E... code. canele_error_detail() then tells, for the calling
 *    thread, what was wrong and what would be right. Outputs are written only on success.
 *  - It does not block: it takes no lock that another thread can hold for long, and never waits for a peer.
 *  - Lengths and offsets are in bytes; times are in nanoseconds; ranks run from 0 to canele_size() - 1.
 *  - Objects passed by pointer stay the property of the caller.
 *  - Zero bytes are a valid null request, message, pack, unpack, queue and condition.
 *  - NULL where a pointer must be given, lengths above PTRDIFF_MAX, unknown options that are not 0: CANELE_EINVAL.
 *  - Forbidden: an exception out of a function given to the library; pthread_cancel and longjmp inside one of its own.
 */
#ifndef CANELE_CANELE_H
#define CANELE_CANELE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
#define CANELE_ALIGNAS_16 __attribute__((aligned(16))) /* C99 and C++98 have no word for it */

#define CANELE_API __attribute__((visibility("default")))

/** Version of the ABI that this header describes. Raised when a structure or a meaning changes. */
#define CANELE_ABI_VERSION 1

/* ------------------------------------------------------------------------------------------------- errors */

enum canele_error {
  CANELE_OK = 0,
  CANELE_EINVAL = -1,     /**< an argument or a setting is wrong */
  CANELE_ERANK = -2,      /**< no such rank */
  CANELE_ETRUNC = -3,     /**< the message was longer than the receive; what fitted was delivered */
  CANELE_ECANCELED = -4,  /**< a receive was cancelled before it matched; the receiver has dropped what was sent */
  CANELE_EPEER = -5,      /**< the peer named in status.source died or its connection was closed */
  CANELE_EDEADLK = -6,    /**< a blocking call was made inside a completion callback */
  CANELE_ENOMEM = -7,     /**< no memory, or a cap on memory was reached */
  CANELE_EBOOTSTRAP = -8, /**< the launcher could not be reached, or a rank is missing */
  CANELE_EVERSION = -9,   /**< library versions differ between ranks, or from this header */
  CANELE_ESTATE = -10,    /**< the call does not fit the state of the object (e.g. bind of a receive that has data) */
  CANELE_EDRIVER = -11,   /**< no driver can reach the peer */
  CANELE_ETIMEOUT = -12,  /**< the time given has passed */
  CANELE_EBUSY = -13,     /**< requests are still pending, or a limited resource is taken */
  CANELE_EPROTOCOL = -14, /**< the peer sent bytes that make no sense; its connection was closed */
  CANELE_EFORK = -15      /**< this is the child of a fork, and the engine is the parent's: nothing is done */
};

/** One line naming the error code. Never NULL; static storage. */
CANELE_API const char *canele_error_string(int error);

/** What went wrong in the last failed call of this thread, in words; "" if none failed. Valid until the next call. */
CANELE_API const char *canele_error_detail(void);

/** Version of the library, as "1.2.3". Static storage; may be called before canele_init. */
CANELE_API const char *canele_version(void);

/** CANELE_OK if the library speaks ABI version `abi`, else CANELE_EVERSION. Pass CANELE_ABI_VERSION.
 *  May be called before canele_init. */
CANELE_API int canele_abi_check(int abi);

/* ------------------------------------------------------------------------------------------------- engine */

/** One instance of the library: peers, sessions, drivers, progress. A process may hold several, also beside MPI: then
 * all ranks create them in the same order (the first engine of each rank meets the first of the others, and so on). */
typedef struct canele_engine canele_engine_t;

/** Options of canele_init. Set struct_size = sizeof(canele_options_t); zero is the default of every other field. */
typedef struct canele_options {
  size_t struct_size;
  /** `settings_count` strings "NAME=value", e.g. "CANELE_DRIVERS=tcp"; they win over the environment. Copied. */
  const char *const *settings;
  size_t settings_count;
} canele_options_t;

/** Joins the job that the launcher started (PMIx, PMI-1; alone: a job of one rank) and starts the engine.
 *  options may be NULL. Blocks until the launcher has answered and every rank has joined (CANELE_EBOOTSTRAP after
 *  CANELE_START_TIMEOUT). Not to be called inside a callback. A process that sees a launcher's variables but cannot
 *  reach the launcher fails; it never becomes a job of one rank. Threads that call it at once are served in turn.
 *  CANELE_EINVAL: a wrong setting, which the words name; CANELE_EDRIVER: no driver can be used. It may be called again
 *  after canele_finalize; mpiexec.hydra alone lets no process join twice (CANELE_EBOOTSTRAP). */
CANELE_API int canele_init(const canele_options_t *options, canele_engine_t **engine);

/** Leaves the job: waits for own sends to be delivered to the other ranks' libraries, then for all ranks, then frees
 * the engine. Blocks. Receives still posted are cancelled (CANELE_ECANCELED) and their callbacks run. Messages that no
 * receive has taken after a second, or that one without a buffer holds, are dropped as canele_session_close does (not
 * those for a registered handler). One thread calls it, once, and nobody uses the engine any more. CANELE_EBUSY, and
 * nothing is done, while tasks are in use. NULL is allowed. Under PMIx the process stays in its job until it exits: one
 * that ends by _exit instead is reported by the launcher as one that has not ended well. */
CANELE_API int canele_finalize(canele_engine_t *engine);

/** Asks the launcher to end the whole job with exit code `code`, then ends this process. Does not return. */
CANELE_API void canele_abort(canele_engine_t *engine, int code, const char *reason);

CANELE_API int canele_rank(const canele_engine_t *engine);
CANELE_API int canele_size(const canele_engine_t *engine);

/** Ranks of this job on this host, this rank's index among them, and the number of such ranks. */
CANELE_API int canele_local_rank(const canele_engine_t *engine);
CANELE_API int canele_local_size(const canele_engine_t *engine);

/** Monotonic time in nanoseconds, comparable within this process. engine may be NULL. */
CANELE_API uint64_t canele_now(const canele_engine_t *engine);

/** Makes communication progress once: polls every driver, runs ready tasks and callbacks. Never blocks.
 *  Returns 1 if it did any work, 0 if there was none. For a host runtime's idle hook or its own progress loop. */
CANELE_API int canele_progress(canele_engine_t *engine);

/** Who makes progress beside the program's own calls. Callbacks run on these threads, too.
 *  AUTO: a thread that looks after what is pending while no thread of the program is in the library.
 *  BOUND: a thread that makes all progress.
 *  IDLE: as AUTO, but only while a core is idle; with BOUND it helps while that is in a callback or has lost its core.
 *  TIMER: a thread that makes progress once in every CANELE_WORKER_INTERVAL. */
enum canele_worker {
  CANELE_WORKER_NONE = 0,
  CANELE_WORKER_AUTO = 1,
  CANELE_WORKER_BOUND = 2,
  CANELE_WORKER_IDLE = 4,
  CANELE_WORKER_TIMER = 8
};

/** Starts these workers, of enum canele_worker, and stops all others: one kind, or BOUND | IDLE. CANELE_WORKER does so
 *  at the start. Blocks until those that are stopped have left their current task. Any thread.
 *  With CANELE_WORKER_COMPANY=busy AUTO may take the place of BOUND. Errors: CANELE_EINVAL for kinds that do not go
 *  together; CANELE_EDEADLK in a callback; CANELE_ENOMEM: no thread. */
CANELE_API int canele_worker_use(canele_engine_t *engine, unsigned kinds);

/** Index kinds for canele_worker_bind. */
enum canele_index_kind { CANELE_INDEX_LOGICAL = 0, CANELE_INDEX_OS = 1 };

/** Starts the bound worker if it does not run, and pins it to the `count` processing units given by hwloc logical or OS
 *  index. count = 0 starts it unpinned. May be called again: it pins anew. Errors: CANELE_EINVAL for an index that this
 *  machine does not have (the worker then keeps its place). */
CANELE_API int canele_worker_bind(canele_engine_t *engine, enum canele_index_kind kind, const int *indexes, int count);

/** Stops all workers; progress is then made inside wait, test and canele_progress only. Blocks until they have left
 *  their current task. CANELE_EDEADLK when called in a callback. */
CANELE_API int canele_worker_stop(canele_engine_t *engine);

/** True (1) if the bound worker makes progress for this engine. */
CANELE_API int canele_worker_active(const canele_engine_t *engine);

/* ------------------------------------------------------------------------------------------------ sessions */

/** A name space for tags: messages of one session are never seen by another. */
typedef struct canele_session canele_session_t;

enum canele_session_flags {
  CANELE_ORDER_PER_TAG = 0, /**< messages of one (source, tag) arrive in order; others may overtake (priorities work) */
  CANELE_ORDER_ACROSS_TAGS =
      1 /**< MPI's rule: messages of one source match in the order they were sent, whatever the tag */
};

/** Opens the session called `label` (1 to 63 bytes; "canele.", "barrier:", "active:" and "group:" begin labels of the
 * library's own: CANELE_EINVAL). Local: no other rank takes part; ranks that use the same label meet. Messages that
 * arrive before the session is opened here are kept. CANELE_EBUSY if it is already open here; CANELE_ENOMEM: 65,535
 * are. */
CANELE_API int canele_session_open(canele_engine_t *engine, const char *label, unsigned flags,
                                   canele_session_t **session);

/** Closes it; the handle is void then. CANELE_EBUSY while requests of it are pending. Messages that were never received
 * are dropped, counted, and told as a warning; a send that still waits for one ends with CANELE_ECANCELED. Messages
 * that come later are kept for the next opening of the label, or until this rank is finalized. */
CANELE_API int canele_session_close(canele_session_t *session);

/** The engine a session belongs to. */
CANELE_API canele_engine_t *canele_session_engine(const canele_session_t *session);

/* ---------------------------------------------------------------------------------------------------- data */

/** Describes user data by position: writes to out[] at most `max` (>= 1) contiguous pieces which, in order, hold the
 * bytes of the message from `offset` (0 <= offset < length) on, and returns how many it wrote (>= 1). The pieces must
 * not overlap; the engine asks again for what follows. Called by any thread, possibly by several at once, under the
 * library's lock: pure, fast, no calls back into the library. */
typedef int (*canele_segments_fn)(const void *context, size_t offset, struct iovec *out, int max);

/** What is sent or received. Made by the three canele_data_... functions, or by hand. Copied by the calls that take it;
 *  what it points to (memory, iovec array, context) must live until the request is finalized. */
typedef struct canele_data {
  size_t length;               /**< bytes of the whole message */
  void *base;                  /**< contiguous memory; NULL if `segments` is used */
  canele_segments_fn segments; /**< NULL if contiguous */
  const void *context;         /**< passed to `segments` */
} canele_data_t;

/** `length` bytes at `base`. */
CANELE_API canele_data_t canele_data_contiguous(const void *base, size_t length);

/** A list of `count` pieces (0 pieces, and pieces of length 0, are allowed), in order. `vector` and the pieces must
 * stay alive until the request is finalized. */
typedef struct canele_iov {
  const struct iovec *pieces;
  int count;
} canele_iov_t;
CANELE_API canele_data_t canele_data_iov(const canele_iov_t *vector);

/** Data described by `segments` (see there); `length` bytes in all. */
CANELE_API canele_data_t canele_data_segments(canele_segments_fn segments, const void *context, size_t length);

/* ------------------------------------------------------------------------------------------------ requests */

#define CANELE_REQUEST_SIZE 384

/** One send or receive. Memory of the caller (16-byte aligned, zeroed before its first use), which must neither move
 * nor be freed before it is finalized (nothing can notice that). May be used again after it, without being zeroed. */
typedef struct canele_request {
  CANELE_ALIGNAS_16 unsigned char opaque[CANELE_REQUEST_SIZE];
} canele_request_t;

/** Events of a request, a bit mask. Each is delivered at most once. */
enum canele_event {
  CANELE_EVENT_HEADER = 1,   /**< a message has matched a receive posted without a buffer: peek, then bind */
  CANELE_EVENT_RECEIVED = 2, /**< the data may be read, not yet written: the library may still forward from it */
  CANELE_EVENT_FINALIZED = 4 /**< the library has let go of request and buffer. Always the last one */
};

/** The outcome of a request. */
typedef struct canele_status {
  int error;     /**< CANELE_OK or CANELE_E... */
  int source;    /**< rank of the peer */
  uint64_t tag;  /**< tag of the message */
  size_t length; /**< bytes of the message as sent; with CANELE_ETRUNC more than was delivered */
  int cancelled; /**< 1 if cancelled */
} canele_status_t;

/** Called once per event with the bits that happened (several may come in one call). After the call that has
 *  CANELE_EVENT_FINALIZED the library does not touch the request: the callback may free it or use it again. Calls for
 *  one request never overlap. */
typedef void (*canele_callback_fn)(canele_request_t *request, unsigned events, void *argument);

/** Asks for `callback(request, events, argument)` for the events in `mask`, in one use of the request: this one, if it
 * is pending, or finalized and nothing has told the program so (what has happened is told soon, possibly in this call);
 * the next one, if it is null, or if a wait, a test, canele_request_status, its callback or its queue has told that it
 * is finalized: it is null from then on. CANELE_EBUSY: the use has one already, or its event is still to come. */
CANELE_API int canele_request_on_event(canele_request_t *request, unsigned mask, canele_callback_fn callback,
                                       void *argument);

/** Outcome of a finalized request. CANELE_ESTATE if it is not. */
CANELE_API int canele_request_status(const canele_request_t *request, canele_status_t *status);

/* --------------------------------------------------------------------------------------------------- send */

enum canele_send_flags {
  CANELE_SEND_SYNCHRONOUS = 1 /**< finalized only after the receiver has matched it */
};

/** Options of a send. Set struct_size = sizeof; zero is the default of the rest. */
typedef struct canele_send_options {
  size_t struct_size;
  int32_t priority; /**< higher leaves sooner, where the strategy looks at it */
  uint32_t flags;   /**< enum canele_send_flags */
  size_t
      header; /**< the first `header` bytes (at most CANELE_HEADER_MAX) travel ahead, so that the receiver can peek */
} canele_send_options_t;

#define CANELE_HEADER_MAX 256

/** Sends `length` bytes at `buffer` to rank `destination` (own rank allowed). The buffer must not change until the
 * request is finalized. Does not block. A small message is usually finalized before it is received; but what the
 * destination has no memory for (CANELE_UNEXPECTED_MEMORY) waits here for its receive: a program must not rely on a
 * send to end before the other side has posted the receive. Errors: CANELE_ERANK, CANELE_EINVAL; what happens later is
 * told by the status. */
CANELE_API int canele_isend(canele_session_t *session, int destination, uint64_t tag, const void *buffer, size_t length,
                            canele_request_t *request);

/** Like canele_isend, for described data and with options (NULL: defaults). */
CANELE_API int canele_isend_data(canele_session_t *session, int destination, uint64_t tag, const canele_data_t *data,
                                 const canele_send_options_t *options, canele_request_t *request);

/** Changes the priority of a send that is still queued; CANELE_ESTATE once it has left. */
CANELE_API int canele_send_set_priority(canele_request_t *request, int32_t priority);

/* ----------------------------------------------------------------------------------------------- multicast */

/** Who hands the data of a multicast to whom. */
enum canele_shape {
  CANELE_SHAPE_AUTO = 0, /**< what is expected to end first, by number, size and what the network costs */
  CANELE_SHAPE_FLAT,     /**< the root to all */
  CANELE_SHAPE_CHAIN,    /**< each to the next */
  CANELE_SHAPE_BINOMIAL, /**< whoever has the data serves one more at a time; … 3, 7 more */
  CANELE_SHAPE_4_NOMIAL,
  CANELE_SHAPE_8_NOMIAL
};

/** Where a multicast goes. Set struct_size = sizeof; zero is the default of the rest. */
typedef struct canele_multicast_options {
  size_t struct_size;
  const int32_t *priorities; /**< one for each destination, higher ones are served sooner; NULL: `priority` for all */
  int32_t priority;
  int shape;     /**< enum canele_shape; CANELE_MULTICAST in the environment decides where this is AUTO */
  size_t header; /**< as in canele_send_options_t */
  int *outcomes; /**< `count` of them, or NULL: for each destination CANELE_OK if it has the data, else why not. Written
                      until the request is finalized */
} canele_multicast_options_t;

/** Sends one message to `count` other ranks, which receive it by ordinary receives from this rank, posted before or
 * after. Only this rank takes part: there is no group and nothing to agree on. Each destination gets the message in
 * order with what this rank sends to it otherwise (same session, same tag). Destinations hand large data on to each
 * other, as it comes, also before their own receive is posted:
 *
 *     root ──▶ a ──▶ c            each gets an envelope of the root that says whom to ask for the data; if that rank
 *       └────▶ b                  is gone, or cannot serve, the root does
 *
 * A receive whose data others still read has had CANELE_EVENT_RECEIVED: the data may be read, but not changed, until
 * CANELE_EVENT_FINALIZED. That never waits for what another program does, only for the library in its process.
 *
 * `destinations`: distinct ranks, not this one; copied, like the priorities. `data` (its memory, and what its iterator
 * needs) must not change until the request is finalized: then every destination has it, or its outcome tells why it has
 * not, and the request's error is that of one of those. Does not block; any thread. Errors: CANELE_EINVAL,
 * CANELE_ERANK, CANELE_ENOMEM. */
CANELE_API int canele_imulticast(canele_session_t *session, const int *destinations, size_t count, uint64_t tag,
                                 const canele_data_t *data, const canele_multicast_options_t *options,
                                 canele_request_t *request);

/* ------------------------------------------------------------------------------------------------- receive */

#define CANELE_ANY_SOURCE (-1)
#define CANELE_TAG_EXACT UINT64_MAX /**< mask: every bit of the tag counts */
#define CANELE_TAG_ANY UINT64_C(0)  /**< mask: no bit counts */

/** Receives the next message whose source is `source` (or any) and whose tag equals `tag` in the bits of `mask`, into
 * `length` bytes at `buffer`. A longer message fills the buffer and ends with CANELE_ETRUNC. */
CANELE_API int canele_irecv(canele_session_t *session, int source, uint64_t tag, uint64_t mask, void *buffer,
                            size_t length, canele_request_t *request);

CANELE_API int canele_irecv_data(canele_session_t *session, int source, uint64_t tag, uint64_t mask,
                                 const canele_data_t *data, canele_request_t *request);

/** A receive without a buffer: it matches, delivers CANELE_EVENT_HEADER, then waits for canele_receive_bind. */
CANELE_API int canele_irecv_late(canele_session_t *session, int source, uint64_t tag, uint64_t mask,
                                 canele_request_t *request);

/** Copies the first `length` bytes of the message that a late receive or a matched probe holds. At most the header that
 * the sender declared, or the whole of an eager message, is there: CANELE_EINVAL for more. Before it is bound. */
CANELE_API int canele_receive_peek(canele_request_t *request, void *buffer, size_t length);

/** Gives a late receive its buffer; data moves from now on. Once, after CANELE_EVENT_HEADER (or inside its callback).
 */
CANELE_API int canele_receive_bind(canele_request_t *request, const canele_data_t *data);

/** Source, tag and full length of the message that a late receive holds. CANELE_ESTATE before CANELE_EVENT_HEADER. */
CANELE_API int canele_receive_envelope(const canele_request_t *request, canele_status_t *status);

/** Cancels a receive. It ends with CANELE_ECANCELED if no message had matched, otherwise as if nothing had been asked.
 * In either case it is finalized in the normal way. Sends cannot be cancelled: CANELE_EINVAL. Calling it on a finalized
 *  request is harmless while the request is alive. */
CANELE_API int canele_cancel(canele_request_t *request);

/* -------------------------------------------------------------------------------------------------- probe */

/** Looks for a message that a receive with the same arguments would get now. *found = 1 and *status (may be NULL)
 * filled, or *found = 0. Makes progress once. */
CANELE_API int canele_iprobe(canele_session_t *session, int source, uint64_t tag, uint64_t mask, int *found,
                             canele_status_t *status);

/** Like canele_iprobe, but takes the message out of matching: `request` (null or finalized) becomes a late receive that
 * has had its CANELE_EVENT_HEADER (no event is delivered for it); only canele_receive_bind completes it. Two threads
 * never get the same message. */
CANELE_API int canele_improbe(canele_session_t *session, int source, uint64_t tag, uint64_t mask, int *found,
                              canele_request_t *request, canele_status_t *status);

/* --------------------------------------------------------------------------------------------------- wait */

/** *done = 1 and *status (may be NULL) filled if the request is finalized, else *done = 0. Makes progress once if not;
 * gives the core to another thread that wants it, as all calls that look once do. A null request is done. */
CANELE_API int canele_test(canele_request_t *request, int *done, canele_status_t *status);

/** Blocks until the request is finalized. Returns CANELE_OK, or the error in its status. At most one thread waits for
 *  one request. CANELE_EDEADLK in a callback. */
CANELE_API int canele_wait(canele_request_t *request, canele_status_t *status);

/** Blocks until all `count` requests are finalized (NULL entries are skipped). Returns the first error in their
 * statuses, or CANELE_OK. statuses: `count` of them, or NULL. */
CANELE_API int canele_wait_all(size_t count, canele_request_t *const *requests, canele_status_t *statuses);

/** Blocks until one of `count` requests is finalized or null; *index tells which (count if all entries are NULL). Of
 * several, calls with the same list take them in turn. They may be of several engines. */
CANELE_API int canele_wait_any(size_t count, canele_request_t *const *requests, size_t *index, canele_status_t *status);

/** The place of the first request, from place `first` on, that is finalized or null; count if none is. NULL entries are
 * skipped. Makes no progress: it looks at each request, and that is all. */
CANELE_API size_t canele_find_done(size_t count, canele_request_t *const *requests, size_t first);

/** Blocks until every rank has called it on a session with the same label. Ranks call the barriers of one session in
 * the same order, one thread at a time. */
CANELE_API int canele_barrier(canele_session_t *session);

/* -------------------------------------------------------------------------------------- completion queue */

/** A queue of finalized requests, polled by its owner. Zero bytes are an empty queue; the memory must not move. */
typedef struct canele_queue {
  CANELE_ALIGNAS_16 unsigned char opaque[64];
} canele_queue_t;

/** Sends `request` to `queue` when it is finalized, instead of a callback; `argument` comes back with it. Of which use,
 * and errors: as for canele_request_on_event. A request that lies in a queue cannot be posted (CANELE_EBUSY). */
CANELE_API int canele_request_on_queue(canele_request_t *request, canele_queue_t *queue, void *argument);

/** Takes at most `max` finalized requests; returns how many. arguments may be NULL. Several threads may poll. Makes
 * progress once (of `engine`) if the queue is empty. */
CANELE_API int canele_queue_poll(canele_engine_t *engine, canele_queue_t *queue, canele_request_t **requests,
                                 void **arguments, int max);

/* ---------------------------------------------------------------------------------- incremental messages */

#define CANELE_PACK_INLINE 16

/** A message put together from pieces: nothing is copied, the pieces must live until the request is finalized. */
typedef struct canele_pack {
  CANELE_ALIGNAS_16 unsigned char opaque[CANELE_PACK_INLINE * 16 + 64];
} canele_pack_t;

/** Makes `pack` empty. Releases the memory of an earlier use that was not sent. */
CANELE_API void canele_pack_begin(canele_pack_t *pack);

/** Adds `length` bytes at `piece`. The first CANELE_PACK_INLINE pieces need no allocation. CANELE_ENOMEM. */
CANELE_API int canele_pack_add(canele_pack_t *pack, const void *piece, size_t length);

/** Sends the pieces as one message; a receive of any shape takes it. pack must live until the request is finalized,
 * then canele_pack_end. */
CANELE_API int canele_pack_isend(canele_session_t *session, int destination, uint64_t tag, canele_pack_t *pack,
                                 const canele_send_options_t *options, canele_request_t *request);

/** Receives one message into the pieces, in order. Same lifetime. */
CANELE_API int canele_pack_irecv(canele_session_t *session, int source, uint64_t tag, uint64_t mask,
                                 canele_pack_t *pack, canele_request_t *request);

/** Frees what canele_pack_add allocated. */
CANELE_API void canele_pack_end(canele_pack_t *pack);

/* ---------------------------------------------------------------------------------------- active messages */

#define CANELE_AM_HEADER_MAX 248

/** An active message as its handler sees it. What it points to is the library's, and valid during the call only; memory
 * that `place` gave stays the program's. */
typedef struct canele_am_message {
  int source;
  uint64_t id;
  const void *header;
  size_t header_length;
  void *payload; /**< NULL in `place` */
  size_t payload_length;
  int error; /**< CANELE_OK, or why the payload is not there: CANELE_EPEER if the sender died meanwhile; CANELE_ENOMEM,
                  then the header may be missing, too, and both lengths are 0 */
} canele_am_message_t;

/** What is called for the messages of one id. Set struct_size = sizeof. Both functions run like callbacks of requests:
 * on the worker, where it runs, else on a thread that makes progress; they must not block, and may send. */
typedef struct canele_am_handler {
  size_t struct_size;
  void (*arrived)(const canele_am_message_t *message, void *argument); /**< header and payload are here */
  void *(*place)(const canele_am_message_t *message, void *argument);  /**< NULL, or: where a payload of more than
                           1,024 bytes shall go; may answer NULL. Without it, or with NULL, the library allocates */
  void *argument;
} canele_am_handler_t;

/** An active message under way: memory of the caller like that of a request; `request` is what to wait for. */
typedef struct canele_am {
  canele_request_t request;
  CANELE_ALIGNAS_16 unsigned char opaque[320];
} canele_am_t;

/** From now on messages to `id` of this session call `handler` (copied) on this rank. Ids are apart from
 * tags. Messages that came earlier have waited, as if for a receive. Does not block. CANELE_EBUSY: it has a handler. */
CANELE_API int canele_am_register(canele_session_t *session, uint64_t id, const canele_am_handler_t *handler);

/** Takes the handler back and blocks until it runs nowhere. Messages that it has not begun to take wait for the next
 * handler of the id. Closing the session takes back all, and drops what waits. CANELE_ESTATE if there is none;
 * CANELE_EDEADLK in a callback. */
CANELE_API int canele_am_unregister(canele_session_t *session, uint64_t id);

/** Sends `header` (at most CANELE_AM_HEADER_MAX bytes, copied) and `payload` (NULL: none; its memory must not change
 * until message->request is finalized) to the handler of `id` on rank `destination`. Does not block; allocates nothing.
 * Each message calls the handler once: for one message at a time, those of one source in the order sent, so a long one
 * holds up those behind it. options: as for a send; their `header` must be
 * 0. Errors: CANELE_ERANK, CANELE_EINVAL. */
CANELE_API int canele_am_send(canele_session_t *session, int destination, uint64_t id, const void *header,
                              size_t header_length, const canele_data_t *payload, const canele_send_options_t *options,
                              canele_am_t *message);

/* -------------------------------------------------------------------------------------------------- tasks */

#define CANELE_TASK_SIZE 64

/** A small piece of the program's own work that threads do which make progress: workers, helpers, threads that wait or
 * call canele_progress. Memory of the caller, zeroed before its first use, which must not move while it is in use. */
typedef struct canele_task {
  CANELE_ALIGNAS_16 unsigned char opaque[CANELE_TASK_SIZE];
} canele_task_t;

/** What a task says of itself when it returns. */
enum canele_task_outcome {
  CANELE_TASK_DONE = 0,  /**< it has ended, and may be submitted anew */
  CANELE_TASK_AGAIN = 1, /**< it is to be called again, soon; meanwhile no thread that makes progress goes to sleep */
  CANELE_TASK_GONE = 2   /**< it has ended, and its memory may be gone */
};

/** What a task does. cancelled: not 0 in its last call, after canele_task_cancel; what it returns then is DONE or GONE
 *  (AGAIN is taken for DONE). One call of a task at a time, on any thread. Like the callback of a request: it may call
 * anything that does not block, and should take some microseconds at most, since others wait for the thread. */
typedef int (*canele_task_fn)(canele_task_t *task, int cancelled, void *argument);

/** Where a task is to be done: by any thread, or by one that runs on this part of the machine (hwloc logical index).
 *  Nobody is sent there: name a part where a worker runs, or threads that make progress. */
enum canele_place {
  CANELE_PLACE_ANY = 0, /**< the index does not count */
  CANELE_PLACE_PACKAGE,
  CANELE_PLACE_NUMA_NODE,
  CANELE_PLACE_CORE,
  CANELE_PLACE_UNIT /**< processing unit */
};

/** Has `function` called once for this submission, and again as long as it returns CANELE_TASK_AGAIN. Never waits, and
 * does not call it itself. Any thread, also inside of the function of another task. A task that was masked stays so.
 * canele_finalize refuses to end while tasks are in use (CANELE_EBUSY). Errors: CANELE_EINVAL for a place that this
 * machine does not have, CANELE_EBUSY: the task is in use. */
CANELE_API int canele_task_submit(canele_engine_t *engine, canele_task_t *task, canele_task_fn function, void *argument,
                                  enum canele_place kind, int index);

/** Has the task called once more, with `cancelled` set: when its turn comes, also if it is masked, or after the call
 * that is under way, if that returns CANELE_TASK_AGAIN. Until then its memory is in use. Never waits. Any thread, as
 * long as the task has not ended with CANELE_TASK_GONE. CANELE_ESTATE: it was not in use. */
CANELE_API int canele_task_cancel(canele_task_t *task);

/** From now on no call of the task begins (one that is under way goes on), until canele_task_unmask. It may be masked
 * before it is submitted. Never waits. Any thread, as for canele_task_cancel. */
CANELE_API void canele_task_mask(canele_task_t *task);
CANELE_API void canele_task_unmask(canele_task_t *task);

/** True (1) from the submission of a task to its end. */
CANELE_API int canele_task_in_use(const canele_task_t *task);

/* --------------------------------------------------------------------------------------------- conditions */

/** Sixteen bits that threads wait for while communication progresses. For runtimes whose own events end a wait. */
typedef struct canele_condition {
  CANELE_ALIGNAS_16 unsigned char opaque[32];
} canele_condition_t;

/** Sets the bits of `mask` and wakes the waiter. After the store the function does not touch the condition any more: a
 *  thread that sees the bit may free it. */
CANELE_API void canele_condition_signal(canele_condition_t *condition, uint16_t mask);

/** The bits of `mask` that are set. */
CANELE_API uint16_t canele_condition_test(const canele_condition_t *condition, uint16_t mask);

/** Blocks until a bit of `mask` is set, making `engine` progress where no worker does. At most one thread waits for one
 * condition. CANELE_EDEADLK in a callback. engine = NULL: waits without progress. */
CANELE_API int canele_condition_wait(canele_engine_t *engine, canele_condition_t *condition, uint16_t mask);

/* ------------------------------------------------------------------------------------------------ observe */

/** Number of counters, the name of counter `index`, and its help text. The table never changes. */
CANELE_API int canele_counter_count(void);
CANELE_API const char *canele_counter_name(int index);
CANELE_API const char *canele_counter_help(int index);

/** Value of counter `index`; peer = -1: of the whole engine, else the share of that peer (0 where it is not kept per
 * peer). driver: NULL for all, else a driver's name. */
CANELE_API int canele_counter_read(canele_engine_t *engine, int index, int peer, const char *driver, uint64_t *value);

/** Writes the counters of the engine, its peers and drivers as JSON to `text` (at most `size` bytes with the final
 * NUL); *needed (may be NULL) gets the size that would hold all. CANELE_ENOMEM if it was cut. With
 * CANELE_COUNTERS=<file> the same is written at finalize. */
CANELE_API int canele_counters_json(canele_engine_t *engine, char *text, size_t size, size_t *needed);

/** Describes the library as JSON: version, build, drivers (and why one is not there), strategies, settings with value,
 * source, default, unit and help, topology. engine may be NULL (before init). Same rules as canele_counters_json. */
CANELE_API int canele_info_json(canele_engine_t *engine, char *text, size_t size, size_t *needed);

/** Writes a report for people to `text`: pending requests with state and age, peers with their rails, worker, blocked
 * threads, drivers, and where it is plain a sentence on what is wrong. Same rules as canele_counters_json. For a thread
 * that watches over the program, at any time. That no thread makes progress shows in the second report only. */
CANELE_API int canele_report(canele_engine_t *engine, char *text, size_t size, size_t *needed);

/** Gets a hang report: `report` has several lines and lives until the call returns. Called by a thread that makes
 * progress, like the callback of a request. */
typedef void (*canele_hang_fn)(canele_engine_t *engine, const char *report, void *argument);

/** After CANELE_HANG_REPORT seconds without a packet or completion, with a thread blocked in a wait for a request, a
 * barrier or finalize, or a send pending for that long, the engine writes one report to stderr; again only after
 * progress. This gives it to `callback` instead; NULL: to stderr again. A report that is under way may still come. */
CANELE_API int canele_on_hang(canele_engine_t *engine, canele_hang_fn callback, void *argument);

#ifdef __cplusplus
}
#endif

#endif
