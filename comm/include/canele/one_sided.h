/* SPDX-License-Identifier: BSD-3-Clause
 *
 * one_sided.h - access to the memory of other ranks: put, get, atomic operations, notifications.
 *
 * The target registers memory and gives its key, a few bytes, to other ranks, the origins. An origin accesses the
 * memory without a call of the target. The target's library serves it: its progress does, also while the program
 * computes, if a worker or an on-demand thread runs (see canele_worker_use).
 *
 *     target:  canele_memory_register ─▶ canele_memory_key ─▶ bytes, sent by any message
 *     origin:  canele_key_open ─▶ canele_put, canele_get, canele_atomic ... ─▶ canele_key_close
 *
 * Order: operations of one lane to one rank take effect in the order of their posts. Operations of different lanes have
 * no order. Without lanes of its own a program uses the engine's default lane. A put or an atomic operation that
 * follows a get in its lane leaves only when the get has ended; another lane avoids that wait.
 *
 * Completion: `done` of the options means that the operation is over everywhere. Of a put: the bytes are visible in the
 * target's memory. Of a get or an atomic operation: the result is here. An operation without a completion is covered by
 * canele_flush.
 *
 * Strided memory: a put or get may access equal blocks with gaps between them, such as a part of a matrix. `block` is
 * the length of a block in bytes, `stride` the distance of their beginnings. data.length is a multiple of `block`. Both
 * are below 4 GiB, and stride >= block. The gaps are neither read nor written.
 *
 * The conventions of canele.h and post.h hold for every function below. In addition:
 * - Memory, keys, lanes and slots are freed or closed before canele_finalize.
 * - Offsets are in bytes from the beginning of the registered memory.
 * - An access is checked at the target, against the key. What is not allowed ends with an error at the origin, and
 *   touches no memory: CANELE_EACCESS (beyond the memory, or a kind of access that the key does not allow),
 *   CANELE_EREVOKED (the memory is no longer registered). */
#ifndef CANELE_ONE_SIDED_H
#define CANELE_ONE_SIDED_H

#include <canele/collectives.h>
#include <canele/post.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------- memory */

/** Memory of this rank that other ranks access. */
typedef struct canele_memory canele_memory_t;

/** Kinds of access that a key allows. */
enum canele_access { CANELE_ACCESS_READ = 1, CANELE_ACCESS_WRITE = 2, CANELE_ACCESS_ATOMIC = 4 };

/** Options of canele_memory_register. Set struct_size = sizeof(canele_memory_options_t). */
typedef struct canele_memory_options {
  size_t struct_size;
  uint32_t access;   /**< enum canele_access; 0: all kinds. */
  uint32_t reserved; /**< 0 */
} canele_memory_options_t;

/** Registers `length` bytes at `base` (any memory of the process) for access by the other ranks, and by this one. The
 * memory must stay valid until canele_memory_free has returned. options may be NULL. Does not block. CANELE_EINVAL,
 * CANELE_ENOMEM. */
CANELE_API int canele_memory_register(canele_engine_t *engine, void *base, size_t length,
                                      const canele_memory_options_t *options, canele_memory_t **memory);

/** Allocates `length` zero bytes for access by the other ranks, and registers them; *base gets the address. Ranks of
 * this host access such memory directly, if they can map it: their operations are copies and atomic operations of the
 * calling thread, also while the target does not respond. Else like canele_memory_register; canele_memory_free also
 * frees the bytes. CANELE_ENOMEM: no memory, or no descriptor. */
CANELE_API int canele_memory_allocate(canele_engine_t *engine, size_t length, const canele_memory_options_t *options,
                                      void **base, canele_memory_t **memory);

/** Revokes all keys of the memory, and frees the handle. Operations that come later end with CANELE_EREVOKED at their
 * origin. From the return on, no rank accesses the memory. Blocks until the library has sent the data of gets, and has
 * received that of large puts, that it has begun to serve, and until accesses by ranks of this host that have begun are
 * over. CANELE_EDEADLK: called in a callback while there are such
 * accesses; the keys stay valid. */
