// SPDX-License-Identifier: BSD-3-Clause
//
// The two steps of a reduction on an intercommunicator.
//
// The request is held: it has no operation of its own. What ends last, of the own group's reduction and of the
// messages, releases it. A rank whose own step has failed sends an empty message, so that no rank of the other group
// waits for ever.
#include "starpu_glue/mpi/collectives/reduction_between_groups.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "starpu_glue/mpi/collectives/plan.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/messages/request.hpp"

namespace canele::mpi {
namespace {

constexpr std::uint64_t kTagsOfReductions = std::uint64_t{1} << 40;  // those below belong to new communicators

/// Which steps a rank takes part in.
struct Roles {
  int own_root = -1;              ///< rank of the own group that gets the own result; -1: all of them
  bool contributes = false;       ///< to the own group's reduction
  std::vector<int> destinations;  ///< world ranks that get its result from this rank
  int source = -1;                ///< world rank from which this rank gets the other group's result; -1: from none
};

/// What is reduced, as the engine takes it.
struct Operands {
  const void* input = nullptr;
  std::size_t count = 0;
  canele_operator_t op{};
  void* output = nullptr;             ///< where the result of the other group goes, or a part of it
  std::size_t first = 0, wanted = 0;  ///< bytes of the result that this rank wants

  std::size_t bytes() const { return count * op.element; }
};

/// The work of the request. If that is persistent, the steps are carried out at each start.
class TwoSteps final : public PlannedWork {
 public:
  TwoSteps(Communicator& comm, std::uint64_t tag, Roles roles, const Operands& operands)
      : PlannedWork(comm, Members::own),
        roles_(std::move(roles)),
        operands_(operands),
        tag_(tag),
        own_(new char[roles_.contributes ? operands.bytes() : 0]),
        other_(new char[roles_.source >= 0 && !is_direct() ? operands.bytes() : 0]),
        sends_(new Transfer[roles_.destinations.size()]) {}

  /// Begins both steps. After an error nothing has begun.
  int start(Request& request) override {
    request_ = &request;
    request.flags |= Request::special;
    if (const int code = comm_.agreements(&session_); code != MPI_SUCCESS) return code;
    if (const int code = hold(request); code != MPI_SUCCESS) return code;
    request.staging.fill();
    code_ = MPI_SUCCESS;
    pending_.store(1, std::memory_order_relaxed);
    if (roles_.source >= 0) post_receive();
    if (roles_.contributes) post_reduction();
    end_step();
    return MPI_SUCCESS;
  }

  int describe(const canele_status_t&, MPI_Status* status) override {
    fill_empty_status(status);
    const int code = outcome();
    if (code == MPI_SUCCESS) request_->staging.deliver();
    return code;
  }

 private:
  int outcome() const {
    int code = code_;
    canele_status_t status{};
    if (code == MPI_SUCCESS && roles_.contributes) code = outcome_of(own_step_);
    for (std::size_t i = 0; i < roles_.destinations.size() && code == MPI_SUCCESS; ++i)
      code = outcome_of(sends_[i].engine);
    if (code == MPI_SUCCESS && roles_.source >= 0) {
      code = outcome_of(receive_.engine);
      canele_request_status(&receive_.engine, &status);
      if (code == MPI_SUCCESS && status.length != operands_.bytes())
        code = fail(MPI_ERR_OTHER, "the other group's part of the reduction has failed, or has another length");
    }
    return code;
  }

  static int outcome_of(const canele_request_t& request) {
    canele_status_t status{};
    canele_request_status(&request, &status);
    return from_status(status.error, status.source);
  }

  /// Whether the other group's result is received where it is wanted.
  bool is_direct() const { return operands_.wanted == operands_.bytes(); }

  void post_receive() {
    char* const memory = is_direct() ? static_cast<char*>(operands_.output) : other_.get();
    const int code =
        receive_.receive(session_, roles_.source, tag_, CANELE_TAG_EXACT, bytes_buffer(memory, operands_.bytes()));
    if (code != MPI_SUCCESS) {
      code_ = code;
      return;
    }
    pending_.fetch_add(1, std::memory_order_relaxed);
    canele_request_on_event(&receive_.engine, CANELE_EVENT_FINALIZED, received, this);
  }

