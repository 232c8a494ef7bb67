// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations: the loops, the floor, the checks of the data.
//
//     rank 1 (target)   memory ── key ──▶ ................ receive ......... ◀── number of operations ── check ─▶ free
//     rank 0 (origin)            opens it ─▶ warm-up ─▶ batches: ours, floor ─▶ check ─▶ closes it
//
// A window takes successive slots of the memory, so that no two puts of it write the same bytes. Atomic operations all
// take the first word. The floor has the second half of mapped memory and a buffer of its own: it cannot hide a failure
// of ours.
#include "one_sided.hpp"

#include <canele/one_sided.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "measure.hpp"
#include "one_sided_notified.hpp"

namespace canele::perf {
namespace {

constexpr std::uint64_t key_tag = 21, end_tag = 22;
constexpr std::byte pattern{0x5a};
constexpr std::uint64_t floor_alignment = 64;

bool is_atomic(OneSidedOperation operation) {
  return operation == OneSidedOperation::fetch_and_add || operation == OneSidedOperation::compare_and_swap;
}

std::size_t slots_size(const OneSidedCase& one) {
  return one.size * static_cast<std::uint64_t>(is_atomic(one.operation) ? 1 : one.window);
}

/// Returns where the floor's half of the memory begins.
std::size_t floor_offset(const OneSidedCase& one) {
  return (slots_size(one) + floor_alignment - 1) / floor_alignment * floor_alignment;
}

[[noreturn]] void wrong(const OneSidedCase& one, const char* where) {
  throw std::runtime_error(std::string(name_of(one.operation)) + " of " + std::to_string(one.size) + " bytes, memory " +
                           name_of(one.memory) + ": wrong data at the " + where);
}

/// Returns what a word of the case holds after it was set to a number.
std::uint64_t word_of(const OneSidedCase& one, std::uint64_t number) {
  return one.size == sizeof(std::uint32_t) ? static_cast<std::uint32_t>(number) : number;
}

void check_pattern(const OneSidedCase& one, const std::byte* data, const char* where) {
  const std::byte* const end = data + slots_size(one);
  if (std::find_if(data, end, [](std::byte byte) { return byte != pattern; }) != end) wrong(one, where);
}

/// The memory of the target, and its key.
class Target {
 public:
  Target(Job& job, const OneSidedCase& one) : one_(one) {
    const std::size_t length = 2 * floor_offset(one);
    void* base = nullptr;
    if (one.memory == TargetMemory::mapped) {
      must(canele_memory_allocate(job.engine.native(), length, nullptr, &base, &memory_), "canele_memory_allocate");
    } else {
      own_.resize(length);
      base = own_.data();
      must(canele_memory_register(job.engine.native(), base, length, nullptr, &memory_), "canele_memory_register");
    }
    base_ = static_cast<std::byte*>(base);
    if (one.operation == OneSidedOperation::get) std::fill_n(base_, length, pattern);
  }

  /// Lets the origin measure; checks what it has written. An atomic operation adds 1 to the word.
  void serve(Job& job) {
    std::array<unsigned char, CANELE_KEY_SIZE> key{};
    must(canele_memory_key(memory_, key.data()), "canele_memory_key");
    job.session.send(job.peer(), key_tag, key);
    std::uint64_t operations = 0;
    job.session.recv(job.peer(), end_tag, canele::one(operations));
    if (one_.operation == OneSidedOperation::put) check_pattern(one_, base_, "target");
    if (is_atomic(one_.operation)) {
      std::uint64_t word = 0;
      std::memcpy(&word, base_, one_.size);
      if (word != word_of(one_, operations)) wrong(one_, "target");
    }
    must(canele_memory_free(memory_), "canele_memory_free");
  }

