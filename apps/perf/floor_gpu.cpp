// SPDX-License-Identifier: BSD-3-Clause
//
// The floor of GPU memory: the copies without which the data cannot get there, and a wait for each, or for a window of
// them. One rank copies while the other one waits.
//
//   device ─▶ device     the receiver's device copies out of the sender's memory; else as the next two together
//   device ─▶ host       the sender's device copies to pinned host memory
//   host ─▶ device       the receiver's device copies from pinned host memory
#include "floor.hpp"
#include "gpu.hpp"

namespace canele::perf {
namespace {

constexpr int handle_tag = 4, result_tag = 5;

class GpuFloor final : public Floor {
 public:
  GpuFloor(Job& job, MemoryKind first, MemoryKind second, std::size_t most)
      : job_(job), kinds_{first, second}, own_(kinds_[job.first() ? 0 : 1]), size_(most < 1 ? 1 : most) {
    if (own_ == MemoryKind::host) {
      share({});
      return;
    }
    memory_ = Gpu::get().allocate(own_, size_);
    pinned_ = Gpu::get().allocate_pinned(size_);
    share(own_ == MemoryKind::device ? Gpu::get().export_memory(memory_) : Gpu::Handle{});
  }

  std::string name() const override {
    return direct_ ? "a copy by the receiver's GPU out of the sender's memory, and a wait"
                   : "copies between GPU and pinned host memory, and a wait for each";
  }

  double ping_pong(std::size_t size, int rounds) override {
    return (one_way(0, size, 1, rounds) + one_way(1, size, 1, rounds)) / 2;
  }
  double stream(std::size_t size, int window, int rounds) override { return one_way(0, size, window, rounds); }

 private:
  /// Exchanges the handles of exported memory, and opens the peer's. Both ranks must be able to.
  void share(const Gpu::Handle& handle) {
    const bool both = kinds_[0] == MemoryKind::device && kinds_[1] == MemoryKind::device;
    Gpu::Handle theirs{};
    swap(handle_tag, handle, theirs);
    if (both) peers_ = Gpu::get().open(theirs);
    int opened = peers_ != nullptr ? 1 : 0, peer_opened = 0;
    swap(handle_tag, opened, peer_opened);
    direct_ = opened != 0 && peer_opened != 0;
  }

  template <typename Value>
  void swap(int tag, const Value& out, Value& in) {
    auto received = job_.session.irecv(job_.peer(), tag, canele::one(in));
    job_.session.send(job_.peer(), tag, canele::one(out));
    received.wait();
  }

  /// Returns the nanoseconds per message from rank `from` to the other one, at rank 0. The ranks copy one after the
  /// other.
  double one_way(int from, std::size_t size, int window, int rounds) {
    const bool receives = job_.first() == (from == 1);
    double own = 0, other = 0;
    if (job_.first()) {
      own = copies(receives, size, window, rounds);
      job_.session.send(job_.peer(), result_tag, canele::one(own));
      job_.session.recv(job_.peer(), result_tag, canele::one(other));
    } else {
      job_.session.recv(job_.peer(), result_tag, canele::one(other));
      own = copies(receives, size, window, rounds);
      job_.session.send(job_.peer(), result_tag, canele::one(own));
    }
    return own + other;
  }

  /// Returns the nanoseconds per message of what this rank copies.
  double copies(bool receives, std::size_t size, int window, int rounds) {
    if (own_ == MemoryKind::host || size == 0 || (direct_ && !receives)) return 0;
    std::byte* const to = receives ? memory_ : pinned_;
    const std::byte* const from = direct_ ? peers_ : receives ? pinned_ : memory_;
    const std::uint64_t start = job_.engine.now();
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < window; ++i) Gpu::get().copy(to, from, size);
      Gpu::get().wait();
    }
    return static_cast<double>(job_.engine.now() - start) / (rounds * window);
  }

  Job& job_;
  const MemoryKind kinds_[2];
  const MemoryKind own_;
  const std::size_t size_;
  std::byte* memory_ = nullptr;
  std::byte* pinned_ = nullptr;
  std::byte* peers_ = nullptr;
  bool direct_ = false;
};

}  // namespace

std::unique_ptr<Floor> make_gpu_floor(Job& job, MemoryKind first, MemoryKind second, std::size_t most) {
  return std::make_unique<GpuFloor>(job, first, second, most);
}

}  // namespace canele::perf
