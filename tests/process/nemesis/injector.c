/* SPDX-License-Identifier: BSD-3-Clause
 *
 * To be preloaded into a rank: the n-th allocation that the library makes fails, or the n-th thread that it starts.
 *
 * Who: nemesis_test.py. NEMESIS_FAIL=malloc|thread, NEMESIS_AT=n, NEMESIS_RANK=which rank.
 * Threads: any. Surprise: only calls from libcanele and from libstdc++ count. What the program and libpmix allocate is
 * not ours. It says on stdout that it has struck: an injection that did not happen does not count.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static long wanted = -1, seen;
static int thread_wanted, ready;

static void prepare(void) {
  const char *what = getenv("NEMESIS_FAIL"), *at = getenv("NEMESIS_AT"), *which = getenv("NEMESIS_RANK");
  const char *rank = getenv("PMI_RANK");
  if (ready) return;
  ready = 1;
  if (what == NULL || at == NULL || which == NULL || rank == NULL || strcmp(which, rank) != 0) return;
  thread_wanted = strcmp(what, "thread") == 0;
  wanted = atol(at);
}

static int of_library(void *caller) {
  static __thread int inside;
  Dl_info info;
  int yes;
  if (inside) return 0;
  inside = 1;
  yes = dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
        (strstr(info.dli_fname, "libcanele") != NULL || strstr(info.dli_fname, "libstdc++") != NULL);
  inside = 0;
  return yes;
}

static int strikes(int thread, void *caller) {
  static const char text[] = "nemesis: struck\n";
  prepare();
  if (wanted < 0 || thread != thread_wanted || !of_library(caller)) return 0;
  if (__sync_add_and_fetch(&seen, 1) != wanted) return 0;
  return write(1, text, sizeof text - 1) != 0;
}

#define CALLER __builtin_return_address(0)
#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *malloc(size_t size) {
  if (!strikes(0, CALLER)) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}
EXPORTED void *calloc(size_t count, size_t size) {
  if (!strikes(0, CALLER)) return __libc_calloc(count, size);
  errno = ENOMEM;
  return NULL;
}
EXPORTED void *realloc(void *old, size_t size) {
  if (!strikes(0, CALLER)) return __libc_realloc(old, size);
  errno = ENOMEM;
  return NULL;
}
EXPORTED void *aligned_alloc(size_t alignment, size_t size) {
  return strikes(0, CALLER) ? NULL : __libc_memalign(alignment, size);
}
EXPORTED int posix_memalign(void **made, size_t alignment, size_t size) {
  void *const memory = strikes(0, CALLER) ? NULL : __libc_memalign(alignment, size);
  if (memory == NULL) return ENOMEM;
  *made = memory;
  return 0;
}
EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *argument) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (strikes(1, CALLER)) return EAGAIN;
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, how, body, argument);
}
