/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collectives.h - operations in which every rank of a group takes part; they do not block unless asked to.
 *
 * What: groups of ranks; barrier, broadcast, reductions, gather, scatter, all-to-all and scans. Each call computes its
 * whole schedule, starts what can start and returns; the rest follows from the events of its messages, on whatever
 * thread makes progress (a bound worker makes all of it while the program computes). The request is like that of a
 * send: wait for it, test it, give it a callback or a completion queue.
 * Threads: any; but the ranks of a group start its collectives in the same order, so one thread at a time for one
 * group. Surprise: a collective that has ended here may still be under way elsewhere, but for the barrier.
 *
 * Conventions used by every function below, unless said otherwise:
 *  - Memory given must neither move nor be freed before the request is finalized; input must not change, output must
 *    not be looked at until then. Arrays of counts and offsets, of ranks, and options are copied.
 *  - All ranks of the group give matching arguments (same root, same lengths, same operator); what differs is not
 *    always noticed, and ends as CANELE_EPROTOCOL where it is.
 *  - Lengths, and the offsets of parts, are in bytes; counts are in elements. Part r is that of the rank at position r
 *    of the group. Roots are positions, too.
 *  - CANELE_IN_PLACE as input: this rank's own part is taken from where its result would go (see each function).
 *  - A collective that fails on one rank ends the group: on every rank, those of its collectives that are under way and
 *    all later ones end with the same error, and status.source names the rank: CANELE_EPEER if it has died,
 *    CANELE_EPROTOCOL if it has sent another length than was expected, CANELE_ENOMEM if there was no memory to keep a
 *    message to or from it. A death ends all groups that have the rank. Nobody waits for ever, not even
 *    for ranks that give up at the first error. Make a group of those that live.
 *  - Errors of the call itself: CANELE_EINVAL, CANELE_ERANK (root), CANELE_ENOMEM, CANELE_ESTATE (the request is in
 * use).
 */
#ifndef CANELE_COLLECTIVES_H
#define CANELE_COLLECTIVES_H

#include <canele/canele.h>

