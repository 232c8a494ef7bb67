/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log.h - what the library tells its users, in a function of the program.
 *
 * Errors, warnings and reports of hangs go to stderr. A runtime that has a log of its own takes them from here. The
 * setting CANELE_VERBOSE still decides how much is told.
 *
 * The conventions of canele.h hold. */
#ifndef CANELE_LOG_H
#define CANELE_LOG_H

#include <canele/canele.h>

#ifdef __cplusplus
extern "C" {
#endif

enum canele_log_level { CANELE_LOG_ERROR = 0, CANELE_LOG_WARNING = 1, CANELE_LOG_INFO = 2, CANELE_LOG_DEBUG = 3 };

/** Receives one message. level: a value of enum canele_log_level. text: one line or several, without a line feed at the
 * end, and without the prefix that stderr shows; lives until the call returns. Any thread calls it, several at once,
 * also while the library holds locks: it must not call the library, and should not block. */
typedef void (*canele_log_fn)(int level, const char *text, void *argument);

/** Sends the messages of all engines of this process to `callback`; NULL: to stderr, as at first. Call it before
 * canele_init to receive the messages of the start, too. Any thread; also in the child of a fork, which inherits the
 * callback. A message that was begun before this call may still go to the former callback. CANELE_ENOMEM. */
CANELE_API int canele_on_log(canele_log_fn callback, void *argument);

#ifdef __cplusplus
}
#endif

#endif
