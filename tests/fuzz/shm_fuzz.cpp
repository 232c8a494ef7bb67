// SPDX-License-Identifier: BSD-3-Clause
//
// What another process of the host gives the shm driver: lines and data in the shared ring, positions in it, the
// message with its descriptors, the published address.
//
// The peer writes between two reads of the same line; the ring is plain memory here, without a second process.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "drivers/shm/fd_exchange.hpp"
#include "drivers/shm/ring.hpp"
#include "fuzz.hpp"

namespace canele::fuzz {
namespace {

namespace net = drivers::net;
namespace shm = drivers::shm;

bool is_inside(const shm::Channel& channel, std::span<const std::byte> bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(&channel);
  return bytes.data() >= begin && bytes.data() + bytes.size() <= begin + sizeof channel;
}

/// Writes lines and records as a hostile sender does; the receiver takes the valid ones and stops at the first that is
/// not.
void receive(Input& input) {
  const auto channel = std::make_unique<shm::Channel>();
  shm::RxRing in;
  in.attach(channel.get(), input.flag());
  std::size_t place = 0;
  std::uint32_t lines = 0;
  for (std::uint64_t number = 1; number < 400 && !input.empty(); ++number) {
    const std::uint64_t told = number + (input.byte() == 255 ? 1 : 0);
    const std::size_t length = input.number<std::uint16_t>() << (input.byte() % 9);
    const auto kind = static_cast<shm::Kind>(input.byte() % 5);
    shm::word_at(*channel, place).store(shm::record_word(told, length, kind, input.flag()));
    if (input.flag()) {
      shm::word_at(*channel, 0).store(shm::record_word(told, input.byte() * 100u, shm::Kind::packet, true));
    }
    if (input.flag()) {
      shm::Line& line = channel->lines[lines % shm::line_count];
      const shm::Descriptor descriptor{input.flag() ? static_cast<std::uint32_t>(place) : input.byte() * 64u,
                                       static_cast<std::uint32_t>(length),
                                       input.number<std::uint16_t>(),
                                       {}};
      std::memcpy(line.payload, &descriptor, sizeof descriptor);
      line.word.store(shm::line_word(told, input.flag() ? shm::names_a_record : length & 0xff));
    }
    const std::uint64_t mail = in.peek();
    if (mail == 0) return;
    const auto bytes = in.small(mail);
    FUZZ_CHECK(bytes.size() <= shm::line_payload && (bytes.empty() || is_inside(*channel, bytes)));
    if (!bytes.empty()) {
      in.pop_line();
      ++lines;
      continue;
    }
    if (const auto longer = in.lines(mail); !longer.empty()) {
      FUZZ_CHECK(longer.size() <= shm::largest_in_lines && is_inside(*channel, longer));
      in.pop_lines(longer.size());
      const std::size_t left = shm::line_count - lines % shm::line_count;
      lines += static_cast<std::uint32_t>(std::min(shm::lines_for(longer.size()), left));
      continue;
    }
    const shm::Arrival arrival = in.large(mail);
    if (!arrival.sound) return;
    FUZZ_CHECK(!arrival.bytes.empty() && arrival.bytes.size() <= shm::largest_packet);
    FUZZ_CHECK(is_inside(*channel, arrival.bytes));
    const auto first = static_cast<std::size_t>(arrival.bytes.data() - channel->data);
    place = shm::round_to_line(first + arrival.bytes.size()) % shm::data_size;
    lines += arrival.named ? 1 : 0;
    in.pop(arrival);
  }
  in.tell();
  FUZZ_CHECK(static_cast<std::uint32_t>(channel->consumed.load()) == lines);
}

/// Writes positions as a hostile receiver does; what the sender then writes stays inside the channel.
void send(Input& input) {
  const auto channel = std::make_unique<shm::Channel>();
  shm::TxRing out;
  std::uint32_t lines = 0, bytes = 0;
  std::uint64_t sent = 0;
  const bool strict = input.flag();
  out.attach(channel.get(), strict, &sent);  // as if all were answered
  if (!strict) out.whole();
  while (!input.empty() && !out.broken() && sent < 2000) {
    const std::uint8_t what = input.byte();
    if (what < 40) {
      lines += what % 4;
      bytes += what / 4 * static_cast<std::uint32_t>(shm::line_size);
      channel->consumed.store(shm::consumed_word(lines, bytes));
    } else if (what < 44) {
      channel->consumed.store(input.number<std::uint64_t>());
    } else if (what < 120) {
      shm::Line* const line = out.line();
      if (line == nullptr) continue;
      FUZZ_CHECK(line >= channel->lines && line < channel->lines + shm::line_count);
      out.publish_small(1 + what % shm::line_payload);
      ++sent;
    } else if (what < 160) {
      const std::byte bytes[shm::largest_in_lines] = {};
      const std::size_t size = 57 + input.byte() % (shm::largest_in_lines - 56), head = what % 32;
      sent += out.put_in_lines(bytes, head, bytes, size - head) ? 1 : 0;
    } else {
      const std::size_t size = 57 + input.number<std::uint16_t>() % (shm::largest_packet - 56);
      const shm::Kind kind = what % 2 == 0 ? shm::Kind::packet : shm::Kind::bulk;
      std::byte* const to = out.data(size, kind);
      if (to == nullptr) continue;
      FUZZ_CHECK(is_inside(*channel, {to, size}));
      out.publish_data(size, kind, {});
      ++sent;
    }
  }
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (int fd = 0; fd < 64; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

/// Sends a message with up to 8 descriptors and any bytes.
void pass_fds(Input& input) {
  const std::size_t before = open_descriptors();
  {
    int fds[2];
    FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    const net::UniqueFd ends[2] = {net::UniqueFd(fds[0]), net::UniqueFd(fds[1])};
    const std::size_t given = input.below(9);
    const Bytes bytes = copy_of(input.rest());
    iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (given > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(given * sizeof(int));
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      *head = {CMSG_LEN(given * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
      for (std::size_t i = 0; i < given; ++i) std::memcpy(CMSG_DATA(head) + i * sizeof(int), &fds[0], sizeof(int));
    }
    static_cast<void>(::sendmsg(ends[0].get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
    shm::FdMessage fd_message;
    shm::Lent lent;
    const shm::Transfer got = shm::receive_fds(ends[1].get(), &fd_message, &lent);
    const bool ok = got == shm::Transfer::ok;
    FUZZ_CHECK(ok == (lent.channel && lent.sleep_page));
    if (ok) FUZZ_CHECK(given == 2 && fd_message.magic == shm::FdMessage::expected_magic);
  }
  FUZZ_CHECK(open_descriptors() == before);
}

void address(Input& input) {
  shm::AddressForm form;
  const Bytes bytes = copy_of(input.rest());
  if (shm::unpack_address(bytes, &form)) FUZZ_CHECK(shm::pack_address(form) == bytes);
}

}  // namespace
}  // namespace canele::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  canele::fuzz::Input input(data, size);
  switch (input.below(4)) {
    case 0:
      canele::fuzz::receive(input);
      break;
    case 1:
      canele::fuzz::send(input);
      break;
    case 2:
      canele::fuzz::pass_fds(input);
      break;
    default:
      canele::fuzz::address(input);
  }
  return 0;
}
