// SPDX-License-Identifier: BSD-3-Clause
//
// nm_sr_: StarPU's sends and receives on the engine's requests, and the delivery of their events.
//
// Called from any thread; events are delivered on whatever thread sees them. StarPU does not check the outcome of a
// request. An error that StarPU would take for success (a dead peer, a message longer than the receive) ends the job
// here, with a message.
#include <nm_sendrecv_interface.h>

#include <new>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/nmad/internal.hpp"

static_assert(int{NM_SR_EVENT_RECV_DATA} == int{CANELE_EVENT_HEADER});
static_assert(int{NM_SR_EVENT_RECV_COMPLETED} == int{CANELE_EVENT_RECEIVED});
static_assert(int{NM_SR_EVENT_FINALIZED} == int{CANELE_EVENT_FINALIZED});

using namespace canele;
using nmad::Data;
using nmad::Request;

namespace canele::nmad {
namespace {

/// Calls StarPU. The request may no longer exist afterwards, so nothing of it is read after the call.
void notify(Request& request, unsigned events) {
  const nm_sr_event_notifier_t notifier = request.notifier;
  void* const reference = request.reference;
  const nm_sr_event_info_t info = {reinterpret_cast<nm_sr_request_t*>(&request)};
  const mpi::CallbackScope scope;
  notifier(static_cast<nm_sr_event_t>(events), &info, reference);
}

/// Returns false if the request was cancelled, which happens in MPI_Finalize only: StarPU no longer expects the event.
bool check_outcome(const Request& request) {
  canele_status_t status{};
  canele_request_status(&request.engine, &status);
  if (status.error == CANELE_OK) return true;
  if (status.error == CANELE_ECANCELED && !request.send) return false;
  mpi::fatal("a StarPU %s rank %d (tag %llu, %zu bytes) failed: %s", request.send ? "send to" : "receive from",
             status.source, static_cast<unsigned long long>(status.tag), status.length,
             canele_error_string(status.error));
}

void on_event(canele_request_t*, unsigned events, void* argument) {
  Request& request = *static_cast<Request*>(argument);
  if ((events & CANELE_EVENT_FINALIZED) != 0 && !check_outcome(request)) return;
  events &= request.mask;
  if (events == 0) return;
  if (request.send && (events & CANELE_EVENT_FINALIZED) != 0) {
    request.run = notify_finalized;
    request.session->sends.deliver(request);
  } else {
    notify(request, events);
  }
}

void init(nm_session_t session, nm_sr_request_t* memory, bool send) {
  auto* request = new (memory) Request{};
  request->session = session;
  request->send = send;
}

int post_send(nm_session_t session, Request& request, nm_gate_t gate, nm_tag_t tag, std::uint32_t flags) {
  const canele_data_t data = request.data.describe();
  must_have_memory(data, "nm_sr_send_isend");
  canele_send_options_t options{};
  options.struct_size = sizeof options;
  options.priority = request.priority;
  options.flags = flags;
  options.header = request.header;
  return canele_isend_data(session->session, rank_of(gate), tag, &data, &options, &request.engine);
}

}  // namespace

void notify_finalized(SerialTask& task) { notify(static_cast<Request&>(task), CANELE_EVENT_FINALIZED); }

void without_memory(const canele_data_t& data, const char* function) {
  mpi::fatal(
      "%s: StarPU names no memory for %zu bytes: the data is on another NUMA node (STARPU_USE_NUMA) or a GPU, and "
      "StarPU's cooperative sends look in the main memory only; set STARPU_MPI_COOP_SENDS=0",
      function, data.length);
}

void must(int error, const char* function) {
  if (error != CANELE_OK) mpi::fatal("%s failed: %s: %s", function, canele_error_string(error), canele_error_detail());
}

}  // namespace canele::nmad

extern "C" int nm_sr_request_monitor(nm_session_t, nm_sr_request_t* memory, nm_sr_event_t mask,
                                     nm_sr_event_notifier_t notifier) {
  Request& request = Request::of(memory);
  request.notifier = notifier;
  request.mask = static_cast<std::uint16_t>(mask);
  // FINALIZED is always requested, so that errors are seen.
  return canele_request_on_event(&request.engine, static_cast<unsigned>(mask) | CANELE_EVENT_FINALIZED, nmad::on_event,
                                 &request);
}

