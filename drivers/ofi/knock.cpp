// SPDX-License-Identifier: BSD-3-Clause
//
// One non-blocking connection attempt; see knock.hpp. Who, threads: see there.
// Surprise: only a refusal counts as "nobody". Unreachable, or no answer, may be a cable: TCP decides about those.
#include "drivers/ofi/knock.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace canele::drivers::ofi {

bool can_knock(const fi_info& info) {
  const std::string name = provider_name(info);
  const bool address = info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6;
  return address && (name == "tcp;ofi_rxm" || name == "tcp");
}

Knock::Answer Knock::ask(std::span<const std::byte> name) {
  if (fd_ < 0) {
    sockaddr_storage where = {};
    if (name.size() > sizeof where) return Answer::somebody;
    std::copy(name.begin(), name.end(), reinterpret_cast<std::byte*>(&where));
    fd_ = ::socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return Answer::somebody;  // no descriptors left: nothing is known
    const int result = ::connect(fd_, reinterpret_cast<const sockaddr*>(&where), static_cast<socklen_t>(name.size()));
    if (result == 0 || errno != EINPROGRESS) {
      const bool refused = result != 0 && errno == ECONNREFUSED;
      end();
      return refused ? Answer::nobody : Answer::somebody;
    }
  }
  pollfd one = {fd_, POLLOUT, 0};
  if (::poll(&one, 1, 0) == 0) return Answer::none_yet;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  end();
  return error == ECONNREFUSED ? Answer::nobody : Answer::somebody;
}

void Knock::end() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace canele::drivers::ofi
