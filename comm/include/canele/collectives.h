/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collectives.h - operations in which every rank of a group takes part; non-blocking unless the options say otherwise.
 *
 * Groups of ranks; barrier, broadcast, reductions, gather, scatter, all-to-all, scans, neighbours. A call computes its
 * schedule, starts what can start and returns. The events of its messages drive the rest, on any thread that makes
 * progress. A bound worker makes all of it while the program computes. The request is like that of a send: wait for it,
 * test it, or give it a callback or a completion queue.
 *
 * Any thread may call these functions. All ranks of a group must start its collectives in the same order; so one thread
 * at a time calls for one group. When a collective has ended on this rank, other ranks may still be executing it,
 * except for the barrier.
 *
 * Conventions of every function below, unless its comment says otherwise:
 * - Memory given must neither move nor be freed before the request is finalized. Until then input must not change, and
 *   output must not be accessed. Arrays of counts, offsets and ranks, and options, are copied.
 * - All ranks of the group give matching arguments (same root, lengths, operator). A mismatch is not always detected;
 *   if it is, the collective ends with CANELE_EPROTOCOL.
 * - Lengths, and the offsets of parts, are in bytes; counts are in elements. Part r belongs to the rank at position r
 *   of the group. Roots are positions, too.
 * - CANELE_IN_PLACE as input: this rank's own part is read from the place of its result (see each function).
 * - A collective that fails on one rank fails on all ranks that have not ended it, and status.source names a rank.
 *   CANELE_EPROTOCOL: it sent an unexpected length. CANELE_ENOMEM: no memory to keep a message to or from it. The next
 *   collectives of the group are not affected. The contents of output are undefined.
 * - The death of a rank (CANELE_EPEER) and canele_group_revoke (CANELE_ESTATE) end the group. On every rank, its
 *   running collectives and all later ones then end with that error. A death ends all groups that contain the rank.
 *   Make a new group of the ranks that live.
 * - No collective waits for a rank that has failed in it. The next one does: a rank that gives up after an error
 *   revokes the group. After a death it need not.
 * - Errors of the call itself: CANELE_EINVAL, CANELE_ERANK (root), CANELE_ENOMEM, CANELE_ESTATE (the request is in
 *   use). */
#ifndef CANELE_COLLECTIVES_H
#define CANELE_COLLECTIVES_H

#include <canele/canele.h>

#ifdef __cplusplus
extern "C" {
#endif

/** As input: see the conventions above. */
#define CANELE_IN_PLACE ((const void *)1)

/* ------------------------------------------------------------------------------------------------- groups */

/** Ranks that do collectives together, and a tag space for their messages, separate from all sessions. */
typedef struct canele_group canele_group_t;

/** Makes a group of `count` distinct ranks, including this one; position r is ranks[r]. ranks = NULL: all ranks of the
 * job (count is ignored). Local operation: no rank waits for another. Ranks that use the same label (1 to 40 bytes)
 * and the same list share the group. A label may be used again when all of them have destroyed the group, unless a
 * collective of it had failed. CANELE_EINVAL: also for a label that begins with "canele.", which the library uses.
 * CANELE_ERANK, CANELE_ENOMEM. CANELE_EBUSY: the label is in use here. */
CANELE_API int canele_group_create(canele_engine_t *engine, const char *label, const int *ranks, size_t count,
                                   canele_group_t **group);

/** Takes this rank's turn in the next collective of the group without a part in it. The collective fails with `error`
 * on all ranks that have not ended it; later ones are not affected. For a rank that has no memory for its buffers
 * (CANELE_ENOMEM), or whose own arguments contradict each other (CANELE_EPROTOCOL); CANELE_EINVAL: any other error, or
 * NULL. Does not block; sends a short message to each rank of the group. */
CANELE_API int canele_group_skip(canele_group_t *group, int error);

/** Ends the group on all ranks, for a rank that takes no more part in it, after an error for example. The running
 * collectives, and all later ones, end with CANELE_ESTATE, and status.source is this rank. Those that need nothing more
 * from it may still succeed. Does not block; sends a short message to each rank of the group. Nothing happens if the
 * group has ended already. CANELE_EINVAL: NULL. */
CANELE_API int canele_group_revoke(canele_group_t *group);

/** Frees the group. CANELE_EBUSY while its collectives are running here. NULL is allowed. */
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
  CANELE_COMPLEX_LONG_DOUBLE, /**< sum and product only. */
  /** A value and an index, with the layout of struct { T value; int index; }: for CANELE_MAXLOC and CANELE_MINLOC only.
   */
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
  CANELE_LXOR, /**< of integers; the result is 0 or 1. */
  CANELE_BAND,
  CANELE_BOR,
  CANELE_BXOR, /**< of integers */
  CANELE_MAXLOC,
  CANELE_MINLOC /**< for equal values the lower index. */
};