CANELE_API int canele_memory_free(canele_memory_t *memory);

/** Size of a key, in bytes. */
#define CANELE_KEY_SIZE 64

/** Writes the key of the memory: CANELE_KEY_SIZE bytes without pointers, valid on all ranks of the job. */
CANELE_API int canele_memory_key(const canele_memory_t *memory, void *key);

/** Memory of a rank, as an origin sees it. */
typedef struct canele_key canele_key_t;

/** Opens a key, and begins to connect to its rank, for which it does not wait. The target is told of the key before the
 * first access. CANELE_EINVAL: the bytes are no key of this job. CANELE_EVERSION: they are of another version of the
 * library. CANELE_ENOMEM. */
CANELE_API int canele_key_open(canele_engine_t *engine, const void *bytes, canele_key_t **key);

/** Closes a key; the handle is invalid afterwards. CANELE_EBUSY while operations with it are pending. */
CANELE_API int canele_key_close(canele_key_t *key);

/** Address of the target's memory in this process, valid until canele_key_close. Meant for plain loads and stores; the
 * program synchronises them. CANELE_EDRIVER: this process cannot map the memory. */
CANELE_API int canele_key_map(canele_key_t *key, void **address);

/** Rank that owns the memory, and its length in bytes. */
CANELE_API int canele_key_rank(const canele_key_t *key);
CANELE_API size_t canele_key_length(const canele_key_t *key);

/* -------------------------------------------------------------------------------------------------- lanes */

/** A stream of operations with an order of its own. Cheap; meant to be one for each thread. */
typedef struct canele_lane canele_lane_t;

/** Opens a lane. CANELE_ENOMEM: no memory, or 65,535 lanes are open. */
CANELE_API int canele_lane_open(canele_engine_t *engine, canele_lane_t **lane);

/** Closes a lane. CANELE_EBUSY while its operations are pending. */
CANELE_API int canele_lane_close(canele_lane_t *lane);

/** Flushes the lane, to all ranks, if it has nothing to wait for and no error to tell: returns 1. Else returns 0, with
 * no effect; canele_flush waits. Makes no progress, and costs a few instructions. Does not block. CANELE_EINVAL: lane
 * is NULL. */
CANELE_API int canele_lane_try_flush(canele_lane_t *lane);

/* -------------------------------------------------------------------------------------------- notifications */

/** Opens a slot of this rank for notifications: each one that names the slot delivers `then`, as the completion of an
 * operation would be. A queue gets an entry of kind CANELE_ENTRY_NOTIFICATION with `slot`, `source`, `immediate`, and,
 * for a put, `tag` = offset and `length`. A callback gets request = NULL. The number *slot (1 and up) goes to other
 * ranks by any message. CANELE_EINVAL: the completion is POLL or NONE. CANELE_ENOMEM. */
CANELE_API int canele_notification_open(canele_engine_t *engine, const canele_completion_t *then, uint32_t *slot);

/** Closes a slot. Notifications that come later are dropped, and end with CANELE_EREVOKED at their origin. One that is
 * being delivered may still arrive. CANELE_EINVAL: no such slot is open. */
CANELE_API int canele_notification_close(canele_engine_t *engine, uint32_t slot);

/* --------------------------------------------------------------------------------------------- operations */

/** Options of a one-sided operation. Set struct_size = sizeof(canele_access_options_t); zero is the default of every
 * other field. */
typedef struct canele_access_options {
  size_t struct_size;
  canele_completion_t done; /**< see "Completion" above. POLL or NONE without a request: a flush covers it. */
  canele_lane_t *lane;      /**< NULL: the engine's default lane. */
  int32_t priority;         /**< higher leaves sooner, if the strategy supports it; not before others of its lane. */
  uint32_t slot;            /**< of a put: notification at the target, after the data is visible; 0: none. */
  uint64_t immediate;       /**< what the notification carries. */
  uint64_t block, stride;   /**< of a put or get: see "Strided memory". 0: the memory is one piece. */
} canele_access_options_t;

