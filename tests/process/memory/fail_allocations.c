/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded into a rank: makes allocations of libcanele, or of libstdc++ for it, fail, or threads that they start.
 *
 * Environment: CANELE_TEST_FAIL_RANK (that rank only), CANELE_TEST_FAIL_FROM (the first that fails, counted from 1),
 *              CANELE_TEST_FAIL_COUNT (so many in a row), CANELE_TEST_FAIL_KIND (malloc, with all its relatives; mmap;
 *              pthread_create).
 *
 * Used by memory_test.py and nemesis_test.py, which find on stdout that a call has failed. Any thread. An allocation of
 * the program itself never fails; the return address tells them apart.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* glibc's own names; dlsym would allocate before it could answer. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static long first, last, calls, failed;
static const char *kind;

__attribute__((constructor)) static void read_environment(void) {
  const char *rank = getenv("CANELE_TEST_FAIL_RANK"), *mine = getenv("PMIX_RANK"),
             *from = getenv("CANELE_TEST_FAIL_FROM");
  if (mine == NULL) mine = getenv("PMI_RANK");
  if (rank == NULL || mine == NULL || strcmp(rank, mine) != 0 || from == NULL) return;
  const char *count = getenv("CANELE_TEST_FAIL_COUNT"), *which = getenv("CANELE_TEST_FAIL_KIND");
  first = atol(from);
  last = first + (count != NULL ? atol(count) : 1) - 1;
  kind = which != NULL ? which : "malloc";
}

static int is_ours(const void *caller) {
  static __thread int inside;
  if (inside) return 0; /* dladdr may allocate */
  inside = 1;
  Dl_info about;
  const int ours = dladdr(caller, &about) != 0 && about.dli_fname != NULL &&
                   (strstr(about.dli_fname, "libcanele") != NULL || strstr(about.dli_fname, "libstdc++") != NULL);
  inside = 0;
  return ours;
}

static int fails(const char *name, const void *caller) {
  if (kind == NULL || strcmp(kind, name) != 0 || !is_ours(caller)) return 0;
  const long call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (call < first || call > last) return 0;
  if (__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED) == 0) {
    char text[64];
    const int length = snprintf(text, sizeof text, "injected: %s %ld\n", name, call);
    if (write(STDOUT_FILENO, text, (size_t)length) < 0) abort();
  }
  errno = ENOMEM;
  return 1;
}

#define CALLER __builtin_return_address(0)

EXPORTED void *malloc(size_t size) { return fails("malloc", CALLER) ? NULL : __libc_malloc(size); }
EXPORTED void *calloc(size_t count, size_t size) { return fails("malloc", CALLER) ? NULL : __libc_calloc(count, size); }
EXPORTED void *realloc(void *old, size_t size) { return fails("malloc", CALLER) ? NULL : __libc_realloc(old, size); }
EXPORTED void *aligned_alloc(size_t alignment, size_t size) {
  return fails("malloc", CALLER) ? NULL : __libc_memalign(alignment, size);
}
EXPORTED int posix_memalign(void **memory, size_t alignment, size_t size) {
  void *const made = fails("malloc", CALLER) ? NULL : __libc_memalign(alignment, size);
  if (made == NULL) return ENOMEM;
  *memory = made;
  return 0;
}

EXPORTED void *mmap(void *at, size_t length, int protection, int flags, int descriptor, off_t offset) {
  static void *(*next)(void *, size_t, int, int, int, off_t);
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "mmap");
  return fails("mmap", CALLER) ? MAP_FAILED : next(at, length, protection, flags, descriptor, offset);
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *argument) {
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
  return fails("pthread_create", CALLER) ? EAGAIN : next(thread, how, body, argument);
}