/** Computes inout[i] = in[i] op inout[i] for `count` elements; `in` comes from lower positions of the group than inout.
 * Must be pure and must not block. Called on any thread, possibly on several at once. */
typedef void (*canele_combine_fn)(const void *in, void *inout, size_t count, void *argument);

/** The operator of a reduction. Made by canele_operator_of, or by hand. Copied; what `argument` points to must live
 * until the request is finalized. */
typedef struct canele_operator {
  canele_combine_fn combine;
  void *argument;
  size_t element; /**< bytes of one element, at least 1. */
  int commutes; /**< 0: combine operands in the order of positions only. Either way, every run gives the same result. If
                   the operator is not associative, the last bits may differ between algorithms. */
} canele_operator_t;

/** Writes the predefined operator for a type of elements to *result. CANELE_EINVAL: the type has no such operation. */
CANELE_API int canele_operator_of(enum canele_operation operation, enum canele_element element,
                                  canele_operator_t *result);

/* ------------------------------------------------------------------------------------------------ options */

/** The algorithm of a collective. If it is AUTO, the setting CANELE_COLLECTIVES decides, else a model of the network.
 * Not every operation has every algorithm: CANELE_EINVAL, with a list of those it has. All ranks must give the same. */
enum canele_algorithm {
  CANELE_ALGORITHM_AUTO = 0,
  CANELE_ALGORITHM_FLAT,          /**< the root with each (bcast, reduce, gather, scatter); or each with each. */
  CANELE_ALGORITHM_BINOMIAL,      /**< bcast, reduce, gather, scatter. */
  CANELE_ALGORITHM_K_NOMIAL,      /**< bcast, reduce: trees of `radix`. */
  CANELE_ALGORITHM_CHAIN,         /**< bcast, reduce, scan, exscan: in a chain, segment by segment. */
  CANELE_ALGORITHM_DISSEMINATION, /**< barrier */
  CANELE_ALGORITHM_RECURSIVE,     /**< allreduce, allgather, scan, exscan: doubling. reduce_scatter: halving. */
  CANELE_ALGORITHM_RING,          /**< allreduce, allgather, reduce_scatter. */
  CANELE_ALGORITHM_BRUCK,         /**< allgather, alltoall. */
  CANELE_ALGORITHM_TWO_PHASES, /**< barrier: gather, bcast. bcast: scatter, allgather. reduce: reduce_scatter, gather.
                                  allreduce: reduce, bcast. reduce_scatter: reduce, scatter. allgather: gather, bcast.
                                */
  CANELE_ALGORITHM_HALVING_DOUBLING /**< allreduce: halving, then doubling (Rabenseifner) */
};

/** Options of a collective. Set struct_size = sizeof(canele_collective_options_t); zero is the default of every other
 * field. */
typedef struct canele_collective_options {
  size_t struct_size;
  int algorithm;    /**< enum canele_algorithm. */
  int radix;        /**< of K_NOMIAL, and of the trees of TWO_PHASES: 2 to 64. */
  size_t segment;   /**< bytes forwarded at a time, in trees and chains. */
  int window;       /**< alltoall: maximum number of sends in flight. */
  int32_t priority; /**< of its messages. */
  /** Not 0: the call blocks until the collective has ended on this rank; the request is then finalized (see its
   * status). The calling thread executes the collective itself where that is faster. Without a request (NULL) the call
   * returns the outcome of the collective. Ranks may differ in this option. CANELE_EDEADLK in a completion callback. */
  int blocking;
} canele_collective_options_t;

/* ------------------------------------------------------------------------------------------- collectives */

/** Barrier: ends when every rank has started it. */
CANELE_API int canele_ibarrier(canele_group_t *group, const canele_collective_options_t *options,
                               canele_request_t *request);

/** Broadcast: sends `length` bytes at `buffer` of the root to `buffer` of all other ranks. */
CANELE_API int canele_ibcast(canele_group_t *group, void *buffer, size_t length, int root,
                             const canele_collective_options_t *options, canele_request_t *request);

/** Reduction: output[i] on the root = input[i] of position 0 op input[i] of position 1 op …, for `count` elements.
 * Other ranks' output is ignored. CANELE_IN_PLACE on the root: its input is in output. */
CANELE_API int canele_ireduce(canele_group_t *group, const void *input, void *output, size_t count,
                              const canele_operator_t *operation, int root, const canele_collective_options_t *options,
                              canele_request_t *request);

