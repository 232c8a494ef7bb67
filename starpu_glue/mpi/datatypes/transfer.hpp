// SPDX-License-Identifier: BSD-3-Clause
//
// Transfers: one send or receive of typed data over a session, and batches of them.
//
// One owner thread per object. A Transfer must not move or be destroyed while the engine works on it. Batch waits in
// its destructor, so that a collective that fails half-way leaves no request on its stack.
#pragma once

#include <canele/canele.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "starpu_glue/mpi/datatypes/type.hpp"

namespace canele::mpi {

/// `count` elements of `type` at `memory`.
struct Buffer {
  void* memory = nullptr;
  std::int64_t count = 0;
  const Type* type = nullptr;

  std::size_t size() const { return type->size * static_cast<std::size_t>(count); }
  /// Returns the `index`-th of equal blocks.
  Buffer block(int index) const {
    const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(count) * type->extent();
    return {static_cast<char*>(memory) + index * step, count, type};
  }
};

/// Checks that the data of `count` elements has a length. Returns an MPI code.
int check_size(std::int64_t count, const Type& type);

/// Checks what a call says about its data, and describes it. Returns an MPI code.
int get_buffer(const void* memory, std::int64_t count, MPI_Datatype type, Buffer* buffer);

/// Returns an error if data is in the memory of a GPU, for calls that take host memory only. `what` names it.
int check_host_buffer(const Buffer& buffer, const char* what);

/// Returns a buffer of `length` raw bytes.
Buffer bytes_buffer(void* memory, std::size_t length);

struct Transfer {
  canele_request_t engine{};
  Payload payload;

  /// These functions post. They return MPI codes. Ranks are ranks of MPI_COMM_WORLD.
  int send(canele_session_t* session, int destination, std::uint64_t tag, const Buffer& buffer, bool synchronous);
  int receive(canele_session_t* session, int source, std::uint64_t tag, std::uint64_t mask, const Buffer& buffer);
  /// Blocks until the transfer is finalized. `status` may be null.
  int wait(canele_status_t* status);
};

/// Up to `capacity` transfers in flight on one session.
class Batch {
 public:
  Batch(canele_session_t* session, std::uint64_t tag, std::size_t capacity)
      : session_(session), tag_(tag), capacity_(capacity), transfers_(new Transfer[capacity]) {}
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  int send(int destination, const Buffer& buffer);
  int receive(int source, const Buffer& buffer);
  /// Waits for all that were posted. Returns the first error; a message longer than its receive is an error.
  int finish();

 private:
  canele_session_t* session_;
  std::uint64_t tag_;
  std::size_t capacity_;
  std::size_t used_ = 0;
  std::unique_ptr<Transfer[]> transfers_;
};

/// Copies the data of `from` into `to` within this process, as a message would. MPI_ERR_TRUNCATE if it does not fit.
int copy_local(const Buffer& from, const Buffer& to);

/// Memory for `count` elements of `type`, laid out as the type says.
class Scratch {
 public:
  Scratch(std::int64_t count, const Type& type);
  Buffer buffer() const { return buffer_; }

 private:
  std::unique_ptr<char[]> memory_;
  Buffer buffer_;
};

}  // namespace canele::mpi
