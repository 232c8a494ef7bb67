// SPDX-License-Identifier: BSD-3-Clause
//
// Cross-memory attach. See cma.hpp. A MemoryKey is: u64 count, then per piece u64 address, u64 length.
//
// The kernel may stop at any piece, so the remaining pieces are computed again after each call.
#include "drivers/shm/cma.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace canele::drivers::shm {
namespace {

constexpr int batch = 64;  // local pieces per system call; far below IOV_MAX, and small on the stack

static_assert(sizeof(std::uint64_t) + most_remote_pieces * sizeof(RemotePiece) <= MemoryKey::max_size);

/// The pieces of a memory key as a peer sent them, checked.
struct RemotePieces {
  RemotePiece pieces[most_remote_pieces];
  int count = 0;

  bool parse(std::span<const std::byte> bytes, std::uint64_t offset, std::uint64_t size) {
    std::uint64_t claimed = 0;
    if (bytes.size() < sizeof claimed) return false;
    std::memcpy(&claimed, bytes.data(), sizeof claimed);
    if (claimed > most_remote_pieces || bytes.size() != sizeof claimed + claimed * sizeof(RemotePiece)) return false;
    count = static_cast<int>(claimed);
    std::memcpy(pieces, bytes.data() + sizeof claimed, claimed * sizeof(RemotePiece));
    std::uint64_t total = 0;
    for (int i = 0; i < count; ++i) {
      if (pieces[i].length > ~total) return false;
      total += pieces[i].length;
    }
    return offset <= total && size <= total - offset;
  }
};

/// Walks a list of pieces: `at` is the current piece, `done` the number of its bytes already used.
template <class Piece>
struct Cursor {
  const Piece* at;
  std::uint64_t done = 0;
  static std::uint64_t length(const RemotePiece& piece) { return piece.length; }
  static std::uint64_t length(const iovec& piece) { return piece.iov_len; }
  static char* start(const RemotePiece& piece) { return reinterpret_cast<char*>(piece.address); }
  static char* start(const iovec& piece) { return static_cast<char*>(piece.iov_base); }

  void skip(std::uint64_t bytes) {
    for (; bytes > 0;) {
      const std::uint64_t step = std::min(bytes, length(*at) - done);
      done += step;
      bytes -= step;
      if (done == length(*at)) ++at, done = 0;
    }
  }

  /// Appends the next pieces to out[count ... max), together at most `bytes`; returns how many bytes they hold.
  std::uint64_t gather(iovec* out, int* count, int max, std::uint64_t bytes) const {
    std::uint64_t gathered = 0;
    Cursor walk = *this;
    while (gathered < bytes && *count < max) {
      const std::uint64_t step = std::min(bytes - gathered, length(*walk.at) - walk.done);
      if (step > 0) out[(*count)++] = {start(*walk.at) + walk.done, step};
      gathered += step;
      ++walk.at, walk.done = 0;
    }
    return gathered;
  }
};

}  // namespace

bool can_read(const RemoteProcess& process) {
  if (process.pid <= 0) return false;
  Nonce found = {};
  const iovec to{found.data(), found.size()};
  const iovec from{reinterpret_cast<void*>(process.nonce_address), found.size()};
  return ::process_vm_readv(process.pid, &to, 1, &from, 1, 0) == static_cast<ssize_t>(found.size()) &&
         found == process.nonce;
}

bool dearer_than_two_copies(DriverContext& clock) {
  constexpr std::size_t size = 64 * 1024;
  constexpr int tries = 5;
  const auto memory = std::make_unique<std::byte[]>(2 * size);
  const iovec from{memory.get(), size}, to{memory.get() + size, size};
  const auto least_of = [&](auto copy) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < tries; ++i) {
      const std::uint64_t begin = clock.now_ns();
      copy();
      least = std::min(least, clock.now_ns() - begin);
    }
    return least;
  };
  bool well = true;
  const auto by_kernel =
      least_of([&] { well &= ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(size); });
  const auto by_hand = least_of([&] {
    std::memcpy(to.iov_base, from.iov_base, size);
    asm volatile("" ::"r"(to.iov_base) : "memory");  // keeps the compiler from removing the copy
  });
  return well && by_kernel > 2 * by_hand;
}

