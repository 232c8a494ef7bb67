// SPDX-License-Identifier: BSD-3-Clause
//
// The outside world of a simulated process. Runs in fibers.
//
// unpark() and ring() never switch fibers: the library may hold a mutex there, and all fibers share one thread.
#include "apps/sim/sim_platform.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace canele::sim {
namespace {

/// A thread of a simulated process, as a fiber. The destructor waits for its end.
class SimThread final : public PlatformThread {
 public:
  SimThread(Scheduler& scheduler, std::string name, int rank, std::function<void()> body)
      : scheduler_(scheduler), thread_(scheduler.spawn(std::move(name), rank, std::move(body))) {}
  ~SimThread() override {
    while (!thread_.done && !thread_.killed) scheduler_.pause_for(1000);
  }
  long native_id() const override { return reinterpret_cast<long>(&thread_); }

 private:
  Scheduler& scheduler_;
  Scheduler::Thread& thread_;
};

/// Memory of one process that others of its node map. It lives as long as one of them does.
class SimSharedMemory final : public SharedMemory {
 public:
  SimSharedMemory(std::shared_ptr<std::vector<std::byte>> bytes, const SharedMemoryName& name)
      : SharedMemory(bytes->data(), name), bytes_(std::move(bytes)) {}

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_;
};

class SimWakeSet final : public WakeSet {
 public:
  explicit SimWakeSet(Machine& machine) : machine_(machine) {}
  ~SimWakeSet() override {
    for (const int descriptor : watched_) machine_.bells.listen(descriptor, nullptr);
  }

  bool watch(int descriptor) noexcept override {
    if (descriptor < Bells::first) {  // a descriptor of the real system: the self driver's
      real_.push_back({descriptor, POLLIN, 0});
      return true;
    }
    watched_.push_back(descriptor);
    machine_.bells.listen(descriptor, [this] { stir(); });
    return true;
  }
  void unwatch(int descriptor) noexcept override {
    std::erase_if(real_, [descriptor](const pollfd& one) { return one.fd == descriptor; });
    if (std::erase(watched_, descriptor) != 0) machine_.bells.listen(descriptor, nullptr);
  }
  void wait(std::uint64_t timeout_ns) noexcept override {
    const bool readable = std::any_of(watched_.begin(), watched_.end(),
                                      [this](int descriptor) { return machine_.bells.readable(descriptor); });
    if (rung_ || readable) return machine_.scheduler.spend(500);
    sleeper_ = machine_.scheduler.current();
    stirred_ = false;
    // Rings of the real system are not on the timeline, so they are polled now and then. A poll is not a wake-up.
    constexpr std::uint64_t check_every_ns = 20'000;
    for (std::uint64_t left = machine_.timer(timeout_ns); left > 0 && !stirred_ && !rings_for_real();) {
      const std::uint64_t slice = std::min(left, check_every_ns);
      machine_.scheduler.sleep(slice, "sleeps on its drivers");
      left -= slice;
    }
    sleeper_ = nullptr;
  }
  void ring() noexcept override {
    rung_ = true;
    stir();
  }
  void quiet() noexcept override { rung_ = false; }

 private:
  void stir() {
    stirred_ = true;
    if (sleeper_ != nullptr) machine_.scheduler.wake(*sleeper_);
  }
  Machine& machine_;
  std::vector<int> watched_;
  bool rings_for_real() { return ::poll(real_.data(), real_.size(), 0) > 0; }
  std::vector<pollfd> real_;
  Scheduler::Thread* sleeper_ = nullptr;
  bool rung_ = false, stirred_ = false;
};

}  // namespace

std::uint64_t SimPlatform::now_ns() noexcept {
  machine_.scheduler.spend(20);
  return machine_.timeline.now() + 1'000'000;  // 0 means "never" in some places
}

std::unique_ptr<PlatformThread> SimPlatform::start_thread(const char* name, std::function<void()> body) {
  return std::make_unique<SimThread>(machine_.scheduler, name, rank_, std::move(body));
}

