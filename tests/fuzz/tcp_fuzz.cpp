// SPDX-License-Identifier: BSD-3-Clause
//
// A stream of bytes to the tcp driver's receiver, in reads of any length; and its published address.
//
// The output is compared with a second, simpler reading of the same bytes, written from the description in frame.hpp.
// Packets and bulk bytes must be the same, and the end must come at the same frame.
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/tcp/address.hpp"
#include "drivers/tcp/receiver.hpp"
#include "fuzz.hpp"

namespace canele::fuzz {
namespace {

namespace net = drivers::net;
namespace tcp = drivers::tcp;
using drivers::Rank;
using drivers::Take;

/// Everything that arrived, in order: the fields of the frames and the bytes in them.
using Story = std::vector<std::pair<std::string, Bytes>>;

std::string bulk_name(std::uint64_t key, std::uint64_t offset) {
  return "bulk " + std::to_string(key) + " " + std::to_string(offset);
}

void tell(Story& story, std::string what, std::span<const std::byte> bytes) {
  story.emplace_back(std::move(what), copy_of(bytes));
}

/// Records each byte of bulk data as one event, so that its pieces do not matter.
void tell_bulk(Story& story, std::uint64_t key, std::uint64_t offset, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) tell(story, bulk_name(key, offset + i), bytes.subspan(i, 1));
}

/// Returns whether bulk data of this transfer is wanted.
bool wanted(std::uint64_t key) { return key % 3 != 0; }

/// The engine's part. Its memory is in pieces whose number and sizes the input selects.
class Engine final : public drivers::DriverEvents {
 public:
  Engine(Input& input) : room(input.byte()), most(1 + input.below(63)), stalls(input.byte()) {}

  Take packet(Rank, std::span<const std::byte> bytes) override {
    FUZZ_CHECK(!bytes.empty() && bytes.size() <= tcp::max_packet);
    if (stalls > 1 && ++stalled % stalls == 0) return Take::retry;
    tell(story, "packet", bytes);
    return Take::taken;
  }
  int bulk_destination(Rank, std::uint64_t key, std::uint64_t, std::uint64_t length, iovec* out, int max) override {
    FUZZ_CHECK(length > 0 && length <= tcp::max_bulk && max > 0);
    if (!wanted(key)) return 0;
    memory.clear();
    int count = 0;
    for (std::uint64_t left = length; left > 0 && count < std::min(max, static_cast<int>(most)); ++count) {
      const std::size_t part = std::min<std::uint64_t>(left, 1 + room * (room % 2 == 0 ? 1 : 64));
      memory.emplace_back(part);
      out[count] = {memory.back().data(), part};
      left -= part;
    }
    return count;
  }
  void bulk_written(Rank, std::uint64_t key, std::uint64_t offset, std::uint64_t length) override {
    Bytes all;
    for (const Bytes& piece : memory) all.insert(all.end(), piece.begin(), piece.end());
    FUZZ_CHECK(length > 0 && length <= all.size());
    tell_bulk(story, key, offset, std::span(all).first(length));
  }
  void done(drivers::Token, drivers::Status) override {}
  void ready(Rank) override {}
  void connected(Rank) override {}
  void failed(Rank, bool, std::string_view) override {}

  Story story;

 private:
  std::size_t room, most, stalls, stalled = 0;
  std::vector<Bytes> memory;
};

/// Reads the same bytes frame by frame. Returns false if a frame is malformed.
bool read_plainly(std::span<const std::byte> all, Story& story) {
  while (all.size() >= tcp::packet_header) {
    const std::uint64_t length = net::read_le32(all.data());
    const auto kind = std::to_integer<int>(all[4]);
    if (all[5] != std::byte{0} || net::read_le16(all.data() + 6) != tcp::frame_magic || (kind != 1 && kind != 2) ||
        length == 0 || length > (kind == 1 ? tcp::max_packet : tcp::max_bulk)) {
      return false;
    }
    const std::size_t head = kind == 1 ? tcp::packet_header : tcp::bulk_header;
    if (all.size() < head) return true;
    const std::size_t here = std::min<std::uint64_t>(length, all.size() - head);
    if (kind == 1) {
      if (here < length) return true;
      tell(story, "packet", all.subspan(head, here));
    } else {
      const std::uint64_t key = net::read_le64(all.data() + 8), offset = net::read_le64(all.data() + 16);
      if (offset + length < offset) return false;
      if (wanted(key)) tell_bulk(story, key, offset, all.subspan(head, here));
    }
    all = all.subspan(head + here);
  }
  return true;
}

void stream(Input& input) {
  Engine engine(input);
  const std::size_t cut = 1 + input.number<std::uint16_t>() % 4096;
  const auto all = input.rest();
  tcp::Receiver receiver(1);
  int fds[2];
  FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
  net::UniqueFd ends[2] = {net::UniqueFd(fds[0]), net::UniqueFd(fds[1])};
  auto outcome = tcp::Receiver::Outcome::dry;
  std::size_t sent = 0;
  int turns = 0;
  for (; outcome != tcp::Receiver::Outcome::ended; ++turns) {
    FUZZ_CHECK(turns < 100000);
    const std::size_t part = std::min(cut, all.size() - sent);
    if (part > 0 && outcome == tcp::Receiver::Outcome::dry) {
      const ssize_t n = ::send(ends[0].get(), all.data() + sent, part, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) sent += static_cast<std::size_t>(n);
    }
    if (sent == all.size()) ends[0].reset();
    int budget = 1 + turns % 7, reported = 0;
    outcome = receiver.drain(ends[1].get(), engine, !ends[0], &budget, &reported);
    FUZZ_CHECK(reported >= 0 && budget >= 0);
  }
  FUZZ_CHECK(!receiver.reason().empty());
  Story plain;
  const bool sound = read_plainly(all, plain);
  FUZZ_CHECK(engine.story == plain);
  FUZZ_CHECK(sound == (receiver.reason().find("peer sent") == std::string::npos));
}

void address(Input& input) {
  tcp::PeerAddress out, again;
  const Bytes bytes = copy_of(input.rest());
  if (!tcp::unpack_address(bytes, &out)) return;
  FUZZ_CHECK(!out.endpoints.empty());
  const drivers::Address made = tcp::pack_address(out);
  FUZZ_CHECK(made.size() <= 512 && tcp::unpack_address(made, &again));
  FUZZ_CHECK(again.host == out.host && again.incarnation == out.incarnation);
  FUZZ_CHECK(tcp::pack_address(again) == made);
  for (const net::Endpoint& one : tcp::candidates(out, out.host)) FUZZ_CHECK(is_printable(one.text()));
}

}  // namespace
}  // namespace canele::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  canele::fuzz::Input input(data, size);
  if (input.below(8) == 7) {
    canele::fuzz::address(input);
  } else {
    canele::fuzz::stream(input);
  }
  return 0;
}
