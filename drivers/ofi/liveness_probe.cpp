// SPDX-License-Identifier: BSD-3-Clause
//
// One non-blocking connection attempt. See liveness_probe.hpp.
//
// Only a refusal means that no process listens. An unreachable host or a missing answer may be a cable: TCP decides
// about those.
#include "drivers/ofi/liveness_probe.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace canele::drivers::ofi {

bool listens(const fi_info& info) {
  const std::string name = provider_name(info);
  const bool address = info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6;
  return address && (name == "tcp;ofi_rxm" || name == "tcp");
}

bool can_probe(const fi_info& info) {
  return listens(info) || (info.addr_format == FI_ADDR_STR && provider_name(info) == "shm");
}

int start_connect(std::span<const std::byte> name, int* error) {
  sockaddr_storage where = {};
  *error = EINVAL;
  if (name.size() > sizeof where) return -1;
  std::copy(name.begin(), name.end(), reinterpret_cast<std::byte*>(&where));
  const int fd = ::socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const bool begun =
      fd >= 0 && (::connect(fd, reinterpret_cast<const sockaddr*>(&where), static_cast<socklen_t>(name.size())) == 0 ||
                  errno == EINPROGRESS);
  *error = begun ? 0 : errno;
  if (begun || fd < 0) return fd;
  ::close(fd);
  return -1;
}

int start_probe(std::span<const std::byte> name, int* error) {
  const int fd = start_connect(name, error);
  const linger reset = {1, 0};
  if (fd >= 0) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  return fd;
}

/// Checks a name such as "fi_shm://17:1000:0". The file is gone after an orderly end, the process after any end.
LivenessProbe::Answer LivenessProbe::ask_host() const {
  const std::string_view text(reinterpret_cast<const char*>(name_.data()), name_.size() - 1);
  const auto slashes = text.find("://");
  const std::string_view file = text.substr(slashes == std::string_view::npos ? 0 : slashes + 3);
  pid_t process = 0;
  if (std::from_chars(file.data(), file.data() + file.size(), process).ec != std::errc() || process <= 0) {
    return Answer::alive;
  }
  if (::kill(process, 0) != 0 && errno == ESRCH) return Answer::dead;
  const std::string path = "/dev/shm/" + std::string(file);
  return ::access(path.c_str(), F_OK) != 0 && errno == ENOENT ? Answer::dead : Answer::alive;
}

LivenessProbe::Answer LivenessProbe::ask() {
  if (format_ == FI_ADDR_STR) return ask_host();
  if (fd_ < 0) {
    int error = 0;
    fd_ = start_probe(name_, &error);
    if (fd_ < 0) return error == ECONNREFUSED ? Answer::dead : Answer::alive;  // or no descriptors are left
  }
  pollfd one = {fd_, POLLOUT, 0};
  if (::poll(&one, 1, 0) == 0) return Answer::pending;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  end();
  return error == ECONNREFUSED ? Answer::dead : Answer::alive;
}

void LivenessProbe::end() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace canele::drivers::ofi