 private:
  const OneSidedCase& one_;
  std::vector<std::byte> own_;
  std::byte* base_ = nullptr;
  canele_memory_t* memory_ = nullptr;
};

/// The origin's side of one case: the key, and a buffer for each operation of a window.
class Origin {
 public:
  Origin(Job& job, const OneSidedCase& one) : job_(job), one_(one), buffer_(slots_size(one)) {
    std::array<unsigned char, CANELE_KEY_SIZE> bytes{};
    job.session.recv(job.peer(), key_tag, bytes);
    must(canele_key_open(job.engine.native(), bytes.data(), &key_), "canele_key_open");
    void* address = nullptr;
    if (canele_key_map(key_, &address) == CANELE_OK) {
      mapped_ = static_cast<std::byte*>(address) + floor_offset(one);
      floor_buffer_.assign(buffer_.size(), pattern);
    }
    std::fill(buffer_.begin(), buffer_.end(), one.operation == OneSidedOperation::get ? std::byte{0} : pattern);
    for (int i = 0; i < one.window; ++i) {
      data_.push_back(canele_data_contiguous(buffer_.data() + offset(i), one.size));
    }
    before_.resize(static_cast<std::size_t>(one.window));
  }

  bool mapped() const { return mapped_ != nullptr; }
  double ours() { return in_unit(one_.measure, one_.measure == Measure::latency ? latency_ns() : window_ns()); }
  double floor();

  /// Checks what gets and atomic operations have brought, and ends the target's wait.
  void close() {
    if (one_.operation == OneSidedOperation::get) check_pattern(one_, buffer_.data(), "origin");
    if (is_atomic(one_.operation)) check_results();
    must(canele_key_close(key_), "canele_key_close");
    job_.session.send(job_.peer(), end_tag, canele::one(operations_));
  }

 private:
  std::uint64_t offset(int slot) const {
    return is_atomic(one_.operation) ? 0 : static_cast<std::uint64_t>(slot) * one_.size;
  }
  void check_results() const;
  void post(int slot, canele_request_t* request);
  double latency_ns();
  double window_ns();
  void plain(int slot);
  template <typename Word>
  void plain_atomic();

