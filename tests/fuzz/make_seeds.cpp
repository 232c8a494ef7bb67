// SPDX-License-Identifier: BSD-3-Clause
//
// Writes the first inputs of the fuzz targets: what our own encoders write, a conversation of each kind.
//
// Usage: fuzz_seeds DIRECTORY        writes DIRECTORY/<target>/<name>
// Run it by hand after a format has changed (see README.md); the files are committed in corpus/. An input of
// packet_fuzz is a script, so scripts are written here, not packets.
#include <filesystem>
#include <fstream>

#include "comm/bootstrap/pmi1_wire.hpp"
#include "comm/bootstrap/published.hpp"
#include "drivers/net/handshake.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/ofi/address.hpp"
#include "drivers/ofi/wire.hpp"
#include "drivers/shm/fd_exchange.hpp"
#include "drivers/shm/ring.hpp"
#include "drivers/tcp/address.hpp"
#include "drivers/tcp/frame.hpp"
#include "script.hpp"

namespace canele::fuzz {
namespace {

namespace fs = std::filesystem;
namespace wire = comm::wire;
using wire::Type;

/// An input that is built byte by byte.
class Seed {
 public:
  Seed& operator()(std::initializer_list<unsigned> bytes) {
    for (const unsigned one : bytes) bytes_ += static_cast<char>(one);
    return *this;
  }
  Seed& operator()(Step step) { return (*this)({static_cast<unsigned>(step)}); }
  template <typename T>
  Seed& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Seed& operator()(std::span<const std::byte> bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return *this;
  }
  Seed& operator()(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  /// Adds a packet of one chunk of that type; `operands` as Script::put_chunk reads them behind the type.
  Seed& chunk(Type type, std::initializer_list<unsigned> operands) {
    (*this)(Step::built)({0, 0, static_cast<unsigned>(type)})(operands);
    return (*this)({0});  // unchanged
  }
  /// Adds "Session 0 is s."
  Seed& hello() { return chunk(Type::session, {0, 0, 0, 0, 1}); }
  void write(const fs::path& directory, const char* target, const std::string& name) const {
    fs::create_directories(directory / target);
    std::ofstream(directory / target / name, std::ios::binary) << bytes_;
  }

 private:
  std::string bytes_;
};

enum : unsigned { to_rank_1 = 0, exact = 0, latest = first_handle };
// Indices into `lengths`.
enum : unsigned { nothing = 0, of_100 = 3, of_64k = 7, of_128k = 8, of_200k = 9 };

/// The peer could not read the data that we have asked for.
void failed_transfer(const fs::path& to) {
  constexpr unsigned type_transfer_failed =
      first_one_sided + static_cast<unsigned>(Type::transfer_failed) - static_cast<unsigned>(Type::attach);
  Seed failed;
  failed({job_shm}).hello()(Step::receive)({0, to_rank_1, 5, exact, of_64k, 2});
  failed.chunk(Type::rts, {5, 0, 0, 9, of_64k, 0, 0, 2})(Step::turn);
  failed(Step::built)({0, 0, type_transfer_failed, latest, 0, 0, 0})(Step::turn).write(to, "packet", "failed");
}

void packets(const fs::path& to) {
  const std::pair<const char*, unsigned> jobs[] = {
      {"shm", job_shm}, {"tcp", job_tcp}, {"ofi", job_ofi}, {"shm+tcp", job_shm_and_tcp}, {"tcp+ofi", job_tcp_and_ofi}};
  for (const auto& [name, job] : jobs) {
    // Eager messages: posted before and after; synchronous; probed; cancelled.
    Seed eager;
    eager({job}).hello()(Step::receive)({0, to_rank_1, 5, exact, of_100, 0});
    eager.chunk(Type::eager, {5, 0, 0, of_100}).chunk(Type::eager_sync, {6, 0, 0, 9, of_100});
    eager(Step::probe)({0, to_rank_1, 6, exact, 1})(Step::bind)({0, of_100});
    eager(Step::receive)({0, 3, 7, 2, of_100, 0})(Step::cancel)({0});
    eager(Step::send)({0, to_rank_1, 5, of_100, 1}).chunk(Type::ack, {latest, 0, 0});
    eager.write(to, "packet", std::string("eager-") + name);
    // A large message each way: RTS, CTS, bulk; in two pieces; the end.
    Seed large;
    large({job}).hello()(Step::receive)({0, to_rank_1, 5, exact, of_64k, 2});
    large.chunk(Type::rts, {5, 0, 0, 9, of_64k, 0, 0, 2})(Step::turn);
    large(Step::bulk)({0, latest, nothing, of_64k, 0});
    large(Step::send)({0, to_rank_1, 5, of_200k, 8}).chunk(Type::cts, {latest, 0, 0, 3, nothing, of_200k});
    large(Step::operation_ends)({0, 0})(Step::operation_ends)({0, 0}).chunk(Type::fin, {latest, 0, 0, 0});
    large.write(to, "packet", std::string("large-") + name);
    // The receiver fetches; an unbound receive; our own rkey is fetched.
    Seed fetched;
    fetched({job}).hello().chunk(Type::rts, {5, 0, 0, 9, of_64k, 8, 16, 4});
    fetched(Step::receive)({0, to_rank_1, 5, exact, of_64k, 1})(Step::answers)({0, 2})(Step::bind)({0, of_64k});
    fetched(Step::operation_ends)({0, 0})(Step::answers)({0, 4}).chunk(Type::rts, {6, 0, 0, 9, of_64k, 0, 16, 4});
    fetched(Step::receive)({0, to_rank_1, 6, exact, of_64k, 0})(Step::bulk)({0, latest, nothing, of_64k, 1});
    fetched(Step::hold_ends)({0, 0}).chunk(Type::bye, {0, 0, 0});
    fetched.write(to, "packet", std::string("fetched-") + name);
  }
  // Both ends copy: our RTR is acquired; we acquire the peer's RTR.
  Seed rtr;
  rtr({job_shm}).hello()(Step::receive)({0, to_rank_1, 5, exact, of_200k, 0});
  rtr.chunk(Type::rts, {5, 0, 0, 9, of_200k, 0, 16, 4 + 0x80, 5})(Step::turn);
  rtr.chunk(Type::rtr, {6, 0, 0, 9, of_200k, 0, 3, 1, 16})(Step::send)({0, to_rank_1, 6, of_200k, 0});
  rtr(Step::turn)(Step::turn).chunk(Type::copy_done, {latest, 0, 0});
  rtr.write(to, "packet", "rtr");
  // A matched receive and a matched send are shared.
  constexpr unsigned type_shared_copy = 245;
  Seed shared;
  shared({job_shm}).hello()(Step::receive)({0, to_rank_1, 5, exact, of_200k, 0});
  shared.chunk(Type::rts, {5, 0, 0, 9, of_200k, 0, 16, 4})(Step::turn)(Step::send)({0, to_rank_1, 6, of_200k, 0});
  shared(Step::built)({0, 0, type_shared_copy, latest, 0, 0, 9, of_200k, 0, 3, 1, 16, 0})(Step::turn)(Step::turn);
  shared.chunk(Type::copy_done, {latest + 1, 0, 0}).write(to, "packet", "shared");
  // Two rails: sequenced packets in and out of order, acknowledged; a rail fails in a transfer.
  Seed rails;
  rails({job_shm_and_tcp});
  for (const unsigned ahead : {1u, 0u, 2u}) {
    rails(Step::built)({ahead, 1, static_cast<unsigned>(Type::sequenced), 0, 0, ahead});
    rails({static_cast<unsigned>(Type::session), 0, 0, 0, 0, 1, 0});
  }
  rails(Step::receive)({0, to_rank_1, 5, exact, of_64k, 0}).chunk(Type::rts, {5, 0, 0, 9, of_64k, 0, 0, 2});
  rails(Step::bulk)({1, latest, nothing, of_64k, 1}).chunk(Type::regrant, {latest, 0, 0});
  rails(Step::send)({0, to_rank_1, 5, of_100, 0}).chunk(Type::cumulative_ack, {0, 0, 0, 1})(Step::fails)({1});
  rails.write(to, "packet", "rails");
  // Bulk data on one rail is in progress: the same transfer arrives on the other rail, or the peer leaves by it.
  for (const bool leaves : {false, true}) {
    Seed bulk;
    bulk({job_shm_and_tcp}).hello()(Step::receive)({0, to_rank_1, 5, exact, of_64k, 0});
    bulk.chunk(Type::rts, {5, 0, 0, 9, of_64k, 0, 0, 2})(Step::bulk)({1, latest, nothing, of_64k, 1});
    if (leaves) bulk.chunk(Type::bye, {0, 0, 0});
    if (!leaves) bulk(Step::bulk)({0, latest, nothing, of_64k, 0});
    bulk(Step::hold_ends)({1, 0}).write(to, "packet", leaves ? "bulk-bye" : "bulk-twice");
  }
  constexpr unsigned type_closing = 244;
  Seed leaving;  // one rail announces its end, and ends; the bye comes by the other one, which then ends, too
  leaving({job_shm_and_tcp}).hello()(Step::built)({0, 0, type_closing})({0, 0, 0, 0})(Step::fails)({0});
  leaving.chunk(Type::bye, {0, 0, 0})(Step::fails)({1}).write(to, "packet", "leaving");
}

/// One-sided operations: rank 1's on our memory, and ours on the memory of rank 1.
void one_sided(const fs::path& to) {
  constexpr unsigned put = first_one_sided + 2, get = put + 1, got = put + 2, atomic = put + 3, result = put + 4,
                     notify = put + 5, flush = put + 6, executed = put + 7, failed = put + 8, notified = put + 9,
                     attach = put - 2, detach = put - 1, attached = put + 10, accumulate = put + 11, acknowledged = 1,
                     notifies = 3, by_message = 4;
  const auto chunk = [](Seed& seed, unsigned type, std::initializer_list<unsigned> operands) -> Seed& {
    seed(Step::built)({0, 0, type})(operands);
    return seed({0});
  };
  for (const unsigned job : {job_shm, job_tcp, job_shm_and_tcp}) {
    Seed target;  // each operation on the first region, and on the second, which allows some of them only
    target({job});
    for (const unsigned region : {0u, 1u}) {
      const unsigned index = region + 1;
      chunk(target, attach, {0, index, 0, region});
      chunk(target, put, {0, index, 0, acknowledged, 2, of_100});
      chunk(target, put, {0, index, 0, notifies, 2, of_100, 1, of_100});
      chunk(target, get, {0, index, 0, 0, 2, 9, of_100});
      chunk(target, get, {0, index, 0, by_message, 2, 9, of_100});
      chunk(target, atomic, {0, index, 0, acknowledged, 2, 9, 2, 8});
      chunk(target, accumulate, {0, index, 0, acknowledged, 2, nothing, CANELE_SUM, CANELE_UINT32, of_100});
      chunk(target, accumulate, {0, index, 0, 0, 2, 9, CANELE_NO_OP, CANELE_UINT8, of_100});
    }
    chunk(target, notify, {0, 0, 0, 0, nothing, 2});
    chunk(target, flush, {0, 0, 0, acknowledged});
    for (const unsigned lane : {1u, 2u})
      chunk(target, put, {0, lane, lane, by_message + notifies, 2, of_100, 1, of_100, of_100});
    chunk(target, detach, {0, 1, 0})(Step::revoke)({1}).write(to, "packet", "one-sided-target-" + std::to_string(job));
    Seed permitted;  // rank 1 permits us to access its memory by ourselves, and takes that back
    permitted({job})(Step::access)({0, 0, 2, of_100, 3});
    chunk(permitted, attached, {0, 1, 0, 0, 0, 3, 24, 24})(Step::line)({0, 128 + 16, 0, 3, 0, 0, 0, 0});
    for (const unsigned kind : {0u, 1u}) permitted(Step::access)({kind, 0, 2, of_64k, 3});
    permitted(Step::line)({0, 16, 0, 3, 0, 0, 0, 0})(Step::access)({0, 0, 2, of_64k, 3})(Step::fails)({0});
    permitted.write(to, "packet", "one-sided-permitted-" + std::to_string(job));
    Seed origin;
    origin({job});
    for (const unsigned kind : {0u, 1u, 2u, 3u, 4u, 5u}) origin(Step::access)({kind, 0, 2, kind == 2 ? 2u : of_100, 3});
    chunk(origin, got, {latest + 1, 0, 0, of_100});
    chunk(origin, result, {latest, 0, 0});
    chunk(origin, failed, {0, 0, 0, 1, 4});
    chunk(origin, executed, {0, 0, 0, 0});
    chunk(origin, notified, {0, 0, 0, 0})(Step::access)({0, 1, 2, of_200k, 3})(Step::fails)({0});
    origin.write(to, "packet", "one-sided-origin-" + std::to_string(job));
  }
}

/// Multicasts: ours, rank 1's, and one of rank 2 in which we are the parent of rank 1, or rank 1 is ours.
void multicasts(const fs::path& to) {
  constexpr unsigned type_multicast_rts = 240, type_multicast_cts = 241, type_multicast_done = 242,
                     type_multicast_redirect = 243;
  enum : unsigned { ours = 252, of_rank_2 = 251, chain = 1, is_parent = 16, is_child = 32 };
  const auto chunk = [](Seed& seed, unsigned type, std::initializer_list<unsigned> operands) -> Seed& {
    return seed(Step::built)({0, 0, type})(operands)({0});
  };
  for (const unsigned job : {job_tcp, job_ofi}) {
    Seed root;  // rank 1 asks us for the data, in pieces; reports that it has it
    root({job}).hello()(Step::send)({ours, 5, of_64k, chain})(Step::turn);
    root.chunk(Type::cts, {latest + 1, 0, 0, 3, nothing, of_64k})(Step::operation_ends)({0, 0});
    root.chunk(Type::fin, {latest + 1, 0, 0, 0}).write(to, "packet", "multicast-root-" + std::to_string(job));
    Seed destination;  // of rank 1; rank 2 is our parent, then we are redirected to rank 1
    destination({job}).hello()(Step::receive)({0, to_rank_1, 5, exact, of_64k, 0});
    chunk(destination, type_multicast_rts, {5, 0, 0, 1, 3 << 2, 9, of_64k, 0, 0, 2})(Step::turn);
    chunk(destination, type_multicast_redirect, {1, 0, 0, 1})(Step::bulk)({0, latest, nothing, of_64k, 0});
    destination.write(to, "packet", "multicast-destination-" + std::to_string(job));
    for (const unsigned first : {0u, 1u}) {  // rank 1 wants from us the data of rank 2, before or after its envelope
      Seed parent;
      parent({job}).hello();
      if (first == 0) parent(Step::send)({of_rank_2, 5, of_64k, is_child + 3});
      chunk(parent, type_multicast_cts, {3, 0, 0, 20, nothing, of_64k, 2});
      if (first == 1) parent(Step::send)({of_rank_2, 5, of_64k, is_child + 3});
      parent(Step::receive)({0, 2, 5, exact, of_64k, 0})(Step::turn);
      chunk(parent, type_multicast_done, {3, 0, 0, 2})
          .write(to, "packet", "multicast-parent-" + std::to_string(first) + "-" + std::to_string(job));
    }
    Seed child;  // rank 1 forwards the data of rank 2 to us
    child({job}).hello()(Step::receive)({0, 2, 5, exact, of_64k, 0})(Step::send)({of_rank_2, 5, of_64k, is_parent + 4});
    child(Step::turn)(Step::bulk)({0, latest, nothing, of_100, 0});
    chunk(child, type_multicast_redirect, {4, 0, 0, 2}).write(to, "packet", "multicast-child-" + std::to_string(job));
  }
}

/// Flow control, both halves.
void credit(const fs::path& to) {
  for (const unsigned job : {job_shm, job_tcp}) {
    Seed sender;  // two leave, the others are blocked: credit for one, envelopes for the rest, one of which is taken
    sender({job + job_short_of_memory}).hello();
    for (unsigned i = 0; i < 6; ++i) sender(Step::send)({0, to_rank_1, i, of_100, 0});
    sender.chunk(Type::credit, {0, 0, 0, 4}).chunk(Type::solicit, {1, 0, 0, 0});
    sender.chunk(Type::cts, {latest, 0, 0, 3, nothing, of_100}).chunk(Type::blocked_reply, {2, 0, 0});
    sender.chunk(Type::credit, {0, 0, 0, 50}).write(to, "packet", "blocked-" + std::to_string(job));
    Seed asked;  // the same sends, solicited by tag, by mask, and by a probe
    asked({job + job_short_of_memory}).hello();
    for (unsigned i = 0; i < 6; ++i) asked(Step::send)({0, to_rank_1, i, of_100, 0});
    asked.chunk(Type::solicit, {1, 0, 0, 1, 4})
        .chunk(Type::blocked_reply, {1, 0, 0})
        .chunk(Type::solicit, {2, 0, 0, 3, 3});
    asked.chunk(Type::solicit, {2, 0, 0, 5, 2})
        .chunk(Type::blocked_reply, {0, 0, 0})
        .chunk(Type::blocked_reply, {1, 0, 0});
    asked.chunk(Type::credit, {0, 0, 0, 50}).write(to, "packet", "asked-" + std::to_string(job));
    Seed receiver;  // rank 1 uses up its credit, reports that it has more to send, and advertises it
    receiver({job + job_short_of_memory}).hello();
    for (unsigned i = 0; i < 5; ++i) receiver.chunk(Type::eager, {9, 0, 0, 4});
    receiver.chunk(Type::blocked, {1, 0, 0})(Step::receive)({0, to_rank_1, 5, exact, of_100, 0});
    receiver(Step::probe)({0, to_rank_1, 6, exact, 0});
    receiver(Step::built)({0, 1});
    receiver({static_cast<unsigned>(Type::blocked_envelope), 5, 1, 0, 0, 2, 30, 0, 9, of_64k, 0, 0, 2});
    receiver({static_cast<unsigned>(Type::blocked_envelope), 6, 1, 0, 1, 2, 30, 1, 10, of_64k, 0, 0, 2, 0});
    receiver(Step::receive)({0, to_rank_1, 9, exact, of_100, 0}).chunk(Type::blocked, {0, 0, 0});
    receiver.write(to, "packet", "blocked-envelopes-" + std::to_string(job));
  }
}

void addresses(const fs::path& to) {
  FuzzJob::Options options;
  options.drivers = {Like::shm, Like::tcp};
  Seed whole, tail;
  {
    FuzzJob job(options);
    job.peer(honest);
    job.settle();
    const comm::Blob blob = job.peer(honest).address;
    whole({0, 0})(blob);
    tail({1, 1})(std::span(blob).subspan(sizeof wire::version));
  }
  whole.write(to, "address", "whole");
  tail.write(to, "address", "tail");
}

void handshakes(const fs::path& to) {
  for (const unsigned begins : {0u, 1u}) {
    Seed plain, changed;
    plain({0, begins, 8})("greeting")({1, 0, 255, 0, 255, 1}).write(to, "handshake", "plain-" + std::to_string(begins));
    changed({0, begins, 4})("user")({1, 0, 255, 1, 20, 9, 1, 255})
        .write(to, "handshake", "signed-" + std::to_string(begins));
  }
  Seed crowd;
  crowd({7, 1, 2, 100, 4})("CNLE")({201, 1, 225, 225, 250}).write(to, "handshake", "crowd");
}

void tcp_streams(const fs::path& to) {
  namespace tcp = drivers::tcp;
  Seed stream;
  stream({0, 10, 3, 0}).number<std::uint16_t>(100);
  const auto frame = [&](const tcp::FrameHeader& header, std::size_t size) {
    stream(std::span(header.bytes).first(header.size))(std::string(size, 'x'));
  };
  frame(tcp::make_header(tcp::Kind::packet, 40), 40);
  frame(tcp::make_header(tcp::Kind::bulk, 200, 1, 4096), 200);
  frame(tcp::make_header(tcp::Kind::bulk, 30, 3, 0), 30);
  frame(tcp::make_header(tcp::Kind::packet, 1), 1);
  stream.write(to, "tcp", "stream");
  tcp::PeerAddress address{42, 7, {}};
  for (const bool v6 : {false, true}) address.endpoints.push_back(drivers::net::Endpoint::loopback(v6, 4000));
  Seed published;
  published({7})(tcp::pack_address(address)).write(to, "tcp", "address");
}

void shm_bytes(const fs::path& to) {
  namespace shm = drivers::shm;
  Seed lines, room, fd_message, address;
  lines({0, 0, 1}).number<std::uint16_t>(20)({0, 4})("abcd")({0, 0, 2}).number<std::uint16_t>(200)({0, 0, 1});
  lines.number<std::uint16_t>(3)({1, 2, 0}).write(to, "shm", "lines");
  room({1, 0, 100, 100, 2, 130}).number<std::uint16_t>(9000)({1, 200}).number<std::uint16_t>(16000);
  room.write(to, "shm", "room");
  const shm::FdMessage said;
  fd_message({2, 2}).number(said).write(to, "shm", "fd_message");
  address({3})(shm::pack_address({})).write(to, "shm", "address");
}

void fabrics(const fs::path& to) {
  namespace ofi = drivers::ofi;
  constexpr ofi::Secret secret = {std::byte{1}, std::byte{2}};
  ofi::Hello said;
  said.rank = 1;
  said.name = bytes_of("fi_sockaddr_in://10.0.0.1:4000");
  const Bytes hello = ofi::make_hello(said, secret);
  Seed changed, raw, address;
  changed({0})
      .number<std::uint16_t>(1)(std::string(38, 'n'))
      .number<std::uint16_t>(5)("names")
      .number<std::uint16_t>(9);
  changed({0, 0}).write(to, "ofi", "hello");
  raw({2, 0})(hello).write(to, "ofi", "raw");
  Seed answer;
  answer({1}).number<std::uint16_t>(1)(std::string(54, 'n'))({0, 0, 2, 0, 0}).write(to, "ofi", "answer");
  address({3, 4})("name")(ofi::pack_address({"tcp;ofi_rxm", 2, 7, 0, said.name, 4000})).write(to, "ofi", "address");
}

void launchers(const fs::path& to) {
  Seed talk;
  talk({0, 3, 0, 3, 0, 3});                                  // the hello
  talk({8, 3})("key")({4})("blob")({0, 3})({6, 1, 1, 200});  // put, answered; asked
  talk({0, 0, 5})("bytes")({3, 9, 0, 3, 7, 250}).write(to, "pmi1", "talk");
  // Rank 0 of 4, third and last on its host; a blob, another rank's failure and death, a survey.
  Seed place;
  place({1, 1, 0, 0, 0, 6, 4, 0, 6, 2, 0, 6, 3, 0, 0, 4})("host");
  place({0, 1, 0, 1, 0, 1, 0, 1, 4})("blob")({0, 2, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 1, 1, 6, 2});
  place({2, 1, 1, 2, 1, 1, 3, 2, 0, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2, 0}).write(to, "pmix", "place");
  Seed died;
  died({0, 3, 0, 3, 0, 3, 6, 2, 1, 9, 5, 18})("canele_died rank=2")({0}).write(to, "pmi1", "died");
}

void published(const fs::path& to) {
  comm::PublishedValues some, none;
  std::string why;
  const std::string_view value = "value";
  some.put("key", std::as_bytes(std::span(value)), &why);
  const comm::Blob first = some.encode({0, 2, 7, "host"}), second = none.encode({1, 2, 7, "host"});
  Seed two;
  two({1, static_cast<unsigned>(first.size()), 3})("key")(std::span(first))(std::span(second));
  two.write(to, "published", "two");
}

void texts(const fs::path& to) {
  Seed settings;
  settings("CANELE_DRIVERS=shm+tcp:eth0\nCANELE_STRATEGY=priority\nCANELE_EAGER_LIMIT=16k\n!CANELE_SPIN=auto\n");
  settings(
      "CANELE_EXPERT_FAULT=flip-byte:1000\nCANELE_EXPERT_DECORATORS=check,delay:us=50,fault:seed=7:full=0.05\nCANELE_"
      "TPC_PORT=1\n");
  settings("ashm+tcp\n!b/d\nCANELE_X_Y=z\n").write(to, "settings", "most");
  Seed samples;
  samples({9})("driver tcp date=2026-01-02 latency_ns=20000 gap_ns=900 bytes_per_second=3000000000 ");
  samples("declared_latency_ns=30000 declared_bytes_per_second=1000000000\ntime tcp 8 20000\ntime tcp 4096 25000\n");
  samples("# words\n").write(to, "samples", "two");
}

}  // namespace
}  // namespace canele::fuzz

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n"), 2;
  canele::fuzz::packets(argv[1]);
  canele::fuzz::failed_transfer(argv[1]);
  canele::fuzz::credit(argv[1]);
  canele::fuzz::multicasts(argv[1]);
  canele::fuzz::one_sided(argv[1]);
  canele::fuzz::addresses(argv[1]);
  canele::fuzz::handshakes(argv[1]);
  canele::fuzz::tcp_streams(argv[1]);
  canele::fuzz::shm_bytes(argv[1]);
  canele::fuzz::fabrics(argv[1]);
  canele::fuzz::launchers(argv[1]);
  canele::fuzz::published(argv[1]);
  canele::fuzz::texts(argv[1]);
  return 0;
}