/** Reduction like canele_ireduce, with the result on all ranks. CANELE_IN_PLACE (on all ranks): input is in output. */
CANELE_API int canele_iallreduce(canele_group_t *group, const void *input, void *output, size_t count,
                                 const canele_operator_t *operation, const canele_collective_options_t *options,
                                 canele_request_t *request);

/** Parts in memory. lengths = NULL: all parts have `length` bytes, one after the other. Else part r is lengths[r] bytes
 * at offset offsets[r] (offsets = NULL: one after the other). Parts of an output must not overlap. */
typedef struct canele_parts {
  size_t length;
  const size_t *lengths;
  const size_t *offsets;
} canele_parts_t;

/** Gather: sends `length` bytes at input of each rank to its part of the root's output. On the root, `parts` describes
 * output. Other ranks' output and parts are ignored (parts may be NULL), but all ranks must agree on whether lengths
 * are equal. So pass parts with lengths = NULL everywhere, or `parts` with lengths on the root and NULL elsewhere.
 * CANELE_IN_PLACE on the root: its part is in output already. */
CANELE_API int canele_igather(canele_group_t *group, const void *input, size_t length, void *output,
                              const canele_parts_t *parts, int root, const canele_collective_options_t *options,
                              canele_request_t *request);

/** Scatter: sends part r of the root's input to the `length` bytes at output of position r. On the root output may be
 * NULL: its part stays where it is. `parts` describes the root's input, with the rules of canele_igather. */
CANELE_API int canele_iscatter(canele_group_t *group, const void *input, const canele_parts_t *parts, void *output,
                               size_t length, int root, const canele_collective_options_t *options,
                               canele_request_t *request);

/** Allgather: sends each rank's input (as long as its part) to that part of output on all ranks. All ranks give `parts`
 * of output; they must be equal except for offsets. CANELE_IN_PLACE (on all ranks): the input is in its part of output
 * already. */
CANELE_API int canele_iallgather(canele_group_t *group, const void *input, void *output, const canele_parts_t *parts,
                                 const canele_collective_options_t *options, canele_request_t *request);

/** All-to-all: sends part r of input to position r, where it becomes the part of this position. If lengths = NULL on
 * both sides, on all ranks, all parts are equal. CANELE_IN_PLACE (on all ranks): input is in output, with output's
 * parts. */
CANELE_API int canele_ialltoall(canele_group_t *group, const void *input, const canele_parts_t *input_parts,
                                void *output, const canele_parts_t *output_parts,
                                const canele_collective_options_t *options, canele_request_t *request);

/** One message of canele_ineighbor_exchange: `length` bytes at `offset` of input or output, to or from the rank at
 * `position` of the group. */
typedef struct canele_edge {
  int position;
  size_t offset;
  size_t length;
} canele_edge_t;

/** Exchange with neighbours, as for the halos of a mesh. Sends the part of input that each edge of `sends` names, and
 * receives into the part of output that each edge of `receives` names. All ranks take part, also those without edges.
 *
 * The k-th edge to a position meets the k-th edge from this rank there, in the order of the arrays, and has its length.
 * A position may be named several times, and so may this rank. Parts of output must not overlap; parts of input may.
 * Messages of length 0 are not sent. The only algorithm is FLAT. CANELE_ERANK: a position that the group lacks. */
CANELE_API int canele_ineighbor_exchange(canele_group_t *group, const void *input, const canele_edge_t *sends,
                                         size_t send_count, void *output, const canele_edge_t *receives,
                                         size_t receive_count, const canele_collective_options_t *options,
                                         canele_request_t *request);

/** Reduces, and sends part r of the result to position r. counts[r]: elements of part r (NULL: `count` each), equal on
 * all ranks. Input has all parts, one after the other; output has this position's. CANELE_IN_PLACE (on all ranks):
 * input is in output, which must have room for it, and the result is written to the beginning of output. */
CANELE_API int canele_ireduce_scatter(canele_group_t *group, const void *input, void *output, size_t count,
                                      const size_t *counts, const canele_operator_t *operation,
                                      const canele_collective_options_t *options, canele_request_t *request);

/** Scan: output at position r = input of 0 op … op input of r. CANELE_IN_PLACE (any rank): its input is in output. */
CANELE_API int canele_iscan(canele_group_t *group, const void *input, void *output, size_t count,
                            const canele_operator_t *operation, const canele_collective_options_t *options,
                            canele_request_t *request);

/** Exclusive scan: output at position r = input of 0 op … op input of r - 1; it is untouched at position 0.
 * CANELE_IN_PLACE as for canele_iscan. */
CANELE_API int canele_iexscan(canele_group_t *group, const void *input, void *output, size_t count,
                              const canele_operator_t *operation, const canele_collective_options_t *options,
                              canele_request_t *request);

#ifdef __cplusplus
}
#endif

#endif
