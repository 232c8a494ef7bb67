// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Rsend, MPI_Irsend, and a send and a receive in one request: MPI_Isendrecv to MPI_Sendrecv_replace. Any thread.
//
// The engine's request of an exchange is begun without an operation. The last of the two messages to end completes it.
// So each function that completes requests waits for an exchange like for a message.
#include <new>

#include "calls/point_to_point.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

class Exchange final : public Work {
 public:
  Exchange(const Endpoint& from, const Buffer& to) : from_(from), room_(to.size()), type_(reference_to(*to.type)) {}

  /// Copies the data to send, which the receive overwrites. Throws std::bad_alloc.
  Buffer copy(const Buffer& data) {
    const Payload payload(data.memory, static_cast<std::size_t>(data.count), *data.type);
    packed_ = std::make_unique_for_overwrite<char[]>(payload.length);
    pack(payload, 0, payload.length, packed_.get());
    return bytes_buffer(packed_.get(), payload.length);
  }

  /// Posts both messages. One that the engine rejects has ended with an error.
  int post(Request& request, const Endpoint& to, const Buffer& outgoing, const Buffer& incoming) {
    request_ = &request;
    if (const int code = hold(request); code != MPI_SUCCESS) return code;
    if (!from_.is_proc_null()) {
      receive_code_ = receive_.receive(from_.comm->messages(), from_.world_rank, from_.tag, from_.mask, incoming);
    }
    if (!to.is_proc_null()) {
      sent_type_ = reference_to(*outgoing.type);
      send_code_ = send_.send(to.comm->messages(), to.world_rank, to.tag, outgoing, false);
    }
    const bool receives = !from_.is_proc_null() && receive_code_ == MPI_SUCCESS;
    const bool sends = !to.is_proc_null() && send_code_ == MPI_SUCCESS;
    is_sent_ = sends;
    if (receives && send_code_ != MPI_SUCCESS) canele_cancel(&receive_.engine);
    if (!receives) arrived(nullptr, 0, this);
    if (!sends) arrived(nullptr, 0, this);
    if (receives) canele_request_on_event(&receive_.engine, CANELE_EVENT_FINALIZED, arrived, this);
    if (sends) canele_request_on_event(&send_.engine, CANELE_EVENT_FINALIZED, arrived, this);
    arrived(nullptr, 0, this);
    return MPI_SUCCESS;
  }

  int describe(const canele_status_t&, MPI_Status* status) override {
    canele_status_t outcome{};
    int code = send_code_;
    if (code == MPI_SUCCESS && is_sent_) {
      canele_request_status(&send_.engine, &outcome);
      code = from_status(outcome.error, outcome.source);
    }
    outcome = {};
    fill_proc_null_status(status);
    if (from_.is_proc_null() || receive_code_ != MPI_SUCCESS) return code != MPI_SUCCESS ? code : receive_code_;
    canele_request_status(&receive_.engine, &outcome);
    fill_status(*from_.comm, outcome, status);
    limit_size(outcome, room_, status);
    return code != MPI_SUCCESS ? code : from_status(outcome.error, outcome.source);
  }

 private:
  /// Called when a message has ended, and once when all are posted.
  static void arrived(canele_request_t*, unsigned, void* exchange) {
    auto& self = *static_cast<Exchange*>(exchange);
    Request& request = *self.request_;
    if (self.pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) release(request);
  }

  Endpoint from_;
  std::size_t room_;
  TypeReference type_, sent_type_;
  Request* request_ = nullptr;
  std::unique_ptr<char[]> packed_;
  Transfer send_, receive_;
  std::atomic<int> pending_{3};
  bool is_sent_ = false;
  int send_code_ = MPI_SUCCESS, receive_code_ = MPI_SUCCESS;
};

/// The arguments of an exchange, without its buffers.
struct Peers {
  int destination, send_tag, source, receive_tag;
};

int start_exchange(const Peers& peers, Buffer outgoing, const Buffer& incoming, bool copied, Communicator& comm,
                   MPI_Request* handle) {
  Endpoint to, from;
  int code = get_destination(comm, peers.destination, peers.send_tag, &to);
  if (code == MPI_SUCCESS) code = get_source(comm, peers.source, peers.receive_tag, &from);
  if (code != MPI_SUCCESS) return code;
  auto work = std::make_unique<Exchange>(from, incoming);
  Exchange& exchange = *work;
  if (copied) outgoing = exchange.copy(outgoing);
  Request* request = nullptr;
  code = new_special(comm, std::move(work), &request);
  if (code != MPI_SUCCESS) return code;
  return publish_request(*request, exchange.post(*request, to, outgoing, incoming), handle);
}

}  // namespace

namespace calls {

int rsend(const void* buf, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm) {
  Endpoint to;
  Buffer buffer;
  int code = get_send(buf, count, datatype, dest, tag, comm, &to, &buffer);
  if (code != MPI_SUCCESS || to.is_proc_null()) return code;
  const InUse in_use(comm);
  Transfer transfer;
  code = transfer.send(comm.messages(), to.world_rank, to.tag, buffer, false);
  return code == MPI_SUCCESS ? transfer.wait(nullptr) : code;
}

int irsend(const void* buf, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
           MPI_Request* request) {
  Endpoint to;
  Buffer buffer;
  const int code = get_send(buf, count, datatype, dest, tag, comm, &to, &buffer);
  return code == MPI_SUCCESS ? start_send(to, buffer, false, request) : code;
}

int isendrecv(const void* sendbuf, MPI_Count sendcount, Type& sendtype, int dest, int sendtag, void* recvbuf,
              MPI_Count recvcount, Type& recvtype, int source, int recvtag, Communicator& comm, MPI_Request* request) {
  Buffer outgoing, incoming;
  int code = get_message(sendbuf, sendcount, sendtype, &outgoing);
  if (code == MPI_SUCCESS) code = get_message(recvbuf, recvcount, recvtype, &incoming);
  if (code != MPI_SUCCESS) return code;
  return start_exchange({dest, sendtag, source, recvtag}, outgoing, incoming, false, comm, request);
}

int isendrecv_replace(void* buf, MPI_Count count, Type& datatype, int dest, int sendtag, int source, int recvtag,
                      Communicator& comm, MPI_Request* request) {
  Buffer buffer;
  const int code = get_message(buf, count, datatype, &buffer);
  if (code != MPI_SUCCESS) return code;
  return start_exchange({dest, sendtag, source, recvtag}, buffer, buffer, true, comm, request);
}

int sendrecv_replace(void* buf, MPI_Count count, Type& datatype, int dest, int sendtag, int source, int recvtag,
                     Communicator& comm, MPI_Status* status) {
  MPI_Request handle = MPI_REQUEST_NULL;
  const int code = isendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, &handle);
  return code == MPI_SUCCESS ? wait_and_finish(&handle, status) : code;
}

}  // namespace calls
}  // namespace canele::mpi
