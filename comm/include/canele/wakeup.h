/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wakeup.h - completion queues in a program's own event loop (poll, select, epoll, io_uring).
 *
 * A program that waits for many things sleeps in one place. A wakeup gives it a descriptor for that: once armed, the
 * descriptor becomes readable when the queue has an entry, or when the program has to make progress.
 *
 *     canele_wakeup_open(engine, &queue, &wakeup);
 *     struct pollfd fds[] = {{canele_wakeup_descriptor(wakeup), POLLIN, 0}, ...};
 *     for (;;) {
 *       while (canele_wakeup_arm(wakeup) == CANELE_EAGAIN) {
 *         handle(entries, canele_queue_take(engine, &queue, entries, 16));
 *       }
 *       poll(fds, count, -1);
 *       canele_wakeup_disarm(wakeup);
 *     }
 *
 * While a program without a worker is armed, what arrives wakes it, and is then handled by its next call of
 * canele_wakeup_arm, canele_queue_take or canele_progress. So it disarms before it computes.
 *
 * The conventions of canele.h and post.h hold for every function below. In addition:
 * - A wakeup belongs to one thread at a time. Several wakeups, each with its queue and thread, may be armed at once.
 * - The queue outlives the wakeup. Wakeups are closed before canele_finalize. */
#ifndef CANELE_WAKEUP_H
#define CANELE_WAKEUP_H

#include <canele/post.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A queue, seen by an event loop. */
typedef struct canele_wakeup canele_wakeup_t;

/** Opens a wakeup for `queue`, disarmed. It takes two descriptors of the process. CANELE_ENOMEM: there are none left.
 * CANELE_EDRIVER: a driver in use cannot wake a process; wait in canele_queue_wait. */
CANELE_API int canele_wakeup_open(canele_engine_t *engine, canele_queue_t *queue, canele_wakeup_t **wakeup);

/** Descriptor for the poll of the program, until canele_wakeup_close. To be read or closed by the library only. Its
 * readability has a meaning only while the wakeup is armed. CANELE_EINVAL: wakeup is NULL. */
CANELE_API int canele_wakeup_descriptor(const canele_wakeup_t *wakeup);

/** Arms the wakeup: from now on, any entry that is added to the queue, and any work for the program, makes the
 * descriptor readable. It may also become readable for nothing. Arms anew if the wakeup is armed. Makes
 * progress once, so callbacks may run; does not block.
 * CANELE_EAGAIN: there is something to do already; call canele_queue_take until it returns 0, then arm again.
 * CANELE_EDEADLK: called in a callback. */
CANELE_API int canele_wakeup_arm(canele_wakeup_t *wakeup);

/** Disarms the wakeup, so that other threads may sleep in its place. Does nothing if it is not armed. CANELE_EDEADLK:
 * called in a callback. */
CANELE_API int canele_wakeup_disarm(canele_wakeup_t *wakeup);

/** Disarms and frees the wakeup. CANELE_EDEADLK: called in a callback. */
CANELE_API int canele_wakeup_close(canele_wakeup_t *wakeup);

#ifdef __cplusplus
}
#endif

#endif