  void post_reduction() {
    const int error = roles_.own_root < 0 ? canele_iallreduce(group_, operands_.input, own_.get(), operands_.count,
                                                              &operands_.op, nullptr, &own_step_)
                                          : canele_ireduce(group_, operands_.input, own_.get(), operands_.count,
                                                           &operands_.op, roles_.own_root, nullptr, &own_step_);
    pending_.fetch_add(1, std::memory_order_relaxed);
    if (error == CANELE_OK) {
      canele_request_on_event(&own_step_, CANELE_EVENT_FINALIZED, reduced, this);
      return;
    }
    code_ = from_engine(error);
    send_result(0);
    end_step();
  }

  /// Tells the ranks of the other group that wait for it.
  void send_result(std::size_t length) {
    for (std::size_t i = 0; i < roles_.destinations.size(); ++i) {
      pending_.fetch_add(1, std::memory_order_relaxed);
      const int code = sends_[i].send(session_, roles_.destinations[i], tag_, bytes_buffer(own_.get(), length), false);
      if (code == MPI_SUCCESS) {
        canele_request_on_event(&sends_[i].engine, CANELE_EVENT_FINALIZED, sent, this);
      } else {
        code_ = code;
        end_step();
      }
    }
  }

  static void reduced(canele_request_t* request, unsigned, void* steps) {
    auto& self = *static_cast<TwoSteps*>(steps);
    canele_status_t status{};
    canele_request_status(request, &status);
    self.send_result(status.error == CANELE_OK ? self.operands_.bytes() : 0);
    self.end_step();
  }
  static void sent(canele_request_t*, unsigned, void* steps) { static_cast<TwoSteps*>(steps)->end_step(); }
  static void received(canele_request_t*, unsigned, void* steps) {
    auto& self = *static_cast<TwoSteps*>(steps);
    const Operands& operands = self.operands_;
    if (!self.is_direct() && operands.wanted != 0)
      std::memcpy(operands.output, self.other_.get() + operands.first, operands.wanted);
    self.end_step();
  }

  /// Called when a step has ended, and once when all have begun. The last call ends the request, and so this object.
  void end_step() {
    Request& request = *request_;
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) release(request);  // follows all steps of all threads
  }

  Request* request_ = nullptr;
  Roles roles_;
  Operands operands_;
  std::uint64_t tag_;
  canele_session_t* session_ = nullptr;
  std::unique_ptr<char[]> own_, other_;  // results of both groups
  std::unique_ptr<Transfer[]> sends_;
  Transfer receive_;
  canele_request_t own_step_{};
  std::atomic<int> pending_{1};
  std::atomic<int> code_{MPI_SUCCESS};  // of a step that could not begin
};

/// What a call gives.
struct Asked {
  const void* send;
  void* receive;
  std::int64_t count;  ///< elements of each operand
  MPI_Datatype type;
  MPI_Op op;
  std::int64_t first, wanted;  ///< elements of the result that this rank wants
};

int check_buffers(const Asked& asked, const Roles& roles) {
  if ((roles.contributes && asked.send == MPI_IN_PLACE) || (roles.source >= 0 && asked.receive == MPI_IN_PLACE))
    return fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed on an intercommunicator");
  if (roles.contributes && roles.source >= 0 && asked.send == asked.receive && asked.count > 0)
    return fail(MPI_ERR_BUFFER, "the send buffer is also the receive buffer");
  return MPI_SUCCESS;
}

/// Prepares the data of a rank that takes part.
int take_operands(Staging& staging, const Asked& asked, const Roles& roles, Operands* operands) {
  Buffer given;
  Operator op;
  int code = check_buffers(asked, roles);
  if (code == MPI_SUCCESS) code = get_buffer(asked.send, asked.count, asked.type, &given);
  if (code == MPI_SUCCESS) code = get_operator(asked.op, *given.type, &op);
  if (code != MPI_SUCCESS) return code;
  staging.combine_with(op, *given.type, &operands->op);
  if (given.type->size != 0) {
    operands->count = static_cast<std::size_t>(asked.count);
    operands->first = static_cast<std::size_t>(asked.first) * operands->op.element;
    operands->wanted = static_cast<std::size_t>(asked.wanted) * operands->op.element;
  }
  if (roles.contributes) code = staging.input_slots(given, &operands->input);
  if (code != MPI_SUCCESS || roles.source < 0) return code;
  const Buffer result{asked.receive, asked.wanted, given.type};
  return staging.output_slots(result, asked.wanted, false, &operands->output);
}

int begin(const Start& start, std::unique_ptr<TwoSteps> steps) {
  Request& request = Request::of(*start.request);
  request.flags |= Request::special;
  request.work = steps.get();
  TwoSteps& begun = *steps.release();
  const int code = begun.open_group("");
  return code == MPI_SUCCESS ? begun.start(request) : code;
}

int begin(const Plan& plan, std::unique_ptr<TwoSteps> steps) {
  *plan.made = std::move(steps);
  return MPI_SUCCESS;
}

/// Returns the tag of the next reduction. All ranks count alike, also if their calls then fail.
std::uint64_t next_tag(const Communicator& comm) { return kTagsOfReductions + comm.inter()->reductions.fetch_add(1); }

template <class How>
int start_steps(const How& start, std::uint64_t tag, const Asked& asked, Roles roles) {
  Operands operands;
  if (roles.contributes || roles.source >= 0) {
    const int code = take_operands(*start.staging, asked, roles, &operands);
    if (code != MPI_SUCCESS) return code;
  }
  return begin(start, std::make_unique<TwoSteps>(start.comm, tag, std::move(roles), operands));
}

/// All ranks of both groups want the result. A rank of one group has it from one rank of the other group.
Roles roles_of_all(const Communicator& comm) {
  const int own_size = comm.own_ranks()->size();
  Roles roles;
  roles.contributes = true;
  roles.source = comm.world_rank(comm.rank() % comm.size());
  for (int rank = comm.rank(); rank < comm.size(); rank += own_size)
    roles.destinations.push_back(comm.world_rank(rank));
  return roles;
}

}  // namespace

