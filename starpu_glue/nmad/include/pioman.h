/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pioman.h - the PIOMan names that StarPU uses: waiting for an event, making progress, placing the worker.
 *
 * Reached through nm_public.h. Any thread, at any time, also before MPI_Init and after MPI_Finalize (nothing is polled
 * then). piom_ltask_schedule ignores its argument, because StarPU 1.3.10 passes the address of a dead variable.
 */
#ifndef CANELE_PIOMAN_H
#define CANELE_PIOMAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CANELE_NMAD_API
#define CANELE_NMAD_API __attribute__((visibility("default")))
#endif

/* Up to sixteen bits that one thread waits for. Lives in calloc'ed memory: 16-byte alignment. */
typedef struct piom_cond_s {
  __attribute__((aligned(16))) unsigned char opaque_[32];
} piom_cond_t;
typedef uint16_t piom_cond_value_t;

CANELE_NMAD_API void piom_cond_init(piom_cond_t *condition, piom_cond_value_t initial);
CANELE_NMAD_API void piom_cond_destroy(piom_cond_t *condition);

/* Sets the bits and wakes the waiter. Does not touch the condition afterwards: a thread that sees a bit may free it. */
CANELE_NMAD_API void piom_cond_signal(piom_cond_t *condition, piom_cond_value_t mask);

/* Blocks until a bit of `mask` is set. Makes progress if no worker does. */
CANELE_NMAD_API void piom_cond_wait(piom_cond_t *condition, piom_cond_value_t mask);

/* Returns the bits of `mask` that are set. If non-zero, the signaller no longer accesses the condition. */
CANELE_NMAD_API piom_cond_value_t piom_cond_test_locked(piom_cond_t *condition, piom_cond_value_t mask);

/* Non-zero, because StarPU takes zero for "no hook". */
enum { PIOM_POLL_POINT_FORCED = 0x10, PIOM_POLL_POINT_SINGLE = 0x40, PIOM_POLL_POINT_HOOK = 0x80 };

/* Makes progress once. Returns 0 if there may be more to do: the caller should call again before it blocks. */
CANELE_NMAD_API int piom_ltask_schedule(int point);

/* Starts the worker if necessary and pins it to processing units given by hwloc logical index, or by OS index. */
CANELE_NMAD_API void piom_ltask_set_bound_thread_indexes(int level, const int *indexes, int count);
CANELE_NMAD_API void piom_ltask_set_bound_thread_os_indexes(int level, const int *indexes, int count);

#ifdef __cplusplus
}
#endif

#endif
