// SPDX-License-Identifier: BSD-3-Clause
//
// Publishing values, and their exchange.
#include "comm/api/exchange.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "comm/bootstrap/limits.hpp"

namespace canele::comm::api {
namespace {

/// Returns a number that differs between machines, 0 if the system gives none.
std::uint64_t machine(Platform& platform) {
  constexpr std::size_t enough = 64;
  const std::string text = platform.read_file("/proc/sys/kernel/random/boot_id", enough).text;
  return text.empty() ? 0 : fingerprint(text);
}

/// The options of both allgathers. Few messages count more than time: a model might choose a ring, with n messages of
/// each of n ranks.
constexpr canele_collective_options_t log_n_messages() {
  canele_collective_options_t options{};
  options.struct_size = sizeof options;
  options.algorithm = CANELE_ALGORITHM_BRUCK;
  return options;
}
constexpr canele_collective_options_t few_messages = log_n_messages();

/// Returns this rank's place, as the launcher and the system give it.
Place place_of(const Engine& engine) {
  const Bootstrap& job = *engine.lifecycle.bootstrap;
  return {static_cast<std::uint32_t>(std::max(0, job.local_rank())),
          static_cast<std::uint32_t>(std::max(1, job.local_size())), machine(engine.platform), job.host()};
}

}  // namespace

Exchange& exchange_of(Engine& engine) {
  engine.lock_for_callback();
  std::shared_ptr<void> there = engine.exchange;
  engine.unlock();
  if (there == nullptr) {
    auto made = std::make_shared<Exchange>(engine);
    engine.lock_for_callback();
    if (engine.exchange == nullptr) engine.exchange = made;
    there = engine.exchange;
    engine.unlock();
  }
  return *static_cast<Exchange*>(there.get());
}

void leave_exchange(Engine& engine) {
  engine.lock_for_callback();
  const std::shared_ptr<void> there = engine.exchange;
  engine.unlock();
  if (there != nullptr) static_cast<Exchange*>(there.get())->leave();
}

void Exchange::leave() {
  if (step_ == Step::begin) return;
  collectives::Group& group = group_of(group_);
  group.propagate(collectives::Failures::all, group.note_end({CANELE_ESTATE, engine_.rank}));
}

int Exchange::publish(std::string_view key, std::span<const std::byte> value) {
  std::string why;
  const std::lock_guard lock(mutex_);
  const std::size_t before = published_.bytes();
  if (!published_.put(key, value, &why)) return error(CANELE_ENOMEM, "canele_publish: " + why);
  engine_.counters.add_shared(Counter::published_bytes_now, published_.bytes() - before);
  return CANELE_OK;
}

std::shared_ptr<const ExchangedValues> Exchange::values() {
  const std::lock_guard lock(mutex_);
  return values_;
}

int Exchange::run(std::uint64_t deadline) {
  // Acquire: pairs with the release below; the former thread's step is visible.
  if (busy_.exchange(true, std::memory_order_acquire))
    return error(CANELE_EBUSY, "canele_exchange: another thread of this rank is in it");
  int code;
  try {
    code = run_steps(deadline);
  } catch (const std::bad_alloc&) {
    code = give_up(CANELE_ENOMEM, engine_.rank, "canele_exchange: no memory for the values");
  } catch (...) {
    busy_.store(false, std::memory_order_release);
    throw;
  }
  busy_.store(false, std::memory_order_release);
  return code;
}

int Exchange::run_steps(std::uint64_t deadline) {
  if (step_ == Step::begin) {
    if (const int code = begin(); code != CANELE_OK) return code;
  }
  while (step_ != Step::begin) {
    if (const int code = wait(deadline); code != CANELE_OK) return code;
    const int code = step_ == Step::lengths ? begin_values() : end_values();
    if (code != CANELE_OK) return code;
  }
  return CANELE_OK;
}

/// Ends the exchange on all ranks. No request of it is pending here.
int Exchange::give_up(int code, int rank, std::string words) {
  step_ = Step::begin;
  incoming_.reset();
  if (group_ != nullptr) {
    collectives::Group& group = group_of(group_);
    group.propagate(collectives::Failures::all, group.note_end({code, rank}));
  }
  return error(code, std::move(words));
}

int Exchange::begin() {
  const auto ranks = static_cast<std::size_t>(engine_.size);
  all_lengths_.assign(ranks, 0);
  if (group_ == nullptr) {
    if (const int code = make_group(engine_, std::string(group_label), {}, &group_); code != CANELE_OK) return code;
  }
  const Place place = place_of(engine_);
  {
    const std::lock_guard lock(mutex_);
    outgoing_ = published_.encode(place);
  }
  length_ = outgoing_.size();
  const canele_parts_t parts{sizeof length_, nullptr, nullptr};
  const int code = canele_iallgather(group_, &length_, all_lengths_.data(), &parts, &few_messages, &request_);
  if (code != CANELE_OK) return give_up(code, engine_.rank, canele_error_detail());
  step_ = Step::lengths;
  return CANELE_OK;
}

int Exchange::begin_values() {
  const auto wrong = std::find_if(all_lengths_.begin(), all_lengths_.end(), [](auto n) { return n > longest_encoded; });
  if (wrong != all_lengths_.end()) {
    const int rank = static_cast<int>(wrong - all_lengths_.begin());
    return give_up(CANELE_EPROTOCOL, rank,
                   "canele_exchange: rank " + std::to_string(rank) + " sends " + std::to_string(*wrong) +
                       " bytes, and " + std::to_string(longest_encoded) + " are allowed");
  }
  incoming_ = std::make_shared<ExchangedValues>(std::vector<std::size_t>(all_lengths_.begin(), all_lengths_.end()));
  const canele_parts_t parts{0, incoming_->lengths().data(), nullptr};
  const int code =
      canele_iallgather(group_, outgoing_.data(), incoming_->bytes().data(), &parts, &few_messages, &request_);
  if (code != CANELE_OK) return give_up(code, engine_.rank, canele_error_detail());
  step_ = Step::values;
  return CANELE_OK;
}

int Exchange::end_values() {
  if (const int rank = incoming_->read(); rank >= 0) {
    return give_up(CANELE_EPROTOCOL, rank,
                   "canele_exchange: the values of rank " + std::to_string(rank) + " are malformed");
  }
  const std::size_t bytes = incoming_->size();
  std::shared_ptr<const ExchangedValues> former = std::move(incoming_);
  std::size_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    if (values_ != nullptr) before = values_->size();
    values_.swap(former);
  }
  engine_.counters.add_shared(Counter::exchanged_bytes_now, bytes - before);
  step_ = Step::begin;
  return CANELE_OK;
}

/// Waits for the allgather of this step.
int Exchange::wait(std::uint64_t deadline) {
  const int code = canele_wait_until(&request_, deadline, nullptr);
  if (code == CANELE_OK) return code;
  const std::string words = canele_error_detail();
  if (!request_of(&request_).finalized() && request_of(&request_).kind != Request::Kind::null)
    return error(code, "canele_exchange: " + words + "; the next call continues the exchange");
  step_ = Step::begin;
  incoming_.reset();
  return error(code, "canele_exchange: " + words);
}

}  // namespace canele::comm::api
