// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Psend_init to MPI_Parrived, called by their entry points. Any thread.
#include <canele/canele.h>
#include <sched.h>

#include <memory>

#include "calls/partitioned.hpp"
#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/infos/info.hpp"
#include "starpu_glue/mpi/messages/partitioned.hpp"

namespace canele::mpi {
namespace {

/// Describes the whole message.
int get_partitions(const void* memory, int partitions, MPI_Count count, Type& type, Buffer* buffer) {
  std::int64_t elements = 0;
  if (count < 0) return fail(MPI_ERR_COUNT, "count is %lld; expected: at least 0", static_cast<long long>(count));
  if (__builtin_mul_overflow(count, partitions, &elements))
    return fail(MPI_ERR_COUNT, "%d partitions of %lld elements each are more than memory can hold", partitions,
                static_cast<long long>(count));
  return get_message(memory, elements, type, buffer);
}

int make_partitioned(const Endpoint& peer, bool receives, std::unique_ptr<PartitionedWork> work, MPI_Info info,
                     MPI_Request* handle) {
  int code = check_hints(info);
  if (code == MPI_SUCCESS) code = work->join(receives);
  if (code != MPI_SUCCESS) return code;
  const std::uint8_t flags = Request::special | (peer.is_proc_null() ? Request::proc_null : 0);
  Request* request = nullptr;
  code = new_persistent(*peer.comm, false, flags, std::move(work), &request);
  return code == MPI_SUCCESS ? publish_request(*request, code, handle) : code;
}

/// Finds the active request whose partitions become ready.
int get_sending(MPI_Request handle, Request** found) {
  const int code = get_request(handle, found);
  if (code != MPI_SUCCESS) return code;
  if (*found == nullptr) return fail(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
  if (!(*found)->has(Request::persistent)) return fail(MPI_ERR_REQUEST, "the request is not partitioned");
  if ((*found)->has(Request::inactive)) return fail(MPI_ERR_REQUEST, "the request is inactive: start it first");
  return MPI_SUCCESS;
}

int make_ready(int first, int last, MPI_Request handle) {
  Request* found = nullptr;
  const int code = get_sending(handle, &found);
  return code == MPI_SUCCESS ? found->work->make_ready(first, last) : code;
}

[[gnu::noinline]] int pready_slow(int partition, MPI_Request handle) {
  const Call call("MPI_Pready");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  return call.end(make_ready(partition, partition, handle));
}

/// Makes progress once. If a worker does so already, the core is left to it.
void poll() {
  if (canele_worker_active(engine()) == 0) {
    canele_progress(engine());
  } else {
    sched_yield();
  }
}

}  // namespace

namespace calls {

int psend_init(const void* buf, int partitions, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
               MPI_Info info, MPI_Request* request) {
  Endpoint to;
  Buffer buffer;
  int code = get_destination(comm, dest, tag, &to);
  if (code == MPI_SUCCESS) code = get_partitions(buf, partitions, count, datatype, &buffer);
  if (code != MPI_SUCCESS) return code;
  return make_partitioned(to, false, std::make_unique<PartitionedSend>(to, buffer, partitions), info, request);
}

int precv_init(void* buf, int partitions, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
               MPI_Info info, MPI_Request* request) {
  Endpoint from;
  Buffer buffer;
  int code = get_source(comm, dest, tag, &from);
  if (code == MPI_SUCCESS && from.world_rank == CANELE_ANY_SOURCE)
    code = fail(MPI_ERR_RANK, "the source of a partitioned message cannot be MPI_ANY_SOURCE");
  if (code == MPI_SUCCESS && tag < 0)
    code = fail(MPI_ERR_TAG, "the tag of a partitioned message cannot be MPI_ANY_TAG");
  if (code == MPI_SUCCESS) code = get_partitions(buf, partitions, count, datatype, &buffer);
  if (code != MPI_SUCCESS) return code;
  return make_partitioned(from, true, std::make_unique<PartitionedReceive>(from, buffer, partitions), info, request);
}

int psend_init_c(const void* buf, int partitions, MPI_Count count, Type& datatype, int dest, int tag,
                 Communicator& comm, MPI_Info info, MPI_Request* request) {
  return psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request);
}

int precv_init_c(void* buf, int partitions, MPI_Count count, Type& datatype, int dest, int tag, Communicator& comm,
                 MPI_Info info, MPI_Request* request) {
  return precv_init(buf, partitions, count, datatype, dest, tag, comm, info, request);
}

int pready_range(int partition_low, int partition_high, MPI_Request request) {
  return make_ready(partition_low, partition_high, request);
}

int pready_list(int length, const int array_of_partitions[], MPI_Request request) {
  Request* found = nullptr;
  int code = get_sending(request, &found);
  for (int i = 0; i < length && code == MPI_SUCCESS; ++i)
    code = found->work->make_ready(array_of_partitions[i], array_of_partitions[i]);
  return code;
}

/// Another thread may complete the request meanwhile.
int parrived(MPI_Request request, int partition, int* flag) {
  Request* found = nullptr;
  if (const int code = get_request(request, &found); code != MPI_SUCCESS) return code;
  const std::uint8_t flags = found == nullptr ? std::uint8_t{Request::inactive} : found->flags_now();
  if ((flags & Request::inactive) != 0) {
    *flag = 1;
    return MPI_SUCCESS;
  }
  if ((flags & Request::persistent) == 0) return fail(MPI_ERR_REQUEST, "the request is not partitioned");
  bool arrived = false;
  int code = found->work->has_arrived(partition, &arrived);
  if (code == MPI_SUCCESS && !arrived) {
    poll();
    code = found->work->has_arrived(partition, &arrived);
  }
  if (code == MPI_SUCCESS) *flag = arrived ? 1 : 0;
  return code;
}

}  // namespace calls
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Pready(int partition, MPI_Request handle) {
  constexpr std::uint8_t partitioned = Request::persistent | Request::special;
  Request* const request = requests_pool.find(handle);
  const bool is_plain = request != nullptr && request->flags == partitioned && fast_world() != nullptr;
  if (is_plain && request->work->make_ready(partition, partition) == MPI_SUCCESS) [[likely]]
    return MPI_SUCCESS;
  return pready_slow(partition, handle);  // reports the error
}
CANELE_MPI_NAME(Pready);
