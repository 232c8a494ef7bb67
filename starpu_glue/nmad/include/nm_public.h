/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nm_public.h - the NewMadeleine names that StarPU uses, common part: types, data descriptors, the lock-free stack.
 *
 * Included by every other nm_ header; any thread. StarPU uses piom_, padico_ and PUK_ names, struct iovec and assert
 * without including their headers, so this header includes them. Written from StarPU's call sites; no code comes from
 * NewMadeleine.
 */
#ifndef CANELE_NM_PUBLIC_H
#define CANELE_NM_PUBLIC_H

#include <assert.h>
#include <pioman.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A peer; a name space for tags; a communicator. Opaque, copied by value, never released by StarPU. */
typedef struct nm_gate_s *nm_gate_t;
typedef struct nm_session_s *nm_session_t;
typedef struct nm_comm_s *nm_comm_t;

typedef uint64_t nm_tag_t;
typedef uint64_t nm_len_t;

#define NM_TAG_MAX UINT64_MAX
#define NM_TAG_MASK_FULL ((nm_tag_t)-1)
#define NM_ESUCCESS 0

/* Describes user data. The library copies the descriptor at pack and unpack, so it may be a stack variable. The memory,
 * the iovec and the datatype that it refers to must live until the request is finalized. */
struct nm_data_s {
  __attribute__((aligned(16))) unsigned char opaque_[96];
};

CANELE_NMAD_API void nm_data_contiguous_build(struct nm_data_s *data, void *memory, nm_len_t length);
CANELE_NMAD_API void nm_data_iov_build(struct nm_data_s *data, const struct iovec *pieces, int count);

/* One send or receive, see nm_sendrecv_interface.h. Lives in the caller's calloc'ed memory until it is finalized. */
typedef struct nm_sr_request_s {
  __attribute__((aligned(16))) unsigned char opaque_[576];
} nm_sr_request_t;
#define NM_SR_REQUEST_NULL ((nm_sr_request_t){{0}})

/* Compares the sizes of the structures that the program was compiled with to those of the library. Ends the program if
 * they differ. May be called before MPI_Init. */
#define CANELE_NMAD_ABI 1
CANELE_NMAD_API void nm_abi_check_sizes(int abi, size_t request_size, size_t data_size, size_t condition_size);
#define nm_abi_config_check() \
  nm_abi_check_sizes(CANELE_NMAD_ABI, sizeof(nm_sr_request_t), sizeof(struct nm_data_s), sizeof(piom_cond_t))

/* Allocates memory that StarPU frees with plain free(). */
CANELE_NMAD_API void *padico_malloc(size_t size);

/* A lock-free stack: many threads push, one thread pops.
 *
 *     stack -> cell -> cell -> NULL        push: CAS of the head from `next` to `cell`
 *
 * Only the popping thread frees cells, so the head cannot be freed and reused between the load and the CAS of a pop.
 * Only several popping threads would need a tagged head (two words). */
#define PUK_LFSTACK_TYPE(NAME, FIELDS)                                                                              \
  typedef struct NAME##_lfstack_cell_s {                                                                            \
    struct NAME##_lfstack_cell_s *lfstack_next;                                                                     \
    FIELDS                                                                                                          \
  } NAME##_lfstack_cell_t;                                                                                          \
  typedef NAME##_lfstack_cell_t *NAME##_lfstack_t;                                                                  \
  static inline __attribute__((unused)) void NAME##_lfstack_init(NAME##_lfstack_t *stack) {                         \
    __atomic_store_n(stack, (NAME##_lfstack_cell_t *)NULL, __ATOMIC_RELEASE);                                       \
  }                                                                                                                 \
  static inline __attribute__((unused)) void NAME##_lfstack_destroy(NAME##_lfstack_t *stack) { (void)stack; }       \
  static inline                                                                                                     \
      __attribute__((unused)) void NAME##_lfstack_push(NAME##_lfstack_t *stack, NAME##_lfstack_cell_t *cell) {      \
    cell->lfstack_next = __atomic_load_n(stack, __ATOMIC_RELAXED);                                                  \
    while (!__atomic_compare_exchange_n(stack, &cell->lfstack_next, cell, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) { \
    }                                                                                                               \
  }                                                                                                                 \
  static inline __attribute__((unused)) NAME##_lfstack_cell_t *NAME##_lfstack_pop(NAME##_lfstack_t *stack) {        \
    NAME##_lfstack_cell_t *head = __atomic_load_n(stack, __ATOMIC_ACQUIRE);                                         \
    while (head != NULL &&                                                                                          \
           !__atomic_compare_exchange_n(stack, &head, head->lfstack_next, 1, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) { \
    }                                                                                                               \
    return head;                                                                                                    \
  }

#ifdef __cplusplus
}
#endif

#endif
