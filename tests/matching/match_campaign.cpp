// SPDX-License-Identifier: BSD-3-Clause
//
// match_campaign: one phase of matching, to be counted from outside; and the tables of docs/matching.md.
//
// Usage: match_campaign instructions posted|unexpected ENTRIES MATCHES   the phase is match_phase(), for callgrind
//        match_campaign tables                                           attempts and lines of every matcher
//        match_campaign tails [SECONDS]                                  tail queues beside one lock, two threads
//        match_campaign warming [SECONDS]                                searches with and without the cache warmer
// One thread; tails: two more; warming: one. Only `tails` and `warming` measure time: the other numbers are the same on
// every machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "comm/config/names.hpp"
#include "comm/matching/alternatives/factory.hpp"
#include "comm/matching/matcher.hpp"
#include "tails.hpp"
#include "warming.hpp"

namespace canele::comm {
namespace {

enum class Order { same, reverse, shuffled };

std::vector<std::uint32_t> order_of(Order order, std::size_t count) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  if (order == Order::reverse) std::reverse(all.begin(), all.end());
  if (order == Order::shuffled) std::shuffle(all.begin(), all.end(), std::mt19937_64(1));
  return all;
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "match_campaign: %s\n", what);
  std::exit(1);
}

/// A queue of a fixed length: a matched entry is queued again.
template <typename Matching>
class Posted {
 public:
  Posted(Matching& matcher, std::size_t count) : matcher_(matcher), receives_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      receives_[i].tag = i * 0x10001;
      must(matcher_.post(session_, receives_[i]) == nullptr, "a receive has met a message");
    }
  }
  void match_one(std::uint32_t i) {
    PostedNode* receive = matcher_.arrive(session_, receives_[i].tag, 0);
    must(receive == &receives_[i] && matcher_.post(session_, *receive) == nullptr, "a wrong receive has matched");
  }

 private:
  Matching& matcher_;
  MatchSession session_;
  std::vector<PostedNode> receives_;
};

template <typename Matching>
class Unexpected {
 public:
  Unexpected(Matching& matcher, std::size_t count) : matcher_(matcher), messages_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      messages_[i].tag = i * 0x10001;
      matcher_.store(session_, messages_[i]);
    }
  }
  void match_one(std::uint32_t i) {
    PostedNode receive;
    receive.tag = messages_[i].tag;
    UnexpectedNode* message = matcher_.post(session_, receive);
    must(message == &messages_[i] && matcher_.arrive(session_, message->tag, 0) == nullptr, "a wrong message");
    matcher_.store(session_, *message);
  }

 private:
  Matching& matcher_;
  MatchSession session_;
  std::vector<UnexpectedNode> messages_;
};

template <typename Queue>
[[gnu::noinline]] void match_phase(Queue& queue, const std::vector<std::uint32_t>& order) {
  for (const std::uint32_t i : order) queue.match_one(i);
}

template <typename Queue>
void instructions(std::size_t entries, std::size_t matches) {
  Matcher matcher(1);
  Queue queue(matcher, entries);
  std::vector<std::uint32_t> order, once = order_of(Order::shuffled, entries);
  while (order.size() < matches) order.insert(order.end(), once.begin(), once.end());
  order.resize(matches);
  match_phase(queue, order);
}

/// Returns attempts and lines of a match, averaged over one round through the queue in its first state.
template <template <typename> class Queue>
matching::Tally cost_of(const std::string& name, std::size_t entries, Order order) {
  CountingMatcher matcher(1, matching::make_alternative(name, 1));
  Queue<CountingMatcher> queue(matcher, entries);
  const std::vector<std::uint32_t> all = order_of(order, entries);
  const matching::Tally before = matcher.statistics().total;
  match_phase(queue, all);
  return matcher.statistics().total - before;
}

void print_rows(const std::string& name, std::size_t entries) {
  std::printf("| %s | %zu |", name.c_str(), entries);
  for (const Order order : {Order::same, Order::reverse, Order::shuffled}) {
    const matching::Tally posted = cost_of<Posted>(name, entries, order);
    const matching::Tally unexpected = cost_of<Unexpected>(name, entries, order);
    const auto each = [&](std::uint64_t sum) { return static_cast<double>(sum) / static_cast<double>(entries); };
    std::printf(" %.1f / %.1f | %.1f / %.1f |", each(posted.attempts), each(posted.lines), each(unexpected.attempts),
                each(unexpected.lines));
  }
  std::printf("\n");
}

void tables() {
  std::printf(
      "attempts / lines of a match\n| matcher | N | in order: posted | unexpected | reverse: posted | unexpected | "
      "shuffled: posted | unexpected |\n|---|---|---|---|---|---|---|---|\n");
  std::string names(known_matchers);
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(' ', begin), names.size());
    for (const std::size_t entries : {16, 256, 4'096}) print_rows(names.substr(begin, end - begin), entries);
    begin = end + 1;
  }
  for (const char* constant : {"table", "bins"}) print_rows(constant, 65'536);
}

}  // namespace
}  // namespace canele::comm

int main(int count, char** arguments) {
  using namespace canele::comm;
  const std::string_view mode = count > 1 ? arguments[1] : "";
  if (mode == "instructions" && count == 5) {
    const std::size_t entries = std::strtoull(arguments[3], nullptr, 10);
    const std::size_t matches = std::strtoull(arguments[4], nullptr, 10);
    must(entries > 0, "ENTRIES must be a number above 0");
    if (std::string_view(arguments[2]) == "posted") return instructions<Posted<Matcher>>(entries, matches), 0;
    if (std::string_view(arguments[2]) == "unexpected") return instructions<Unexpected<Matcher>>(entries, matches), 0;
  }
  if (mode == "tables" && count == 2) return tables(), 0;
  if (mode == "tails" && count <= 3) return compare_tails(count == 3 ? std::atof(arguments[2]) : 0.2), 0;
  if ((mode == "warming" || mode == "heating") && count <= 3)
    return compare_warming(count == 3 ? std::atof(arguments[2]) : 0.5), 0;
  std::fprintf(stderr,
               "usage: match_campaign instructions posted|unexpected ENTRIES MATCHES | tables | tails [SECONDS] | "
               "warming [SECONDS]\n");
  return 2;
}
