// SPDX-License-Identifier: BSD-3-Clause
//
// The shared page of senders; see ledger.hpp (who, threads).
// Surprise: a number that a hostile peer writes there can only make others offer their messages, or spin as they would
//      without the page: whoever may write it may write libpsm2's queue as well.
#include "drivers/psm2/ledger.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace canele::drivers::psm2 {

Ledger& Ledger::operator=(Ledger&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(ranks_, other.ranks_);
  std::swap(looked_, other.looked_);
  std::swap(blocked_, other.blocked_);
  return *this;
}

Ledger::~Ledger() {
  if (page_ != nullptr) ::munmap(page_, size_for(ranks_));
}

std::size_t Ledger::size_for(Rank ranks) { return sizeof(std::uint32_t) * (1 + static_cast<std::size_t>(ranks)); }

bool Ledger::make(Rank ranks, net::UniqueFd* descriptor) {
  *descriptor = net::UniqueFd(::memfd_create("canele-psm2-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  return *descriptor && ::ftruncate(descriptor->get(), static_cast<off_t>(size_for(ranks))) == 0 &&
         ::fcntl(descriptor->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

bool Ledger::map(int descriptor, Rank ranks) {
  struct stat found = {};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(descriptor, &found) != 0 ||
      static_cast<std::size_t>(found.st_size) != size_for(ranks)) {
    return false;
  }
  void* const memory = ::mmap(nullptr, size_for(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return false;
  page_ = static_cast<Page*>(memory);
  ranks_ = ranks;
  return true;
}

bool Ledger::enter(Rank self) {
  const std::uint32_t ticket = page_->tickets.fetch_add(slots_per_message);
  page_->entries[self].store(ticket + 1);  // tickets are even, so this is never 0
  if (blocked_ || ticket - looked_ >= look_interval) {
    looked_ = ticket;
    blocked_ = somebody_stays(self, ticket);
  }
  if (blocked_) leave(self);
  return !blocked_;
}

void Ledger::leave(Rank self) { page_->entries[self].store(0); }

bool Ledger::somebody_stays(Rank self, std::uint32_t ticket) const {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t entry = page_->entries[rank].load();
    // Half the circle: one that took its ticket after ours has not stayed at all.
    const std::uint32_t stay = ticket + 1 - entry;
    if (rank != self && entry != 0 && stay > longest_stay && stay < 0x80000000u) return true;
  }
  return false;
}

}  // namespace canele::drivers::psm2
