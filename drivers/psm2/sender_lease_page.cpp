// SPDX-License-Identifier: BSD-3-Clause
//
// The shared page of senders. See sender_lease_page.hpp.
//
// A hostile peer that writes a number there can make others wait or abandon the queue, no more. A process that may
// write this page may write libpsm2's queue as well.
#include "drivers/psm2/sender_lease_page.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace canele::drivers::psm2 {

SenderLeasePage& SenderLeasePage::operator=(SenderLeasePage&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(bell_, other.bell_);
  return *this;
}

SenderLeasePage::~SenderLeasePage() {
  if (page_ != nullptr) ::munmap(page_, sizeof(Page));
}

bool SenderLeasePage::make(net::UniqueFd* descriptor) {
  *descriptor = net::UniqueFd(::memfd_create("canele-psm2-lease-page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  return *descriptor && ::ftruncate(descriptor->get(), sizeof(Page)) == 0 &&
         ::fcntl(descriptor->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

bool SenderLeasePage::map(int descriptor) {
  struct stat found = {};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(descriptor, &found) != 0 ||
      static_cast<std::size_t>(found.st_size) != sizeof(Page)) {
    return false;
  }
  void* const memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return false;
  page_ = static_cast<Page*>(memory);
  return true;
}

bool SenderLeasePage::acquire(pid_t self) {
  std::int32_t nobody = 0;
  return page_->holder.load(std::memory_order_relaxed) == 0 &&
         page_->holder.compare_exchange_strong(nobody, self, std::memory_order_acquire);
}

// A seq_cst exchange, not a release store: what was sent must be visible before ring() reads `asleep`, and a store
// alone does not order that. The partner is the fence in sleep().
void SenderLeasePage::release() { page_->holder.exchange(0); }

void SenderLeasePage::ring() {
  if (page_->asleep.load() == 0 || !bell_ || page_->asleep.exchange(0) == 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(bell_.get(), &one, sizeof one);  // a full counter counts as rung
}

void SenderLeasePage::sleep() {
  page_->asleep.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the exchange in release()
}

void SenderLeasePage::wake() {
  std::uint64_t count;
  if (page_->asleep.exchange(0) != 0) return;
  // The ringing sender may not have written yet.
  [[maybe_unused]] const auto ignored = ::read(bell_.get(), &count, sizeof count);
}

bool has_exited(pid_t pid) {
  const net::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return errno == ESRCH || errno == EINVAL;
  pollfd one = {process.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

}  // namespace canele::drivers::psm2
