// SPDX-License-Identifier: BSD-3-Clause
//
// The choices, and the fibers between them.
//
// A run that turns out to repeat another one is not broken off but finished without choices: threads in the middle of
// production code could not be undone.
#include "tests/exhaustive/schedules/explorer.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace canele::exhaustive {
namespace {

constexpr std::size_t stack_size = 64 * 1024;
Explorer* the_current = nullptr;

}  // namespace

Explorer* Explorer::current() { return the_current; }

Explorer::Explorer(const Options& options) : options_(options) { the_current = this; }
Explorer::~Explorer() { the_current = nullptr; }

// ------------------------------------------------------------------------------------------------------ one run

void Explorer::begin() {
  events_.clear();
  depth_ = 0;
  asleep_ = 0;
  spawned_ = 0;
  old_ = preemptions_ = 0;
  repeats_ = false;
  if (options_.memory == Memory::views) views_.begin();
}

int Explorer::spawn(std::function<void()> body) {
  const int number = spawned_++;
  if (number >= most_threads) std::abort();
  Thread& thread = threads_[static_cast<std::size_t>(number)];
  thread.body = std::move(body);
  thread.pending = Access();
  thread.ready = nullptr;
  thread.begun = thread.ended = thread.yielded = false;
  thread.buffer.clear();
  if (options_.memory == Memory::views) views_.start(number, running_);
  if (!thread.stack) thread.stack = std::make_unique<char[]>(stack_size);
  ::getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = stack_size;
  thread.context.uc_link = nullptr;
  ::makecontext(&thread.context, &Explorer::enter, 0);
  return number;
}

/// Entry point of a fiber.
void Explorer::enter() {
  Explorer& explorer = *the_current;
  const int self = explorer.running_;
  Thread& thread = explorer.threads_[static_cast<std::size_t>(self)];
  thread.body();
  explorer.step({"end", &thread, true, true, false});
  thread.ended = true;
  explorer.choose();
  std::abort();  // no choice resumes a thread that has ended
}

/// Runs one world. Returns true if all threads have ended, in an order that counts.
bool Explorer::run() {
  if (spawned_ > 0) {
    choose();
    running_ = none;
  }
  outcome_.steps += events_.size();
  if (!outcome_.failure.empty()) return false;
  if (!repeats_) ++outcome_.worlds;
  return true;
}

/// Prepares the next run: the last choice that has an alternative takes it. Returns false if there is none.
bool Explorer::next() {
  while (!path_.empty()) {
    Node& node = path_.back();
    node.asleep |= 1u << node.chosen;
    const std::uint32_t left = node.enabled & ~node.asleep;
    if (left != 0) {
      node.chosen = __builtin_ctz(left);
      return true;
    }
    path_.pop_back();
  }
  return false;
}

// ------------------------------------------------------------------------------------------------------ choices

void Explorer::step(const Access& access, const std::function<bool()>* ready) {
  if (running_ == none) return;  // a world is being built or checked
  if (events_.size() > options_.most_steps) fail("it does not end");
  Thread& self = threads_[static_cast<std::size_t>(running_)];
  self.pending = access;
  self.ready = ready;
  choose();
}

void Explorer::enter(const Access& access, const std::function<bool()>* ready) {
  step(access, ready);
  if (views()) views_.acquire(running_, access.object);
}

void Explorer::leave(const Access& access) {
  step(access);
  if (views()) views_.release(running_, access.object);
}

void Explorer::call(const Access& access, const std::function<bool()>* ready) {
  enter(access, ready);
  if (views()) views_.release(running_, access.object);
}

bool Explorer::touch(const void* object) { return !views() || views_.touch(running_, object); }

void Explorer::yield() {
  if (running_ == none) return;
  threads_[static_cast<std::size_t>(running_)].yielded = true;
  step({"yield", nullptr, false, false, true});
  if (views()) views_.catch_up(running_);
}

void Explorer::fence_everywhere() {
  step({"fence everywhere", nullptr, false, true, true});
  if (views()) views_.fence_everywhere(running_, spawned_);
  for (int i = 0; i < spawned_; ++i) {
    while (!threads_[static_cast<std::size_t>(i)].buffer.empty()) flush(i);
  }
}

void Explorer::join(int thread) {
  Thread& other = threads_[static_cast<std::size_t>(thread)];
  const std::function<bool()> ended = [&other] { return other.ended; };
  step({"join", &other, false, true, false}, &ended);
  if (views()) views_.join(running_, thread);
}

