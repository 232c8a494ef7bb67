// SPDX-License-Identifier: BSD-3-Clause
//
// TcpDriver::poll() and its parts, top-down. See tcp_driver.hpp.
//
// Links are only marked dead while lists are being walked, and are removed at the end (sweep()). The reason: a callback
// may send, and a send may add to the lists.
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "drivers/tcp/tcp_driver.hpp"

namespace canele::drivers::tcp {
namespace {

constexpr std::size_t few_links = 4;  // with at most this many, all sockets are read without asking epoll
constexpr int events_per_check = 64;
// Epoll then reports only unauthenticated peers and timers. The first poll that finds nothing after epoll_every_ns asks
// it.
constexpr std::uint64_t epoll_every_ns = 50'000;
constexpr int polls_per_clock = 8;  // the clock is read every so many polls only.
// Most polls between two calls of epoll_wait: some polls always find something, and clocks may stand still.
constexpr int longest_epoll_gap = 1024;
// A writer without room is tried again after this time, even without an event: a kernel that lacks memory also answers
// "no room", and then reports none later.
constexpr std::uint64_t retry_ns = 10'000'000;
constexpr long asleep_retry_ns = 100'000'000;
// After so many polls without a sleep, the sockets leave the epoll set: the thread polls them anyway.
constexpr int polls_awake = 1024;

}  // namespace

int TcpDriver::poll_impl(int budget) {
  int events = 0;
  reported_ = 0;
  if (up_.size() <= few_links) events += read_all(&budget);
  if (must_check_epoll(events > 0)) {
    check_epoll();
    connector_->step(*this);
    events += read_readable(&budget);
    connector_->serve_pending(last_epoll_ns_);
    if (blocked_ > 0 && last_epoll_ns_ - retried_ns_ >= retry_ns) unblock_writers();
    set_timer((timer_state_ == Timer::short_interval && blocked_ > 0) || connector_->racing());
  }
  if (!writers_.empty()) events += write_links();
  if (links_due_) check_links();
  if (dead_ > 0) sweep();
  if (watched_ && ++polls_since_arm_ > polls_awake) [[unlikely]]
    unwatch_all();
  return events + reported_;
}

/// Reads the few links that there are, whatever epoll reports.
int TcpDriver::read_all(int* budget) {
  int events = 0;
  for (Link* link : readable_) link->readable = false;
  readable_.clear();
  for (std::size_t i = 0; i < up_.size(); ++i) events += read_link(*up_[i], budget);
  return events;
}

/// Decides whether to ask epoll. `found`: this poll has reported something, so its caller has other work. What arm()
/// has noted is handled by the next poll; otherwise arm() would answer false again.
bool TcpDriver::must_check_epoll(bool found) {
  if (up_.empty() || up_.size() > few_links || blocked_ > 0 || connector_->connecting() ||
      connector_->pending_due(last_epoll_ns_)) {
    return true;
  }
  if (++polls_since_epoll_ >= longest_epoll_gap) return true;
  if (found || polls_since_epoll_ % polls_per_clock != 0) return false;
  return context_->now_ns() - last_epoll_ns_ >= epoll_every_ns;
}

/// Asks epoll, and notes its events.
void TcpDriver::check_epoll() {
  polls_since_epoll_ = 0;
  last_epoll_ns_ = context_->now_ns();
  epoll_event events[events_per_check];
  const int count = ::epoll_wait(epoll_.get(), events, events_per_check, 0);
  for (int i = 0; i < count; ++i) {
    const auto source = static_cast<Source>(events[i].data.u64 >> 32);
    const auto which = static_cast<std::uint32_t>(events[i].data.u64);
    if (source == Source::link) {
      on_link_event(static_cast<Rank>(which), events[i].events);
    } else if (source == Source::timer) {
      std::uint64_t rings;
      links_due_ = ::read(timer_.get(), &rings, sizeof rings) == sizeof rings || links_due_;
    } else {
      connector_->on_event(source, which);
    }
  }
}

void TcpDriver::on_link_event(Rank rank, std::uint32_t what) {
  Link* const link = links_[static_cast<std::size_t>(rank)].get();
  if (link == nullptr || link->dead) return;
  if ((what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) link->ending = true;
  if ((what & EPOLLIN) != 0 || link->ending) mark_readable(*link);
  if ((what & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) link->sender.unblock();
}

/// Reads the links that epoll has named, or that had more data than their fair share.
int TcpDriver::read_readable(int* budget) {
  int events = 0;
  const std::vector<Link*> now = std::exchange(readable_, {});
  for (Link* link : now) {
    link->readable = false;
    events += read_link(*link, budget);
  }
  return events;
}

/// Delivers what arrived from one peer. Keeps it marked exactly if there is more to do without a new event.
int TcpDriver::read_link(Link& link, int* budget) {
  if (link.dead) return 0;
  if (*budget <= 0) {
    mark_readable(link);
    return 0;
  }
  int events = 0;
  const bool broken = link.sender.error() != 0 || link.unwatchable != 0;
  switch (link.receiver.drain(link.fd.get(), *context_->events, link.ending || broken, budget, &events)) {
    case Receiver::Outcome::dry:
      if (broken) fail(link, true, what_broke(link));
      break;
    case Receiver::Outcome::more:
    case Receiver::Outcome::stalled:
      mark_readable(link);
      break;
    case Receiver::Outcome::rejected:
      fail(link, false, {});
      break;
    case Receiver::Outcome::ended:
      fail(link, true, link.receiver.reason());
      break;
  }
  return events;
}

std::string TcpDriver::what_broke(const Link& link) {
  if (link.unwatchable != 0) return "its socket cannot be watched (epoll_ctl): " + net::error_text(link.unwatchable);
  return "the connection broke: " + net::error_text(link.sender.error());
}

void TcpDriver::unblock_writers() {
  retried_ns_ = last_epoll_ns_;
  for (Link* link : writers_) link->sender.unblock();
}

/// Returns whether nothing could be written to the peer for silence_s_ seconds, because the kernel lacks memory.
bool TcpDriver::lacks_memory_for_long(Link& link) const {
  if (link.sender.lacks_memory() == 0) {
    link.lacks_memory_since_ns = 0;
    return false;
  }
  if (link.lacks_memory_since_ns == 0) link.lacks_memory_since_ns = last_epoll_ns_;
  return last_epoll_ns_ - link.lacks_memory_since_ns > std::uint64_t{1'000'000'000} * static_cast<unsigned>(silence_s_);
}

/// Sends the rest of stuck frames, returns tokens, and calls ready() where it is owed.
int TcpDriver::write_links() {
  int events = 0;
  blocked_ = 0;
  const std::vector<Link*> now = std::exchange(writers_, {});
  for (Link* link : now) {
    link->writing = false;
    if (link->dead) continue;
    Sender& sender = link->sender;
    Token token = nullptr;
    if (sender.busy() && !sender.blocked() && sender.push(link->fd.get(), &token) && token != nullptr) {
      ++events;
      context_->events->done(token, Status::ok);
    }
    if (sender.error() != 0) {
      mark_readable(*link);
      continue;
    }
    if (lacks_memory_for_long(*link)) {
      fail(*link, true,
           "the kernel has had no memory for its data for " + std::to_string(silence_s_) +
               " s: " + net::error_text(sender.lacks_memory()));
      continue;
    }
    if (!sender.busy() && !sender.blocked() && sender.owes_ready()) {
      sender.paid_ready();
      ++events;
      context_->events->ready(link->rank);
    }
    if (sender.blocked()) ++blocked_;
    if (sender.busy() || sender.owes_ready()) mark_writing(*link);
  }
  return events;
}

/// Checks every few seconds whether the peer's kernel has stopped to answer. (The kernel of a peer that only computes
/// still acknowledges.)
void TcpDriver::check_links() {
  links_due_ = false;
  for (Link* link : up_) {
    tcp_info info = {};
    socklen_t size = sizeof info;
    if (link->dead || ::getsockopt(link->fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    const bool unanswered = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
    // Keep-alive makes the peer's kernel answer three times within this limit, so a longer silence is no idle
    // connection.
    if (unanswered && info.tcpi_last_ack_recv > 1000u * static_cast<unsigned>(silence_s_)) {
      fail(*link, true, "no answer from its host for " + std::to_string(silence_s_) + " s (CANELE_TCP_PEER_TIMEOUT)");
    }
  }
}

/// Runs the timer exactly while there is something with a time limit. `soon`: the engine sleeps while a writer is
/// blocked.
void TcpDriver::set_timer(bool soon) {
  Timer wanted = Timer::off;
  if (!up_.empty() || connector_->waiting()) wanted = soon ? Timer::short_interval : Timer::long_interval;
  if (wanted == timer_state_) return;
  itimerspec when = {};
  if (wanted == Timer::short_interval) when.it_value.tv_nsec = asleep_retry_ns;
  if (wanted == Timer::long_interval) when.it_value.tv_sec = std::max(1, silence_s_ / 6);
  when.it_interval = when.it_value;
  // Otherwise the next call tries again.
  if (::timerfd_settime(timer_.get(), 0, &when, nullptr) == 0) timer_state_ = wanted;
}

/// Puts links back into the epoll set, which then reports what they have by now. A link that cannot be added is lost:
/// the next poll() reports it.
void TcpDriver::watch_all() {
  for (Link* link : up_) {
    if (link->dead || link->watched) continue;
    link->watched = watch(epoll_.get(), link->fd.get(), Source::link, static_cast<std::uint32_t>(link->rank), false);
    if (link->watched) continue;
    link->unwatchable = errno;
    mark_readable(*link);
  }
  watched_ = true;
  polls_since_arm_ = 0;
}

/// Takes the links out of the epoll set. While no thread sleeps, the kernel need not record each arrival for epoll,
/// which costs the arrival's sender time.
void TcpDriver::unwatch_all() {
  if (up_.size() > few_links || !writers_.empty()) return;
  for (Link* link : up_) {
    if (std::exchange(link->watched, false)) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link->fd.get(), nullptr);
  }
  watched_ = false;
}

bool TcpDriver::arm_impl(bool on) {
  if (!on) return true;
  polls_since_arm_ = 0;
  if (!watched_) watch_all();
  check_epoll();
  bool pushing = false, blocked = false;
  for (const Link* link : writers_) {
    if (!link->dead) (link->sender.blocked() ? blocked : pushing) = true;
  }
  if (blocked) set_timer(true);
  return readable_.empty() && !pushing && !connector_->restless() && !links_due_ &&
         connector_->may_sleep(last_epoll_ns_);
}

void TcpDriver::mark_readable(Link& link) {
  if (std::exchange(link.readable, true)) return;
  readable_.push_back(&link);
}

void TcpDriver::mark_writing(Link& link) {
  if (link.sender.blocked() && !link.watched) {  // epoll reports when there is room
    watch_all();
  }
  if (std::exchange(link.writing, true)) return;
  writers_.push_back(&link);
}

/// Marks a link as failed. `tell`: with a callback; without one if the engine knows already.
void TcpDriver::fail(Link& link, bool tell, const std::string& what) {
  link.dead = true;
  ++dead_;
  connector_->set_failed(link.rank);
  ++reported_;
  if (tell) {
    context_->events->failed(link.rank, true,
                             "tcp: rank " + std::to_string(link.rank) + " at " + link.where + ": " + what);
  }
}

void TcpDriver::sweep() {
  const auto is_dead = [](const Link* link) { return link->dead; };
  std::erase_if(up_, is_dead);
  std::erase_if(readable_, is_dead);
  std::erase_if(writers_, is_dead);
  for (auto& link : links_) {
    if (link && link->dead) link.reset();
  }
  dead_ = 0;
}

}  // namespace canele::drivers::tcp
