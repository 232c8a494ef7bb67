// SPDX-License-Identifier: BSD-3-Clause
//
// The outgoing half of one connection. See sender.hpp.
//
// One call gives the kernel at most `burst` bytes, so that a transfer of 1 GiB does not delay the other peers.
#include "drivers/tcp/sender.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace canele::drivers::tcp {
namespace {

constexpr std::size_t burst = 1 << 20;
constexpr int batch = 64;  // pieces per system call

/// Copies up to `batch` pieces and `burst` bytes to `out`; returns the number of pieces, *size their bytes.
int gather(iovec* out, int used, const iovec* pieces, std::size_t count, std::size_t* size) {
  for (std::size_t i = 0; i < count && used < batch && *size < burst; ++i) {
    if (pieces[i].iov_len == 0) continue;
    out[used] = {pieces[i].iov_base, std::min(pieces[i].iov_len, burst - *size)};
    *size += out[used++].iov_len;
  }
  return used;
}

ssize_t send_pieces(int fd, iovec* pieces, int count, bool more) {
  msghdr message = {};
  message.msg_iov = pieces;
  message.msg_iovlen = static_cast<std::size_t>(count);
  return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
}

bool is_no_room(int error) { return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM; }

}  // namespace

Status Sender::send(int fd, const FrameHeader& header, const iovec* pieces, int count, std::size_t size, Token token) {
  if (busy() || blocked_) {
    owes_ready_ = true;
    return Status::full;
  }
  if (size <= max_inline) return send_small(fd, header, pieces, count, size);
  iovec list[batch];
  list[0] = {const_cast<std::byte*>(header.bytes), header.size};
  std::size_t asked = header.size;
  const int used = gather(list, 1, pieces, static_cast<std::size_t>(count), &asked);
  const std::size_t total = header.size + size;
  const ssize_t n = send_pieces(fd, list, used, asked < total);
  if (n < 0) return took_nothing();
  lacks_memory_ = 0;
  const auto sent = static_cast<std::size_t>(n);
  if (sent == total) return Status::ok;
  keep_rest(header, pieces, count, sent);
  blocked_ = sent < asked;
  token_ = token;
  // A packet of very many pieces: the kernel took all that one call can carry, so continue at once.
  Token ignored;
  if (!blocked_ && total <= burst && push(fd, &ignored)) return Status::ok;
  return Status::pending;
}

/// Sends one contiguous frame. That costs the kernel less than a list of three tiny pieces, and the rest is cheap to
/// keep.
Status Sender::send_small(int fd, const FrameHeader& header, const iovec* pieces, int count, std::size_t size) {
  std::byte frame[sizeof small_];
  std::byte* end = std::copy_n(header.bytes, header.size, frame);
  for (int i = 0; i < count; ++i) {
    end = std::copy_n(static_cast<const std::byte*>(pieces[i].iov_base), pieces[i].iov_len, end);
  }
  const std::size_t total = header.size + size;
  assert(end == frame + total);
  const ssize_t n = ::send(fd, frame, total, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) return took_nothing();
  lacks_memory_ = 0;
  left_ = total - static_cast<std::size_t>(n);
  if (left_ > 0) {
    std::copy_n(frame + n, left_, small_);
    rest_.assign(1, {small_, left_});
    at_ = 0;
    token_ = nullptr;
    blocked_ = true;
  }
  return Status::ok;
}

/// Answers for a system call that failed.
Status Sender::took_nothing() {
  note_failure(errno);
  if (error_ != 0) return Status::failed;
  owes_ready_ = true;
  return Status::full;
}

/// Notes why a write took nothing. Interrupted or short of memory: no event will come, so poll() tries again.
void Sender::note_failure(int error) {
  if (!is_no_room(error)) error_ = error;
  blocked_ = error == EAGAIN;
  lacks_memory_ = error == ENOBUFS || error == ENOMEM ? error : 0;
}

void Sender::keep_rest(const FrameHeader& header, const iovec* pieces, int count, std::size_t sent) {
  rest_.clear();
  at_ = left_ = 0;
  const auto add = [&](const void* base, std::size_t size) {
    const std::size_t skip = std::min(sent, size);
    sent -= skip;
    if (skip == size) return;
    rest_.push_back({static_cast<char*>(const_cast<void*>(base)) + skip, size - skip});
    left_ += size - skip;
  };
  std::copy_n(header.bytes, header.size, small_);
  add(small_, header.size);
  for (int i = 0; i < count; ++i) add(pieces[i].iov_base, pieces[i].iov_len);
}

bool Sender::push(int fd, Token* token) {
  // More than one iteration only where pieces are many and small: `burst` bounds the bytes.
  for (std::size_t pushed = 0; left_ > 0 && !blocked_ && pushed < burst;) {
    iovec list[batch];
    std::size_t asked = 0;
    const int used = gather(list, 0, rest_.data() + at_, rest_.size() - at_, &asked);
    const ssize_t n = send_pieces(fd, list, used, asked < left_);
    if (n < 0) {
      note_failure(errno);
      return false;
    }
    lacks_memory_ = 0;
    auto sent = static_cast<std::size_t>(n);
    blocked_ = sent < asked;
    pushed += sent;
    left_ -= sent;
    for (; sent > 0; ++at_) {
      iovec& piece = rest_[at_];
      const std::size_t part = std::min(sent, piece.iov_len);
      piece.iov_base = static_cast<char*>(piece.iov_base) + part;
      piece.iov_len -= part;
      sent -= part;
      if (piece.iov_len > 0) break;
    }
  }
  if (left_ > 0) return false;
  *token = token_;
  return true;
}

}  // namespace canele::drivers::tcp
