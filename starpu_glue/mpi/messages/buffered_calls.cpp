// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Buffer_attach to MPI_Bsend_init: what programs call for buffered sends. Any thread.
#include "calls/point_to_point.hpp"
#include "starpu_glue/mpi/messages/buffered.hpp"

namespace canele::mpi {
namespace {

/// A persistent buffered send. Its request has ended as soon as it is started.
class PersistentBuffered final : public Work {
 public:
  PersistentBuffered(const Endpoint& to, const Buffer& buffer)
      : to_(to), buffer_(buffer), type_(reference_to(*buffer.type)) {}
  int start(Request&) override { return send_buffered(to_, buffer_); }

 private:
  Endpoint to_;
  Buffer buffer_;
  TypeReference type_;
};

}  // namespace

namespace calls {

int bsend(const void* buf, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm) {
  Endpoint to;
  Buffer buffer;
  const int code = get_send(buf, count, datatype, dest, tag, comm, &to, &buffer);
  return code == MPI_SUCCESS ? send_buffered(to, buffer) : code;
}

int ibsend(const void* buf, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
           MPI_Request* request) {
  const int code = bsend(buf, count, datatype, dest, tag, comm);
  return code == MPI_SUCCESS ? start_ended(comm, request) : code;
}

int bsend_init(const void* buf, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
               MPI_Request* request) {
  Endpoint to;
  Buffer buffer;
  int code = get_send(buf, count, datatype, dest, tag, comm, &to, &buffer);
  if (code != MPI_SUCCESS) return code;
  Request* made = nullptr;
  code = new_persistent(comm, false, Request::proc_null, std::make_unique<PersistentBuffered>(to, buffer), &made);
  return code == MPI_SUCCESS ? publish_request(*made, code, request) : code;
}

int buffer_attach(void* buffer, MPI_Count size) { return attach_buffer(nullptr, buffer, size); }

int buffer_detach(void* buffer_addr, MPI_Count* size) { return detach_buffer(nullptr, buffer_addr, size); }

int buffer_flush() { return flush_buffer(nullptr); }

int buffer_iflush(MPI_Request* request) { return start_flush(nullptr, request); }

int comm_attach_buffer(Communicator& comm, void* buffer, MPI_Count size) {
  return attach_buffer(&comm.send_buffer(), buffer, size);
}

int comm_detach_buffer(Communicator& comm, void* buffer_addr, MPI_Count* size) {
  return detach_buffer(&comm.send_buffer(), buffer_addr, size);
}

int comm_flush_buffer(Communicator& comm) { return flush_buffer(&comm.send_buffer()); }

int comm_iflush_buffer(Communicator& comm, MPI_Request* request) { return start_flush(&comm.send_buffer(), request); }

int session_attach_buffer(Session& session, void* buffer, MPI_Count size) {
  return attach_buffer(session.send_buffer().get(), buffer, size);
}

int session_detach_buffer(Session& session, void* buffer_addr, MPI_Count* size) {
  return detach_buffer(session.send_buffer().get(), buffer_addr, size);
}

int session_flush_buffer(Session& session) { return flush_buffer(session.send_buffer().get()); }

int session_iflush_buffer(Session& session, MPI_Request* request) {
  return start_flush(session.send_buffer().get(), request);
}

}  // namespace calls
}  // namespace canele::mpi
