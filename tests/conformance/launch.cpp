// SPDX-License-Identifier: BSD-3-Clause
//
// The parent of the ranks.
//
// Files in /dev/shm are found in the memory maps of our children, not by listing the directory: other tests run beside
// this one.
#include "tests/conformance/launch.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

namespace canele::conformance {
namespace {

using Clock = std::chrono::steady_clock;

/// Does not return.
void be_ranks(const Launch& what, int first, int count, const std::vector<int>& channels, Place* places) {
  bool well = true;
  if (count == 1) {
    well = what.body(first, channels[static_cast<std::size_t>(first)], places[first]);
  } else {
    std::vector<std::thread> threads;
    std::vector<char> results(static_cast<std::size_t>(count), 0);
    for (int rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        const auto at = static_cast<std::size_t>(rank);
        results[at] = what.body(rank, channels[at], places[rank]) ? 1 : 0;
        ::close(channels[at]);  // tells the parent, which releases the other ranks from their barriers
      });
    }
    for (auto& thread : threads) thread.join();
    well = std::find(results.begin(), results.end(), 0) == results.end();
  }
  std::fflush(nullptr);
  ::_exit(well ? 0 : 1);
}

class Parent {
 public:
  explicit Parent(const Launch& what) : what_(what), ranks_(static_cast<std::size_t>(what.ranks)) {
    const std::size_t size = sizeof(Place) * ranks_.size();
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    places_ = memory == MAP_FAILED ? nullptr : static_cast<Place*>(memory);
  }
  ~Parent() {
    kill_all();
    for (auto& rank : ranks_) {
      if (rank.channel >= 0) ::close(rank.channel);
    }
    if (places_ != nullptr) ::munmap(places_, sizeof(Place) * ranks_.size());
  }

  Outcome run() {
    if (!start()) return std::move(outcome_);
    const auto end = Clock::now() + std::chrono::seconds(test_limit_s);
    while (open_ > 0 && outcome_.problems.empty()) {
      if (Clock::now() > end) {
        tell_places();
        break;
      }
      serve_once();
    }
    if (!outcome_.problems.empty()) kill_all();
    reap();
    check_files();
    return std::move(outcome_);
  }

 private:
  struct RankState {
    int channel = -1;
    pid_t pid = -1;  ///< 0: reaped
    bool waits = false, killed = false;
    std::vector<std::byte> address;
    bool has_address = false;
  };

  RankState& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void problem(std::string text) { outcome_.problems.push_back(std::move(text)); }