std::uint32_t Explorer::enabled_ids() {
  std::uint32_t ids = 0, yielded = 0;
  for (int i = 0; i < spawned_; ++i) {
    const Thread& thread = threads_[static_cast<std::size_t>(i)];
    if (!thread.buffer.empty()) ids |= 1u << (most_threads + i);
    if (thread.ended || (thread.pending.drains && !thread.buffer.empty())) continue;
    if (thread.ready != nullptr && !(*thread.ready)()) continue;
    (thread.yielded ? yielded : ids) |= 1u << i;
  }
  return ids != 0 ? ids : yielded;
}

/// Chooses the thread that continues. Returns when the calling thread may make its access or, in run(), when all
/// threads have ended.
void Explorer::choose() {
  for (;;) {
    const std::uint32_t enabled = enabled_ids();
    if (enabled == 0) {
      const bool all =
          std::all_of(threads_.begin(), threads_.begin() + spawned_, [](const Thread& thread) { return thread.ended; });
      if (!all) fail("no thread can go on: a wake-up was lost");
      return give_up();
    }
    const int id = decide(enabled);
    if (!outcome_.failure.empty()) return give_up();
    const Access access = access_of(id);
    events_.push_back({id, access.what, access.object, 0});
    for (int i = 0; i < spawned_; ++i) {
      if (i != id) threads_[static_cast<std::size_t>(i)].yielded = false;
    }
    if (id >= most_threads) {
      flush(id - most_threads);
      continue;
    }
    if (id != running_) switch_to(id);
    return;
  }
}

int Explorer::decide(std::uint32_t enabled) {
  const int preferred = running_ != none && (enabled >> running_ & 1) != 0 ? running_ : __builtin_ctz(enabled);
  if (repeats_) return preferred;
  const bool may_go_on = running_ != none && preferred == running_;
  if (may_go_on && preemptions_ >= options_.most_preemptions) enabled = 1u << running_;
  if (depth_ == path_.size()) {
    const std::uint32_t awake = enabled & ~asleep_;
    if (awake == 0) {
      repeats_ = true;
      return preferred;
    }
    path_.push_back({enabled, asleep_, (awake >> preferred & 1) != 0 ? preferred : __builtin_ctz(awake)});
  }
  const Node& node = path_[depth_++];
  if (node.enabled != enabled) fail("the explorer's fault: the same order leads elsewhere");
  asleep_ = 0;
  for (int id = 0; options_.reduce && id < 2 * most_threads; ++id) {
    if ((node.asleep >> id & 1) != 0 && commute(id, node.chosen)) asleep_ |= 1u << id;
  }
  if (may_go_on && node.chosen != running_) ++preemptions_;
  return node.chosen;
}

Access Explorer::access_of(int id) const {
  if (id < most_threads) return threads_[static_cast<std::size_t>(id)].pending;
  return {"reaches memory", threads_[static_cast<std::size_t>(id - most_threads)].buffer.front().address, true, false,
          false};
}

/// Returns whether the next steps of these two commute. If not, the order in which `chosen` goes first must be run. If
/// they do, the other order has already led to all that it would lead to: the sleeping one was chosen first.
bool Explorer::commute(int asleep, int chosen) const {
  if (asleep == chosen) return false;
  const int first = std::min(asleep, chosen), second = std::max(asleep, chosen);
  if (second == first + most_threads) return !access_of(first).drains;  // a thread and its own buffer
  return commute(access_of(asleep), access_of(chosen));
}

bool Explorer::commute(const Access& asleep, const Access& chosen) {
  if (asleep.everything || chosen.everything) return false;
  const bool both_sequential = asleep.sequential && chosen.sequential;
  if (both_sequential && (asleep.fence || chosen.fence)) return false;
  if (chosen.old && !both_sequential) return true;  // behind a store, it would read the value that it reads now
  return asleep.object == nullptr || asleep.object != chosen.object || (!asleep.write && !chosen.write);
}

/// Chooses one of `count` values; 0 first.
std::size_t Explorer::pick(std::size_t count) {
  if (count == 1 || repeats_ || !outcome_.failure.empty()) return 0;
  if (count > 32) std::abort();
  const std::uint32_t all = count == 32 ? ~0u : (1u << count) - 1;
  if (depth_ == path_.size()) path_.push_back({all, 0, 0});
  const Node& node = path_[depth_++];
  if (node.enabled != all) fail("the explorer's fault: the same order leads to other values");
  return static_cast<std::size_t>(node.chosen);
}