template <class How>
int reduce_between(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   int root) {
  const std::uint64_t tag = next_tag(start.comm);
  if (const int code = check_root_between(start.comm, root); code != MPI_SUCCESS) return code;
  Roles roles;
  roles.own_root = 0;
  roles.contributes = root >= 0;
  if (root == MPI_ROOT) roles.source = start.comm.world_rank(0);
  if (root >= 0 && start.comm.rank() == 0) roles.destinations.push_back(start.comm.world_rank(root));
  return start_steps(start, tag, {send, receive, count, type, op, 0, count}, std::move(roles));
}

template <class How>
int allreduce_between(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type,
                      MPI_Op op) {
  const std::uint64_t tag = next_tag(start.comm);
  return start_steps(start, tag, {send, receive, count, type, op, 0, count}, roles_of_all(start.comm));
}

template <class How>
int reduce_scatter_between(const How& start, const void* send, void* receive, const Integers& counts, MPI_Datatype type,
                           MPI_Op op) {
  const std::uint64_t tag = next_tag(start.comm);
  std::vector<std::size_t> lengths;
  std::int64_t sum = 0, first = 0;
  const int code = take_counts(counts, start.comm.own_ranks()->size(), &lengths, &sum);
  if (code != MPI_SUCCESS) return code;
  const auto rank = static_cast<std::size_t>(start.comm.rank());
  for (std::size_t i = 0; i < rank; ++i) first += counts[i];
  return start_steps(start, tag, {send, receive, sum, type, op, first, counts[rank]}, roles_of_all(start.comm));
}

template <class How>
int reduce_scatter_block_between(const How& start, const void* send, void* receive, MPI_Count count, MPI_Datatype type,
                                 MPI_Op op) {
  const std::uint64_t tag = next_tag(start.comm);
  std::int64_t all = 0;
  const int code = multiply_count(count, start.comm.own_ranks()->size(), &all);
  if (code != MPI_SUCCESS) return code;
  return start_steps(start, tag, {send, receive, all, type, op, count * start.comm.rank(), count},
                     roles_of_all(start.comm));
}

#define CANELE_MPI_REDUCTIONS(How)                                                                            \
  template int reduce_between(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int);          \
  template int allreduce_between(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op);            \
  template int reduce_scatter_between(const How&, const void*, void*, const Integers&, MPI_Datatype, MPI_Op); \
  template int reduce_scatter_block_between(const How&, const void*, void*, MPI_Count, MPI_Datatype, MPI_Op)

CANELE_MPI_REDUCTIONS(Start);
CANELE_MPI_REDUCTIONS(Plan);

}  // namespace canele::mpi
