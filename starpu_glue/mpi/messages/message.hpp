// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that a matched probe has taken out of matching. Any thread.
#pragma once

#include <mpi.h>

#include "starpu_glue/mpi/core/handles.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {

/// A matched message: the request that will receive it.
struct Message {
  Request* request = nullptr;
};

constexpr std::uint32_t kMessagesReserved = 0x12a;  ///< up to MPI_MESSAGE_NO_PROC
using MessagePool = HandlePool<Message, MPI_Message, Kind::message, kMessagesReserved, 4096>;
extern constinit MessagePool messages_pool;

}  // namespace canele::mpi
