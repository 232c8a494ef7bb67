// SPDX-License-Identifier: BSD-3-Clause
//
// Copies and sums without a library.
#include "bare.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "../pin.hpp"

namespace canele::perf::nbc {
namespace {

constexpr std::size_t piece = 16 << 10;  // doubles, 128 KiB

/// Copies by the kernel, as between processes; by memcpy if the kernel forbids it.
void fetch(double* to, const double* from, std::size_t count) {
  const std::size_t size = count * sizeof(double);
  const iovec here{to, size}, there{const_cast<double*>(from), size};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(size)) std::memcpy(to, from, size);
}

void sum(double* __restrict to, const double* __restrict mine, const double* __restrict theirs, std::size_t count) {
  constexpr std::size_t step = 8;  // a number that the compiler knows, so that it uses vectors
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    for (std::size_t k = 0; k < step; ++k) to[i + k] = mine[i + k] + theirs[i + k];
  }
  for (; i < count; ++i) to[i] = mine[i] + theirs[i];
}

std::uint64_t in_doubles(std::uint64_t size) { return size / sizeof(double); }

}  // namespace

BareAmount bare_amount(Operation operation, std::uint64_t size, int rank, int ranks) {
  const auto all = static_cast<std::uint64_t>(ranks);
  const std::uint64_t of_others = in_doubles(size) * (all - 1) / all * sizeof(double);
  switch (operation) {
    case Operation::barrier:
      return {};
    case Operation::bcast:
      return {rank == 0 ? 0 : size, 0, 0};
    case Operation::reduce:
      return rank + 1 == ranks ? BareAmount{} : BareAmount{size, size, 0};
    case Operation::allreduce:
      return {2 * of_others, of_others, 0};
    case Operation::allgather:
    case Operation::alltoall:
      return {(all - 1) * size, 0, size};
  }
  return {};
}

Bare::Bare(int core) : piece_(piece), thread_([this, core] { serve(core); }) {}

Bare::~Bare() {
  stopping_ = true;
  ++asked_;
  asked_.notify_all();
  thread_.join();
}

void Bare::prepare(BareAmount amount) {
  if (amount == amount_) return;
  amount_ = amount;
  const std::uint64_t all = in_doubles(amount.fetched + amount.own);
  theirs_.assign(all, 1);
  result_.assign(all, 0);
  mine_.assign(in_doubles(amount.summed), 2);
}

void Bare::start() {
  ++asked_;
  asked_.notify_all();
}

void Bare::wait() {
  const std::uint32_t wanted = asked_;
  for (std::uint32_t done = done_; done != wanted; done = done_) done_.wait(done);
}

void Bare::serve(int core) {
  pin_thread({core});
  for (std::uint32_t seen = 0;;) {
    asked_.wait(seen);
    if (stopping_) return;
    work();
    done_ = ++seen;
    done_.notify_all();
  }
}

void Bare::work() {
  const std::size_t all = theirs_.size(), summed = mine_.size(), fetched = in_doubles(amount_.fetched);
  std::size_t at = 0;
  for (std::size_t now = 0; at < summed; at += now) {
    now = std::min(piece, summed - at);
    fetch(piece_.data(), &theirs_[at], now);
    sum(&result_[at], &mine_[at], piece_.data(), now);
  }
  for (std::size_t now = 0; at < fetched; at += now) {
    now = std::min(piece, fetched - at);
    fetch(&result_[at], &theirs_[at], now);
  }
  for (std::size_t now = 0; at < all; at += now) {
    now = std::min(piece, all - at);
    std::memcpy(&result_[at], &theirs_[at], now * sizeof(double));
  }
}

}  // namespace canele::perf::nbc
