// SPDX-License-Identifier: BSD-3-Clause
//
// What the collectives of the C ABI share: checking the arguments of a call, and starting it.
//
// Used by collective_api.cpp (groups, operators, reductions) and collective_parts_api.cpp (collectives with parts in
// memory). As collectives.h says, one thread at a time calls for one group. A checker keeps the first error, and the
// caller checks once, at the end.
#pragma once

#include <canele/collectives.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/api/api.hpp"
#include "comm/api/device_use.hpp"
#include "comm/collectives/async_executor.hpp"
#include "comm/collectives/blocking_executor.hpp"
#include "comm/collectives/group.hpp"

namespace canele::comm::api {

inline collectives::Group& group_of(canele_group_t* g) { return *reinterpret_cast<collectives::Group*>(g); }
inline const collectives::Group& group_of(const canele_group_t* g) {
  return *reinterpret_cast<const collectives::Group*>(g);
}

/// One call of the C ABI, from its arguments to its execution. Valid arguments are tested inline; errors are described
/// out of line.
class Collective {
 public:
  Collective(const char* name, collectives::Operation operation, canele_group_t* group,
             const canele_collective_options_t* options, canele_request_t* request)
      : name_(name),
        group_(reinterpret_cast<collectives::Group*>(group)),
        options_(options),
        request_(reinterpret_cast<Request*>(request)) {
    call.operation = operation;
    if (group == nullptr || !(request == nullptr ? is_blocking() : request_->stage == Request::Stage::idle))
        [[unlikely]] {
      reject();
      return;
    }
    call.size = group_->size();
    call.rank = group_->rank();
  }

  bool well() const { return code_ == CANELE_OK; }
  /// Records an error, unless one was recorded before.
  [[gnu::cold]] void wrong(int code, const std::string& words);
  void require(bool right, const char* words) {
    if (!right) [[unlikely]]
      wrong(CANELE_EINVAL, words);
  }
  void root(int position) {
    call.root = position;
    if (position < 0 || position >= call.size) [[unlikely]]
      wrong_root();
  }
  void operation(const canele_operator_t* given) {
    if (given == nullptr || given->combine == nullptr || given->element == 0) [[unlikely]]
      return wrong_operator();
    work.combine = *given;
    call.element = given->element;
    call.commutes = given->commutes != 0;
  }
  /// Returns the bytes of `count` elements of the operator.
  std::uint64_t bytes(std::size_t count) {
    std::uint64_t length = 0;
    if (__builtin_mul_overflow(std::uint64_t{count}, call.element, &length)) [[unlikely]]
      too_many(count);
    return length;
  }
  /// Checks that memory of `length` bytes was given.
  void memory(const void* address, std::uint64_t length, const char* name) {
    if ((address == nullptr && length != 0) || length > PTRDIFF_MAX) [[unlikely]]
      no_memory_given(length, name);
    if (length != 0 && group_ != nullptr && device::present(group_->engine)) [[unlikely]]
      on_device(address, name);
  }
  /// Sets the input: `input`, or CANELE_IN_PLACE.
  void input(const void* input, std::uint64_t length) {
    call.in_place = input == CANELE_IN_PLACE;
    if (call.in_place) return;
    memory(input, length, "input");
    work.input = static_cast<const std::byte*>(input);
  }
  /// Returns the blocks that the user gives as parts. The result may point into `sums`.
  collectives::Blocks blocks_of(const canele_parts_t& given, std::vector<std::uint64_t>& sums) {
    collectives::Blocks result{given.length, given.lengths, given.offsets, nullptr};
    if (given.lengths != nullptr && given.offsets == nullptr) result.sums = add_up(given, sums);
    return result;
  }
  /// Returns the number of bytes from the beginning of the buffer to the end of the last part.
  std::uint64_t extent(const collectives::Blocks& blocks) const {
    const bool alike = blocks.lengths == nullptr && blocks.offsets == nullptr;
    return alike ? blocks.length * static_cast<std::uint64_t>(call.size) : last_end(blocks);
  }

  bool at_root() const { return call.rank == call.root; }
  /// Checks the edges of an exchange, and the memory that they name.
  std::span<const canele_edge_t> edges(const canele_edge_t* given, std::size_t count, const void* memory,
                                       const char* name);
  /// Starts the collective if no error was recorded; else returns the first error.
  int begin();
  /// Starts an exchange with neighbours in the same way.
  int begin_exchange(std::span<const canele_edge_t> sends, std::span<const canele_edge_t> receives);
  /// Describes the failure of a blocking call without a request that ran without this object. Returns the error code.
  [[gnu::cold, gnu::noinline]] int failed(std::uint64_t number, const collectives::Ending& ending);

