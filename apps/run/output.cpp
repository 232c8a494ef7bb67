// SPDX-License-Identifier: BSD-3-Clause
//
// Tagged output.
#include "apps/run/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace canele::run {
namespace {

constexpr std::size_t longest_output_line = std::size_t{1} << 20;

}  // namespace

Output::Output(int ranks, int target) : target_(target) {
  done_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    if (done_fd_ < 0 || pipe2(ends, O_CLOEXEC) != 0)
      throw std::runtime_error(
          fmt::format("output of rank {}: pipe: {} (more open files: ulimit -n)", rank, std::strerror(errno)));
    sources_.push_back({ends[0], fmt::format("[{}] ", rank), {}});
    write_ends_.push_back(ends[1]);
  }
}

Output::~Output() {
  for (const int fd : write_ends_) close(fd);
  if (thread_.joinable()) thread_.join();
  for (const Source& source : sources_)
    if (source.fd >= 0) close(source.fd);
  if (done_fd_ >= 0) close(done_fd_);
}

void Output::start() {
  for (const int fd : write_ends_) close(fd);
  write_ends_.clear();
  thread_ = std::thread([this] { forward(); });
}

void Output::forward() {
  std::size_t open = sources_.size();
  std::vector<pollfd> polled(sources_.size());
  std::string out;
  while (open > 0) {
    for (std::size_t i = 0; i < sources_.size(); ++i) polled[i] = {sources_[i].fd, POLLIN, 0};  // -1 is skipped
    if (poll(polled.data(), polled.size(), -1) < 0) continue;                                   // EINTR
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (polled[i].revents == 0) continue;
      out.clear();
      const bool more = take_from(sources_[i], out);
      const bool written = write_out(out);
      if (more && written) continue;
      // Our output has no reader any more. The rank gets a broken pipe, as it would without us.
      close(sources_[i].fd);
      sources_[i].fd = -1;
      --open;
    }
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(done_fd_, &one, sizeof one);
}

/// Moves whole lines to `out`. Returns false at the end of the stream.
bool Output::take_from(Source& source, std::string& out) {
  char buffer[1 << 16];
  const ssize_t got = read(source.fd, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) {
    if (!source.partial.empty()) out += source.tag + source.partial + "\n";
    return false;
  }
  std::string_view text(buffer, static_cast<std::size_t>(got));
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    out.append(source.tag).append(source.partial).append(text.substr(0, end + 1));
    source.partial.clear();
  }
  source.partial += text;
  if (source.partial.size() >= longest_output_line) {
    out.append(source.tag).append(source.partial).append("\n");
    source.partial.clear();
  }
  return true;
}

bool Output::write_out(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const ssize_t written = write(target_, text.data() + begin, text.size() - begin);
    if (written >= 0) {
      begin += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {  // a process that shares our stdout made it non-blocking
      pollfd room = {target_, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace canele::run