#ifdef __cplusplus
extern "C" {
#endif

/** As input: see the conventions above. */
#define CANELE_IN_PLACE ((const void *)1)

/* ------------------------------------------------------------------------------------------------- groups */

/** Ranks that do collectives together, and a name space for their messages, apart from all sessions. */
typedef struct canele_group canele_group_t;

/** Makes a group of `count` distinct ranks, this one among them; position r is ranks[r]. ranks = NULL: all ranks of the
 * job (count is not looked at). Local: no rank waits for another; those that use the same label (1 to 40 bytes) and the
 * same list meet. A label may be used again when all of them have destroyed the group, unless that had failed.
 * Errors: CANELE_EINVAL, CANELE_ERANK; CANELE_EBUSY if the label is in use here; CANELE_ENOMEM. */
CANELE_API int canele_group_create(canele_engine_t *engine, const char *label, const int *ranks, size_t count,
                                   canele_group_t **group);

/** Frees it. CANELE_EBUSY while collectives of it are under way here. NULL is allowed. */
CANELE_API int canele_group_destroy(canele_group_t *group);

/** This rank's position, and the number of positions. */
CANELE_API int canele_group_rank(const canele_group_t *group);
CANELE_API int canele_group_size(const canele_group_t *group);

/* ---------------------------------------------------------------------------------------------- operators */

enum canele_element {
  CANELE_INT8 = 0,
  CANELE_INT16,
  CANELE_INT32,
  CANELE_INT64,
  CANELE_UINT8,
  CANELE_UINT16,
  CANELE_UINT32,
  CANELE_UINT64,
  CANELE_FLOAT,
  CANELE_DOUBLE,
  CANELE_LONG_DOUBLE,
  CANELE_COMPLEX_FLOAT,
  CANELE_COMPLEX_DOUBLE,
  CANELE_COMPLEX_LONG_DOUBLE, /**< sum and product only */
  /** A value and an index, as C lays out struct { T value; int index; }: for CANELE_MAXLOC and CANELE_MINLOC only. */
  CANELE_INT16_INT,
  CANELE_INT32_INT,
  CANELE_INT64_INT,
  CANELE_FLOAT_INT,
  CANELE_DOUBLE_INT,
  CANELE_LONG_DOUBLE_INT
};

enum canele_operation {
  CANELE_MAX = 0,
  CANELE_MIN,
  CANELE_SUM,
  CANELE_PROD,
  CANELE_LAND,
  CANELE_LOR,
  CANELE_LXOR, /**< of integers; the result is 0 or 1 */
  CANELE_BAND,
  CANELE_BOR,
  CANELE_BXOR, /**< of integers */
  CANELE_MAXLOC,
  CANELE_MINLOC /**< of equal values the lower index */
};

/** inout[i] = in[i] op inout[i] for `count` elements: `in` is of lower positions of the group. Pure; called on any
 * thread, several at a time; must not block. */
typedef void (*canele_combine_fn)(const void *in, void *inout, size_t count, void *argument);

/** What a reduction combines with. Made by canele_operator_of, or by hand. Copied; what `argument` points to must live
 * until the request is finalized. */
typedef struct canele_operator {
  canele_combine_fn combine;
  void *argument;
  size_t element; /**< bytes of one element, at least 1 */
  int commutes;   /**< 0: operands are combined in the order of positions only. The result is the same in every run
                       either way, but may differ between algorithms in the last bits where it is not associative */
} canele_operator_t;

/** A predefined operator for a type of elements. CANELE_EINVAL where the type has no such operation. */
CANELE_API int canele_operator_of(enum canele_operation operation, enum canele_element element,
                                  canele_operator_t *result);

/* ------------------------------------------------------------------------------------------------ options */

/** How a collective is done. CANELE_COLLECTIVES in the environment decides where this is AUTO; else a model of the
 * network does. Not every operation has each: CANELE_EINVAL says which it has. All ranks give the same. */
enum canele_algorithm {
  CANELE_ALGORITHM_AUTO = 0,
  CANELE_ALGORITHM_FLAT,            /**< the root with each (bcast, reduce, gather, scatter); each with each */
  CANELE_ALGORITHM_BINOMIAL,        /**< bcast, reduce, gather, scatter */
  CANELE_ALGORITHM_K_NOMIAL,        /**< bcast, reduce: trees of `radix` */
  CANELE_ALGORITHM_CHAIN,           /**< bcast, reduce, scan, exscan: in a row, segment by segment */
  CANELE_ALGORITHM_DISSEMINATION,   /**< barrier */
  CANELE_ALGORITHM_RECURSIVE,       /**< allreduce, allgather, scan, exscan: doubling; reduce_scatter: halving */
  CANELE_ALGORITHM_RING,            /**< allreduce, allgather, reduce_scatter */
  CANELE_ALGORITHM_BRUCK,           /**< allgather, alltoall */
  CANELE_ALGORITHM_TWO_PHASES,      /**< barrier: gather, bcast; bcast: scatter, allgather; reduce: reduce_scatter,
                                         gather; allreduce: reduce, bcast; reduce_scatter: reduce, scatter; allgather:
                                         gather, bcast */
  CANELE_ALGORITHM_HALVING_DOUBLING /**< allreduce: halving, then doubling (Rabenseifner) */
};

/** Set struct_size = sizeof; zero is the default of every other field. */
typedef struct canele_collective_options {
  size_t struct_size;
  int algorithm;    /**< enum canele_algorithm */
  int radix;        /**< of K_NOMIAL, and of the trees of TWO_PHASES: 2 to 64 */
  size_t segment;   /**< bytes that are handed on at a time, in trees and chains */
  int window;       /**< alltoall: sends under way at a time, at most */
  int32_t priority; /**< of its messages */
  /** Not 0: the call returns when the collective has ended here, and the request is finalized then: see its status. The
   * calling thread carries it out itself where that is faster. In a completion callback: CANELE_EDEADLK. Ranks may
   * differ in this. Without a request (NULL) the call returns how the collective has ended. */
  int blocking;
} canele_collective_options_t;

/* ------------------------------------------------------------------------------------------- collectives */

/** Ends when every rank has started it. */
CANELE_API int canele_ibarrier(canele_group_t *group, const canele_collective_options_t *options,
                               canele_request_t *request);

/** `length` bytes at `buffer` go from the root to all. */
CANELE_API int canele_ibcast(canele_group_t *group, void *buffer, size_t length, int root,
                             const canele_collective_options_t *options, canele_request_t *request);

/** output[i] on the root = input[i] of position 0 op input[i] of position 1 op …, for `count` elements. output is not
 * looked at elsewhere. CANELE_IN_PLACE on the root: its input is in output. */
CANELE_API int canele_ireduce(canele_group_t *group, const void *input, void *output, size_t count,
                              const canele_operator_t *operation, int root, const canele_collective_options_t *options,
                              canele_request_t *request);

/** The same, with the result everywhere. CANELE_IN_PLACE (on all ranks): input is in output. */
CANELE_API int canele_iallreduce(canele_group_t *group, const void *input, void *output, size_t count,
                                 const canele_operator_t *operation, const canele_collective_options_t *options,
                                 canele_request_t *request);

/** Parts in memory. Either all of the same length, one after the other (lengths = NULL: `length` each), or each with
 * its own: part r is lengths[r] bytes at offset offsets[r] (offsets = NULL: one after the other). Parts of an output
 * must not overlap. */
typedef struct canele_parts {
  size_t length;
  const size_t *lengths;
  const size_t *offsets;
} canele_parts_t;

/** `length` bytes at input of each rank go to its part of the root's output. On the root `parts` tells where; elsewhere
 * output and parts are not looked at (parts may be NULL) - but all ranks must agree on whether lengths are equal: pass
 * parts with lengths = NULL everywhere, or `parts` with lengths on the root and NULL elsewhere. CANELE_IN_PLACE on the
 * root: its part is in output already. */
CANELE_API int canele_igather(canele_group_t *group, const void *input, size_t length, void *output,
                              const canele_parts_t *parts, int root, const canele_collective_options_t *options,
                              canele_request_t *request);

/** The reverse: part r of the root's input goes to the `length` bytes at output of position r. output may be NULL on
 * the root: its part stays where it is. The same about `parts`. */
CANELE_API int canele_iscatter(canele_group_t *group, const void *input, const canele_parts_t *parts, void *output,
                               size_t length, int root, const canele_collective_options_t *options,
                               canele_request_t *request);

/** `parts` of output are known to all, and the same everywhere but for offsets; each rank's input (as long as its part)
 * goes to that part on all. CANELE_IN_PLACE (on all ranks): it is there already. */
CANELE_API int canele_iallgather(canele_group_t *group, const void *input, void *output, const canele_parts_t *parts,
                                 const canele_collective_options_t *options, canele_request_t *request);

/** Part r of input goes to position r, as that one's part of this position. With lengths = NULL on both sides, on all
 * ranks, all parts are equal. CANELE_IN_PLACE (on all ranks): input is in output, with output's parts. */
CANELE_API int canele_ialltoall(canele_group_t *group, const void *input, const canele_parts_t *input_parts,
                                void *output, const canele_parts_t *output_parts,
                                const canele_collective_options_t *options, canele_request_t *request);

/** Reduces, and gives part r of the result to position r. counts[r]: elements of part r (NULL: `count` each); the same
 * on all ranks. Input has all parts, one after the other; output this position's. CANELE_IN_PLACE (on all ranks): input
 * is in output, which must have room for it, and the result is at its beginning. */
CANELE_API int canele_ireduce_scatter(canele_group_t *group, const void *input, void *output, size_t count,
                                      const size_t *counts, const canele_operator_t *operation,
                                      const canele_collective_options_t *options, canele_request_t *request);

/** output at position r = input of 0 op … op input of r. CANELE_IN_PLACE (any rank): its input is in output. */
CANELE_API int canele_iscan(canele_group_t *group, const void *input, void *output, size_t count,
                            const canele_operator_t *operation, const canele_collective_options_t *options,
                            canele_request_t *request);

/** output at position r = input of 0 op … op input of r - 1; untouched at position 0. CANELE_IN_PLACE as for scan. */
CANELE_API int canele_iexscan(canele_group_t *group, const void *input, void *output, size_t count,
                              const canele_operator_t *operation, const canele_collective_options_t *options,
                              canele_request_t *request);

#ifdef __cplusplus
}
#endif

#endif