  bool start() {
    if (places_ == nullptr) return problem("no memory for the ranks' places"), false;
    std::vector<int> theirs;
    for (auto& rank : ranks_) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        for (const int fd : theirs) ::close(fd);
        return problem("no socket pair: " + std::string(std::strerror(errno))), false;
      }
      rank.channel = ends[0];
      theirs.push_back(ends[1]);
    }
    std::fflush(nullptr);
    const int count = what_.threads ? what_.ranks : 1;
    for (int rank = 0; rank < what_.ranks; rank += count) fork_ranks(rank, count, theirs);
    for (const int fd : theirs) ::close(fd);
    open_ = what_.ranks;
    return outcome_.problems.empty();
  }

  void fork_ranks(int first, int count, const std::vector<int>& theirs) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      // Closes the children's ends: one that stays open here would hide the death of its owner.
      for (int rank = 0; rank < what_.ranks; ++rank) {
        ::close(at(rank).channel);
        if (rank < first || rank >= first + count) ::close(theirs[static_cast<std::size_t>(rank)]);
      }
      be_ranks(what_, first, count, theirs, places_);
    }
    if (pid < 0) problem("cannot fork: " + std::string(std::strerror(errno)));
    for (int rank = first; rank < first + count; ++rank) at(rank).pid = std::max(pid, 0);
  }

  void serve_once() {
    std::vector<pollfd> list;
    std::vector<int> who;
    for (int rank = 0; rank < what_.ranks; ++rank) {
      if (at(rank).channel < 0) continue;
      list.push_back({at(rank).channel, POLLIN, 0});
      who.push_back(rank);
    }
    ::poll(list.data(), list.size(), 100);
    continue_stopped();
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].revents != 0 && at(who[i]).channel >= 0) serve(who[i]);
    }
  }

  void serve(int rank) {
    Message message;
    if (take(at(rank).channel, &message) <= 0) return ended(rank);
    RankState& other = at(std::clamp(message.rank, 0, what_.ranks - 1));
    switch (message.kind) {
      case Message::address:
        at(rank).address.assign(message.bytes, message.bytes + message.size);
        at(rank).has_address = true;
        return share_addresses();
      case Message::barrier:
        at(rank).waits = true;
        note_files(at(rank));
        return release_barrier();
      case Message::kill:
        note_files(other);
        other.killed = any_killed_ = true;
        ::kill(other.pid, SIGKILL);
        ::waitpid(std::exchange(other.pid, 0), nullptr, 0);
        post(at(rank).channel, message);
        return;
      case Message::stop: {
        int status = 0;
        ::kill(other.pid, SIGSTOP);
        ::waitpid(other.pid, &status, WUNTRACED);
        stopped_.push_back({message.rank, rank, Clock::now() + std::chrono::seconds(stop_s)});
        post(at(rank).channel, message);
        return;
      }
      default:
        outcome_.answer.assign(message.bytes, message.bytes + message.size);
    }
  }

  void share_addresses() {
    if (!std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& one) { return one.has_address; })) return;
    for (int from = 0; from < what_.ranks; ++from) {
      Message message;
      message.kind = Message::address;
      message.rank = from;
      message.size = static_cast<std::uint32_t>(at(from).address.size());
      std::copy(at(from).address.begin(), at(from).address.end(), message.bytes);
      for (auto& to : ranks_) post(to.channel, message);
    }
  }

  void release_barrier() {
    const auto arrived = [](const RankState& one) { return one.waits || one.channel < 0 || one.killed; };
    if (!std::all_of(ranks_.begin(), ranks_.end(), arrived)) return;
    Message message;
    message.kind = Message::barrier;
    for (auto& rank : ranks_) {
      if (std::exchange(rank.waits, false) && rank.channel >= 0) post(rank.channel, message);
    }
  }

  void continue_stopped() {
    std::erase_if(stopped_, [this](const Stopped& one) {
      if (Clock::now() < one.until) return false;
      ::kill(at(one.rank).pid, SIGCONT);
      Message message;
      message.kind = Message::continued;
      message.rank = one.rank;
      post(at(one.by).channel, message);
      return true;
    });
  }

  /// Called when the channel's other end is closed: the rank has ended, or died.
  void ended(int rank) {
    ::close(std::exchange(at(rank).channel, -1));
    --open_;
    if (!what_.threads) wait_for(rank);
    release_barrier();
  }

  void wait_for(int rank) {
    RankState& one = at(rank);
    if (one.pid <= 0) return;
    int status = 0;
    ::waitpid(one.pid, &status, 0);
    const pid_t pid = std::exchange(one.pid, 0);
    for (auto& other : ranks_) {
      if (other.pid == pid) other.pid = 0;  // the ranks are threads of one process
    }
    if (one.killed) return;
    const std::string name = what_.threads ? "the process of all ranks" : "rank " + std::to_string(rank);
    if (WIFSIGNALED(status)) problem(name + " died of signal " + std::to_string(WTERMSIG(status)) + " " + place(rank));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) problem(name + " failed " + place(rank));
  }

  void reap() {
    for (int rank = 0; rank < what_.ranks; ++rank) wait_for(rank);
  }

  void kill_all() {
    for (auto& rank : ranks_) {
      if (rank.pid <= 0) continue;
      rank.killed = any_killed_ = true;
      ::kill(rank.pid, SIGKILL);
      ::waitpid(rank.pid, nullptr, 0);
      const pid_t pid = rank.pid;
      for (auto& other : ranks_) {
        if (other.pid == pid) other.pid = 0;
      }
    }
  }

  std::string place(int rank) const {
    const char* const text = places_[rank].text;
    return "(at: " + (text[0] == 0 ? std::string("start") : std::string(text)) + ")";
  }
  void tell_places() {
    problem("the test took longer than " + std::to_string(test_limit_s) + " s");
    for (int rank = 0; rank < what_.ranks; ++rank) {
      if (at(rank).channel >= 0) problem("  rank " + std::to_string(rank) + " " + place(rank));
    }
  }

  /// Remembers which files of /dev/shm a rank has mapped.
  void note_files(const RankState& rank) {
    if (rank.pid <= 0) return;
    std::ifstream maps("/proc/" + std::to_string(rank.pid) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      const auto found = line.find("/dev/shm/");
      if (found == std::string::npos || line.ends_with(" (deleted)")) continue;
      files_.insert(line.substr(found));
    }
  }

  /// Checks, after all ranks have ended, that no file of theirs is left.
  void check_files() {
    for (const std::string& file : files_) {
      if (::access(file.c_str(), F_OK) != 0) continue;
      ::unlink(file.c_str());
      if (!(any_killed_ && what_.leaves_files)) problem("left behind: " + file);
    }
  }

  struct Stopped {
    int rank, by;
    Clock::time_point until;
  };
  const Launch& what_;
  std::vector<RankState> ranks_;
  std::vector<Stopped> stopped_;
  std::set<std::string> files_;
  Place* places_ = nullptr;
  int open_ = 0;
  bool any_killed_ = false;
  Outcome outcome_;
};

}  // namespace

bool post(int channel, const Message& message) {
  const std::size_t size = Message::head + message.size;
  return ::send(channel, &message, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

int take(int channel, Message* message) {
  const ssize_t got = ::recv(channel, message, sizeof *message, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  return got < static_cast<ssize_t>(Message::head) ? -1 : 1;
}

Outcome launch(const Launch& what) { return Parent(what).run(); }

}  // namespace canele::conformance
