// SPDX-License-Identifier: BSD-3-Clause
//
// Transfers over the engine, and copies within the process.
//
// If the engine rejects a wait (this code runs in a callback of another user of the engine), the job ends. Returning
// would leave the engine a request on a dead stack frame.
#include "starpu_glue/mpi/datatypes/transfer.hpp"

#include <algorithm>
#include <cassert>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {

int check_size(std::int64_t count, const Type& type) {
  std::ptrdiff_t size = 0;
  if (!__builtin_mul_overflow(count, type.size, &size)) return MPI_SUCCESS;
  return fail(MPI_ERR_COUNT, "count is %lld; %zu bytes each are more than memory can hold",
              static_cast<long long>(count), type.size);
}

int get_buffer(const void* memory, std::int64_t count, MPI_Datatype type, Buffer* buffer) {
  const Type* found = find_type(type);
  if (found == nullptr) {
    return fail(MPI_ERR_TYPE, "0x%zx is not a datatype, or was freed", handle_bits(type));
  }
  if (count < 0) {
    return fail(MPI_ERR_COUNT, "count is %lld; expected: at least 0", static_cast<long long>(count));
  }
  *buffer = Buffer{const_cast<void*>(memory), count, found};
  return check_size(count, *found);
}

int check_host_buffer(const Buffer& buffer, const char* what) {
  if (!devices_in_use() || buffer.type == nullptr) return MPI_SUCCESS;
  const Payload payload(buffer.memory, static_cast<std::size_t>(buffer.count), *buffer.type);
  return payload.is_on_device() ? reject_device_buffer(what) : MPI_SUCCESS;
}

Buffer bytes_buffer(void* memory, std::size_t length) {
  return {memory, static_cast<std::int64_t>(length), find_type(MPI_BYTE)};
}

int Transfer::send(canele_session_t* session, int destination, std::uint64_t tag, const Buffer& buffer,
                   bool synchronous) {
  payload = Payload(buffer.memory, static_cast<std::size_t>(buffer.count), *buffer.type);
  const canele_data_t data = payload.describe();
  if (data.segments == nullptr && !synchronous) {
    return from_engine(canele_isend(session, destination, tag, data.base, data.length, &engine));  // has a fast path
  }
  canele_send_options_t options{};
  options.struct_size = sizeof options;
  if (synchronous) options.flags = CANELE_SEND_SYNCHRONOUS;
  return from_engine(canele_isend_data(session, destination, tag, &data, &options, &engine));
}

int Transfer::receive(canele_session_t* session, int source, std::uint64_t tag, std::uint64_t mask,
                      const Buffer& buffer) {
  payload = Payload(buffer.memory, static_cast<std::size_t>(buffer.count), *buffer.type);
  const canele_data_t data = payload.describe();
  if (data.segments == nullptr) {
    return from_engine(canele_irecv(session, source, tag, mask, data.base, data.length, &engine));
  }
  return from_engine(canele_irecv_data(session, source, tag, mask, &data, &engine));
}

int Transfer::wait(canele_status_t* status) {
  canele_status_t local{};
  if (status == nullptr) status = &local;
  const int error = canele_wait(&engine, status);
  if (error == CANELE_EDEADLK) fatal("a call that blocks was made inside a completion callback");
  return from_status(error, status->source);
}

int Batch::send(int destination, const Buffer& buffer) {
  assert(used_ < capacity_);
  const int code = transfers_[used_].send(session_, destination, tag_, buffer, false);
  if (code == MPI_SUCCESS) ++used_;
  return code;
}

int Batch::receive(int source, const Buffer& buffer) {
  assert(used_ < capacity_);
  const int code = transfers_[used_].receive(session_, source, tag_, CANELE_TAG_EXACT, buffer);
  if (code == MPI_SUCCESS) ++used_;
  return code;
}

int Batch::finish() {
  int first = MPI_SUCCESS;
  for (std::size_t i = 0; i < used_; ++i) {
    const int code = transfers_[i].wait(nullptr);
    if (first == MPI_SUCCESS) first = code;
  }
  used_ = 0;
  return first;
}

Batch::~Batch() {
  for (std::size_t i = 0; i < used_; ++i)
    canele_cancel(&transfers_[i].engine);  // fails for sends: finish() waits for them
  finish();
}

int copy_local(const Buffer& from, const Buffer& to) {
  const std::size_t length = from.size();
  if (length > to.size()) {
    return fail(MPI_ERR_TRUNCATE, "%zu bytes to copy, but the receive buffer holds %zu", length, to.size());
  }
  if (length == 0) return MPI_SUCCESS;
  const Payload source(from.memory, static_cast<std::size_t>(from.count), *from.type);
  const Payload target(to.memory, static_cast<std::size_t>(to.count), *to.type);
  if (source.contiguous()) {
    unpack(target, 0, length, source.base + source.layout.first);
    return MPI_SUCCESS;
  }
  if (target.contiguous()) {
    pack(source, 0, length, target.base + target.layout.first);
    return MPI_SUCCESS;
  }
  char block[4096];
  for (std::size_t done = 0; done < length;) {
    const std::size_t step = std::min(sizeof block, length - done);
    pack(source, done, step, block);
    unpack(target, done, step, block);
    done += step;
  }
  return MPI_SUCCESS;
}

Scratch::Scratch(std::int64_t count, const Type& type) {
  const std::ptrdiff_t last = count > 0 ? static_cast<std::ptrdiff_t>(count - 1) * type.extent() : 0;
  const std::ptrdiff_t low = std::min<std::ptrdiff_t>(0, last) + type.true_lower;
  const std::ptrdiff_t high = std::max<std::ptrdiff_t>(0, last) + type.true_upper;
  memory_ = std::make_unique<char[]>(static_cast<std::size_t>(high - low) + 1);
  buffer_ = {memory_.get() - low, count, &type};
}

}  // namespace canele::mpi
