// SPDX-License-Identifier: BSD-3-Clause
//
// The incoming half of one connection. See receiver.hpp.
//
// Bulk data goes through the buffer after all if the pieces of the user's memory are small on average. A readv of many
// small pieces costs more than the copy.
#include "drivers/tcp/receiver.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/net/socket.hpp"

namespace canele::drivers::tcp {
namespace {

constexpr int max_pieces = 63;             // per readv, plus one for the buffer.
constexpr std::size_t worth_direct = 512;  // average bytes per piece from which data is read in place (not measured).
constexpr int fair_reads = 16;             // reads from one peer per poll.

std::uint64_t total(const iovec* pieces, int count) {
  std::uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += pieces[i].iov_len;
  return sum;
}

}  // namespace

Receiver::Outcome Receiver::drain(int fd, DriverEvents& events, bool to_the_end, int* budget, int* reported) {
  bool emptied = false;
  for (int reads = 0;; ++reads) {
    if (mid_frame()) {
      const Outcome outcome = parse(events, budget, reported);
      if (outcome != Outcome::dry) return outcome;
    }
    if (emptied) return Outcome::dry;
    if (*budget <= 0 || reads == fair_reads) return Outcome::more;
    std::size_t asked = 0;
    const ssize_t n = fill(fd, events, &asked, reported);
    if (n <= 0) {
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Outcome::dry;
      return end(n);
    }
    // A short read has emptied the socket: this saves one system call.
    emptied = static_cast<std::size_t>(n) < asked && !to_the_end;
  }
}

Receiver::Outcome Receiver::end(ssize_t n) {
  reason_ = n == 0 ? "the peer closed the connection" : "the connection broke: " + net::error_text(errno);
  if (mid_frame()) reason_ += ", in the middle of a frame";
  return Outcome::ended;
}

/// Delivers what the buffer holds; dry: it needs more bytes.
Receiver::Outcome Receiver::parse(DriverEvents& events, int* budget, int* reported) {
  for (;;) {
    if (bulk_left_ > 0) {
      if (buffered() == 0) return Outcome::dry;
      copy_bulk(events, reported);
      continue;
    }
    if (packet_size_ == 0) {
      bool complete = false;
      if (!read_header(&complete)) return Outcome::ended;
      if (!complete) return Outcome::dry;
      if (bulk_left_ > 0) continue;
    }
    if (buffered() < packet_header + packet_size_) return Outcome::dry;
    if (*budget <= 0) return Outcome::more;
    const Take take = events.packet(from_, {buffer_.get() + begin_ + packet_header, packet_size_});
    if (take == Take::retry) return Outcome::stalled;
    if (take == Take::rejected) return Outcome::rejected;
    begin_ += packet_header + packet_size_;
    packet_size_ = 0;
    --*budget;
    ++*reported;
  }
}

/// Reads the header of the frame at begin_. Returns false if it is malformed. *complete: the whole header is there, and
/// has been processed.
bool Receiver::read_header(bool* complete) {
  if (buffered() < packet_header) return true;
  const std::byte* at = buffer_.get() + begin_;
  const std::uint32_t length = net::read_le32(at);
  const auto kind = std::to_integer<unsigned>(at[4]);
  const bool packet = kind == static_cast<unsigned>(Kind::packet);
  const std::size_t limit = packet ? max_packet : max_bulk;
  if (net::read_le16(at + 6) != frame_magic || at[5] != std::byte{0} ||
      (!packet && kind != static_cast<unsigned>(Kind::bulk))) {
    reason_ = "the peer sent a malformed frame (kind " + std::to_string(kind) + ")";
    return false;
  }
  if (length == 0 || length > limit) {
    reason_ = "the peer sent a frame of " + std::to_string(length) + " bytes; expected: 1 to " + std::to_string(limit);
    return false;
  }
  if (packet) {
    packet_size_ = length;
    *complete = true;
    return true;
  }
  if (buffered() < bulk_header) return true;
  transfer_id_ = net::read_le64(at + 8);
  bulk_offset_ = net::read_le64(at + 16);
  if (bulk_offset_ + length < bulk_offset_) {
    reason_ = "the peer sent bulk data at an impossible offset";
    return false;
  }
  bulk_left_ = length;
  dropping_ = false;
  begin_ += bulk_header;
  *complete = true;
  return true;
}

/// Copies the part of bulk data that arrived in the buffer.
void Receiver::copy_bulk(DriverEvents& events, int* reported) {
  iovec pieces[max_pieces];
  const std::size_t here = std::min<std::uint64_t>(buffered(), bulk_left_);
  const int count =
      dropping_ ? 0 : events.bulk_destination(from_, transfer_id_, bulk_offset_, bulk_left_, pieces, max_pieces);
  if (count <= 0) {
    dropping_ = true;
    begin_ += here;
    bulk_left_ -= here;
    bulk_offset_ += here;
    return;
  }
  assert(total(pieces, count) <= bulk_left_);
  std::size_t copied = 0;
  for (int i = 0; i < count && copied < here; ++i) {
    const std::size_t part = std::min(pieces[i].iov_len, here - copied);
    std::memcpy(pieces[i].iov_base, buffer_.get() + begin_ + copied, part);
    copied += part;
  }
  assert(copied > 0);
  const std::uint64_t offset = bulk_offset_;
  begin_ += copied;
  bulk_left_ -= copied;
  bulk_offset_ += copied;
  ++*reported;
  events.bulk_written(from_, transfer_id_, offset, copied);
}

/// Reads once. *asked: how many bytes would have fitted.
ssize_t Receiver::fill(int fd, DriverEvents& events, std::size_t* asked, int* reported) {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  if (bulk_left_ > 0 && !dropping_ && end_ == 0) {
    const ssize_t n = read_bulk(fd, events, asked, reported);
    if (*asked > 0) return n;
  }
  *asked = receive_buffer - end_;
  assert(*asked > 0);
  const ssize_t n = ::recv(fd, buffer_.get() + end_, *asked, MSG_DONTWAIT);
  if (n > 0) end_ += static_cast<std::size_t>(n);
  return n;
}

/// Reads bulk data to its destination. *asked stays 0 if the data goes through the buffer instead.
ssize_t Receiver::read_bulk(int fd, DriverEvents& events, std::size_t* asked, int* reported) {
  iovec pieces[max_pieces + 1];
  int count = events.bulk_destination(from_, transfer_id_, bulk_offset_, bulk_left_, pieces, max_pieces);
  if (count <= 0) {
    dropping_ = true;
    return 0;
  }
  const std::uint64_t room = total(pieces, count);
  assert(room > 0 && room <= bulk_left_);
  if (room / static_cast<std::uint64_t>(count) < worth_direct && bulk_left_ > worth_direct) return 0;
  *asked = room;
  if (room == bulk_left_) {
    pieces[count++] = {buffer_.get(), receive_buffer};
    *asked += receive_buffer;
  }
  const ssize_t n = ::readv(fd, pieces, count);
  if (n <= 0) return n;
  const std::uint64_t direct = std::min<std::uint64_t>(static_cast<std::uint64_t>(n), room);
  const std::uint64_t offset = bulk_offset_;
  end_ = static_cast<std::size_t>(n) - direct;
  bulk_left_ -= direct;
  bulk_offset_ += direct;
  ++*reported;
  events.bulk_written(from_, transfer_id_, offset, direct);
  return n;
}

}  // namespace canele::drivers::tcp
