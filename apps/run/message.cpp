// SPDX-License-Identifier: BSD-3-Clause
//
// Messages on standard error.
#include "apps/run/message.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>

namespace canele::run {
namespace {

constexpr std::size_t most_waiting = std::size_t{64} << 10;

/// The state of standard error: one for the process.
struct Messages {
  std::string waiting;
  unsigned long dropped = 0;  ///< lines for which there was no room
  int fd = -1;                ///< used by us alone, non-blocking; -1: use 2, with care
  bool opened = false;
  bool is_socket = false;
};

Messages& messages() {
  static Messages only;
  return only;
}

void open_once(Messages& m) {
  if (m.opened) return;
  m.opened = true;
  struct stat information = {};
  m.is_socket = fstat(2, &information) == 0 && S_ISSOCK(information.st_mode);
  if (!m.is_socket) m.fd = private_stream(2);
}

/// Writes like write(), but never blocks. Returns -1 with EAGAIN if there is no room.
ssize_t write_now(const Messages& m, std::string_view text) {
  if (m.is_socket) return send(2, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (m.fd >= 0) return write(m.fd, text.data(), text.size());
  // A pipe that may not be opened again. If poll() reports it writable, it takes a short line whole, unless a rank
  // fills it between the two calls.
  pollfd room = {2, POLLOUT, 0};
  if (poll(&room, 1, 0) != 1) {
    errno = EAGAIN;
    return -1;
  }
  return write(2, text.data(), std::min<std::size_t>(text.size(), 512));
}

void note_dropped(Messages& m) {
  if (m.dropped == 0 || !m.waiting.empty()) return;
  char line[96];
  const int length =
      std::snprintf(line, sizeof line, "canele-run: %lu messages were dropped: standard error was full\n", m.dropped);
  m.dropped = 0;
  m.waiting.assign(line, static_cast<std::size_t>(length));
}

/// Writes the waiting lines. Returns false if there is no room now.
bool push(Messages& m) {
  for (note_dropped(m); !m.waiting.empty(); note_dropped(m)) {
    const ssize_t written = write_now(m, m.waiting);
    if (written > 0) {
      m.waiting.erase(0, static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      return false;
    } else if (written == 0 || errno != EINTR) {
      m.waiting.clear();  // a full disk or a closed reader: there is no place to report it
      m.dropped = 0;
    }
  }
  return true;
}

}  // namespace

void say(std::string_view text) noexcept {
  Messages& m = messages();
  try {
    open_once(m);
    std::string line = "canele-run: ";
    line.append(text).append("\n");
    push(m);
    if (m.waiting.size() + line.size() > most_waiting) {
      ++m.dropped;
      return;
    }
    m.waiting += line;
    push(m);
  } catch (...) {  // no memory
    ++m.dropped;
  }
}

void push_messages() noexcept {
  try {
    push(messages());
  } catch (...) {
    ++messages().dropped;
  }
}

void watch_messages(std::vector<pollfd>& polled) {
  const Messages& m = messages();
  if (!m.waiting.empty()) polled.push_back({m.fd >= 0 ? m.fd : 2, POLLOUT, 0});
}

void finish_messages(int milliseconds) noexcept {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (true) {
    push_messages();
    Messages& m = messages();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (m.waiting.empty() || left <= 0) return;
    pollfd room = {m.fd >= 0 ? m.fd : 2, POLLOUT, 0};
    poll(&room, 1, static_cast<int>(left));
  }
}

int print(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room = {fd, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int private_stream(int fd) noexcept {
  struct stat information = {};
  if (fstat(fd, &information) != 0) return -1;
  // A regular file never blocks a writer, and another description would write at another position.
  if (!S_ISFIFO(information.st_mode) && !S_ISCHR(information.st_mode)) return -1;
  char name[32];
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  return open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace canele::run
