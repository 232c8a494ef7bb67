/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded into a rank: removes the limits of the library's sleeps, so that a lost wake-up is a hang and not a delay.
 * Limits below CANELE_TEST_ENDLESS_US stay: they are part of how the library works.
 *
 * Used by parking_test.py. Any thread. Only sleeps of libcanele are changed; other code in the process (the launcher's
 * library) keeps its timers.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

/* How many sleeps have lost their limit: process_parking checks whether there were any. */
EXPORTED unsigned long canele_test_endless_sleeps;

static int is_ours(const void *caller) {
  Dl_info about;
  return dladdr(caller, &about) != 0 && about.dli_fname != NULL && strstr(about.dli_fname, "libcanele") != NULL;
}

static long limit_us(void) {
  static long value = -1;
  if (value < 0) {
    const char *text = getenv("CANELE_TEST_ENDLESS_US");
    value = text != NULL ? atol(text) : 50000;
  }
  return value;
}

typedef int (*epoll_wait_function)(int, struct epoll_event *, int, int);
typedef long (*syscall_function)(long, ...);

EXPORTED int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms) {
  static epoll_wait_function next;
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
  const int endless = timeout_ms >= 50 && is_ours(__builtin_return_address(0));
  if (endless) __atomic_fetch_add(&canele_test_endless_sleeps, 1, __ATOMIC_RELAXED);
  return next(epoll, events, most, endless ? -1 : timeout_ms);
}

EXPORTED long syscall(long number, ...) {
  static syscall_function next;
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "syscall");
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && a[3] != 0) {
    const struct timespec *timeout = (const struct timespec *)a[3];
    const long us = timeout->tv_sec * 1000000 + timeout->tv_nsec / 1000;
    if (us >= limit_us() && is_ours(__builtin_return_address(0))) {
      __atomic_fetch_add(&canele_test_endless_sleeps, 1, __ATOMIC_RELAXED);
      a[3] = 0;
    }
  }
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