extern "C" int nm_sr_request_set_ref(nm_sr_request_t* memory, void* reference) {
  Request::of(memory).reference = reference;
  return NM_ESUCCESS;
}

extern "C" void nm_sr_send_init(nm_session_t session, nm_sr_request_t* memory) { nmad::init(session, memory, true); }

extern "C" void nm_sr_send_pack_data(nm_session_t, nm_sr_request_t* memory, const nm_data_s* data) {
  Request::of(memory).data = Data::of(data);
}

extern "C" void nm_sr_send_set_priority(nm_session_t, nm_sr_request_t* memory, int priority) {
  Request::of(memory).priority = priority;
}

extern "C" int nm_sr_send_header(nm_session_t, nm_sr_request_t* memory, nm_len_t length) {
  if (length > CANELE_HEADER_MAX) return CANELE_EINVAL;
  Request::of(memory).header = length;
  return NM_ESUCCESS;
}

extern "C" int nm_sr_send_isend(nm_session_t session, nm_sr_request_t* memory, nm_gate_t gate, nm_tag_t tag) {
  return nmad::post_send(session, Request::of(memory), gate, tag, 0);
}

extern "C" int nm_sr_send_issend(nm_session_t session, nm_sr_request_t* memory, nm_gate_t gate, nm_tag_t tag) {
  return nmad::post_send(session, Request::of(memory), gate, tag, CANELE_SEND_SYNCHRONOUS);
}

extern "C" int nm_sr_isend(nm_session_t session, nm_gate_t gate, nm_tag_t tag, const void* bytes, nm_len_t length,
                           nm_sr_request_t* memory) {
  nmad::init(session, memory, true);
  return canele_isend(session->session, nmad::rank_of(gate), tag, bytes, length, &Request::of(memory).engine);
}

extern "C" void nm_sr_recv_init(nm_session_t session, nm_sr_request_t* memory) { nmad::init(session, memory, false); }

extern "C" void nm_sr_recv_unpack_data(nm_session_t, nm_sr_request_t* memory, const nm_data_s* data) {
  Request& request = Request::of(memory);
  request.data = Data::of(data);
  request.has_data = true;
  if (!request.posted) return;
  const canele_data_t described = request.data.describe();
  nmad::must(canele_receive_bind(&request.engine, &described), "nm_sr_recv_unpack_data");
}

extern "C" void nm_sr_recv_irecv(nm_session_t session, nm_sr_request_t* memory, nm_gate_t gate, nm_tag_t tag,
                                 nm_tag_t mask) {
  Request& request = Request::of(memory);
  const int source = nmad::rank_of(gate);
  request.posted = true;  // before the call: the event, and unpack_data in it, may come inside
  int error;
  if (request.has_data) {
    const canele_data_t described = request.data.describe();
    error = canele_irecv_data(session->session, source, tag, mask, &described, &request.engine);
  } else {
    error = canele_irecv_late(session->session, source, tag, mask, &request.engine);
  }
  nmad::must(error, "nm_sr_recv_irecv");
}

extern "C" int nm_sr_recv_peek(nm_session_t, nm_sr_request_t* memory, const nm_data_s* data) {
  const Data& target = Data::of(data);
  unsigned char bytes[CANELE_HEADER_MAX];
  const std::size_t length = target.length();
  if (target.kind != Data::Kind::payload || length > sizeof bytes) return CANELE_EINVAL;
  const int error = canele_receive_peek(&Request::of(memory).engine, bytes, length);
  if (error == CANELE_OK) mpi::unpack(target.payload, 0, length, bytes);
  return error;
}

extern "C" void nm_sr_recv_offset(nm_session_t, nm_sr_request_t*, nm_len_t) {
  // Nothing to do: the data given next has room for the peeked bytes. They are delivered once more, at their place.
}