/** Writes `data` to the memory at `offset`. `data` must not change until the completion, or until a flush has ended.
 * request = NULL and completions: as for canele_post_send; options = NULL and request = NULL: no completion. Does not
 * block. Any thread. CANELE_EINVAL, CANELE_ENOMEM; CANELE_EACCESS: beyond the memory. */
CANELE_API int canele_put(canele_key_t *key, uint64_t offset, const canele_data_t *data,
                          const canele_access_options_t *options, canele_request_t *request);

/** Describes a put that repeats; canele_start makes it. The key must stay open. Else like canele_send_init. */
CANELE_API int canele_put_init(canele_key_t *key, uint64_t offset, const canele_data_t *data,
                               const canele_access_options_t *options, canele_persistent_t *operation);

/** Reads data.length bytes of the memory at `offset` into `data`. Else like canele_put; slot must be 0. */
CANELE_API int canele_get(canele_key_t *key, uint64_t offset, const canele_data_t *data,
                          const canele_access_options_t *options, canele_request_t *request);

/** Atomic operations on a word in the memory. */
enum canele_atomic_operation {
  CANELE_ATOMIC_READ = 0,
  CANELE_ATOMIC_SWAP, /**< write `operand` */
  CANELE_ATOMIC_ADD,  /**< add `operand`, modulo the size */
  CANELE_ATOMIC_AND,
  CANELE_ATOMIC_OR,
  CANELE_ATOMIC_XOR,
  CANELE_ATOMIC_COMPARE_AND_SWAP /**< write `operand` if the word equals `compare` */
};

/** Applies `operation` to the word of `size` bytes (4 or 8) at `offset`, which must be aligned to its size. Atomic with
 * respect to all other atomic operations on that memory, of all ranks. *before (NULL: not wanted) gets the value that
 * the word had: a uint32_t or a uint64_t, by `size`. It must live until the completion. Else like canele_put. */
CANELE_API int canele_atomic(canele_key_t *key, uint64_t offset, enum canele_atomic_operation operation, size_t size,
                             uint64_t operand, uint64_t compare, void *before, const canele_access_options_t *options,
                             canele_request_t *request);

/** Operations of canele_accumulate, besides those of enum canele_operation. */
enum canele_accumulate_operation {
  CANELE_REPLACE = 32, /**< write the element of the data */
  CANELE_NO_OP         /**< read only; the bytes of the data are not read */
};

/** Combines the elements of `data` with those of the memory from `offset` on: memory[i] = memory[i] operation data[i].
 * operation: enum canele_operation or canele_accumulate_operation. The address in the memory must be aligned as C
 * aligns `element`. Each element, not the whole, is atomic with respect to all other accumulates of such elements, of
 * all ranks, with keys of the same registration; numbers of 4 or 8 bytes also with respect to canele_atomic. `before`
 * (NULL: not wanted) gets the former elements, without gaps. It must live until the completion. slot must be 0. An
 * accumulate that does not fit a packet is several operations: the next flush tells its error, too. Else like
 * canele_put. CANELE_EINVAL: there is no such operation of such elements, or data->length is no multiple of their
 * size. */
CANELE_API int canele_accumulate(canele_key_t *key, uint64_t offset, const canele_data_t *data, int operation,
                                 enum canele_element element, void *before, const canele_access_options_t *options,
                                 canele_request_t *request);

/** Sends a notification without data to `rank`, after the earlier operations of its lane to that rank. options: slot
 * must be given. Else like canele_put. */
CANELE_API int canele_notify(canele_engine_t *engine, int rank, const canele_access_options_t *options,
                             canele_request_t *request);

/** Ends when all earlier operations of the lane to `rank` are over, with the first error of those that had no
 * completion of their own. options (may be NULL): lane, done. Else like canele_put. */
CANELE_API int canele_flush(canele_engine_t *engine, int rank, const canele_access_options_t *options,
                            canele_request_t *request);

#ifdef __cplusplus
}
#endif

#endif
