/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.h - the other ranks of the job: what this rank knows of each, how it learns that one has ended, values that ranks
 * publish for each other, and the hosts of the ranks.
 *
 * A rank that ends completes the requests that name it. Receives from any source stay pending, because another rank may
 * still send. A runtime that waits for one rank in such a receive learns here that the rank has ended, and cancels it.
 *
 * The conventions of canele.h hold for every function below. */
#ifndef CANELE_JOB_H
#define CANELE_JOB_H

#include <canele/canele.h>

#ifdef __cplusplus
extern "C" {
#endif

enum canele_peer_state {
  CANELE_PEER_UNKNOWN = 0,    /**< there was no communication with it yet. */
  CANELE_PEER_CONNECTING = 1, /**< the first message waits for a connection. */
  CANELE_PEER_UP = 2,
  CANELE_PEER_LEFT = 3, /**< it has finalized its engine. */
  CANELE_PEER_LOST = 4  /**< its process has ended, or no connection to it works any more. Final. */
};

/** Returns what this rank knows of `rank`: a value of enum canele_peer_state. Asks no other rank, and does not block.
 * CANELE_ERANK; CANELE_EINVAL: engine is NULL. */
CANELE_API int canele_peer_state(canele_engine_t *engine, int rank);

/** Receives the end of a peer. state: CANELE_PEER_LEFT or CANELE_PEER_LOST. why: a sentence, which lives until the call
 * returns. Called like the callback of a request, by a thread that makes progress, for one peer at a time. */
typedef void (*canele_peer_fn)(canele_engine_t *engine, int rank, int state, const char *why, void *argument);

/** Calls `callback` once for each peer that has ended, those that ended before this call included; NULL: for none from
 * now on. At that time the requests that name the peer are finalized. A rank that this one has never communicated with
 * is not reported. Does not block. A callback that was begun before this call may still run. */
CANELE_API int canele_on_peer(canele_engine_t *engine, canele_peer_fn callback, void *argument);

/* ------------------------------------------------------------------------------------- values, and hosts
 *
 * Each rank publishes values under keys of its own, then all ranks exchange them. A lookup reads this rank's copy, so
 * it sends nothing. Values belong to one engine. An exchange uses the engine's own messages, so it is the same under
 * every launcher. It sends everything that the ranks have published, also what an earlier exchange has sent. Each rank
 * keeps the values of all ranks: up to CANELE_PUBLISH_MAX bytes for each rank, twice as much during an exchange.
 * Publish what others need to begin with, such as addresses and keys of memory, and send data in messages. */

#define CANELE_PUBLISH_KEY_MAX 255     /**< bytes of a key, without the final NUL. */
#define CANELE_PUBLISH_VALUE_MAX 65536 /**< bytes of a value. */
#define CANELE_PUBLISH_MAX 262144      /**< bytes of all keys and values of one rank; each value takes 6 more. */
#define CANELE_HOST_NAME_SIZE 256      /**< room for the name of a host with its final NUL; longer names are cut. */

/** Keeps a copy of `size` bytes at `value` under `key` for the next exchange. 0 bytes are allowed. A key that is
 * published again has the later value from the next exchange on. A value that is published during an exchange goes with
 * the next one. CANELE_EINVAL: the key is empty or too long, begins with "canele.", which is the library's, or the
 * value is too long. CANELE_ENOMEM: this rank would publish more than CANELE_PUBLISH_MAX, or there is no memory. */
CANELE_API int canele_publish(canele_engine_t *engine, const char *key, const void *value, size_t size);

/** Gives every rank the values that every rank has published. Collective: blocks until all ranks of the job have called
 * it on the engines that belong together. One thread of a rank at a time: CANELE_EBUSY. At the deadline (a time of
 * canele_now, 0: does what is possible without waiting, UINT64_MAX: none) it returns CANELE_ETIMEOUT. The exchange then
 * is still under way, and the next call continues it. An exchange ends with CANELE_EPEER if a rank has died, with
 * CANELE_ESTATE if a rank has begun it and then finalized its engine, with CANELE_ENOMEM if a rank has no memory for
 * the values, and with CANELE_EPROTOCOL if a rank has sent malformed data. Every later exchange then fails, too; values
 * that were exchanged before stay. CANELE_EDEADLK in a callback. */
CANELE_API int canele_exchange(canele_engine_t *engine, uint64_t deadline);

/** Copies what `rank` (own rank allowed) had published under `key` at its last exchange to `value`. *size: in, the room
 * there; out, the size of the value. CANELE_ETRUNC: what fits was copied, and *size is written. So *size = 0, with
 * value = NULL, asks for the size. CANELE_ENOENT: the rank has published no such key. CANELE_ESTATE: there was no
 * exchange yet. CANELE_ERANK; CANELE_EINVAL as for canele_publish. */
CANELE_API int canele_lookup(canele_engine_t *engine, int rank, const char *key, void *value, size_t *size);

/** Writes the ranks of this host in ascending order, with this one, to `ranks`, which has room for `room` of them, and
 * their number to *count. It is canele_local_size(). CANELE_ETRUNC: `room` is smaller; what fits is written, and
 * *count. CANELE_ESTATE: there was no exchange yet, as only an exchange tells ranks the hosts of others. */
CANELE_API int canele_local_ranks(canele_engine_t *engine, int *ranks, size_t room, size_t *count);

/** Writes the index of the host of `rank` to *index. Ranks of one host have one index, and hosts are numbered from 0 in
 * the order of their lowest ranks. Writes the name of the host with a final NUL to `name`, which has room for `size`
 * bytes. NULL for what is not wanted. Hosts are those of the launcher; two of them may have one name. CANELE_ETRUNC:
 * the name is cut; *index is written. CANELE_ESTATE as for canele_local_ranks; CANELE_ERANK. */
CANELE_API int canele_rank_host(canele_engine_t *engine, int rank, int *index, char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif
