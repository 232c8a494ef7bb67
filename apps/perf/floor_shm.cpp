// SPDX-License-Identifier: BSD-3-Clause
//
// The floor of shared memory: two flags on two cache lines. A longer message is k lines, with the flag in the first.
// Also gives the bare engine of bare_engine.hpp its memory.
//
// Up to 8 bytes the flag itself is the message. The floor of a stream is a bare loop of process_vm_readv from the other
// process, or of memcpy in one process if the kernel forbids that. The floor of a rate is a ring of such k lines with
// one producer.
//
//     rank 0 ──▶ data[0]: | n, bytes | bytes | … ──▶ rank 1      a line is 64 bytes; n is stored last, and polled
//     rank 0 ◀── data[1]: | n, bytes | bytes | … ◀── rank 1
//     ring, in data[0]:   | n, … | n + 1, … | n + 2, … | n - 1, … |   slots in turn; `pong` answers each window
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bare_engine.hpp"
#include "floor.hpp"

namespace canele::perf {
namespace {

struct Flags {
  alignas(128) std::atomic<std::uint64_t> ping;  // 128: neighbouring lines are fetched in pairs
  alignas(128) std::atomic<std::uint64_t> pong;
};

constexpr std::size_t page = 4096, line = 64;
constexpr std::size_t ring_bytes = 64 << 10, ring_window = 64;  // every window is answered, and must fit
constexpr std::size_t lines_of(std::size_t size) { return (sizeof(std::uint64_t) + size + line - 1) / line * line; }
constexpr int most_polls = 100'000;  // loads: about 50 us

class ShmFloor final : public Floor {
 public:
  ShmFloor(Job& job, std::size_t most)
      : job_(job),
        spin_(job.oversubscribed(), most_polls),
        most_(most),
        room_(std::max(ring_bytes, (lines_of(most) + line + page - 1) / page * page)) {
    char name[64] = {};
    if (job.first()) {
      snprintf(name, sizeof name, "/canele-perf-%ld-%llu", static_cast<long>(getpid()),
               static_cast<unsigned long long>(job.engine.now()));
      map(name, O_RDWR | O_CREAT | O_EXCL);
      job.session.send(job.peer(), 2, name);
      job.session.recv(job.peer(), 2, name);  // the other rank has mapped it: the name can be removed
      shm_unlink(name);
    } else {
      job.session.recv(job.peer(), 2, name);
      map(name, O_RDWR);
      job.session.send(job.peer(), 2, name);
    }
    own_.assign(std::max(room_, 2 * most_), std::byte{1});
    meet();
  }
  ~ShmFloor() override { munmap(memory_, length()); }

  std::string name() const override { return "flags in shared memory"; }
  std::string stream_name() const override { return reads_ ? "process_vm_readv" : "memcpy inside one process"; }

  double ping_pong(std::size_t size, int rounds) override {
    const bool alone = size <= sizeof(std::uint64_t);
    const Place there = alone ? Place{&flags().ping, data(0), 0} : place(0, size);
    const Place back = alone ? Place{&flags().pong, data(1), 0} : place(1, size);
    const std::uint64_t start = job_.engine.now();
    for (int i = 0; i < rounds; ++i) {
      ++sequence_;
      if (job_.first()) {
        put(there);
        get(back);
      } else {
        get(there);
        put(back);
      }
    }
    return static_cast<double>(job_.engine.now() - start) / rounds / 2;
  }

  double stream(std::size_t size, int window, int rounds) override {
    if (!job_.first()) return 0;
    const std::uint64_t start = job_.engine.now();
    for (int i = 0; i < rounds * window; ++i) {
      if (reads_) {
        read_remote(size);
      } else {
        std::memcpy(data(0), own_.data(), size);
        asm volatile("" ::: "memory");  // keeps the compiler from dropping copies
      }
    }
    return static_cast<double>(job_.engine.now() - start) / (rounds * window);
  }

  std::string ring_name() const override { return room_ / lines_of(most_) < ring_window ? "" : "a bare ring"; }

  double ring(std::size_t size, int window, int rounds) override {
    assert(static_cast<std::size_t>(window) <= ring_window && size <= most_);
    const std::size_t slot = lines_of(size), slots = room_ / slot;
    if (job_.first()) {
      std::memset(data(0), 0, room_);
      flags().pong.store(0, std::memory_order_relaxed);
    }
    job_.session.barrier();
    const std::uint64_t start = job_.engine.now();
    for (sequence_ = 1; sequence_ <= static_cast<std::uint64_t>(rounds) * window; ++sequence_) {
      const Place at = place(0, size, sequence_ % slots * slot);
      const bool last = sequence_ % static_cast<std::uint64_t>(window) == 0;
      if (job_.first()) {
        put(at);
        if (last) get({&flags().pong, data(1), 0});
      } else {
        get(at);
        if (last) put({&flags().pong, data(1), 0});
      }
    }
    const double ns = static_cast<double>(job_.engine.now() - start) / (static_cast<double>(rounds) * window);
    job_.session.barrier();
    return ns;
  }

  bool has_engine(int window) const override {
    return static_cast<std::size_t>(window) <= room_ / BareEngine::slot_for(most_);
  }

