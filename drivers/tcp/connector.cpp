// SPDX-License-Identifier: BSD-3-Clause
//
// Making connections; see connector.hpp. Who, threads: see there.
// Surprise: a handshake that ends without a refusal is begun again (the peer's lobby was crowded, or it was too
//      busy to answer in time); only the number of retries is limited.
#include "drivers/tcp/connector.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>
#include <utility>

namespace canele::drivers::tcp {
namespace {

using net::Handshake;

constexpr std::uint64_t dial_limit_ns = 10'000'000'000;  // for the TCP connection alone
constexpr int max_retries = 32;
constexpr int accepts_per_event = 16;

/// Is a non-blocking connect over, well or badly?
bool dial_over(int fd) {
  pollfd one = {fd, POLLOUT, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

bool watch(int epoll, int fd, Source source, std::uint32_t which, bool added_before) {
  epoll_event event = {};
  event.events = source == Source::listener || source == Source::timer
                     ? std::uint32_t{EPOLLIN}
                     : std::uint32_t{EPOLLIN} | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = event_tag(source, which);
  return ::epoll_ctl(epoll, added_before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0;
}

Connector::Connector(DriverContext& context, int epoll)
    : context_(context),
      epoll_(epoll),
      self_(context, "tcp"),
      host_(net::host_id()),
      spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      lobby_(self_),
      known_(static_cast<std::size_t>(context.size), Known::nothing) {}

bool Connector::open(Address* address, std::string* why) {
  PeerAddress own;
  own.host = host_;
  own.incarnation = self_.incarnation;
  if (!start_listening(context_.argument.empty() ? context_.setting("TCP_INTERFACE", "auto") : context_.argument,
                       context_.setting("TCP_PORT", "0"), &listeners_, &own.endpoints, why)) {
    return false;
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (!watch(epoll_, listeners_[i].get(), Source::listener, static_cast<std::uint32_t>(i), false)) {
      *why = "cannot watch a listening socket: " + net::error_text(errno);
      return false;
    }
  }
  for (const net::Endpoint& one : own.endpoints) reaches_remote_ = reaches_remote_ || !one.is_loopback();
  *address = pack_address(own);
  return true;
}

Status Connector::connect(Rank peer, std::span<const std::byte> address) {
  assert(peer >= 0 && peer < context_.size && peer != context_.rank);
  if (at(peer) == Known::failed) return Status::failed;
  if (at(peer) == Known::up) return Status::pending;
  PeerAddress parsed;
  if (!unpack_address(address, &parsed)) return Status::failed;
  auto list = candidates(parsed, host_);
  if (list.empty()) return Status::failed;
  Contact& contact = contacts_[peer];
  contact.rank = peer;
  contact.wanted = true;
  contact.same_host = parsed.host == host_;
  contact.incarnation = parsed.incarnation;
  contact.candidates = std::move(list);
  if (!contact.inbound) dial(contact);
  return Status::pending;
}

void Connector::on_event(Source source, std::uint32_t which) {
  if (source == Source::listener) {
    accept_all(which);
  } else if (source == Source::lobby) {
    lobby_due_ = true;
  } else if (source == Source::contact) {
    const auto found = contacts_.find(static_cast<Rank>(which));
    if (found != contacts_.end()) mark_due(found->second);
  }
}

void Connector::accept_all(std::uint32_t listener) {
  const int fd = listeners_[listener].get();
  for (int i = 0; i < accepts_per_event; ++i) {
    net::UniqueFd made = net::accept_one(fd);
    if (!made && (errno == EMFILE || errno == ENFILE) && spare_) {
      // Left in the queue it would keep the descriptor readable for ever: take it and close it.
      spare_.reset();
      net::accept_one(fd).reset();
      spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      context_.log(1, "tcp: no descriptors left (ulimit -n); an inbound connection was closed");
      continue;
    }
    if (!made) return;
    if (!watch(epoll_, made.get(), Source::lobby, 0, false)) return;
    lobby_.admit(context_, std::move(made));
    lobby_due_ = true;
  }
}

void Connector::on_proven(net::Lobby::Guest&& guest) {
  const Rank rank = guest.handshake.peer();
  const auto found = contacts_.find(rank);
  // An inbound connection that we were still answering has been given up by the peer, or it would not come again.
  const bool connecting = found != contacts_.end() && !found->second.inbound;
  const net::Inbound what = net::resolve_inbound(self_.rank, rank, connecting, at(rank) != Known::nothing);
  if (what == net::Inbound::refuse) {
    const bool up = at(rank) == Known::up;
    guest.handshake.refuse(up ? net::Refusal::already_connected : net::Refusal::peer_failed);
    guest.handshake.step(guest.fd.get());
    return;
  }
  Contact& contact = contacts_[rank];
  contact.rank = rank;
  auto kept = std::make_unique<net::Lobby::Guest>(std::move(guest));
  watch(epoll_, kept->fd.get(), Source::contact, static_cast<std::uint32_t>(rank), true);
  if (what == net::Inbound::hold) {
    contact.held = std::move(kept);
  } else {
    take(contact, std::move(kept));
  }
}

/// Answers an inbound connection; an own attempt is dropped for it.
void Connector::take(Contact& contact, std::unique_ptr<net::Lobby::Guest> guest) {
  contact.handshake.reset();
  contact.fd.reset();
  contact.inbound = std::move(guest);
  contact.inbound->handshake.accept({});
  mark_due(contact);
}

void Connector::mark_due(Contact& contact) {
  if (contact.due) return;
  contact.due = true;
  due_.push_back(contact.rank);
}

/// Begins with candidate `next`. What goes wrong at once is kept for advance(), which may call back.
void Connector::dial(Contact& contact) {
  contact.handshake.reset();
  contact.dialed = false;
  contact.dial_error = 0;
  contact.since_ns = context_.now_ns();
  contact.fd = net::start_connect(contact.candidates[contact.next]);
  if (!contact.fd ||
      !watch(epoll_, contact.fd.get(), Source::contact, static_cast<std::uint32_t>(contact.rank), false)) {
    contact.dial_error = errno;
    contact.fd.reset();
  }
  mark_due(contact);
}

bool Connector::step(Sink& sink) {
  if (!waiting()) return false;
  check_limits();
  bool moved = false;
  if (lobby_due_) {
    lobby_due_ = false;
    moved = lobby_.step(context_, [this](net::Lobby::Guest&& guest) { on_proven(std::move(guest)); }) > 0;
  }
  const std::vector<Rank> now = std::exchange(due_, {});
  for (const Rank rank : now) {
    const auto found = contacts_.find(rank);
    if (found == contacts_.end()) continue;
    found->second.due = false;
    moved = true;
    if (found->second.inbound) {
      advance_inbound(found->second, sink);
    } else {
      advance(found->second, sink);
    }
  }
  return moved;
}

void Connector::check_limits() {
  if (lobby_.overdue(context_)) lobby_due_ = true;
  const std::uint64_t now = context_.now_ns();
  for (auto& [rank, contact] : contacts_) {
    if (contact.fd && !contact.dialed && now - contact.since_ns > dial_limit_ns) mark_due(contact);
  }
}

void Connector::advance(Contact& contact, Sink& sink) {
  check_dial(contact);
  if (contact.dialed) {
    switch (contact.handshake->step(contact.fd.get())) {
      case Handshake::State::done:
        return finish(contact, *contact.handshake, std::move(contact.fd), sink);
      case Handshake::State::failed:
        if (contact.handshake->may_retry() && contact.retries++ < max_retries) return dial(contact);
        next_candidate(contact, contact.handshake->reason());
        break;
      case Handshake::State::working:
      case Handshake::State::identified:
        break;
    }
  }
  if (contact.next < contact.candidates.size()) return;
  if (contact.held) return take(contact, std::move(contact.held));
  give_up(contact, sink);
}

/// Has the TCP connection come about?
void Connector::check_dial(Contact& contact) {
  if (contact.dialed) return;
  int error = contact.dial_error;
  if (error == 0) {
    if (!dial_over(contact.fd.get())) {
      if (context_.now_ns() - contact.since_ns > dial_limit_ns) next_candidate(contact, "no answer within 10 s");
      return;
    }
    error = net::socket_error(contact.fd.get());
  }
  if (error != 0) {
    contact.refused = error == ECONNREFUSED;
    return next_candidate(contact, net::error_text(error));
  }
  contact.dialed = true;
  contact.handshake.emplace(Handshake::initiator(self_, context_, contact.rank, contact.incarnation, {}));
}

void Connector::next_candidate(Contact& contact, const std::string& problem) {
  contact.problem = "cannot connect to " + contact.candidates[contact.next].text() + ": " + problem;
  contact.handshake.reset();
  contact.fd.reset();
  contact.dialed = false;
  if (++contact.next < contact.candidates.size()) dial(contact);
}

void Connector::advance_inbound(Contact& contact, Sink& sink) {
  switch (contact.inbound->handshake.step(contact.inbound->fd.get())) {
    case Handshake::State::done:
      return finish(contact, contact.inbound->handshake, std::move(contact.inbound->fd), sink);
    case Handshake::State::failed:
      break;
    case Handshake::State::working:
    case Handshake::State::identified:
      return;
  }
  // The peer left before it had our answer: as if it had never come.
  contact.inbound.reset();
  if (!contact.wanted) {
    contacts_.erase(contact.rank);
    return;
  }
  if (contact.next == contact.candidates.size()) contact.next = 0;
  if (contact.retries++ < max_retries) return dial(contact);
  give_up(contact, sink);
}

void Connector::finish(Contact& contact, const Handshake& handshake, net::UniqueFd fd, Sink& sink) {
  const Rank rank = contact.rank;
  const std::uint64_t incarnation = handshake.peer_incarnation();
  const std::string where = net::remote_endpoint(fd.get()).text();
  contacts_.erase(rank);  // closes what lost
  known_[static_cast<std::size_t>(rank)] = Known::up;
  sink.established(rank, incarnation, std::move(fd), where);
}

void Connector::give_up(Contact& contact, Sink& sink) {
  const Rank rank = contact.rank;
  const std::string reason = contact.problem;
  // Refused on this host: the process that listened is gone. From elsewhere it may be a firewall.
  const bool lost = contact.refused && contact.same_host;
  contacts_.erase(rank);
  set_failed(rank);
  sink.gave_up(rank, lost, reason);
}

}  // namespace canele::drivers::tcp
