// SPDX-License-Identifier: BSD-3-Clause
//
// Board: two numbers that all ranks of one host see, without a message.
//
// The flood benchmark uses it to learn that all ranks have started every send while no rank receives yet. Threads: the
// main thread of each rank. The memory loses its name once all ranks have mapped it, so that nothing is left if one of
// them is killed.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <canele/canele.hpp>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace canele::perf {

class Board {
 public:
  struct Numbers {
    std::atomic<int> started, quiesced;
  };

  /// Maps the board. All ranks call it. Throws std::runtime_error.
  Board(canele::engine& engine, canele::session& session) {
    if (engine.local_size() != engine.size()) {
      throw std::runtime_error(
          "the ranks are on several hosts; expected: one host, as they share memory to report that all is sent");
    }
    constexpr std::uint64_t tag = 40;
    char name[64] = {};
    if (engine.rank() == 0) {
      snprintf(name, sizeof name, "/canele-perf-%ld-%llu", static_cast<long>(getpid()),
               static_cast<unsigned long long>(engine.now()));
      map(name, O_RDWR | O_CREAT | O_EXCL);
      for (int rank = 1; rank < engine.size(); ++rank) session.send(rank, tag, name);
    } else {
      session.recv(0, tag, name);
      map(name, O_RDWR);
    }
    session.barrier();
    if (engine.rank() == 0) shm_unlink(name);
  }
  ~Board() { munmap(numbers_, sizeof *numbers_); }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  Numbers& operator*() const { return *numbers_; }
  Numbers* operator->() const { return numbers_; }

 private:
  void map(const char* name, int how) {
    const int file = shm_open(name, how, 0600);
    if (file < 0) throw std::runtime_error(std::string("shm_open of ") + name + ": " + std::strerror(errno));
    const bool sized = (how & O_CREAT) == 0 || ftruncate(file, sizeof *numbers_) == 0;
    void* const memory =
        sized ? mmap(nullptr, sizeof *numbers_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    const int why = errno;
    close(file);
    if (memory == MAP_FAILED) {
      if ((how & O_CREAT) != 0) shm_unlink(name);
      throw std::runtime_error(std::string("no shared memory: ") + std::strerror(why));
    }
    numbers_ = static_cast<Numbers*>(memory);  // a new file is zero
  }

  Numbers* numbers_ = nullptr;
};

}  // namespace canele::perf
