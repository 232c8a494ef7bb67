// SPDX-License-Identifier: BSD-3-Clause
//
// The handshake of drivers/net, either side of it, and the list of pending connections.
//
// The other side is a real Handshake whose frames are changed on their way, byte by byte as the input says. If the
// input says so, a frame is then signed again with the right secret, so that the code behind the proof is reached, too.
#include <fcntl.h>
#include <sys/socket.h>

#include "drivers/net/bytes.hpp"
#include "drivers/net/handshake.hpp"
#include "drivers/net/pending_connections.hpp"
#include "drivers/net/siphash.hpp"
#include "fuzz.hpp"

namespace canele::fuzz {
namespace {

namespace net = drivers::net;
using net::Handshake;
using State = Handshake::State;

constexpr std::size_t proof_at = Handshake::identity_size - 8;

struct Pair {
  FuzzContext contexts[2] = {FuzzContext(0), FuzzContext(1)};
  net::Party parties[2] = {{contexts[0], "tcp"}, {contexts[1], "tcp"}};
};

/// Writes the proof that handshake.cpp would write on `frame`.
void sign(Bytes& frame, const Bytes& hellos, bool by_initiator, const FuzzContext& context) {
  Bytes text = bytes_of(by_initiator ? "canele initiator" : "canele acceptor ");
  text.insert(text.end(), hellos.begin(), hellos.end());
  text.insert(text.end(), frame.begin(), frame.begin() + proof_at);
  net::write_le(frame.data() + proof_at, net::siphash24(context.key, text), 8);
}

/// Changes a frame as the input says.
void change(Input& input, Bytes& frame) {
  for (std::size_t changes = input.below(4); changes > 0; --changes) {
    const std::size_t at = input.below(frame.size());
    frame[at] = static_cast<std::byte>(input.byte());
  }
}

void check_state(const Handshake& one, const net::Party& self) {
  if (one.state() == State::failed) FUZZ_CHECK(!one.reason().empty());
  if (one.state() != State::done && one.state() != State::identified) return;
  FUZZ_CHECK(one.peer() >= 0 && one.peer() < self.size && one.peer() != self.rank);
  FUZZ_CHECK(one.payload().size() <= Handshake::max_payload);
}

void feed(Input& input, Handshake& to, const Bytes& frame) {
  std::span<const std::byte> rest(frame);
  while (!rest.empty() && to.wanted() > 0) {
    const std::size_t part = std::min({rest.size(), to.wanted(), 1 + input.below(255)});
    to.feed(rest.first(part));
    rest = rest.subspan(part);
  }
}

/// Returns the pending output of `from`, as one frame.
Bytes take_output(Handshake& from) {
  Bytes made = copy_of(from.output());
  from.sent(made.size());
  return made;
}

/// Sends the acceptor's answer to an authenticated initiator.
void answer(Input& input, Handshake& acceptor, const Bytes& payload) {
  const std::size_t why = input.below(2 * static_cast<std::size_t>(net::Rejection::count));
  if (why > 0 && why < static_cast<std::size_t>(net::Rejection::count)) {
    acceptor.reject(static_cast<net::Rejection>(why));
  } else {
    acceptor.accept(payload);
  }
}

/// Runs a handshake between our side and a genuine one, over a line that changes the frames.
void talk(Input& input) {
  Pair pair;
  const bool we_begin = input.flag();
  const Bytes payload = copy_of(input.bytes(input.below(Handshake::max_payload + 1)));
  const net::Party &us = pair.parties[0], &them = pair.parties[1];
  Handshake one = we_begin ? Handshake::initiator(us, pair.contexts[0], 1, input.flag() ? them.incarnation : 0, payload)
                           : Handshake::acceptor(us, pair.contexts[0]);
  Handshake other = we_begin ? Handshake::acceptor(them, pair.contexts[1])
                             : Handshake::initiator(them, pair.contexts[1], 0, us.incarnation, payload);
  Bytes hellos(2 * Handshake::hello_size);
  bool untouched = true, secret_used = true;
  for (int turn = 0; turn < 4; ++turn) {
    const Bytes ours = take_output(one);
    if (ours.size() == Handshake::hello_size) std::copy(ours.begin(), ours.end(), hellos.begin() + (we_begin ? 0 : 32));
    for (std::size_t at = 0; at < ours.size() && other.wanted() > 0;) {
      const std::size_t part = std::min(other.wanted(), ours.size() - at);
      other.feed(std::span(ours).subspan(at, part));
      at += part;
    }
    if (other.state() == State::identified) answer(input, other, payload);
    Bytes all = take_output(other);
    while (!all.empty()) {
      const std::size_t size =
          std::min(all.size(), all.size() == 216 || all.size() == 32 ? 32 : Handshake::identity_size);
      Bytes frame(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
      all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
      const Bytes before = frame;
      change(input, frame);
      untouched = untouched && frame == before;
      if (size == Handshake::hello_size) std::copy(frame.begin(), frame.end(), hellos.begin() + (we_begin ? 32 : 0));
      if (size == Handshake::identity_size && frame != before) {
        secret_used = input.flag();
        if (secret_used) sign(frame, hellos, !we_begin, pair.contexts[0]);
      }
      feed(input, one, frame);
      check_state(one, us);
    }
    if (one.state() == State::identified) {
      FUZZ_CHECK(secret_used);
      answer(input, one, payload);
    }
  }
  if (input.flag()) one.ended(input.flag() ? ECONNRESET : 0);
  check_state(one, us);
  if (untouched && one.state() == State::done) FUZZ_CHECK(std::ranges::equal(one.payload(), payload));
}

/// Opens unauthenticated connections to it. Whatever they send, their number is bounded, and only authenticated
/// peers leave the list.
void crowd(Input& input) {
  FuzzContext context(0);
  const net::Party self(context, "tcp");
  net::PendingConnections pending(self);
  std::vector<net::UniqueFd> clients;
  std::vector<std::uint32_t> ids;  // also those that have left
  const auto proven = [](net::PendingConnections::Connection&&) {
    FUZZ_CHECK(false);
  };  // no connection here knows the secret
  for (int turn = 0; turn < 100 && !input.empty(); ++turn) {
    int fds[2];
    const std::uint8_t what = input.byte();
    if (what < 64) {
      FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
      clients.emplace_back(fds[0]);
      net::UniqueFd theirs(fds[1]);
      if (pending.has_place(context)) ids.push_back(pending.admit(context, std::move(theirs)));
    } else if (what < 200 && !clients.empty()) {
      const auto bytes = input.bytes(input.byte());
      static_cast<void>(
          ::send(clients[what % clients.size()].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    } else if (what < 220 && !clients.empty()) {
      clients.erase(clients.begin() + what % static_cast<int>(clients.size()));
    } else if (what < 230) {
      context.clock_ns += net::PendingConnections::patience_ns / 2 + 1;
    }
    for (const std::uint32_t id : ids) pending.step(context, id, proven);
    pending.drop_silent(context);
    FUZZ_CHECK(pending.size() <= net::PendingConnections::capacity);
  }
  context.clock_ns += net::PendingConnections::patience_ns + 1;
  pending.drop_silent(context);
  FUZZ_CHECK(pending.empty());
}

}  // namespace
}  // namespace canele::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  canele::fuzz::Input input(data, size);
  if (input.below(8) == 7) {
    canele::fuzz::crowd(input);
  } else {
    canele::fuzz::talk(input);
  }
  return 0;
}
