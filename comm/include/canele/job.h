/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.h - the other ranks of the job: what this rank knows of each, and how it learns that one has ended.
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

#ifdef __cplusplus
}
#endif

#endif
