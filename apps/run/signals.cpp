// SPDX-License-Identifier: BSD-3-Clause
//
// Signals by signalfd.
#include "apps/run/signals.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace canele::run {

Signals::Signals() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
    struct sigaction now;
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&watched, number);
  }
  pthread_sigmask(SIG_BLOCK, &watched, &original_);
  fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::runtime_error(fmt::format("signalfd: {}", std::strerror(errno)));
}

Signals::~Signals() { close(fd_); }

int Signals::take() const {
  signalfd_siginfo information;
  return read(fd_, &information, sizeof information) == sizeof information ? static_cast<int>(information.ssi_signo)
                                                                           : 0;
}

}  // namespace canele::run
