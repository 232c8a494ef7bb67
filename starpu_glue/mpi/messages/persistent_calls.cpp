// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Send_init to MPI_Startall: persistent messages. Any thread; one at a time per request.
//
// The work of such a request holds what MPI_Start passes to the engine. A start only posts: arguments were checked, and
// the data was described, when the request was made.
#include "calls/completion.hpp"
#include "calls/point_to_point.hpp"
#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

class PersistentMessage : public Work {
 public:
  PersistentMessage(const Endpoint& peer, const Buffer& buffer)
      : peer_(peer), type_(reference_to(*buffer.type)), session_(peer.comm->messages()) {}

  /// Describes the data. The description refers to the request, which does not move.
  void describe_data(Request& request, const Buffer& buffer) {
    request.payload = Payload(buffer.memory, static_cast<std::size_t>(buffer.count), *buffer.type);
    data_ = request.payload.describe();
    request.room = buffer.size();
  }

 protected:
  Endpoint peer_;
  TypeReference type_;
  canele_session_t* session_;
  canele_data_t data_{};
};

class PersistentSend final : public PersistentMessage {
 public:
  PersistentSend(const Endpoint& peer, const Buffer& buffer, bool synchronous) : PersistentMessage(peer, buffer) {
    options_.struct_size = sizeof options_;
    if (synchronous) options_.flags = CANELE_SEND_SYNCHRONOUS;
  }

  int start(Request& request) override {
    if (peer_.is_proc_null()) return MPI_SUCCESS;
    if (data_.segments == nullptr && options_.flags == 0) {
      return from_engine(
          canele_isend(session_, peer_.world_rank, peer_.tag, data_.base, data_.length, &request.engine));
    }
    return from_engine(canele_isend_data(session_, peer_.world_rank, peer_.tag, &data_, &options_, &request.engine));
  }

 private:
  canele_send_options_t options_{};
};

class PersistentReceive final : public PersistentMessage {
 public:
  using PersistentMessage::PersistentMessage;

  int start(Request& request) override {
    if (peer_.is_proc_null()) return MPI_SUCCESS;
    if (data_.segments == nullptr) {
      return from_engine(
          canele_irecv(session_, peer_.world_rank, peer_.tag, peer_.mask, data_.base, data_.length, &request.engine));
    }
    return from_engine(canele_irecv_data(session_, peer_.world_rank, peer_.tag, peer_.mask, &data_, &request.engine));
  }
};

int make_request(const Endpoint& peer, const Buffer& buffer, bool receive, std::unique_ptr<PersistentMessage> work,
                 MPI_Request* handle) {
  PersistentMessage& message = *work;
  const std::uint8_t flags = peer.is_proc_null() ? Request::proc_null : 0;
  Request* request = nullptr;
  const int code = new_persistent(*peer.comm, receive, flags, std::move(work), &request);
  if (code != MPI_SUCCESS) return code;
  message.describe_data(*request, buffer);
  return publish_request(*request, MPI_SUCCESS, handle);
}

int make_send(const void* memory, MPI_Count count, Type& type, int rank, int tag, Communicator& comm, bool synchronous,
              MPI_Request* handle) {
  Endpoint to;
  Buffer buffer;
  const int code = get_send(memory, count, type, rank, tag, comm, &to, &buffer);
  if (code != MPI_SUCCESS) return code;
  return make_request(to, buffer, false, std::make_unique<PersistentSend>(to, buffer, synchronous), handle);
}

/// Finds the request that a start names.
int get_startable(MPI_Request handle, Request** found) {
  if (const int code = get_request(handle, found); code != MPI_SUCCESS) return code;
  if (*found == nullptr) return fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
  if (!(*found)->has(Request::persistent)) return fail(MPI_ERR_REQUEST, "the request is not persistent");
  if (!(*found)->has(Request::inactive)) return fail(MPI_ERR_REQUEST, "the request is active: wait for it first");
  return MPI_SUCCESS;
}

