// SPDX-License-Identifier: BSD-3-Clause
//
// Checking and beginning collectives. See collective_call.hpp (who, threads).
// Surprise: the request is made ready last: a call that is refused leaves it as it was.
#include "comm/api/collective_call.hpp"

#include <algorithm>
#include <new>

#include "comm/api/api.hpp"
#include "comm/collectives/direct.hpp"

namespace canele::comm::api {

using collectives::Algorithm;
using collectives::Choice;
using collectives::Direct;
using collectives::Group;
using collectives::Operation;
using collectives::Parts;

static_assert(CANELE_ALGORITHM_HALVING_DOUBLING == static_cast<int>(Algorithm::halving_doubling));
static_assert(CANELE_ALGORITHM_CHAIN == static_cast<int>(Algorithm::chain));

Collective::Collective(const char* name, Operation operation, canele_group_t* group,
                       const canele_collective_options_t* options, canele_request_t* request)
    : name_(name),
      group_(reinterpret_cast<Group*>(group)),
      options_(options),
      request_(reinterpret_cast<Request*>(request)) {
  require(group != nullptr && request != nullptr, "group and request must be given");
  if (!well()) return;
  if (request_->stage != Request::Stage::idle)
    wrong(CANELE_ESTATE, "the request is still in use (or its memory was not zeroed before its first use)");
  call.operation = operation;
  call.size = group_->size();
  call.rank = group_->rank();
}

void Collective::wrong(int code, const std::string& words) {
  if (code_ == CANELE_OK) code_ = error(code, std::string(name_) + ": " + words);
}

void Collective::root(int position) {
  if (!well()) return;
  call.root = position;
  if (position >= 0 && position < call.size) return;
  wrong(CANELE_ERANK, "root " + std::to_string(position) + ": positions of this group run from 0 to " +
                          std::to_string(call.size - 1));
}

void Collective::operation(const canele_operator_t* given) {
  if (given == nullptr || given->combine == nullptr || given->element == 0) {
    return wrong(CANELE_EINVAL, "the operator, its function and the size of its elements must be given");
  }
  work.combine = *given;
  call.element = given->element;
  call.commutes = given->commutes != 0;
}

std::uint64_t Collective::bytes(std::size_t count) {
  std::uint64_t length = 0;
  if (__builtin_mul_overflow(std::uint64_t{count}, call.element, &length)) {
    wrong(CANELE_EINVAL, std::to_string(count) + " elements of " + std::to_string(call.element) +
                             " bytes are more than memory can be");
  }
  return length;
}

void Collective::input(const void* input, std::uint64_t length) {
  call.in_place = input == CANELE_IN_PLACE;
  if (call.in_place) return;
  memory(input, length, "input");
  work.input = static_cast<const std::byte*>(input);
}

Parts Collective::parts(const canele_parts_t& given, std::vector<std::uint64_t>& sums) {
  Parts result{given.length, given.lengths, given.offsets, nullptr};
  if (given.lengths == nullptr || given.offsets != nullptr) return result;
  std::uint64_t sum = 0;
  for (int r = 0; r < call.size; ++r) {
    sums.push_back(sum);
    sum += given.lengths[r];
  }
  result.sums = sums.data();
  return result;
}

std::uint64_t Collective::extent(const Parts& parts) const {
  std::uint64_t end = 0;
  for (int r = 0; r < call.size; ++r) {
    if (parts.length_of(r) != 0) end = std::max(end, parts.offset_of(r) + parts.length_of(r));
  }
  return end;
}

int Collective::no_option(const std::string& words) const {
  return error(CANELE_EINVAL, std::string(name_) + ": options->" + words);
}

/// In: what options and the setting say. Out: that, or an error.
int Collective::choice(Choice* asked) const {
  asked->algorithm = group_->forced[static_cast<std::size_t>(call.operation)];
  asked->radix = 0;
  if (options_ == nullptr) return CANELE_OK;
  if (options_->struct_size < sizeof *options_)
    return no_option("struct_size must be sizeof(canele_collective_options_t)");
  const bool exists = options_->algorithm >= 0 && options_->algorithm < collectives::algorithms;
  const auto algorithm = static_cast<Algorithm>(exists ? options_->algorithm : 0);
  if (!exists || (algorithm != Algorithm::automatic && !collectives::has(call.operation, algorithm))) {
    return no_option("algorithm is " + std::to_string(options_->algorithm) + "; " +
                     std::string(collectives::name_of(call.operation)) + " has " +
                     collectives::algorithms_of(call.operation));
  }
  constexpr int widest = 64;
  if (options_->radix != 0 && (options_->radix < 2 || options_->radix > widest))
    return no_option("radix is " + std::to_string(options_->radix) + ", must be 0 or 2 to 64");
  if (options_->window < 0)
    return no_option("window is " + std::to_string(options_->window) + ", must not be negative");
  if (algorithm != Algorithm::automatic) asked->algorithm = algorithm;
  asked->radix = static_cast<std::uint32_t>(options_->radix);
  asked->segment = options_->segment;
  asked->window = static_cast<std::uint32_t>(options_->window);
  return CANELE_OK;
}

int Collective::begin() {
  Choice asked;
  if (code_ == CANELE_OK) code_ = choice(&asked);
  if (code_ != CANELE_OK) return code_;
  const bool blocking = options_ != nullptr && options_->blocking != 0;
  if (blocking && callback_depth() != 0) {
    return error(CANELE_EDEADLK, std::string(name_) +
                                     ": a blocking call inside a completion callback would wait for "
                                     "itself");
  }
  if (options_ != nullptr) work.priority = options_->priority;
  const std::shared_ptr<const collectives::Schedule>* schedule = nullptr;
  try {
    schedule = &group_->schedules.find_or_build(call, asked, group_->network);
  } catch (const std::bad_alloc&) {
    return no_memory("schedule");
  }
  const bool told = request_->word.load(std::memory_order_relaxed) >> RequestWord::wanted_shift != 0;
  if (blocking && !told && Direct::suits(**schedule)) return carry_out(**schedule);
  prepare_send(*request_, group_->session, group_->engine.rank, group_->started,
               canele_data_contiguous(nullptr, call.length), 0);
  if (!collectives::start(*group_, *schedule, work, *request_)) {
    request_->stage = Request::Stage::idle;
    request_->kind = Request::Kind::null;
    return no_memory("messages");
  }
  if (blocking) canele_wait(public_of(*request_), nullptr);
  return CANELE_OK;
}

int Collective::no_memory(const char* whose) const {
  return error(CANELE_ENOMEM, std::string(name_) + ": no memory for its " + whose);
}

/// On this thread.
int Collective::carry_out(const collectives::Schedule& schedule) {
  const std::uint64_t number = group_->started;
  const collectives::Ending ending = group_->direct().carry_out(schedule, work);
  if (ending.code == CANELE_ENOMEM) return no_memory("scratch");
  Request& request = *request_;
  prepare_outcome(request, group_->session, Request::Kind::send);
  request.rank = ending.code == CANELE_OK ? group_->engine.rank : ending.rank;
  request.status_error = ending.code;
  request.status_tag = number;
  request.status_length = call.length;
  request.word.store(event::finalized, std::memory_order_release);
  return CANELE_OK;
}

}  // namespace canele::comm::api
