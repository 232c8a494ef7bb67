// SPDX-License-Identifier: BSD-3-Clause
//
// Terminal input for rank 0.
#include "apps/run/input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace canele::run {
namespace {

bool in_foreground() { return tcgetpgrp(0) == getpgrp(); }

}  // namespace

Input::Input() : is_terminal_(isatty(0) == 1) {
  if (!is_terminal_) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0)
    throw std::runtime_error(fmt::format("input of rank 0: pipe: {}", std::strerror(errno)));
  read_end_ = ends[0];
  write_end_ = ends[1];
}

Input::~Input() {
  started();
  close_all();
}

void Input::started() {
  if (read_end_ >= 0) close(read_end_);
  read_end_ = -1;
}

void Input::close_all() {
  if (write_end_ >= 0) close(write_end_);
  write_end_ = -1;
}

void Input::give_back() {
  if (write_end_ < 0) return;
  std::string unread;
  // The rank's end is closed by now, but the data in the pipe stays as long as our end is open.
  const int pipe = open(fmt::format("/proc/self/fd/{}", write_end_).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  char buffer[4096];
  for (ssize_t got; pipe >= 0 && (got = read(pipe, buffer, sizeof buffer)) > 0;)
    unread.append(buffer, static_cast<std::size_t>(got));
  if (pipe >= 0) close(pipe);
  unread += std::exchange(pending_, {});
  if (!in_foreground()) return;
  for (const char& character : unread)
    if (ioctl(0, TIOCSTI, &character) != 0) return;  // newer kernels may forbid it
}

bool Input::add_to(std::vector<pollfd>& polled) const {
  if (write_end_ < 0) return false;
  if (!pending_.empty()) {
    polled.push_back({write_end_, POLLOUT, 0});
    return false;
  }
  if (!in_foreground()) return true;  // reading would stop us
  polled.push_back({0, POLLIN, 0});
  return false;
}

void Input::progress() {
  if (write_end_ < 0) return;
  pollfd ready = {0, POLLIN, 0};
  if (pending_.empty() && in_foreground() && poll(&ready, 1, 0) == 1) {
    char buffer[4096];
    const ssize_t got = read(0, buffer, sizeof buffer);
    if (got > 0) pending_.assign(buffer, static_cast<std::size_t>(got));
    ended_ = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
  }
  if (!pending_.empty()) {
    const ssize_t written = write(write_end_, pending_.data(), pending_.size());
    if (written > 0) pending_.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno != EAGAIN && errno != EINTR) ended_ = true;  // rank 0 has closed its stdin
  }
  if (ended_) close_all();
}

}  // namespace canele::run