void FreshPages::make(const iovec* pieces, int count) noexcept {
  if (!expected_.load(std::memory_order_relaxed)) return;
  constexpr std::uintptr_t page = 4096;  // where pages are larger, mincore() rejects an address that begins no page
  constexpr std::size_t worth_a_call = 16 * page, most = 1024 * page;
  bool found = false;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len < worth_a_call) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(pieces[i].iov_base) / page * page;
    const std::size_t size = reinterpret_cast<std::uintptr_t>(pieces[i].iov_base) + pieces[i].iov_len - begin;
    unsigned char there[most / page];
    for (std::size_t at = 0; at < size; at += most) {
      const std::size_t part = std::min(most, size - at);
      auto* const address = reinterpret_cast<void*>(begin + at);
      if (::mincore(address, part, there) != 0) continue;  // the copy will report the error
      const std::size_t pages = (part + page - 1) / page;
      if (std::all_of(there, there + pages, [](unsigned char one) { return (one & 1) != 0; })) continue;
      found = true;
      ::madvise(address, part, MADV_POPULATE_WRITE);  // Linux 5.14; without it the copy populates the pages
    }
  }
  if (!found) expected_.store(false, std::memory_order_relaxed);
}

bool write_rkey(const iovec* pieces, int count, MemoryKey* rkey) {
  std::uint64_t used = 0;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    if (used == most_remote_pieces) return false;
    const RemotePiece piece{reinterpret_cast<std::uint64_t>(pieces[i].iov_base), pieces[i].iov_len};
    std::memcpy(rkey->bytes + sizeof used + used * sizeof piece, &piece, sizeof piece);
    ++used;
  }
  std::memcpy(rkey->bytes, &used, sizeof used);
  rkey->size = static_cast<std::uint16_t>(sizeof used + used * sizeof(RemotePiece));
  return true;
}

namespace {

/// Makes one system call. Returns the bytes copied; 0: no byte can be copied.
std::uint64_t copy_pieces(const RemoteProcess& process, RmaOp op, std::span<const iovec> here,
                          std::span<const iovec> there) {
  const auto copy = op == RmaOp::get ? ::process_vm_readv : ::process_vm_writev;
  ssize_t copied = 0;
  do {
    copied = copy(process.pid, here.data(), here.size(), there.data(), there.size(), 0);
  } while (copied < 0 && errno == EINTR);
  return copied > 0 ? static_cast<std::uint64_t>(copied) : 0;
}

/// Does what copy_remote() does where each side is one piece. A walk over lists would cost much beside a short copy.
bool copy_piece(const RemoteProcess& process, RmaOp op, const RemotePiece& there, std::uint64_t offset,
                const iovec& here, std::size_t size) {
  if (offset > there.length || size > there.length - offset || here.iov_len < size) return false;
  auto* const remote = reinterpret_cast<std::byte*>(there.address + offset);
  auto* const local = static_cast<std::byte*>(here.iov_base);
  for (std::size_t done = 0; done < size;) {
    const iovec from{local + done, size - done}, to{remote + done, size - done};
    const std::uint64_t copied = copy_pieces(process, op, {&from, 1}, {&to, 1});
    if (copied == 0) return false;
    done += copied;
  }
  return true;
}

/// Returns whether the memory key of a peer describes one piece, which it then sets.
bool is_one_piece(std::span<const std::byte> rkey, RemotePiece* piece) {
  std::uint64_t count = 0;
  if (rkey.size() != sizeof count + sizeof *piece) return false;
  std::memcpy(&count, rkey.data(), sizeof count);
  std::memcpy(piece, rkey.data() + sizeof count, sizeof *piece);
  return count == 1;
}

/// Makes one system call with pieces of both sides. Returns the bytes copied; 0: no byte can be copied.
std::uint64_t copy_once(const RemoteProcess& process, RmaOp op, const Cursor<RemotePiece>& remote,
                        const Cursor<iovec>& local, std::uint64_t left) {
  iovec here[batch], there[most_remote_pieces];
  int heres = 0, theres = 0;
  const std::uint64_t asked = local.gather(here, &heres, batch, left);
  remote.gather(there, &theres, most_remote_pieces, asked);
  return copy_pieces(process, op, {here, static_cast<std::size_t>(heres)}, {there, static_cast<std::size_t>(theres)});
}

}  // namespace

bool copy_remote(const RemoteProcess& process, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset,
                 const iovec* pieces, int count, std::size_t size) {
  if (process.pid <= 0) return false;
  if (RemotePiece there; count == 1 && is_one_piece(rkey, &there))
    return copy_piece(process, op, there, offset, pieces[0], size);
  RemotePieces theirs;
  if (!theirs.parse(rkey, offset, size)) return false;
  std::uint64_t room = 0;
  for (int i = 0; i < count; ++i) room += pieces[i].iov_len;
  if (room < size) return false;

  Cursor<RemotePiece> remote{theirs.pieces};
  Cursor<iovec> local{pieces};
  remote.skip(offset);
  for (std::uint64_t left = size; left > 0;) {
    const std::uint64_t copied = copy_once(process, op, remote, local, left);
    if (copied == 0) return false;
    remote.skip(copied);
    local.skip(copied);
    left -= copied;
  }
  return true;
}

}  // namespace canele::drivers::shm
