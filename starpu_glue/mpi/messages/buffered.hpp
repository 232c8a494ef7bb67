// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends: copies of messages, in memory that the program has attached. Any thread.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/communicators/send_buffer.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {

/// Copies the data and posts it. The memory is that of the communicator, else that of the session of its ranks, else,
/// for ranks of MPI_COMM_WORLD, that of the process. MPI_ERR_BUFFER if it has no room. Never waits.
int send_buffered(const Endpoint& to, const Buffer& data);

/// These are for the memory of a communicator or session; nullptr: for that of the process. They return MPI codes.
/// Attaches memory; with MPI_BUFFER_AUTOMATIC the library allocates what it needs.
int attach_buffer(SendBufferPlace* place, void* memory, MPI_Count size);
/// Blocks until all buffered messages are sent, and detaches the memory. Writes its address to *address, a pointer.
int detach_buffer(SendBufferPlace* place, void* address, MPI_Count* size);
/// Blocks until all buffered messages are sent.
int flush_buffer(SendBufferPlace* place);
/// Makes a request that ends when all messages are sent that are buffered now.
int start_flush(SendBufferPlace* place, MPI_Request* request);

}  // namespace canele::mpi
