// SPDX-License-Identifier: BSD-3-Clause
//
// What the entry points of collectives do. They are made from the table (mark `collective`), and only they include this
// file. Called from any thread; as MPI requires, one collective at a time is started on a communicator.
//
// A blocking call starts the collective without a request. All forms of a collective call one function of
// collectives.hpp.
#pragma once

#include "starpu_glue/mpi/collectives/between_groups.hpp"
#include "starpu_glue/mpi/collectives/collectives.hpp"
#include "starpu_glue/mpi/collectives/plan.hpp"
#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/core/names.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/infos/info.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {

/// Runs a collective off the fast path, with copies between the program's memory and the engine's if they are needed.
template <class... Parameters, class... Arguments>
[[gnu::noinline]] int run_staged(Communicator& comm, int (*start)(const Start&, Parameters...),
                                 const Arguments&... arguments) {
  return without_memory_error([&] {
    int code = start(Start{comm, nullptr, nullptr, &blocking_options}, arguments...);
    if (code != kNeedsStaging) return code;
    Staging staging;
    code = start(Start{comm, nullptr, &staging, &blocking_options}, arguments...);
    if (code == MPI_SUCCESS) staging.deliver();
    return code;
  });
}

/// Starts a collective with a request. Returns an MPI code.
template <class... Parameters, class... Arguments>
int start_collective(Communicator& comm, MPI_Request* made, int (*start)(const Start&, Parameters...),
                     const Arguments&... arguments) {
  Request* request = nullptr;
  int code = new_collective(comm, &request);
  if (code != MPI_SUCCESS) return code;
  code = without_memory_error([&] {
    return start_anywhere(Start{comm, &request->engine, &request->staging}, start, arguments...);
  });
  return publish_request(*request, code, made);
}

/// Runs a collective on an intercommunicator, by its non-blocking form.
template <class... Parameters, class... Arguments>
[[gnu::noinline]] int run_between_groups(Communicator& comm, int (*start)(const Start&, Parameters...),
                                         const Arguments&... arguments) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start_collective(comm, &request, start, arguments...);
  return code == MPI_SUCCESS ? wait_and_finish(&request, MPI_STATUS_IGNORE) : code;
}

template <class... Parameters, class... Arguments>
[[gnu::noinline]] int run_slow(Function function, MPI_Comm handle, int (*start)(const Start&, Parameters...),
                               const Arguments&... arguments) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Communicator* comm = nullptr;
  int code = get_communicator(handle, &comm);
  if (code == MPI_SUCCESS) code = may_block();
  if (code != MPI_SUCCESS) return call.end(code, comm);
  code = comm->inter() == nullptr ? run_staged(*comm, start, arguments...)
                                  : run_between_groups(*comm, start, arguments...);
  return call.end(code, comm);
}

/// Applies the error handler after a call on the fast path has failed. Everything else has been done.
[[gnu::cold, gnu::noinline]] inline int end_with_error(Function function, int code, const Communicator& comm) {
  return Call(function).end(code, &comm);
}

/// Runs a blocking collective. On MPI_COMM_WORLD without a profile, only the collective itself has to run.
template <class... Parameters, class... Arguments>
[[gnu::always_inline]] inline int run_collective(Function function, MPI_Comm handle,
                                                 int (*start)(const Start&, Parameters...),
                                                 const Arguments&... arguments) {
  Communicator* const world = fast_world();
  if (world == nullptr || handle != MPI_COMM_WORLD || CallbackScope::here()) [[unlikely]]
    return run_slow(function, handle, start, arguments...);
  const int code = start(Start{*world, nullptr, nullptr, &blocking_options}, arguments...);
  if (code == MPI_SUCCESS) [[likely]]
    return code;
  if (code == kNeedsStaging) return run_slow(function, handle, start, arguments...);  // no effect so far
  return end_with_error(function, code, *world);
}

/// Makes the request of a collective: make(communicator) returns an MPI code.
template <class Make>
[[gnu::always_inline]] inline int with_request(Function function, MPI_Comm handle, MPI_Request* made, Make make) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Communicator* comm = nullptr;
  int code = given({{"request", made}});
  if (code == MPI_SUCCESS) code = get_communicator(handle, &comm);
  if (code == MPI_SUCCESS) code = make(*comm);
  return call.end(code, comm);
}

/// Starts a collective, and returns its request.
template <class... Parameters, class... Arguments>
int begin_collective(Function function, MPI_Comm handle, MPI_Request* made, int (*start)(const Start&, Parameters...),
                     const Arguments&... arguments) {
  return with_request(function, handle, made,
                      [&](Communicator& comm) { return start_collective(comm, made, start, arguments...); });
}

/// Makes the request of a persistent collective.
template <class... Parameters, class... Arguments>
int plan_collective(Function function, MPI_Comm handle, MPI_Info info, MPI_Request* made,
                    int (*start)(const Plan&, Parameters...), const Arguments&... arguments) {
  const auto make_plan = [&](const Plan& plan) {
    const int checked = check_hints(info);
    return checked == MPI_SUCCESS ? start_anywhere(plan, start, arguments...) : checked;
  };
  return with_request(function, handle, made, [&](Communicator& comm) {
    return without_memory_error([&] { return make_planned(comm, make_plan, made); });
  });
}

}  // namespace canele::mpi
