/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded into a rank: makes one system call of libcanele fail.
 *
 * Environment: FAULT_CALL, the name of the function ("mmap_file": mmap() of a descriptor); FAULT_AT, which call of it,
 * from 1; FAULT_ERRNO, the error; FAULT_RANK, in which rank (PMIX_RANK or PMI_RANK). FAULT_ON=1: all later calls fail,
 * too.
 *
 * Used by syscall_sweep.py. Any thread. Only calls from libcanele count: those of libc, libpmix and the program are not
 * under test.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *wanted_call;
static long wanted_at;
static int wanted_errno, and_later;
static atomic_long calls;
static uintptr_t begin, end; /* of libcanele */

static int find_library(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (strstr(info->dlpi_name, "libcanele.so") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    if (begin == 0) begin = from;
    end = from + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

__attribute__((constructor)) static void prepare(void) {
  const char *call = getenv("FAULT_CALL"), *at = getenv("FAULT_AT"), *error = getenv("FAULT_ERRNO"),
             *rank = getenv("FAULT_RANK"), *me = getenv("PMIX_RANK");
  if (me == NULL) me = getenv("PMI_RANK");
  if (call == NULL || at == NULL || error == NULL || rank == NULL || me == NULL || strcmp(rank, me) != 0) return;
  dl_iterate_phdr(find_library, NULL);
  wanted_at = atol(at);
  wanted_errno = atoi(error);
  and_later = getenv("FAULT_ON") != NULL;
  wanted_call = call;
}

static int fails(const char *call, void *caller) {
  const uintptr_t from = (uintptr_t)caller;
  if (wanted_call == NULL || from < begin || from >= end || strcmp(call, wanted_call) != 0) return 0;
  const long at = atomic_fetch_add(&calls, 1) + 1;
  if (at != wanted_at && !(and_later && at > wanted_at)) return 0;
  char text[96];
  const int length = snprintf(text, sizeof text, "injected: %s call %ld from 0x%lx\n", call, at, (long)(from - begin));
  if (at == wanted_at && write(2, text, (size_t)length) < 0) return 0;
  errno = wanted_errno;
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(type, name, failed, parameters, arguments)                                 \
  type name parameters {                                                                \
    static __typeof__(&name) real;                                                      \
    if (real == NULL) real = REAL(name);                                                \
    return fails(#name, __builtin_return_address(0)) ? (type)(failed) : real arguments; \
  }

WRAP(int, socket, -1, (int domain, int kind, int protocol), (domain, kind, protocol))
WRAP(int, bind, -1, (int fd, const struct sockaddr *at, socklen_t size), (fd, at, size))
WRAP(int, listen, -1, (int fd, int queue), (fd, queue))
WRAP(int, connect, -1, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
WRAP(int, accept4, -1, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags))
WRAP(int, shutdown, -1, (int fd, int how), (fd, how))
WRAP(int, getsockopt, -1, (int fd, int level, int name, void *value, socklen_t *size), (fd, level, name, value, size))
WRAP(int, setsockopt, -1, (int fd, int level, int name, const void *value, socklen_t size),
     (fd, level, name, value, size))
WRAP(int, getsockname, -1, (int fd, struct sockaddr *at, socklen_t *size), (fd, at, size))
WRAP(int, getpeername, -1, (int fd, struct sockaddr *at, socklen_t *size), (fd, at, size))
WRAP(ssize_t, send, -1, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags))
WRAP(ssize_t, recv, -1, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags))
WRAP(ssize_t, sendmsg, -1, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WRAP(ssize_t, recvmsg, -1, (int fd, struct msghdr *message, int flags), (fd, message, flags))
WRAP(ssize_t, readv, -1, (int fd, const struct iovec *pieces, int count), (fd, pieces, count))
WRAP(int, epoll_create1, -1, (int flags), (flags))
WRAP(int, epoll_ctl, -1, (int epoll, int what, int fd, struct epoll_event *event), (epoll, what, fd, event))
WRAP(int, epoll_wait, -1, (int epoll, struct epoll_event *events, int most, int ms), (epoll, events, most, ms))
WRAP(int, timerfd_create, -1, (int clock, int flags), (clock, flags))
WRAP(int, timerfd_settime, -1, (int fd, int flags, const struct itimerspec *to, struct itimerspec *from),
     (fd, flags, to, from))
WRAP(int, memfd_create, -1, (const char *name, unsigned flags), (name, flags))
WRAP(int, ftruncate, -1, (int fd, off_t size), (fd, size))
WRAP(int, fallocate, -1, (int fd, int mode, off_t from, off_t size), (fd, mode, from, size))
WRAP(int, madvise, -1, (void *at, size_t size, int advice), (at, size, advice))
WRAP(int, fstat, -1, (int fd, struct stat *to), (fd, to))
WRAP(int, stat, -1, (const char *path, struct stat *to), (path, to))
WRAP(ssize_t, process_vm_readv, -1,
     (pid_t pid, const struct iovec *to, unsigned long tos, const struct iovec *from, unsigned long froms,
      unsigned long flags),
     (pid, to, tos, from, froms, flags))
WRAP(ssize_t, process_vm_writev, -1,
     (pid_t pid, const struct iovec *from, unsigned long froms, const struct iovec *to, unsigned long tos,
      unsigned long flags),
     (pid, from, froms, to, tos, flags))

void *mmap(void *at, size_t size, int access, int flags, int fd, off_t from) {
  static __typeof__(&mmap) real;
  if (real == NULL) real = REAL(mmap);
  const char *call = fd >= 0 ? "mmap_file" : "mmap";
  return fails(call, __builtin_return_address(0)) ? MAP_FAILED : real(at, size, access, flags, fd, from);
}

int open(const char *path, int flags, ...) {
  static __typeof__(&open) real;
  if (real == NULL) real = REAL(open);
  va_list more;
  va_start(more, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  return fails("open", __builtin_return_address(0)) ? -1 : real(path, flags, mode);
}

int fcntl(int fd, int what, ...) {
  static __typeof__(&fcntl) real;
  if (real == NULL) real = REAL(fcntl);
  va_list more;
  va_start(more, what);
  void *argument = va_arg(more, void *);
  va_end(more);
  return fails("fcntl", __builtin_return_address(0)) ? -1 : real(fd, what, argument);
}

int ioctl(int fd, unsigned long what, ...) {
  static __typeof__(&ioctl) real;
  if (real == NULL) real = REAL(ioctl);
  va_list more;
  va_start(more, what);
  void *argument = va_arg(more, void *);
  va_end(more);
  return fails("ioctl", __builtin_return_address(0)) ? -1 : real(fd, what, argument);
}

long syscall(long number, ...) {
  static __typeof__(&syscall) real;
  if (real == NULL) real = REAL(syscall);
  va_list more;
  va_start(more, number);
  long words[6];
  for (int i = 0; i < 6; i++) words[i] = va_arg(more, long);
  va_end(more);
  const char *call = number == SYS_pidfd_open ? "pidfd_open" : number == SYS_membarrier ? "membarrier" : "syscall";
  if (fails(call, __builtin_return_address(0))) return -1;
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