  Job& job_;
  const OneSidedCase& one_;
  std::vector<std::byte> buffer_, floor_buffer_;
  std::vector<canele_data_t> data_;
  std::vector<std::uint64_t> before_;  ///< results of atomic operations
  canele_key_t* key_ = nullptr;
  std::byte* mapped_ = nullptr;     ///< the floor's half; nullptr: not mapped
  std::uint64_t operations_ = 0;    ///< so far; an atomic operation finds this number in the word
  std::uint64_t floor_result_ = 0;  ///< kept, so that no plain operation is optimised away
};

/// Posts one operation. Without a request it has no completion: a flush covers it.
void Origin::post(int slot, canele_request_t* request) {
  const auto index = static_cast<std::size_t>(slot);
  switch (one_.operation) {
    case OneSidedOperation::put:
      must(canele_put(key_, offset(slot), &data_[index], nullptr, request), "canele_put");
      break;
    case OneSidedOperation::get:
      must(canele_get(key_, offset(slot), &data_[index], nullptr, request), "canele_get");
      break;
    case OneSidedOperation::fetch_and_add:
      must(canele_atomic(key_, 0, CANELE_ATOMIC_ADD, one_.size, 1, 0, &before_[index], nullptr, request),
           "canele_atomic");
      break;
    case OneSidedOperation::compare_and_swap:
      must(canele_atomic(key_, 0, CANELE_ATOMIC_COMPARE_AND_SWAP, one_.size, operations_ + 1, operations_,
                         &before_[index], nullptr, request),
           "canele_atomic");
      break;
  }
  ++operations_;
}

/// Checks the results of the last window. Each operation has found the number of those before it.
void Origin::check_results() const {
  std::uint64_t expected = operations_ - before_.size();
  for (const std::uint64_t before : before_) {
    if (before != word_of(one_, expected++)) wrong(one_, "origin");
  }
}

double Origin::latency_ns() {
  canele_request_t request{};
  const std::uint64_t start = job_.engine.now();
  for (int round = 0; round < one_.rounds; ++round) {
    post(0, &request);
    wait(&request);
  }
  return static_cast<double>(job_.engine.now() - start) / one_.rounds;
}

double Origin::window_ns() {
  canele_request_t flushed{};
  const std::uint64_t start = job_.engine.now();
  for (int round = 0; round < one_.rounds; ++round) {
    for (int slot = 0; slot < one_.window; ++slot) post(slot, nullptr);
    must(canele_flush(job_.engine.native(), job_.peer(), nullptr, &flushed), "canele_flush");
    wait(&flushed);
  }
  return static_cast<double>(job_.engine.now() - start) / (static_cast<double>(one_.rounds) * one_.window);
}

template <typename Word>
void Origin::plain_atomic() {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(mapped_));
  if (one_.operation == OneSidedOperation::fetch_and_add) {
    floor_result_ += word.fetch_add(1);
  } else {
    auto expected = static_cast<Word>(floor_result_);
    if (word.compare_exchange_strong(expected, expected + 1)) ++floor_result_;
  }
}

/// Does one operation without the library.
void Origin::plain(int slot) {
  if (one_.operation == OneSidedOperation::put) {
    std::memcpy(mapped_ + offset(slot), floor_buffer_.data() + offset(slot), one_.size);
  } else if (one_.operation == OneSidedOperation::get) {
    std::memcpy(floor_buffer_.data() + offset(slot), mapped_ + offset(slot), one_.size);
  } else {
    one_.size == sizeof(std::uint32_t) ? plain_atomic<std::uint32_t>() : plain_atomic<std::uint64_t>();
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);  // else the compiler drops all copies but the last one
}

double Origin::floor() {
  const std::uint64_t start = job_.engine.now();
  for (int round = 0; round < one_.rounds; ++round) {
    for (int slot = 0; slot < one_.window; ++slot) plain(slot);
  }
  const auto ns = static_cast<double>(job_.engine.now() - start);
  return in_unit(one_.measure, ns / (static_cast<double>(one_.rounds) * one_.window));
}

OneSidedResult measure_case(Job& job, const Options& options, const OneSidedCase& one) {
  if (one.measure == Measure::notified) return measure_notified(job, options, one);
  OneSidedResult result{one, false, {}, {}};
  if (!job.first()) {
    Target target(job, one);
    target.serve(job);
    return result;
  }
  Origin origin(job, one);
  result.mapped = origin.mapped();
  const bool floor = options.floor && origin.mapped();
  origin.ours();  // warm-up: connects, maps, fills caches
  if (floor) origin.floor();
  for (int i = 0; i < options.batches; ++i) {
    result.ours.push_back(origin.ours());
    if (floor) result.floor.push_back(origin.floor());
  }
  origin.close();
  return result;
}

OneSidedCase case_of(const Options& options, TargetMemory memory, OneSidedOperation operation, Measure measure,
                     std::uint64_t size) {
  const int window = measure == Measure::rate ? options.window_of_one_sided(size) : 1;
  return {memory, operation, measure, size, window, options.rounds(size, window)};
}

}  // namespace

const char* name_of(TargetMemory memory) { return memory == TargetMemory::mapped ? "mapped" : "registered"; }

const char* name_of(OneSidedOperation operation) {
  switch (operation) {
    case OneSidedOperation::put:
      return "put";
    case OneSidedOperation::get:
      return "get";
    case OneSidedOperation::fetch_and_add:
      return "fetch-and-add";
    case OneSidedOperation::compare_and_swap:
      return "compare-and-swap";
  }
  return "";
}

OneSidedResults measure_one_sided(Job& job, const Options& options) {
  OneSidedResults results;
  const OneSidedOptions& wanted = options.one_sided;
  job.session.barrier();
  results.driver = job.driver();
  check_driver(options, results.driver);
  for (const TargetMemory memory : wanted.memories) {
    for (const OneSidedOperation operation : wanted.operations) {
      for (const std::uint64_t size : options.sizes) {
        for (const Measure measure : wanted.measures) {
          results.rows.push_back(measure_case(job, options, case_of(options, memory, operation, measure, size)));
        }
      }
    }
  }
  job.session.barrier();
  return results;
}

}  // namespace canele::perf
