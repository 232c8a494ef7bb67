// SPDX-License-Identifier: BSD-3-Clause
//
// Checking and starting collectives.
//
// The request is initialized last, so a call that fails leaves it unchanged.
#include "comm/api/collective_call.hpp"

#include <algorithm>
#include <new>

#include "comm/api/api.hpp"
#include "comm/collectives/blocking_executor.hpp"

namespace canele::comm::api {

using collectives::Algorithm;
using collectives::BlockingExecutor;
using collectives::Blocks;
using collectives::Choice;
using collectives::Group;
using collectives::Operation;

static_assert(CANELE_ALGORITHM_HALVING_DOUBLING == static_cast<int>(Algorithm::halving_doubling));
static_assert(CANELE_ALGORITHM_CHAIN == static_cast<int>(Algorithm::chain));

void Collective::reject() {
  if (group_ == nullptr || request_ == nullptr) {
    return wrong(CANELE_EINVAL, "group and request must be given (a call that blocks needs no request)");
  }
  wrong(CANELE_ESTATE, "the request is still in use (or its memory was not zeroed before its first use)");
}

void Collective::wrong(int code, const std::string& words) {
  if (code_ == CANELE_OK) code_ = error(code, std::string(name_) + ": " + words);
}

void Collective::wrong_root() {
  wrong(CANELE_ERANK, "root " + std::to_string(call.root) + ": positions of this group run from 0 to " +
                          std::to_string(call.size - 1));
}

void Collective::wrong_operator() {
  wrong(CANELE_EINVAL, "the operator, its function and the size of its elements must be given");
}

void Collective::too_many(std::size_t count) {
  wrong(CANELE_EINVAL,
        std::to_string(count) + " elements of " + std::to_string(call.element) + " bytes exceed the address space");
}

void Collective::no_memory_given(std::uint64_t length, const char* name) {
  if (length > PTRDIFF_MAX)
    return wrong(CANELE_EINVAL,
                 std::string(name) + " has " + std::to_string(length) + " bytes, which exceeds the address space");
  wrong(CANELE_EINVAL, std::string(name) + " is NULL, but " + std::to_string(length) + " bytes of it are used");
}

void Collective::on_device(const void* address, const char* name) {
  const std::string why = device::reject_device_memory(group_->engine, address);
  if (!why.empty()) wrong(CANELE_EINVAL, std::string(name) + ": " + why);
}

const std::uint64_t* Collective::add_up(const canele_parts_t& given, std::vector<std::uint64_t>& sums) const {
  std::uint64_t sum = 0;
  for (int r = 0; r < call.size; ++r) {
    sums.push_back(sum);
    sum += given.lengths[r];
  }
  return sums.data();
}

std::uint64_t Collective::last_end(const Blocks& blocks) const {
  std::uint64_t end = 0;
  for (int r = 0; r < call.size; ++r) {
    if (blocks.length_of(r) != 0) end = std::max(end, blocks.offset_of(r) + blocks.length_of(r));
  }
  return end;
}

int Collective::no_option(const std::string& words) const {
  return error(CANELE_EINVAL, std::string(name_) + ": options->" + words);
}

/// Returns true if the options set nothing but `blocking` and `priority`.
bool Collective::options_leave_all_open() const {
  return options_ == nullptr ||
         (options_->struct_size == sizeof *options_ &&
          (options_->algorithm | options_->radix | options_->window) == 0 && options_->segment == 0);
}

/// Reads the options, which override the setting, into *asked. Returns an error code.
int Collective::choice(Choice* asked) const {
  const int code = check_size(options_, options_->struct_size, sizeof *options_, name_, "canele_collective_options_t");
  if (code != CANELE_OK) return code;
  const bool exists = options_->algorithm >= 0 && options_->algorithm < collectives::algorithms;
  const auto algorithm = static_cast<Algorithm>(exists ? options_->algorithm : 0);
  if (!exists || (algorithm != Algorithm::automatic && !collectives::has(call.operation, algorithm))) {
    return no_option("algorithm is " + std::to_string(options_->algorithm) + "; expected for " +
                     std::string(collectives::name_of(call.operation)) + ": " +
                     collectives::algorithms_of(call.operation));
  }
  constexpr int widest = 64;
  if (options_->radix != 0 && (options_->radix < 2 || options_->radix > widest))
    return no_option("radix is " + std::to_string(options_->radix) + "; expected: 0, or 2 to 64");
  if (options_->window < 0)
    return no_option("window is " + std::to_string(options_->window) + "; expected: at least 0");
  if (algorithm != Algorithm::automatic) asked->algorithm = algorithm;
  asked->radix = static_cast<std::uint32_t>(options_->radix);
  asked->segment = options_->segment;
  asked->inflight_limit = static_cast<std::uint32_t>(options_->window);
  return CANELE_OK;
}

int Collective::would_wait_for_itself() const {
  return error(CANELE_EDEADLK,
               std::string(name_) + ": a blocking call inside a completion callback would wait for itself");
}

/// Executes the collective on this thread.
inline int Collective::carry_out(const collectives::Schedule& schedule) {
  const std::uint64_t number = group_->started;
  const collectives::Ending ending = group_->blocking_executor().carry_out(schedule, work);
  if (request_ == nullptr && ending.code == CANELE_OK) [[likely]]
    return CANELE_OK;
  if (request_ == nullptr || ending == BlockingExecutor::no_scratch) return failed(number, ending);
  set_outcome(*request_, number, ending);
  return CANELE_OK;
}

int Collective::failed(std::uint64_t number, const collectives::Ending& ending) {
  return ending == BlockingExecutor::no_scratch ? no_memory("scratch") : return_outcome(number, ending);
}

/// Checks what all calls have in common, and reads the options. Returns an error code.
inline int Collective::prepare(Choice* asked) {
  if (fork::in_child) [[unlikely]]
    return reject_in_child(name_);
  if (!options_leave_all_open()) {
    if (const int code = choice(asked); code != CANELE_OK) return code;
  }
  if (blocks() && callback_depth() != 0) [[unlikely]]
    return would_wait_for_itself();
  if (options_ != nullptr) work.priority = options_->priority;
  return CANELE_OK;
}

inline int Collective::run(const std::shared_ptr<const collectives::Schedule>& schedule) {
  const bool blocking = blocks();
  if (blocking && !tells_of_events() && BlockingExecutor::suits(*schedule)) return carry_out(*schedule);
  if (request_ == nullptr) return run_without_request(schedule);
  const int code = start_async(schedule, *request_);
  if (blocking && code == CANELE_OK) canele_wait(public_of(*request_), nullptr);
  return code;
}

int Collective::begin() {
  if (code_ != CANELE_OK) [[unlikely]]
    return code_;
  Choice asked;
  asked.algorithm = group_->overrides[static_cast<std::size_t>(call.operation)];
  if (const int code = prepare(&asked); code != CANELE_OK) [[unlikely]]
    return code;
  const std::shared_ptr<const collectives::Schedule>* schedule = nullptr;
  try {
    schedule = &group_->schedules.find_or_build(call, asked, group_->network);
  } catch (const std::bad_alloc&) {
    return no_memory("schedule");
  }
  return run(*schedule);
}

int Collective::begin_exchange(std::span<const canele_edge_t> sends, std::span<const canele_edge_t> receives) {
  if (code_ != CANELE_OK) return code_;
  Choice asked;
  if (const int code = prepare(&asked); code != CANELE_OK) return code;
  if (asked.algorithm != Algorithm::automatic && asked.algorithm != Algorithm::flat)
    return no_option("algorithm is " + std::to_string(options_->algorithm) + "; expected: flat");
  std::shared_ptr<const collectives::Schedule> schedule;
  try {
    schedule = group_->exchanges.find_or_build(call.rank, sends, receives, asked.inflight_limit);
  } catch (const std::bad_alloc&) {
    return no_memory("schedule");
  }
  return run(schedule);
}

int Collective::run_without_request(const std::shared_ptr<const collectives::Schedule>& schedule) {
  canele_request_t own{};
  const int code = start_async(schedule, request_of(&own));
  return code == CANELE_OK ? canele_wait(&own, nullptr) : code;
}

int Collective::start_async(const std::shared_ptr<const collectives::Schedule>& schedule, Request& request) {
  prepare_send(request, group_->session, group_->engine.rank, group_->started,
               canele_data_contiguous(nullptr, call.length), 0);
  if (!collectives::start(*group_, schedule, work, request, profile_of(*schedule))) {
    transition(request, Request::Stage::idle);
    request.kind = Request::Kind::null;
    return no_memory("messages");
  }
  return CANELE_OK;
}

/// Returns the profile of this call, or nullptr if its tree cannot be split. Splitting helps only if a worker makes
/// progress while the program computes.
collectives::CallProfile* Collective::profile_of(const collectives::Schedule& schedule) const {
  if (is_blocking() || schedule.radix() == 0 || !group_->engine.progress.worker.active() || callback_depth() != 0)
    return nullptr;
  return group_->split_policy.find(call, schedule.radix());
}

int Collective::no_memory(const char* whose) const {
  return error(CANELE_ENOMEM, std::string(name_) + ": no memory for its " + whose);
}

void Collective::set_outcome(Request& request, std::uint64_t number, const collectives::Ending& ending) const {
  const int rank = ending.code == CANELE_OK ? group_->engine.rank : ending.rank;
  end_as_send(request, group_->session, rank, number, call.length, ending.code);
}

int Collective::return_outcome(std::uint64_t number, const collectives::Ending& ending) const {
  if (ending.code == CANELE_EPROTOCOL) {
    return error(ending.code, std::string(name_) + ": a message of rank " + std::to_string(ending.rank) +
                                  " is not as long as this rank's arguments say");
  }
  canele_request_t own{};
  set_outcome(request_of(&own), number, ending);
  tell_outcome(request_of(&own));
  return ending.code;
}

}  // namespace canele::comm::api
