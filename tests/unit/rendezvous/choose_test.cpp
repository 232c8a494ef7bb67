// SPDX-License-Identifier: BSD-3-Clause
//
// The choice of a scheme for a large message: all combinations of facts, and the tables of docs/large-messages.md.
#include "comm/rendezvous/choose.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <span>
#include <sstream>
#include <string>

namespace canele::test {
namespace {

using namespace comm::rendezvous;

constexpr std::uint64_t KiB = 1024, MiB = KiB * KiB;
constexpr std::array<std::uint64_t, 9> lengths = {0,       1,   32 * KiB - 1, 32 * KiB, 128 * KiB, 128 * KiB + 1,
                                                  MiB - 1, MiB, 4 * MiB};

/// Calls visit(facts) for each combination of the flags, with each length. Returns the number of combinations.
template <typename Facts, std::size_t count>
std::size_t for_all(const std::array<bool Facts::*, count>& flags, const std::function<void(const Facts&)>& visit) {
  std::size_t combinations = 0;
  for (std::size_t bits = 0; bits < std::size_t{1} << count; ++bits) {
    Facts facts;
    for (std::size_t i = 0; i < count; ++i) facts.*flags[i] = (bits >> i & 1) != 0;
    for (const std::uint64_t length : lengths) {
      facts.length = length;
      visit(facts);
      ++combinations;
    }
  }
  return combinations;
}

constexpr std::array<bool SendFacts::*, 12> sender_flags = {
    &SendFacts::on_device,  &SendFacts::copied,    &SendFacts::read_elsewhere, &SendFacts::part_of_other,
    &SendFacts::remote_rtr, &SendFacts::gets,      &SendFacts::any_thread,     &SendFacts::deferred_registration,
    &SendFacts::needs_fin,  &SendFacts::copy_pays, &SendFacts::few_pieces,     &SendFacts::incomplete};
constexpr std::array<bool ReceiveFacts::*, 10> receiver_flags = {
    &ReceiveFacts::has_device_key, &ReceiveFacts::stream_is_quicker, &ReceiveFacts::ended,
    &ReceiveFacts::has_key,        &ReceiveFacts::any_thread,        &ReceiveFacts::multicast,
    &ReceiveFacts::is_operand,     &ReceiveFacts::both_can_copy,     &ReceiveFacts::alone_is_better,
    &ReceiveFacts::has_line};

/// What each scheme needs must hold wherever it is chosen; and where its needs hold and no better scheme does, it is.
TEST(Choose, SendsWhatTheFactsAllowInAllCombinations) {
  std::set<Scheme> chosen;
  const std::size_t combinations = for_all<SendFacts>(sender_flags, [&](const SendFacts& f) {
    const Scheme scheme = choose_for_send(f);
    chosen.insert(scheme);
    const bool claims = f.remote_rtr && !f.part_of_other && f.length > 128 * KiB && f.copy_pays;
    const bool reads = f.gets && f.any_thread && f.copy_pays && f.few_pieces;
    const bool fetches = f.gets && !f.any_thread && f.deferred_registration && f.few_pieces && !f.needs_fin;
    if (f.on_device) {
      ASSERT_EQ(scheme, Scheme::device_get) << "its data is nowhere else";
    } else if (f.incomplete) {
      ASSERT_EQ(scheme, Scheme::stream) << "a peer that reads would read what is not there yet";
    } else if (f.copied) {
      ASSERT_EQ(scheme, Scheme::get);
    } else if (f.read_elsewhere) {
      ASSERT_EQ(scheme, Scheme::stream) << "a rank that asks another one needs no key";
    } else {
      ASSERT_EQ(scheme == Scheme::receiver_initiated, claims);
      ASSERT_EQ(scheme == Scheme::get, reads && !claims);
      ASSERT_EQ(scheme == Scheme::async_get, fetches && !claims);
      ASSERT_EQ(scheme == Scheme::stream, !claims && !reads && !fetches);
    }
  });
  EXPECT_EQ(combinations, 36'864u);
  EXPECT_EQ(chosen,
            (std::set{Scheme::device_get, Scheme::receiver_initiated, Scheme::get, Scheme::async_get, Scheme::stream}));
}

TEST(Choose, ReceivesWhatTheFactsAllowInAllCombinations) {
  std::set<Scheme> chosen;
  const std::size_t combinations = for_all<ReceiveFacts>(receiver_flags, [&](const ReceiveFacts& f) {
    const Scheme scheme = choose_for_receive(f);
    chosen.insert(scheme);
    const bool moves = !f.ended && f.length != 0;
    if (moves && (f.has_device_key || f.stream_is_quicker)) {
      ASSERT_EQ(scheme, f.has_device_key ? Scheme::device_get : Scheme::stream);
      return;
    }
    const bool shares = moves && f.has_key && f.both_can_copy && f.has_line && f.length > 128 * KiB && !f.multicast &&
                        !f.is_operand && !f.alone_is_better;
    ASSERT_EQ(scheme == Scheme::nothing, !moves);
    ASSERT_EQ(scheme == Scheme::shared_copy, shares);
    ASSERT_EQ(scheme == Scheme::get, moves && !shares && f.has_key && f.any_thread);
    ASSERT_EQ(scheme == Scheme::async_get, moves && !shares && f.has_key && !f.any_thread);
    ASSERT_EQ(scheme == Scheme::stream, moves && !f.has_key) << "without a key the sender must send";
  });
  EXPECT_EQ(combinations, 9'216u);
  EXPECT_EQ(chosen, (std::set{Scheme::nothing, Scheme::device_get, Scheme::shared_copy, Scheme::get, Scheme::async_get,
                              Scheme::stream}));
}

/// A rule that no combination reaches would be a mistake.
template <typename Facts, std::size_t count>
void expect_all_reached(std::span<const Rule<Facts>> rules, const std::array<bool Facts::*, count>& flags) {
  std::set<std::size_t> reached;
  for_all<Facts>(flags, [&](const Facts& facts) {
    std::size_t first = 0;
    while (!rules[first].holds(facts)) ++first;
    reached.insert(first);
  });
  EXPECT_EQ(reached.size(), rules.size());
}

TEST(Choose, EachRuleDecidesSomewhere) {
  expect_all_reached<SendFacts>(send_rules, sender_flags);
  expect_all_reached<ReceiveFacts>(receive_rules, receiver_flags);
}

template <typename Facts>
std::string table_of(char letter, std::span<const Rule<Facts>> rules) {
  std::string text = "| # | first that holds | scheme |\n|---|---|---|\n";
  for (std::size_t i = 0; i < rules.size(); ++i) {
    text += std::string("| ") + letter + std::to_string(i + 1) + " | " + rules[i].when + " | `" +
            name_of(rules[i].scheme) + "` |\n";
  }
  return text;
}

TEST(Choose, ThePageHasTheRules) {
  const char* const source = std::getenv("CANELE_TEST_SOURCE");
  if (source == nullptr) GTEST_SKIP() << "CANELE_TEST_SOURCE is not set";
  std::stringstream page;
  page << std::ifstream(std::string(source) + "/docs/large-messages.md").rdbuf();
  for (const std::string& table : {table_of<SendFacts>('S', send_rules), table_of<ReceiveFacts>('R', receive_rules)})
    EXPECT_NE(page.str().find(table), std::string::npos) << "docs/large-messages.md must have:\n" << table;
}

}  // namespace
}  // namespace canele::test