  collectives::Call call;
  collectives::Work work;

 private:
  [[gnu::cold]] void reject();
  [[gnu::cold]] void wrong_root();
  [[gnu::cold]] void wrong_operator();
  [[gnu::cold]] void too_many(std::size_t count);
  [[gnu::cold]] void no_memory_given(std::uint64_t length, const char* name);
  [[gnu::cold]] void on_device(const void* address, const char* name);
  const std::uint64_t* add_up(const canele_parts_t& given, std::vector<std::uint64_t>& sums) const;
  std::uint64_t last_end(const collectives::Blocks& blocks) const;
  bool is_blocking() const {
    return options_ != nullptr && options_->struct_size >= sizeof *options_ && options_->blocking != 0;
  }
  /// Like is_blocking(), for options whose size has been checked.
  bool blocks() const { return options_ != nullptr && options_->blocking != 0; }
  /// Returns true if a callback or a queue is registered for the request's events.
  bool tells_of_events() const {
    return request_ != nullptr && request_->word.load(std::memory_order_relaxed) >> RequestWord::wanted_shift != 0;
  }
  bool options_leave_all_open() const;
  int choice(collectives::Choice* asked) const;
  int prepare(collectives::Choice* asked);
  int run(const std::shared_ptr<const collectives::Schedule>& schedule);
  collectives::CallProfile* profile_of(const collectives::Schedule& schedule) const;
  int start_async(const std::shared_ptr<const collectives::Schedule>& schedule, Request& request);
  int run_without_request(const std::shared_ptr<const collectives::Schedule>& schedule);
  int carry_out(const collectives::Schedule& schedule);
  void set_outcome(Request& request, std::uint64_t number, const collectives::Ending& ending) const;
  [[gnu::cold]] int return_outcome(std::uint64_t number, const collectives::Ending& ending) const;
  [[gnu::cold]] int would_wait_for_itself() const;
  [[gnu::cold]] int no_option(const std::string& words) const;
  [[gnu::cold]] int no_memory(const char* whose) const;

  const char* const name_;
  collectives::Group* const group_;
  const canele_collective_options_t* const options_;
  Request* const request_;
  int code_ = CANELE_OK;
};

/// A blocking call that repeats the previous one on other buffers reuses its cached schedule. If the call is unusual or
/// invalid, the caller starts over with a Collective, which finds the error.
class RepeatedCall {
 public:
  RepeatedCall(canele_group_t* group, const canele_collective_options_t* options, const canele_request_t* request)
      : group_(reinterpret_cast<collectives::Group*>(group)), options_(options) {
    fast_ = group != nullptr && request == nullptr && options != nullptr && options->struct_size == sizeof *options &&
            options->blocking != 0 && (options->algorithm | options->radix | options->window) == 0 &&
            options->segment == 0 && callback_depth() == 0 && !fork::in_child && !device::present(group_->engine);
  }
  /// Returns true if `call` repeats the previous one and can be executed by carry_out(). False: nothing was done.
  [[gnu::always_inline]] bool matches(const collectives::ScheduleCache::FastCall& call) {
    if (!fast_) return false;
    schedule_ = group_->schedules.of_the_last(call, group_->overrides[static_cast<std::size_t>(call.operation)]);
    return schedule_ != nullptr && collectives::BlockingExecutor::suits(*schedule_);
  }
  bool at_root(int root) const { return fast_ && group_->rank() == root; }
  /// Executes the collective. Only after matches() has returned true.
  [[gnu::always_inline]] int carry_out(const char* name, collectives::Operation operation, collectives::Work work) {
    const std::uint64_t number = group_->started;
    work.priority = options_->priority;
    const collectives::Ending ending = group_->blocking_executor().carry_out(*schedule_, work);
    if (ending.code == CANELE_OK) [[likely]]
      return CANELE_OK;
    auto* const group = reinterpret_cast<canele_group_t*>(group_);
    return Collective(name, operation, group, options_, nullptr).failed(number, ending);
  }

 private:
  collectives::Group* const group_;
  const canele_collective_options_t* const options_;
  const collectives::Schedule* schedule_ = nullptr;
  bool fast_;
};

/// Makes a group of the engine. `label` has been checked, or is the library's own; `ranks` are distinct, with this one;
/// none: all ranks.
int make_group(Engine& engine, const std::string& label, std::vector<int> ranks, canele_group_t** group);

/// Returns true for memory that is neither NULL nor CANELE_IN_PLACE.
inline bool is_there(const void* memory) { return memory != nullptr && memory != CANELE_IN_PLACE; }

}  // namespace canele::comm::api