  double exchange_ping_pong(std::size_t size, int rounds) override {
    BareEngine engine = clean_engine(size);
    BareEngine::Request out, in;
    std::byte *const from = own_.data(), *const to = from + most_;
    const std::uint64_t start = job_.engine.now();
    for (int i = 0; i < rounds; ++i) {
      if (job_.first()) engine.send(out, 1, from, size);
      engine.post(in, 1, to, size);
      await(engine, in);
      if (!job_.first()) engine.send(out, 1, from, size);
    }
    return static_cast<double>(job_.engine.now() - start) / rounds / 2;
  }

  double exchange(std::size_t size, int window, int rounds, std::uint64_t tags) override {
    BareEngine engine = clean_engine(size);
    std::vector<BareEngine::Request> requests(static_cast<std::size_t>(window));
    BareEngine::Request answer;
    std::byte *const from = own_.data(), *const to = from + most_;
    std::uint64_t tag = 0;
    const std::uint64_t start = job_.engine.now();
    for (int round = 0; round < rounds; ++round) {
      for (BareEngine::Request& request : requests) {
        job_.first() ? engine.send(request, 1 + tag, from, size) : engine.post(request, 1 + tag, to, size);
        if (++tag == tags) tag = 0;
      }
      for (BareEngine::Request& request : requests) await(engine, request);
      job_.first() ? engine.post(answer, 0, to, 0) : engine.send(answer, 0, from, 0);
      await(engine, answer);
    }
    return static_cast<double>(job_.engine.now() - start) / (static_cast<double>(rounds) * window);
  }

 private:
  /// Returns this rank's end of a bare engine, in memory that has been zeroed again.
  BareEngine clean_engine(std::size_t size) {
    assert(size <= most_);
    const int out = job_.first() ? 0 : 1;
    std::memset(data(out), 0, room_);
    job_.session.barrier();
    const std::size_t slot = BareEngine::slot_for(size);
    return {data(out), data(1 - out), slot, room_ / slot, job_.peer()};
  }

  void await(BareEngine& engine, const BareEngine::Request& request) {
    while (!request.done) engine.progress() ? spin_.hit() : spin_.missed();
  }

  /// The place of a message: its flag, and the bytes behind it.
  struct Place {
    std::atomic<std::uint64_t>* flag;
    std::byte* bytes;
    std::size_t size;
  };
  /// Memory of a process.
  struct Memory {
    pid_t process = 0;
    std::uintptr_t address = 0;
  };

  /// Tells the other rank where our memory is, and tries to read the other's.
  void meet() {
    const std::array<Memory, 1> mine{{{getpid(), reinterpret_cast<std::uintptr_t>(own_.data())}}};
    if (job_.first()) {
      job_.session.send(job_.peer(), 3, mine);
      job_.session.recv(job_.peer(), 3, other_);
    } else {
      job_.session.recv(job_.peer(), 3, other_);
      job_.session.send(job_.peer(), 3, mine);
    }
    reads_ = read_remote(1);
  }
  bool read_remote(std::size_t size) {
    const iovec to{data(0), size}, from{reinterpret_cast<void*>(other_[0].address), size};
    return process_vm_readv(other_[0].process, &to, 1, &from, 1, 0) == static_cast<ssize_t>(size);
  }

  std::size_t length() const { return page + 2 * room_; }
  Flags& flags() const { return *static_cast<Flags*>(memory_); }
  std::byte* data(int direction) const {
    return static_cast<std::byte*>(memory_) + page + static_cast<std::size_t>(direction) * room_;
  }

  void map(const char* name, int how) {
    const int file = shm_open(name, how, 0600);
    if (file < 0) throw std::runtime_error(std::string("shm_open of ") + name + ": " + std::strerror(errno));
    if (job_.first() && ftruncate(file, static_cast<off_t>(length())) != 0) {
      shm_unlink(name);
      throw std::runtime_error("no shared memory of " + std::to_string(length()) + " bytes: " + std::strerror(errno));
    }
    memory_ = mmap(nullptr, length(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory_ == MAP_FAILED) throw std::runtime_error(std::string("mmap of shared memory: ") + std::strerror(errno));
    static_assert(sizeof(Flags) <= page);  // a new file is zero: both flags are valid from the start
  }

  /// Returns the place of `size` bytes behind a flag, in the memory of a direction.
  Place place(int direction, std::size_t size, std::size_t offset = 0) const {
    std::byte* const start = data(direction) + offset;
    return {reinterpret_cast<std::atomic<std::uint64_t>*>(start), start + sizeof(std::uint64_t), size};
  }

  void put(const Place& to) {
    std::memcpy(to.bytes, own_.data(), to.size);
    to.flag->store(sequence_, std::memory_order_release);  // pairs with the acquire load in the other rank
  }

  void get(const Place& from) {
    while (from.flag->load(std::memory_order_acquire) != sequence_) spin_.missed();
    spin_.hit();
    std::memcpy(own_.data(), from.bytes, from.size);
  }

  Job& job_;
  SpinThenYield spin_;
  std::array<Memory, 1> other_;
  bool reads_ = false;
  std::size_t most_, room_;
  void* memory_ = nullptr;
  std::vector<std::byte> own_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<Floor> make_shm_floor(Job& job, std::size_t most) { return std::make_unique<ShmFloor>(job, most); }

}  // namespace canele::perf
