// SPDX-License-Identifier: BSD-3-Clause
//
// OfiDriver: failure suspicion, for peers that stay silent although something was sent to them. See ofi_driver.hpp.
//
// Only a peer that owes the next step is checked: after `patience_ns` without an answer, and then at growing intervals.
// Idle peers have their keepalive connections, where the provider allows them. Otherwise the first message finds the
// failure, or the launcher reports it.
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
bool OfiDriver::owes_next_step(const Link& link) {
  if (link.state == Link::State::hello_sent) return true;
  return link.state == Link::State::up && (link.is_stuck || !link.has_credit());
}

/// Adds a link to those that are checked.
void OfiDriver::suspect(Link& link) {
  if (!probes_ || link.is_suspected) return;
  link.is_suspected = true;
  link.patience_ns = patience_ns;
  link.suspected_at = link.acked;
  link.suspected_since_ns = context_->now_ns();
  suspected_.push_back(&link);
}

void OfiDriver::check_suspects() {
  if (++polls_since_suspect_check_ < polls_per_check) return;
  polls_since_suspect_check_ = 0;
  const std::uint64_t now = context_->now_ns();
  std::erase_if(suspected_, [&](Link* link) {
    const bool answered = !owes_next_step(*link);
    if (answered) {
      link->is_suspected = false;
      link->probe.reset();
    } else {
      recheck(*link, now);
    }
    return answered;
  });
}

void OfiDriver::recheck(Link& link, std::uint64_t now) {
  if (link.acked != link.suspected_at) {  // it is alive
    link.suspected_at = link.acked;
    link.suspected_since_ns = now;
    link.patience_ns = patience_ns;
    link.probe.reset();
    return;
  }
  if (now - link.suspected_since_ns < link.patience_ns) return;
  if (!link.probe) link.probe = std::make_unique<LivenessProbe>(link.name, endpoint_->info().addr_format);
  switch (link.probe->ask()) {
    case LivenessProbe::Answer::pending:
      return;
    case LivenessProbe::Answer::alive:
      link.probe.reset();
      link.suspected_since_ns = now;
      link.patience_ns = std::min(2 * link.patience_ns, longest_patience_ns);
      return;
    case LivenessProbe::Answer::dead:
      return fail(link, true, no_process, false);
  }
}

/// Handles what the kernels report of the peers, idle ones included.
void OfiDriver::check_keepalives() {
  if (++polls_since_peer_check_ < polls_per_check) return;
  polls_since_peer_check_ = 0;
  check_doomed();
  Keepalives::Ended ended;
  while (keepalives_->next(&ended)) {
    Link& link = link_to(ended.peer);
    switch (ended.how) {
      case Keepalives::End::exited:
        doom(link);
        break;
      case Keepalives::End::silent:
        fail(link, link.state == Link::State::up,
             "no answer from its host for " + std::to_string(silence_s_) + " s (CANELE_OFI_PEER_TIMEOUT)", false);
        break;
      case Keepalives::End::unreachable:
        if (link.state != Link::State::up) fail(link, false, "its host cannot be reached", false);
        break;
    }
  }
}

/// Marks a link whose process is gone. A peer that closes in order says so, and what it has sent before may still
/// arrive. The driver waits for both.
void OfiDriver::doom(Link& link) {
  if (link.is_closed() || std::exchange(link.is_doomed, true)) return;
  link.doomed_at = link.next_in;
  link.doomed_since_ns = context_->now_ns();
  doomed_.push_back(&link);
}

void OfiDriver::check_doomed() {
  if (doomed_.empty()) return;
  const std::uint64_t now = context_->now_ns();
  std::erase_if(doomed_, [&](Link* link) {
    const bool heard = std::exchange(link->doomed_at, link->next_in) != link->next_in;
    if (heard || link->is_stalled) link->doomed_since_ns = now;
    const bool ended = link->is_closed() || now - link->doomed_since_ns > last_words_ns;
    if (ended) fail(*link, true, no_process, false);
    return ended;
  });
}

}  // namespace canele::drivers::ofi