int start_checked(MPI_Request handle) {
  Request* found = nullptr;
  const int code = get_startable(handle, &found);
  return code != MPI_SUCCESS ? code : start_again(*found);
}

int start_all_checked(int count, MPI_Request* handles) {
  if (const int code = check_list(count, handles); code != MPI_SUCCESS) return code;
  for (int i = 0; i < count; ++i) {  // all of them before the first is started
    Request* found = nullptr;
    if (const int code = get_startable(handles[i], &found); code != MPI_SUCCESS) return code;
  }
  for (int i = 0; i < count; ++i) {
    if (const int code = start_checked(handles[i]); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

[[gnu::noinline]] int start_all_slow(int count, MPI_Request* handles) {
  const Call call("MPI_Startall");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  return call.end(start_all_checked(count, handles));
}

/// Returns the request of a handle if it can be started; else nullptr. Those of collectives and of partitioned messages
/// have one flag more.
[[gnu::always_inline]] inline Request* find_startable(MPI_Request handle) {
  constexpr std::uint8_t startable = Request::persistent | Request::inactive;
  constexpr std::uint8_t any = Request::collective | Request::special;
  Request* const request = requests_pool.find(handle);
  return request != nullptr && (request->flags & ~any) == startable ? request : nullptr;
}

/// Starts a request that find_startable() has found. Returns false, with no effect, if the engine has refused it.
[[gnu::always_inline]] inline bool start_found(Request& request) {
  request.flags ^= Request::inactive;
  if (request.work->start(request) == MPI_SUCCESS) [[likely]]
    return true;
  request.flags ^= Request::inactive;
  return false;
}

[[gnu::noinline]] int start_slow(MPI_Request* handle) {
  const Call call("MPI_Start");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  int code = given({{"request", handle}});
  if (code == MPI_SUCCESS) code = start_checked(*handle);
  return call.end(code);
}

}  // namespace

namespace calls {

int send_init(const void* buf, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
              MPI_Request* request) {
  return make_send(buf, count, datatype, dest, tag, comm, false, request);
}

/// A ready send is a standard one: a receive that is posted already is only a promise of the program.
int rsend_init(const void* buf, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
               MPI_Request* request) {
  return make_send(buf, count, datatype, dest, tag, comm, false, request);
}

int ssend_init(const void* buf, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
               MPI_Request* request) {
  return make_send(buf, count, datatype, dest, tag, comm, true, request);
}

int recv_init(void* buf, MPI_Count count, Type& datatype, int source, int tag, Communicator& comm,
              MPI_Request* request) {
  Endpoint from;
  Buffer buffer;
  const int code = get_receive(buf, count, datatype, source, tag, comm, &from, &buffer);
  if (code != MPI_SUCCESS) return code;
  return make_request(from, buffer, true, std::make_unique<PersistentReceive>(from, buffer), request);
}

}  // namespace calls
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Start(MPI_Request* handle) {
  Request* const request = handle != nullptr ? find_startable(*handle) : nullptr;
  if (request != nullptr && fast_world() != nullptr && start_found(*request)) [[likely]]
    return MPI_SUCCESS;
  return start_slow(handle);  // reports the error
}
CANELE_MPI_NAME(Start);

extern "C" int PMPI_Startall(int count, MPI_Request* handles) {
  if (count < 0 || handles == nullptr || fast_world() == nullptr) [[unlikely]]
    return start_all_slow(count, handles);
  for (int i = 0; i < count; ++i) {  // all of them before the first is started
    if (find_startable(handles[i]) == nullptr) [[unlikely]]
      return start_all_slow(count, handles);
  }
  for (int i = 0; i < count; ++i) {
    Request* const request = find_startable(handles[i]);  // none if the array contains the handle twice
    if (request == nullptr || !start_found(*request)) [[unlikely]]
      return start_all_slow(count - i, handles + i);
  }
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Startall);