// --------------------------------------------------------------------------------------------------------- views

std::uint64_t Explorer::load(const void* address, std::uint64_t newest, std::memory_order order) {
  std::size_t count = views_.readable(running_, address, newest, order).size();
  if (old_ >= options_.most_old) count = 1;
  const std::size_t age = pick(count);
  if (age != 0) ++old_;
  events_.back().age = age;
  return views_.read(running_, address, age, order);
}

std::uint64_t Explorer::compare(const void* address, std::uint64_t newest, std::uint64_t expected,
                                std::memory_order failure) {
  const std::vector<std::uint64_t> values = views_.readable(running_, address, newest, failure);
  std::vector<std::size_t> ages = {0};
  for (std::size_t age = 1; age < values.size() && old_ < options_.most_old; ++age) {
    if (values[age] != expected) ages.push_back(age);
  }
  const std::size_t age = ages[pick(ages.size())];
  if (age != 0) ++old_;
  events_.back().age = age;
  if (values[age] != expected) views_.read(running_, address, age, failure);
  return values[age];
}

void Explorer::store(const void* address, std::uint64_t newest, std::uint64_t bits, std::memory_order order) {
  views_.write(running_, address, newest, bits, order);
}

void Explorer::update(const void* address, std::uint64_t newest, std::uint64_t bits, std::memory_order order) {
  views_.update(running_, address, newest, bits, order);
}

void Explorer::fence(std::memory_order order) { views_.fence(running_, order); }

// -------------------------------------------------------------------------------------------------- what it takes

void Explorer::switch_to(int thread) {
  jmp_buf& from = running_ == none ? main_ : threads_[static_cast<std::size_t>(running_)].place;
  Thread& to = threads_[static_cast<std::size_t>(thread)];
  running_ = thread;
  if (_setjmp(from) != 0) return;
  if (std::exchange(to.begun, true)) _longjmp(to.place, 1);
  ::setcontext(&to.context);
}

/// Goes back to run().
void Explorer::give_up() {
  if (running_ != none) _longjmp(main_, 1);
}

void Explorer::put(void* address, std::uint64_t bits, std::size_t size) {
  threads_[static_cast<std::size_t>(running_)].buffer.push_back({address, bits, size});
}

const std::uint64_t* Explorer::buffered(const void* address) const {
  if (running_ == none) return nullptr;
  const auto& buffer = threads_[static_cast<std::size_t>(running_)].buffer;
  const auto found =
      std::find_if(buffer.rbegin(), buffer.rend(), [address](const Store& store) { return store.address == address; });
  return found == buffer.rend() ? nullptr : &found->bits;
}

void Explorer::flush(int thread) {
  auto& buffer = threads_[static_cast<std::size_t>(thread)].buffer;
  std::memcpy(buffer.front().address, &buffer.front().bits, buffer.front().size);
  buffer.pop_front();
}

void Explorer::fail(const std::string& what) {
  if (outcome_.failure.empty()) outcome_.failure = what + "\n" + order();
  give_up();
}

std::string Explorer::order() const {
  std::string text;
  std::map<const void*, int> names;
  for (const Event& event : events_) {
    const bool buffer = event.id >= most_threads;
    text += "  " + std::string(buffer ? "store of thread " : "thread ") + std::to_string(event.id % most_threads) +
            ": " + event.what;
    if (event.object != nullptr) {
      const int name = names.emplace(event.object, static_cast<int>(names.size()) + 1).first->second;
      text += " #" + std::to_string(name);
    }
    if (event.age != 0) text += ", an old value (" + std::to_string(event.age) + " before the newest)";
    text += '\n';
  }
  for (int i = 0; i < spawned_; ++i) {
    const Thread& thread = threads_[static_cast<std::size_t>(i)];
    if (!thread.ended) text += "  thread " + std::to_string(i) + " stands before: " + thread.pending.what + "\n";
  }
  return text;
}

}  // namespace canele::exhaustive

/// Reports an assert that fails in a world as that world's failure, with the order that led to it.
extern "C" void __assert_fail(const char* assertion, const char* /*file*/, unsigned /*line*/,
                              const char* /*function*/) noexcept {
  if (canele::exhaustive::Explorer* const explorer = canele::exhaustive::Explorer::current())
    explorer->fail(std::string("does not hold: ") + assertion);
  std::abort();
}
