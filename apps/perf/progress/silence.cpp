// SPDX-License-Identifier: BSD-3-Clause
//
// Silence: the cost of waiting while nothing happens, and how soon the first message after it is noticed, beside bare
// wake-ups of this machine. The figures: options.cpp.
//
// Rank 0 has a thread that sleeps, for the bare wake-ups. This thread is on rank 1's core, so that its core has been
// idle equally long.
#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../statistics.hpp"
#include "benchmarks.hpp"

namespace canele::perf::progress {
namespace {

constexpr int date_tag = 1, answer_tag = 2, unit_tag = 3;

void sleep_for(double seconds) {
  timespec left{static_cast<time_t>(seconds), static_cast<long>((seconds - static_cast<int>(seconds)) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

/// A thread of this process that sleeps until the operating system wakes it.
class BareSleeper {
 public:
  BareSleeper(const Clock& clock, int core) : clock_(clock) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC), bell_ = eventfd(0, EFD_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ < 0 || bell_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, bell_, &event) != 0) {
      throw std::runtime_error(std::string("silence: epoll: ") + std::strerror(errno));
    }
    thread_ = std::thread([this, core] { serve(core); });
  }
  ~BareSleeper() {
    done_ = true;
    by_futex(0);
    thread_.join();
    close(epoll_);
    close(bell_);
  }

  /// Lets it sleep for so long, then wakes it. Returns the microseconds until it is awake.
  double by_futex(double seconds) {
    return time_of(seconds, [this] {
      word_.store(1);
      syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    });
  }
  double by_epoll(double seconds) {
    with_epoll_ = true;
    by_futex(0);  // from now on it sleeps there
    return time_of(seconds, [this] {
      const std::uint64_t one = 1;
      if (write(bell_, &one, sizeof one) != sizeof one) throw std::runtime_error("silence: eventfd");
    });
  }

 private:
  template <typename Wake>
  double time_of(double seconds, Wake wake) {
    awake_.store(0);
    if (seconds > 0) sleep_for(seconds);
    const std::uint64_t begin = clock_.now();
    wake();
    while (awake_.load(std::memory_order_acquire) == 0) sched_yield();
    return clock_.us(awake_.load() - begin);
  }

  void serve(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
    while (!done_) {
      if (with_epoll_.exchange(false)) {
        sleep_in_epoll();
      } else {
        while (word_.load() == 0) syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
        word_.store(0);
      }
      awake_.store(clock_.now(), std::memory_order_release);  // pairs with the acquire load in time_of
    }
  }
  void sleep_in_epoll() {
    epoll_event event{};
    std::uint64_t rung = 0;
    while (epoll_wait(epoll_, &event, 1, -1) != 1 || read(bell_, &rung, sizeof rung) != sizeof rung) {
    }
  }

  const Clock& clock_;
  int epoll_ = -1, bell_ = -1;
  std::atomic<std::uint32_t> word_{0};
  std::atomic<std::uint64_t> awake_{0};
  std::atomic<bool> done_{false}, with_epoll_{false};
  std::thread thread_;
};

/// What a rank reports to rank 0 after a silence.
struct Answer {
  std::uint64_t awake;  ///< ticks
  double cpu;           ///< of its time, in percent
};

class Silence {
 public:
  explicit Silence(Bench& bench) : bench_(bench) {}

  /// Waits, and reports. All ranks but 0.
  void follow() {
    Link& link = bench_.link;
    if (link.rank() == 1) {
      const int core = sched_getcpu();
      send(link, 0, unit_tag, &core, sizeof core);
    }
    for (int message = 0; message < 2 * bench_.options.batches; ++message) {
      std::uint64_t date = 0;
      const double before = cpu_us();
      const std::uint64_t begin = bench_.clock.now();
      await(&date);
      const std::uint64_t end = bench_.clock.now();
      const Answer answer{end, 100 * (cpu_us() - before) / bench_.clock.us(end - begin)};
      send(link, 0, answer_tag, &answer, sizeof answer);
    }
  }

  /// Blocks until a date of rank 0 has come.
  void await(std::uint64_t* date) {
#ifndef CANELE_PERF_MPI
    if (bench_.options.queue) return bench_.link.receive_by_queue(0, date_tag, date, sizeof *date);
#endif
    receive(bench_.link, 0, date_tag, date, sizeof *date);
  }

  void lead() {
    int core = 0;
    receive(bench_.link, 1, unit_tag, &core, sizeof core);
    BareSleeper sleeper(bench_.clock, core);
    const double seconds = bench_.options.seconds;
    std::vector<double> first, futex, epoll, cpu;
    for (int batch = 0; batch < bench_.options.batches; ++batch) {
      double all = 0;
      end_silence(&all);  // ends the silence of the bare wake-ups
      sleep_for(seconds);
      all = 0;
      first.push_back(end_silence(&all));
      cpu.push_back(all);
      futex.push_back(sleeper.by_futex(seconds));
      epoll.push_back(sleeper.by_epoll(seconds));
    }
    const double us = quantile(first, 0.5), bare_futex = quantile(futex, 0.5), bare_epoll = quantile(epoll, 0.5);
    bench_.report.print({"silence",
                         {{"seconds", seconds}, {"ranks", bench_.link.size()}},
                         {{"cpu", quantile(cpu, 0.5)},
                          {"first", us},
                          {"futex", bare_futex},
                          {"epoll", bare_epoll},
                          {"to_futex", us / bare_futex},
                          {"to_epoll", us / bare_epoll}},
                         {{"first", first}, {"futex", futex}, {"epoll", epoll}, {"cpu", cpu}}});
  }

 private:
  /// Returns the one-way time to rank 1. Adds the processor time of all ranks that have waited.
  double end_silence(double* cpu) {
    Link& link = bench_.link;
    double one_way = 0;
    for (int rank = 1; rank < link.size(); ++rank) {
      const std::uint64_t date = bench_.clock.now();
      Answer answer{};
      send(link, rank, date_tag, &date, sizeof date);
      receive(link, rank, answer_tag, &answer, sizeof answer);
      if (rank == 1) one_way = bench_.clock.us(answer.awake - date);
      *cpu += answer.cpu;
    }
    return one_way;
  }

  Bench& bench_;
};

}  // namespace

void silence(Bench& bench) {
  Silence all(bench);
  if (bench.link.rank() == 0)
    all.lead();
  else
    all.follow();
}

}  // namespace canele::perf::progress