std::unique_ptr<WakeSet> SimPlatform::make_wake_set(std::string*) { return std::make_unique<SimWakeSet>(machine_); }

std::unique_ptr<SharedMemory> SimPlatform::share_memory(std::size_t size, std::string*) {
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  machine_.shared.push_back(bytes);
  const auto descriptor = static_cast<std::int32_t>(machine_.shared.size() - 1);
  return std::make_unique<SimSharedMemory>(std::move(bytes), SharedMemoryName{host(), rank_ + 1, descriptor});
}

/// One process of four cannot map memory: its operations go by packets.
std::unique_ptr<SharedMemory> SimPlatform::map_memory(const SharedMemoryName& name, std::size_t size) {
  if (name.host != host() || dice_.under(4) == 0) return nullptr;
  auto bytes = machine_.shared[static_cast<std::size_t>(name.descriptor)].lock();
  if (bytes == nullptr || bytes->size() != size) return nullptr;
  return std::make_unique<SimSharedMemory>(std::move(bytes), name);
}

void SimPlatform::park(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::uint64_t timeout_ns) noexcept {
  machine_.scheduler.spend(300);
  if (word.load() != expected) return;
  Scheduler::Thread* const self = machine_.scheduler.current();
  machine_.parked[&word].push_back(self);
  machine_.scheduler.sleep(machine_.timer(timeout_ns), "is parked");
  auto& all = machine_.parked[&word];
  std::erase(all, self);
  if (all.empty()) machine_.parked.erase(&word);
}

void SimPlatform::unpark(const std::atomic<std::uint32_t>& word) noexcept {
  const auto found = machine_.parked.find(&word);
  if (found == machine_.parked.end()) return;
  for (Scheduler::Thread* thread : found->second) machine_.scheduler.wake(*thread);
}

bool SimPlatform::appears_busy(Platform& platform) {
  auto& self = static_cast<SimPlatform&>(platform);
  return self.dice_.chance(self.busy_locks);
}

void SimBootstrap::get(int rank, std::string_view key, std::uint64_t, Deliver deliver) {
  const std::uint64_t takes = 20'000 + dice_.under(machine_.slowest_answer_ns);
  machine_.timeline.after(
      takes, [board = board_, listens = listens_, own = rank_, rank, name = std::string(key), &machine = machine_,
              self = machine_.scheduler.process_of(rank_), answer = std::move(deliver)] {
        if (!*listens || machine.scheduler.process_of(own) != self) return;  // the process that asked is gone
        const auto found = board->blobs.find({rank, name});
        const bool ok = found != board->blobs.end() && !board->dead.contains(rank);
        answer(ok, ok ? found->second : comm::Blob(), ok ? "" : "not published, or dead");
      });
}

void SimBootstrap::on_failure(std::function<void(int)> died) {
  board_->failure_handlers[rank_] = died;
  for (const int rank : std::set<int>(board_->dead)) died(rank);  // reported before this process listened
}

void Board::meet(Scheduler& scheduler) {
  if (!broken && arrived.size() + dead.size() < static_cast<std::size_t>(size)) return;
  arrived.clear();
  ++generation;
  for (Scheduler::Thread* thread : waiting) scheduler.wake(*thread);
  waiting.clear();
}

void Board::died(int rank, Scheduler& scheduler) {
  dead.insert(rank);
  failure_handlers.erase(rank);
  arrived.erase(rank);
  broken = broken || (deaths_break_fences && !arrived.empty());
  if (!arrived.empty()) meet(scheduler);
}

bool SimBootstrap::fence(std::uint64_t, std::string* why) {
  if (board_->dead.contains(rank_)) return true;  // a rank that returns does not wait for the other ranks
  const int mine = board_->generation;
  board_->arrived.insert(rank_);
  board_->meet(machine_.scheduler);
  while (board_->generation == mine) {
    board_->waiting.push_back(machine_.scheduler.current());
    machine_.scheduler.sleep(~std::uint64_t{0}, "waits for the other ranks to start");
  }
  if (board_->broken) *why = "a rank died before all ranks had arrived";
  return !board_->broken;
}

}  // namespace canele::sim
