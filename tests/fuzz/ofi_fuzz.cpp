// SPDX-License-Identifier: BSD-3-Clause
//
// What the ofi driver reads: heads, the three messages of its handshake, published addresses and names.
//
// A message is either any bytes, or one of ours with some bytes changed. A changed one must not count as authenticated.
#include <rdma/fabric.h>

#include "drivers/ofi/address.hpp"
#include "drivers/ofi/wire.hpp"
#include "fuzz.hpp"

namespace canele::fuzz {
namespace {

namespace ofi = drivers::ofi;
constexpr ofi::Secret secret = {std::byte{1}, std::byte{2}};

ofi::Nonce nonce_of(Input& input) {
  ofi::Nonce made = {};
  const auto bytes = input.bytes(made.size());
  std::copy(bytes.begin(), bytes.end(), made.begin());
  return made;
}

ofi::Hello hello_of(Input& input) {
  ofi::Hello made;
  made.rank = input.number<std::uint16_t>();
  made.peer = input.number<std::int32_t>();
  made.job = input.number<std::uint64_t>();
  made.incarnation = input.number<std::uint64_t>();
  made.nonce = nonce_of(input);
  made.name = copy_of(input.bytes(input.number<std::uint16_t>() % (ofi::max_name + 1)));
  made.port = input.number<std::uint16_t>();
  return made;
}

/// Changes bytes as the input says. Returns whether any byte differs.
bool change(Input& input, Bytes& message) {
  const Bytes before = message;
  for (std::size_t changes = input.below(4); changes > 0; --changes) {
    message[input.number<std::uint16_t>() % message.size()] = static_cast<std::byte>(input.byte());
  }
  if (input.byte() == 7) message.resize(input.number<std::uint16_t>() % 400);
  return message != before;
}

void hello(Input& input) {
  const ofi::Hello said = hello_of(input);
  Bytes message = ofi::make_hello(said, secret);
  const bool changed = change(input, message);
  ofi::Hello heard;
  const bool proven = ofi::read_hello(message, secret, &heard) == ofi::HelloIs::proven;
  FUZZ_CHECK(proven == !changed);
  if (proven) {
    FUZZ_CHECK(heard.rank == said.rank && heard.peer == said.peer && heard.job == said.job);
    FUZZ_CHECK(heard.incarnation == said.incarnation && heard.name == said.name && heard.port == said.port);
  }
}

void answer(Input& input) {
  const Bytes asked = ofi::make_hello(hello_of(input), secret);
  const ofi::Nonce nonce = nonce_of(input);
  std::uint64_t incarnation = 0;
  ofi::Keys made, read;
  Bytes challenge = ofi::make_challenge(asked, 1, 9, nonce, secret, &made);
  const bool changed = change(input, challenge);
  const bool proven = ofi::read_challenge(challenge, asked, secret, &incarnation, &read);
  FUZZ_CHECK(proven == !changed);
  if (proven) FUZZ_CHECK(incarnation == 9 && read.to_acceptor == made.to_acceptor);

  const auto why = static_cast<ofi::Rejection>(input.below(7));
  Bytes rejection = ofi::make_rejection(nonce, why, secret);
  const bool same = !change(input, rejection);
  std::string text;
  const bool taken = ofi::read_rejection(rejection, nonce, secret, &text);
  FUZZ_CHECK(taken || !same);
  if (taken) FUZZ_CHECK(!text.empty() && is_printable(text.substr(0, text.find(';'))));
}

void raw(Input& input) {
  const std::size_t asked_size = input.byte();
  const Bytes asked = copy_of(input.bytes(asked_size));
  const Bytes bytes = copy_of(input.rest());
  ofi::Hello heard;
  if (ofi::read_hello(bytes, secret, &heard) != ofi::HelloIs::garbage) FUZZ_CHECK(heard.name.size() <= ofi::max_name);
  std::uint64_t incarnation = 0;
  ofi::Keys keys;
  ofi::read_challenge(bytes, asked, secret, &incarnation, &keys);
  std::string text;
  ofi::read_rejection(bytes, {}, secret, &text);
  if (bytes.size() < ofi::head_size) return;
  const ofi::Head head = ofi::read_head(bytes.data());
  FUZZ_CHECK(head.rank >= 0 && head.rank < ofi::most_ranks);
  std::byte again[ofi::head_size];
  ofi::write_head(again, head);
  FUZZ_CHECK(std::equal(again, again + ofi::head_size, bytes.begin()));
}

void address(Input& input) {
  const std::size_t size = input.byte();
  const Bytes own = copy_of(input.bytes(size));
  const Bytes bytes = copy_of(input.rest());
  ofi::PublishedName name, again;
  for (const std::uint32_t format : {FI_SOCKADDR, FI_SOCKADDR_IN, FI_ADDR_STR, FI_ADDR_PSMX2})
    ofi::is_sane_name(bytes, format, own);
  if (!ofi::unpack_address(bytes, &name)) return;
  FUZZ_CHECK(!name.name.empty() && name.name.size() <= ofi::max_name);
  const Bytes made = ofi::pack_address(name);
  FUZZ_CHECK(ofi::unpack_address(made, &again) && ofi::pack_address(again) == made);
  FUZZ_CHECK(again.provider == name.provider && again.name == name.name && again.port == name.port);
  if (ofi::is_sane_name(name.name, name.format, own)) FUZZ_CHECK(name.name.size() <= ofi::max_name);
}

}  // namespace
}  // namespace canele::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  canele::fuzz::Input input(data, size);
  switch (input.below(4)) {
    case 0:
      canele::fuzz::hello(input);
      break;
    case 1:
      canele::fuzz::answer(input);
      break;
    case 2:
      canele::fuzz::raw(input);
      break;
    default:
      canele::fuzz::address(input);
  }
  return 0;
}
