// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends: copies of messages, in memory that the program has attached. Any thread.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {

/// Copies the data and posts it. MPI_ERR_BUFFER if the attached memory has no room. Never waits.
int send_buffered(const Endpoint& to, const Buffer& data);

/// Attaches memory; with MPI_BUFFER_AUTOMATIC the library allocates what it needs.
int attach_buffer(void* memory, std::size_t size);
/// Blocks until all buffered messages are sent, and detaches the memory.
int detach_buffer(void** memory, std::size_t* size);
/// Blocks until all buffered messages are sent.
int flush_buffer();

}  // namespace canele::mpi
