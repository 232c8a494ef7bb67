// SPDX-License-Identifier: BSD-3-Clause
//
// OfiDriver: failure suspicion, for peers that stay silent although something was sent to them. See ofi_driver.hpp.
//
// Only a peer that owes the next step is checked: after `patience_ns` without an answer, and then at growing intervals.
// Idle peers have their lifelines, where the provider allows them. Otherwise the first message finds the failure, or
// the launcher reports it.
#include <algorithm>
#include <utility>

#include "drivers/ofi/ofi_driver.hpp"

namespace canele::drivers::ofi {
namespace {

constexpr std::uint64_t last_words_ns = 500'000'000;
constexpr std::uint64_t patience_ns = 1'000'000'000, longest_patience_ns = 64'000'000'000;
/// Used with lost = true: other drivers would only be refused as well.
constexpr const char* no_process = "its process has ended: no socket listens at its address any more";

}  // namespace

/// Returns true if the peer owes the next step.
bool OfiDriver::is_in_doubt(const Link& link) {
  if (link.state == Link::State::greeting) return true;
  return link.state == Link::State::up && (link.is_stuck || !link.has_credit());
}

/// Adds a link to those that are checked.
void OfiDriver::doubt(Link& link) {
  if (!knocks_ || link.is_doubted) return;
  link.is_doubted = true;
  link.patience_ns = patience_ns;
  link.doubted_at = link.acked;
  link.doubted_since_ns = context_->now_ns();
  doubted_.push_back(&link);
}

void OfiDriver::look_at_doubts() {
  if (++polls_since_doubt_ < polls_per_look) return;
  polls_since_doubt_ = 0;
  const std::uint64_t now = context_->now_ns();
  std::erase_if(doubted_, [&](Link* link) {
    const bool over = !is_in_doubt(*link);
    if (over) {
      link->is_doubted = false;
      link->knock.reset();
    } else {
      doubt_again(*link, now);
    }
    return over;
  });
}

void OfiDriver::doubt_again(Link& link, std::uint64_t now) {
  if (link.acked != link.doubted_at) {  // it is alive
    link.doubted_at = link.acked;
    link.doubted_since_ns = now;
    link.patience_ns = patience_ns;
    link.knock.reset();
    return;
  }
  if (now - link.doubted_since_ns < link.patience_ns) return;
  if (!link.knock) link.knock = std::make_unique<Knock>(link.name, endpoint_->info().addr_format);
  switch (link.knock->ask()) {
    case Knock::Answer::none_yet:
      return;
    case Knock::Answer::somebody:
      link.knock.reset();
      link.doubted_since_ns = now;
      link.patience_ns = std::min(2 * link.patience_ns, longest_patience_ns);
      return;
    case Knock::Answer::nobody:
      return fail(link, true, no_process, false);
  }
}

/// Handles what the kernels report of the peers, idle ones included.
void OfiDriver::look_at_lifelines() {
  if (++polls_since_look_ < polls_per_look) return;
  polls_since_look_ = 0;
  look_at_doomed();
  Lifelines::Ended ended;
  while (lifelines_->next(&ended)) {
    Link& link = link_to(ended.peer);
    switch (ended.how) {
      case Lifelines::End::gone:
        doom(link);
        break;
      case Lifelines::End::silent:
        fail(link, link.state == Link::State::up,
             "no answer from its host for " + std::to_string(silence_s_) + " s (CANELE_OFI_PEER_TIMEOUT)", false);
        break;
      case Lifelines::End::unreachable:
        if (link.state != Link::State::up) fail(link, false, "its host cannot be reached", false);
        break;
    }
  }
}

/// Marks a link whose process is gone. A peer that closes in order says so, and what it has sent before may still
/// arrive. The driver waits for both.
void OfiDriver::doom(Link& link) {
  if (link.is_over() || std::exchange(link.is_doomed, true)) return;
  link.doomed_at = link.next_in;
  link.doomed_since_ns = context_->now_ns();
  doomed_.push_back(&link);
}

void OfiDriver::look_at_doomed() {
  if (doomed_.empty()) return;
  const std::uint64_t now = context_->now_ns();
  std::erase_if(doomed_, [&](Link* link) {
    const bool heard = std::exchange(link->doomed_at, link->next_in) != link->next_in;
    if (heard || link->is_stalled) link->doomed_since_ns = now;
    const bool over = link->is_over() || now - link->doomed_since_ns > last_words_ns;
    if (over) fail(*link, true, no_process, false);
    return over;
  });
}

}  // namespace canele::drivers::ofi
