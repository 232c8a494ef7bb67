// SPDX-License-Identifier: BSD-3-Clause
//
// The tables of a profile, and the JSON made of them.
//
// Each thread writes its own table; MPI_Finalize reads all of them. The numbers are atomic although one thread writes
// each. A program that ends MPI while another thread is still inside a call gets a slightly old number, not undefined
// behaviour. No lock is taken. No cache line is shared except that of the number of requests in flight.
#include "starpu_glue/mpi/core/profile.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <string>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi::profile {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

/// A number that one thread writes and another may read.
class Number {
 public:
  std::uint64_t get() const { return value_.load(relaxed); }
  void set(std::uint64_t value) { value_.store(value, relaxed); }
  void add(std::uint64_t more) { set(get() + more); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct Tally {
  Number count, total_ns, least_ns, most_ns;

  void take(std::uint64_t ns) {
    if (count.get() == 0 || ns < least_ns.get()) least_ns.set(ns);
    if (ns > most_ns.get()) most_ns.set(ns);
    count.add(1);
    total_ns.add(ns);
  }
  void merge(const Tally& other) {
    if (other.count.get() == 0) return;
    if (count.get() == 0 || other.least_ns.get() < least_ns.get()) least_ns.set(other.least_ns.get());
    if (other.most_ns.get() > most_ns.get()) most_ns.set(other.most_ns.get());
    count.add(other.count.get());
    total_ns.add(other.total_ns.get());
  }
  void clear() {
    for (Number* one : {&count, &total_ns, &least_ns, &most_ns}) one->set(0);
  }
};

/// Counts of one thread. When it ends, the next thread takes the table over and continues counting in it.
struct Table {
  std::atomic<bool> taken{true};
  Table* next = nullptr;
  Tally functions[kFunctionCount];
  Tally between;           ///< from a request's start to the call that completes it, outside MPI.
  Number by_other_thread;  ///< requests that another thread has completed
  Number mpi_ns;           ///< time inside MPI
  Number overlap_ns;       ///< time outside MPI while a request was in flight
  // Used by the owning thread only:
  Profiled* innermost = nullptr;
  std::uint64_t application_ns = 0;  ///< time outside MPI
  std::uint64_t exit_ns = 0;         ///< when the thread last left MPI; 0: never yet
  std::uint64_t visits = 0;          ///< number of entries into MPI

  void clear() {
    for (Tally& one : functions) one.clear();
    between.clear();
    for (Number* one : {&by_other_thread, &mpi_ns, &overlap_ns}) one->set(0);
    innermost = nullptr;
    application_ns = exit_ns = visits = 0;
  }
};

constinit std::atomic<bool> on{false};

namespace {

constinit std::atomic<Table*> all{nullptr};
constinit std::atomic<std::size_t> tables{0}, uncounted{0};
constinit std::atomic<std::int64_t> in_flight{0};
constinit std::uint64_t began_ns = 0;
constinit Table* main_table = nullptr;

/// Returns a table that no thread uses any more, or a new one; nullptr if there are too many.
Table* take_table() {
  for (Table* table = all.load(std::memory_order_acquire); table != nullptr; table = table->next) {
    bool taken = false;
    if (!table->taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) continue;
    table->innermost = nullptr;
    table->exit_ns = 0;
    return table;
  }
  if (tables.fetch_add(1, relaxed) >= kMostThreads) {
    tables.fetch_sub(1, relaxed);
    return nullptr;
  }
  auto* made = new (std::nothrow) Table;
  if (made == nullptr) return nullptr;
  made->next = all.load(relaxed);
  // Release: pairs with the acquire loads of `all`.
  while (!all.compare_exchange_weak(made->next, made, std::memory_order_release, relaxed)) {
  }
  return made;
}

/// Returns the table when the thread ends.
struct Lease {
  Table* table = nullptr;
  bool uncounted = false;

  ~Lease() {
    if (table != nullptr) table->taken.store(false, std::memory_order_release);  // pairs with take_table
  }
  Table* get() {
    if (table != nullptr || uncounted) return table;
    table = take_table();
    uncounted = table == nullptr;
    if (uncounted) profile::uncounted.fetch_add(1, relaxed);
    return table;
  }
};
thread_local Lease lease;

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

[[gnu::format(printf, 2, 3)]] void append(std::string* text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  *text += line;
}

/// Appends "count": 3, "total_s": ..., without braces.
void append_tally(std::string* text, const Tally& tally) {
  append(text, "\"count\": %llu, \"total_s\": %.9f, \"min_s\": %.9f, \"max_s\": %.9f",
         static_cast<unsigned long long>(tally.count.get()), seconds(tally.total_ns.get()),
         seconds(tally.least_ns.get()), seconds(tally.most_ns.get()));
}

/// Appends the functions that were called, as "functions", and the sums of their classes, as "classes".
void append_functions(std::string* text, const Tally (&functions)[kFunctionCount]) {
  Tally classes[kCallClasses];
  const char* separator = "";
  *text += "  \"functions\": [";
  for (std::size_t of = 0; of < kCallClasses; ++of) {
    for (std::size_t i = 0; i < kFunctionCount; ++i) {
      const auto& [name, call_class] = kFunctions[i];
      if (static_cast<std::size_t>(call_class) != of || functions[i].count.get() == 0) continue;
      classes[of].merge(functions[i]);
      append(text, "%s\n    {\"name\": \"%s\", \"class\": \"%s\", ", separator, name.data(),
             kCallClassNames[of].data());
      append_tally(text, functions[i]);
      *text += "}";
      separator = ",";
    }
  }
  *text += "\n  ],\n  \"classes\": {";
  for (std::size_t of = 0; of < kCallClasses; ++of) {
    append(text, "%s\n    \"%s\": {", of == 0 ? "" : ",", kCallClassNames[of].data());
    append_tally(text, classes[of]);
    *text += "}";
  }
  *text += "\n  }\n}\n";
}

/// Returns the profile as JSON. `wall_ns`: from the end of MPI_Init to the beginning of MPI_Finalize.
std::string json(int rank, int ranks, std::uint64_t wall_ns) {
  static Table sum;  // too large for a stack; only one thread writes a profile
  sum.clear();
  std::string text, threads;
  for (const Table* table = all.load(std::memory_order_acquire); table != nullptr; table = table->next) {
    for (std::size_t i = 0; i < kFunctionCount; ++i) sum.functions[i].merge(table->functions[i]);
    sum.between.merge(table->between);
    sum.by_other_thread.add(table->by_other_thread.get());
    append(&threads, "%s{\"main\": %s, \"mpi_s\": %.9f}", threads.empty() ? "" : ", ",
           table == main_table ? "true" : "false", seconds(table->mpi_ns.get()));
  }
  const std::uint64_t mpi_ns = main_table == nullptr ? 0 : main_table->mpi_ns.get();
  append(&text, "{\n  \"canele_profile\": 1, \"rank\": %d, \"ranks\": %d, \"wall_s\": %.9f,\n", rank, ranks,
         seconds(wall_ns));
  append(&text, "  \"mpi_s\": %.9f, \"application_s\": %.9f, \"overlappable_s\": %.9f,\n", seconds(mpi_ns),
         seconds(wall_ns - mpi_ns), main_table == nullptr ? 0 : seconds(main_table->overlap_ns.get()));
  text += "  \"threads\": [" + threads + "],\n";
  append(&text, "  \"threads_not_counted\": %zu,\n  \"between_call_and_wait\": {", uncounted.load(relaxed));
  append_tally(&text, sum.between);
  append(&text, ", \"by_other_threads\": %llu},\n", static_cast<unsigned long long>(sum.by_other_thread.get()));
  append_functions(&text, sum.functions);
  return text;
}

bool write(const char* pattern, int rank, const std::string& text) {
  std::string name(pattern);
  for (std::size_t at = name.find("%r"); at != std::string::npos; at = name.find("%r", at)) {
    name.replace(at, 2, std::to_string(rank));
  }
  if (name == "-") {
    if (say(text.c_str())) return true;
  } else if (std::FILE* file = std::fopen(name.c_str(), "w"); file != nullptr) {
    const bool written = std::fputs(text.c_str(), file) >= 0;
    if (std::fclose(file) == 0 && written) return true;
  }
  warn("the profile (CANELE_PROFILE) could not be written to %s: %s", name.c_str(), std::strerror(errno));
  return false;
}

}  // namespace

void start() {
  for (Table* table = all.load(std::memory_order_acquire); table != nullptr; table = table->next) table->clear();
  uncounted.store(0, relaxed);
  in_flight.store(0, relaxed);
  main_table = lease.get();
  began_ns = now_ns();
  if (main_table != nullptr) main_table->exit_ns = began_ns;
  on.store(true, std::memory_order_release);
}

bool stop(const char* pattern, int rank, int ranks) {
  on.store(false, relaxed);
  return write(pattern, rank, json(rank, ranks, now_ns() - began_ns));
}

void Profiled::enter(Function function) {
  begin_ns_ = now_ns();
  table_ = lease.get();
  if (table_ == nullptr) return;
  outer_ = table_->innermost;
  inner_ns_ = 0;
  function_ = function.index();
  table_->innermost = this;
  if (outer_ != nullptr) return;
  ++table_->visits;
  if (table_->exit_ns == 0) return;
  const std::uint64_t outside = begin_ns_ - table_->exit_ns;
  table_->application_ns += outside;
  if (in_flight.load(relaxed) > 0) table_->overlap_ns.add(outside);
}

void Profiled::leave() {
  const std::uint64_t now = now_ns(), spent = now - begin_ns_;
  table_->functions[function_].take(spent - inner_ns_);
  table_->innermost = outer_;
  if (outer_ != nullptr) {
    outer_->inner_ns_ += spent;
    return;
  }
  table_->mpi_ns.add(spent);
  table_->exit_ns = now;
}

void Started::note_now() {
  table_ = lease.get();
  if (table_ == nullptr) return;
  application_ns_ = table_->application_ns;
  visit_ = table_->visits;
  in_flight.fetch_add(1, relaxed);
}

void Started::completed_now() {
  in_flight.fetch_sub(1, relaxed);
  Table* own = lease.get();
  if (own == table_) {
    if (own->visits != visit_) own->between.take(own->application_ns - application_ns_);
  } else if (own != nullptr) {
    own->by_other_thread.add(1);
  }
  table_ = nullptr;
}

}  // namespace canele::mpi::profile
