/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nm_sendrecv_interface.h - sends and receives as StarPU's nmad backend posts them.
 *
 * Any thread; no call blocks. A callback runs on whatever thread sees the event, possibly inside nm_sr_request_monitor.
 * It may free the request whose FINALIZED event it gets. FINALIZED events of the sends of one session never overlap,
 * because StarPU 1.3.10 counts them without an atomic.
 */
#ifndef CANELE_NM_SENDRECV_INTERFACE_H
#define CANELE_NM_SENDRECV_INTERFACE_H

#include <nm_public.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nm_sr_event_e {
  NM_SR_EVENT_RECV_DATA = 1,      /* a message has arrived for a receive without data: peek, then unpack_data. */
  NM_SR_EVENT_RECV_COMPLETED = 2, /* the data may be read; the library may still forward from it */
  NM_SR_EVENT_FINALIZED = 4       /* the library no longer accesses the request */
} nm_sr_event_t;

typedef struct nm_sr_event_info_s {
  nm_sr_request_t *p_request;
} nm_sr_event_info_t;
typedef void (*nm_sr_event_notifier_t)(nm_sr_event_t events, const nm_sr_event_info_t *info, void *ref);

/* Functions that return int return NM_ESUCCESS or a negative CANELE_E... code. */

/* Requests `notifier(events, info, ref)`, once per event of `mask`. Called before or after posting. */
CANELE_NMAD_API int nm_sr_request_monitor(nm_session_t session, nm_sr_request_t *request, nm_sr_event_t mask,
                                          nm_sr_event_notifier_t notifier);
CANELE_NMAD_API int nm_sr_request_set_ref(nm_sr_request_t *request, void *ref);

CANELE_NMAD_API void nm_sr_send_init(nm_session_t session, nm_sr_request_t *request);
CANELE_NMAD_API void nm_sr_send_pack_data(nm_session_t session, nm_sr_request_t *request, const struct nm_data_s *data);
/* Sets the priority. A higher one is sent sooner. */
CANELE_NMAD_API void nm_sr_send_set_priority(nm_session_t session, nm_sr_request_t *request, int priority);
/* Sends the first `length` bytes ahead, for nm_sr_recv_peek. */
CANELE_NMAD_API int nm_sr_send_header(nm_session_t session, nm_sr_request_t *request, nm_len_t length);
CANELE_NMAD_API int nm_sr_send_isend(nm_session_t session, nm_sr_request_t *request, nm_gate_t gate, nm_tag_t tag);
/* Sends synchronously: finalized only once a receive has matched. */
CANELE_NMAD_API int nm_sr_send_issend(nm_session_t session, nm_sr_request_t *request, nm_gate_t gate, nm_tag_t tag);
/* Combines init, contiguous data and isend. */
CANELE_NMAD_API int nm_sr_isend(nm_session_t session, nm_gate_t gate, nm_tag_t tag, const void *memory, nm_len_t length,
                                nm_sr_request_t *request);

CANELE_NMAD_API void nm_sr_recv_init(nm_session_t session, nm_sr_request_t *request);
/* Before irecv: names the memory for the message. After it, in the RECV_DATA event: gives a receive without data its
 * memory. */
CANELE_NMAD_API void nm_sr_recv_unpack_data(nm_session_t session, nm_sr_request_t *request,
                                            const struct nm_data_s *data);
CANELE_NMAD_API void nm_sr_recv_irecv(nm_session_t session, nm_sr_request_t *request, nm_gate_t gate, nm_tag_t tag,
                                      nm_tag_t mask);
/* Copies the first bytes of the message in the RECV_DATA event, without consuming them. */
CANELE_NMAD_API int nm_sr_recv_peek(nm_session_t session, nm_sr_request_t *request, const struct nm_data_s *data);
/* Declares that the caller has already peeked `length` bytes. They are delivered again at their place. */
CANELE_NMAD_API void nm_sr_recv_offset(nm_session_t session, nm_sr_request_t *request, nm_len_t length);

#ifdef __cplusplus
}
#endif

#endif
