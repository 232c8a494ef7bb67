/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nm_mcast_interface.h - one message to many ranks, which receive it by ordinary receives from the sender.
 *
 * For StarPU 1.4 and later, for its cooperative sends. Any thread; no call blocks or communicates with a group. Only
 * the sender calls these functions. canele_imulticast in canele.h describes how the message travels.
 */
#ifndef CANELE_NM_MCAST_INTERFACE_H
#define CANELE_NM_MCAST_INTERFACE_H

#include <nm_public.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nm_mcast_service_s *nm_mcast_service_t;

/* One multicast. Lives in the caller's memory between nm_mcast_send_init and nm_mcast_send_destroy. */
typedef struct nm_mcast_req_s {
  void *impl_;
} nm_mcast_t;

/* Called once, when the data may be reused: every destination has it. May be called inside nm_mcast_isend, and may call
 * nm_mcast_send_destroy. */
typedef void (*nm_mcast_send_notifier_t)(void *ref);

/* Which ranks forward the data to which. DEFAULT: the shape that is expected to end first, or the one that
 * CANELE_EXPERT_MULTICAST names. */
typedef enum {
  NM_COLL_TREE_DEFAULT = 0,
  NM_COLL_TREE_FLAT,
  NM_COLL_TREE_CHAIN,
  NM_COLL_TREE_BINOMIAL
} nm_coll_tree_kind_t;

/* Both calls are local and may be made any number of times. */
CANELE_NMAD_API nm_mcast_service_t nm_mcast_init(nm_comm_t comm);
CANELE_NMAD_API void nm_mcast_finalize(nm_mcast_service_t service);

CANELE_NMAD_API void nm_mcast_send_init(nm_mcast_service_t service, nm_mcast_t *mcast);
CANELE_NMAD_API void nm_mcast_send_set_notifier(nm_mcast_t *mcast, nm_mcast_send_notifier_t notifier, void *ref);
/* Sends to `count` distinct ranks of `comm`, not including the caller. `priorities` has one entry for each, or is NULL.
 * The first `header_length` bytes travel ahead. `data` and what it refers to must live until the notifier is called.
 * The failure of a destination ends the job. */
CANELE_NMAD_API void nm_mcast_isend(nm_mcast_t *mcast, nm_comm_t comm, const int *destinations, const int *priorities,
                                    int count, nm_tag_t tag, const struct nm_data_s *data, nm_len_t header_length,
                                    nm_coll_tree_kind_t tree);
CANELE_NMAD_API void nm_mcast_send_destroy(nm_mcast_t *mcast);

#ifdef __cplusplus
}
#endif

#endif
