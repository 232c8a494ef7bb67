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

int buffer_attach(void* buffer, MPI_Count size) {
  if (size < 0) return fail(MPI_ERR_ARG, "size is %lld; expected: at least 0", static_cast<long long>(size));
  return attach_buffer(buffer, static_cast<std::size_t>(size));
}

int buffer_detach(void* buffer_addr, MPI_Count* size) {
  void* memory = nullptr;
  std::size_t bytes = 0;
  const int code = detach_buffer(&memory, &bytes);
  if (code != MPI_SUCCESS) return code;
  *static_cast<void**>(buffer_addr) = memory;
  *size = static_cast<MPI_Count>(bytes);
  return MPI_SUCCESS;
}

int buffer_flush() { return flush_buffer(); }

}  // namespace calls
}  // namespace canele::mpi
