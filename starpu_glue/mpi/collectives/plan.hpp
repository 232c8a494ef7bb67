// SPDX-License-Identifier: BSD-3-Clause
//
// Plans: persistent collectives. Any thread; MPI allows one thread at a time per request.
//
// MPI_Bcast_init checks its arguments like MPI_Ibcast. Then it keeps the engine's call in place of making it. A start
// copies input of types with gaps, and makes that call:
//
//     Request ──work──▶ Planned    the engine's call with its arguments: memory, lengths, operator
//        │                 └─────▶ a group of its own (see Communicator::open_group)
//        └─staging                 the copies, and what they are copies of
//
// Nothing refers to arrays of the program. The staging has references on the types and on what an operator needs.
//
// Ranks may start their persistent collectives in different orders: MPI matches them by the order in which they were
// made. The engine matches collectives of a group by the order of starts, so each has a group of its own.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "starpu_glue/mpi/collectives/collectives.hpp"
#include "starpu_glue/mpi/communicators/creation.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {

/// The work of a persistent collective.
class PlannedWork : public Work {
 public:
  explicit PlannedWork(Communicator& comm, Members members = Members::all) : comm_(comm), members_(members) {}
  ~PlannedWork() override;
  int open_group(const std::string& label);

 protected:
  Communicator& comm_;
  canele_group_t* group_ = nullptr;

 private:
  Members members_;
};

template <class Begin>
class Planned final : public PlannedWork {
 public:
  Planned(Communicator& comm, Begin begin) : PlannedWork(comm), begin_(std::move(begin)) {}

  int start(Request& request) override {
    request.staging.fill();
    return from_collective(begin_(Execution{group_, nullptr, &request.engine}));
  }

 private:
  Begin begin_;
};

/// Plans a collective: takes the place of Start.
struct Plan {
  Communicator& comm;
  Staging* staging;
  std::unique_ptr<PlannedWork>* made;
  bool* is_skipped;

  /// Notes that this rank cannot take part in any start.
  void skip(int) const { *is_skipped = true; }
  template <class Begin>
  int begin(Begin begin) const {
    *made = std::make_unique<Planned<Begin>>(comm, std::move(begin));
    return MPI_SUCCESS;
  }
  template <class Data, class Begin>
  int begin_with(const Data& data, const Begin& call) const {
    return begin([data, call](const Execution& at) { return call(data, at); });
  }
};

/// Ends the group that a persistent collective would have had, so that starts of other ranks fail. They cannot wait for
/// this rank, which has no request. Without a label, the group is that of other collectives, too, and stays.
void revoke_group(Communicator& comm, const std::string& label);

/// Makes the inactive request of a persistent collective. plan(const Plan&) returns an MPI code. Throws std::bad_alloc
/// if it has had no effect.
template <class MakePlan>
int make_planned(Communicator& comm, MakePlan plan, MPI_Request* handle) {
  Request* request = nullptr;
  std::string label = comm.next_group_label();
  int code = shorten_label(comm, &label);
  if (code == MPI_SUCCESS) code = new_persistent(comm, false, Request::collective, nullptr, &request);
  if (code != MPI_SUCCESS) return code;
  request->staging.keep();
  code = without_memory_error([&] {
    std::unique_ptr<PlannedWork> work;
    bool is_skipped = false;
    int planned = plan(Plan{comm, &request->staging, &work, &is_skipped});
    if (is_skipped) revoke_group(comm, label);
    if (planned == MPI_SUCCESS) planned = work->open_group(label);
    request->work = work.release();
    return planned;
  });
  return publish_request(*request, code, handle);
}

}  // namespace canele::mpi
