// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of what the ofi driver sends and publishes: heads, handshake messages, addresses. No endpoint is opened.
//
// One thread. Every single bit of a handshake message is flipped: none may pass.
#include "tests/unit/ofi/ofi_fixture.hpp"

namespace canele::drivers::ofi {
namespace {

const Secret secret = [] {
  Secret made;
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::byte>(i + 1);
  return made;
}();

Hello some_hello() {
  Hello hello{3, 5, 4711, 99, {}, pattern(28, 1), 50'000};
  hello.nonce[7] = std::byte{42};
  return hello;
}

/// Checks all copies of `bytes` that differ in one bit.
template <typename Check>
void with_each_bit_flipped(Bytes bytes, const Check& check) {
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    check(bytes, bit);
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
  }
}

TEST(OfiWire, HeadsComeBack) {
  std::array<std::byte, head_size> bytes;
  write_head(bytes.data(), {0x0123456789abcdef, most_ranks - 1, Kind::bulk, 65535, 64});
  const Head head = read_head(bytes.data());
  EXPECT_EQ(head.key, 0x0123456789abcdefu);
  EXPECT_EQ(head.rank, most_ranks - 1);
  EXPECT_EQ(head.kind, Kind::bulk);
  EXPECT_EQ(head.number, 65535);
  EXPECT_EQ(head.finished, 64);
}

TEST(OfiWire, AHelloIsProvenOrNothing) {
  const Bytes bytes = make_hello(some_hello(), secret);
  Hello hello;
  ASSERT_EQ(read_hello(bytes, secret, &hello), HelloIs::proven);
  EXPECT_EQ(hello.rank, 3);
  EXPECT_EQ(hello.peer, 5);
  EXPECT_EQ(hello.job, 4711u);
  EXPECT_EQ(hello.incarnation, 99u);
  EXPECT_EQ(hello.nonce, some_hello().nonce);
  EXPECT_EQ(hello.name, some_hello().name);
  EXPECT_EQ(hello.port, 50'000);
  with_each_bit_flipped(bytes, [&](const Bytes& changed, std::size_t bit) {
    EXPECT_NE(read_hello(changed, secret, &hello), HelloIs::proven) << bit;
  });
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(read_hello(std::span(bytes).first(size), secret, &hello), HelloIs::garbage) << size;
  }
  Secret other = secret;
  other[15] ^= std::byte{1};
  EXPECT_EQ(read_hello(bytes, other, &hello), HelloIs::unproven);
  EXPECT_EQ(read_hello(make_hello(some_hello(), secret, wire_version + 1), secret, &hello), HelloIs::other_version);
}

TEST(OfiWire, AChallengeAnswersOneHelloOnly) {
  const Bytes hello = make_hello(some_hello(), secret);
  Keys made, read;
  std::uint64_t incarnation = 0;
  const Bytes bytes = make_challenge(hello, 5, 123, some_hello().nonce, secret, &made);
  ASSERT_TRUE(read_challenge(bytes, hello, secret, &incarnation, &read));
  EXPECT_EQ(incarnation, 123u);
  EXPECT_EQ(made.to_acceptor, read.to_acceptor);
  EXPECT_EQ(made.to_initiator, read.to_initiator);
  EXPECT_NE(made.to_acceptor, made.to_initiator) << "what goes one way must mean nothing the other way";
  with_each_bit_flipped(bytes, [&](const Bytes& changed, std::size_t bit) {
    EXPECT_FALSE(read_challenge(changed, hello, secret, &incarnation, &read)) << bit;
  });
  Hello another = some_hello();
  another.nonce[0] = std::byte{1};
  EXPECT_FALSE(read_challenge(bytes, make_hello(another, secret), secret, &incarnation, &read));
}

TEST(OfiWire, ARejectionMustNameTheNonceAndIsSignedWhereItCanBe) {
  const Nonce nonce = some_hello().nonce;
  std::string why;
  for (const Rejection reason :
       {Rejection::wrong_job, Rejection::wrong_rank, Rejection::connected, Rejection::gave_up}) {
    const Bytes bytes = make_rejection(nonce, reason, secret);
    EXPECT_TRUE(read_rejection(bytes, nonce, secret, &why));
    EXPECT_EQ(why, text_of(reason));
    with_each_bit_flipped(bytes, [&](const Bytes& changed, std::size_t bit) {
      if (bit / 8 >= 4 && bit / 8 < 16) return;  // rank, kind and number have been checked before
      EXPECT_FALSE(read_rejection(changed, nonce, secret, &why) && why.find("secret") == std::string::npos &&
                   why.find("version") == std::string::npos)
          << bit;
    });
  }
  EXPECT_FALSE(read_rejection(make_rejection(Nonce{}, Rejection::wrong_secret, secret), nonce, secret, &why));
  EXPECT_TRUE(read_rejection(make_rejection(nonce, Rejection::wrong_version, secret), nonce, Secret{}, &why));
  EXPECT_NE(why.find("this rank has version"), std::string::npos) << why;
}

TEST(OfiAddress, ComesBackOrIsRejected) {
  const PublishedName name{"tcp;ofi_rxm", FI_SOCKADDR_IN, 7, 0x1122334455667788, pattern(16, 3)};
  const Bytes bytes = pack_address(name);
  EXPECT_LE(bytes.size(), 512u);
  PublishedName read;
  ASSERT_TRUE(unpack_address(bytes, &read));
  EXPECT_EQ(read.provider, name.provider);
  EXPECT_EQ(read.format, name.format);
  EXPECT_EQ(read.incarnation, name.incarnation);
  EXPECT_EQ(read.host, name.host);
  EXPECT_EQ(read.name, name.name);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(unpack_address(std::span(bytes).first(size), &read)) << size;
  }
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(unpack_address(longer, &read));
}

TEST(OfiAddress, NamesAreCheckedBeforeTheProviderSeesThem) {
  const Bytes own = {std::byte{2}, std::byte{0}, std::byte{1}, std::byte{1}};
  Bytes other = own;
  EXPECT_TRUE(is_sane_name(other, FI_SOCKADDR_IN, own));
  other[0] = std::byte{10};
  EXPECT_FALSE(is_sane_name(other, FI_SOCKADDR_IN, own)) << "another family";
  EXPECT_TRUE(is_sane_name(other, FI_ADDR_EFA, own)) << "opaque";
  other.pop_back();
  EXPECT_FALSE(is_sane_name(other, FI_ADDR_EFA, own)) << "another length";
  const auto text = [](const char* letters) {
    const auto* const from = reinterpret_cast<const std::byte*>(letters);
    return Bytes(from, from + std::strlen(letters) + 1);
  };
  const Bytes shm = text("fi_shm://17:1000:0");
  EXPECT_TRUE(is_sane_name(text("fi_shm://4711:1000:12"), FI_ADDR_STR, shm));
  EXPECT_FALSE(is_sane_name(std::span(shm).first(shm.size() - 1), FI_ADDR_STR, shm)) << "no end";
  EXPECT_FALSE(is_sane_name(text("fi_shm://17:0:0"), FI_ADDR_STR, shm)) << "another user's";
  EXPECT_FALSE(is_sane_name(text("fi_shm://../17:1000:0"), FI_ADDR_STR, shm)) << "another file";
  Bytes early = shm;
  early[12] = std::byte{0};
  EXPECT_FALSE(is_sane_name(early, FI_ADDR_STR, shm)) << "ends early";
  EXPECT_FALSE(is_sane_name({}, FI_ADDR_STR, own));
}

TEST(OfiProvider, BadChoicesAreExplained) {
  std::string reason;
  EXPECT_FALSE(choose_provider({"no-such-provider", ""}, &reason));
  EXPECT_NE(reason.find("no-such-provider"), std::string::npos) << reason;
  EXPECT_FALSE(choose_provider({"sockets", ""}, &reason));
  EXPECT_NE(reason.find("tcp;ofi_rxm"), std::string::npos) << reason;
  const Info any = choose_provider({}, &reason);
  if (!any) GTEST_SKIP() << reason;
  EXPECT_NE(provider_name(*any), "shm") << "reaches this host only: no setting asked for it";
  EXPECT_FALSE(choose_provider({"", "no-such-domain"}, &reason));
  EXPECT_NE(reason.find("CANELE_OFI_DOMAIN"), std::string::npos) << reason;
  EXPECT_NE(reason.find(any->domain_attr->name), std::string::npos) << reason;
}

TEST(OfiProvider, TheArgumentOfTheDriverNamesProviderAndDomain) {
  const auto read = [](const std::string& argument) {
    Wanted wanted;
    wanted.provider = "of the setting", wanted.domain = "of another setting";
    std::string reason;
    EXPECT_TRUE(read_argument(argument, &wanted, &reason)) << reason;
    return wanted.provider + " at " + wanted.domain;
  };
  EXPECT_EQ(read(""), "of the setting at of another setting");
  EXPECT_EQ(read("verbs;ofi_rxm"), "verbs;ofi_rxm at of another setting");
  EXPECT_EQ(read("verbs;ofi_rxm@mlx5_0"), "verbs;ofi_rxm at mlx5_0");
  EXPECT_EQ(read("@mlx5_1"), "of the setting at mlx5_1");
  for (const char* wrong : {"@", "verbs;ofi_rxm@", "tcp@eth0@eth1", "@@"}) {
    Wanted wanted;
    std::string reason;
    EXPECT_FALSE(read_argument(wrong, &wanted, &reason)) << wrong;
    EXPECT_NE(reason.find(std::string("\"") + wrong + "\""), std::string::npos) << reason;
    EXPECT_NE(reason.find("expected: PROVIDER, PROVIDER@DOMAIN or @DOMAIN"), std::string::npos) << reason;
  }
}

TEST(OfiProvider, AWrongArgumentIsRejectedAndNamed) {
  const auto rejected = [](const char* argument) {
    conformance::World lone(ofi_factory);
    lone[0].context.argument = argument;
    EXPECT_EQ(lone[0].open(), Status::failed) << argument;
    return lone[0].reason;
  };
  EXPECT_NE(rejected("no-such;provider").find("no-such;provider"), std::string::npos);
  EXPECT_NE(rejected("no-such;provider").find("CANELE_DRIVERS"), std::string::npos);
  EXPECT_NE(rejected("tcp;ofi_rxm@").find("expected: PROVIDER"), std::string::npos);
  std::string reason;
  if (!choose_provider({}, &reason)) GTEST_SKIP() << reason;
  EXPECT_NE(rejected("@no-such-domain").find("no-such-domain"), std::string::npos);
}

TEST(OfiProvider, AHostNameThatDoesNotResolveIsSaidToHideVerbs) {
  EXPECT_EQ(why_verbs_is_hidden("localhost"), "");
  const std::string nowhere(70, 'x');  // longer than any name can be, so that no server is asked
  const std::string why = why_verbs_is_hidden(nowhere);
  EXPECT_NE(why.find(nowhere), std::string::npos) << why;
  EXPECT_NE(why.find("/etc/hosts"), std::string::npos) << why;
}

}  // namespace
}  // namespace canele::drivers::ofi
