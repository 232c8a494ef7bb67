// SPDX-License-Identifier: BSD-3-Clause
//
// Making connections. See connector.hpp.
#include "drivers/tcp/connector.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace canele::drivers::tcp {
namespace {

using net::Handshake;

/// How often the own attempts begin again, after a peer has left its inbound connection before it was answered.
constexpr int max_restarts = 32;

}  // namespace

bool watch(int epoll, int fd, Source source, std::uint32_t which, bool added_before) {
  epoll_event event = {};
  event.events =
      source == Source::timer ? std::uint32_t{EPOLLIN} : std::uint32_t{EPOLLIN} | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = event_tag(source, which);
  return ::epoll_ctl(epoll, added_before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0;
}

Connector::Connector(DriverContext& context, int epoll)
    : context_(context),
      epoll_(epoll),
      self_(context, "tcp"),
      host_(net::host_id()),
      pending_(self_, net::pending_allowed()),
      known_(static_cast<std::size_t>(context.size), Known::nothing) {}

bool Connector::open(Address* address, std::string* why) {
  PeerAddress own;
  own.host = host_;
  own.incarnation = self_.incarnation;
  const std::string where = context_.argument.empty() ? context_.setting("TCP_INTERFACE", "auto") : context_.argument;
  interfaces_ = net::interfaces();
  if (!start_listening(where, context_.setting("TCP_PORT", "0"), interfaces_, &listeners_, &own.endpoints, why))
    return false;
  if (!is_any_interface(where)) sources_ = own.endpoints;
  if (!limiter_.open(epoll_, event_tag(Source::limiter, 0)) || !watch_listeners(context_.size > 1)) {
    *why = "cannot watch a listening socket (epoll): " + net::error_text(errno);
    return false;
  }
  accept_failures_.open();  // without it, peers wait until descriptors are free
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
  auto list = candidates(parsed, host_, interfaces_);
  if (list.empty()) return Status::failed;
  Contact& contact = contacts_[peer];
  contact.rank = peer;
  contact.race = std::make_unique<Race>(peer, parsed.incarnation, std::move(list), parsed.host == host_);
  mark_due(contact);
  return Status::pending;
}

void Connector::on_event(Source source, std::uint32_t which) {
  if (source == Source::limiter) {
    limiter_.ring();
  } else if (source == Source::contact) {
    const auto found = contacts_.find(static_cast<Rank>(which));
    if (found != contacts_.end()) mark_due(found->second);
  }
}

void Connector::set_known(Rank rank, Known known) {
  up_ += (known == Known::up) - (at(rank) == Known::up);
  known_[static_cast<std::size_t>(rank)] = known;
  watch_listeners(up_ < context_.size - 1);
}

/// Turns the listeners on or off. While they are off, new connections wait in the kernel's queue, which is made short.
/// Returns false and errno if they could not be turned on.
bool Connector::watch_listeners(bool on) {
  if (on == listening_ || listeners_.empty()) return true;
  listening_ = on;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    const int fd = listeners_[i].get();
    ::listen(fd, on ? SOMAXCONN : 0);
    if (!on) {
      limiter_.forget(fd);
    } else if (!limiter_.watch(fd, event_tag(Source::listener, static_cast<std::uint32_t>(i))) && errno != EEXIST) {
      listening_ = false;  // serve_pending() tries again
    }
  }
  return listening_ == on;
}

// ------------------------------------------------------------------------------------------ unauthenticated peers

void Connector::serve_pending(std::uint64_t now) {
  if (!listening_ && up_ < context_.size - 1) watch_listeners(true);
  if (!limiter_.begin_turn(now)) return;
  if (pending_.drop_silent(context_) > 0) limiter_.note_unauthenticated();
  epoll_event found[net::AcceptLimiter::most_events];
  const int count = limiter_.ready(found);
  // Pending ones first: each new connection may require that an old one is dropped.
  for (const Source which : {Source::pending, Source::listener}) {
    for (int i = 0; i < count && limiter_.may_act(); ++i) {
      if (static_cast<Source>(found[i].data.u64 >> 32) != which) continue;
      const auto id = static_cast<std::uint32_t>(found[i].data.u64);
      if (which == Source::pending) {
        step_pending(id);
      } else {
        while (limiter_.may_act() && id < listeners_.size() && accept_pending(listeners_[id].get())) {
        }
      }
    }
  }
  limiter_.end_turn(now);
}

void Connector::step_pending(std::uint32_t id) {
  limiter_.act();
  const auto outcome = pending_.step(
      context_, id, [this](net::PendingConnections::Connection&& connection) { on_proven(std::move(connection)); });
  if (outcome == net::PendingConnections::Outcome::dropped) limiter_.note_unauthenticated();
}

/// Accepts one connection from the kernel's queue. Returns false if there is none, or no room for it at present.
bool Connector::accept_pending(int listener) {
  if (!pending_.has_place(context_)) {
    limiter_.note_unauthenticated();
    return false;
  }
  net::UniqueFd made = net::accept_one(listener);
  if (!made && (errno == EAGAIN || errno == EINTR)) return false;
  limiter_.act();
  if (!made) {
    limiter_.note_unauthenticated();
    if (!accept_failures_.handle(context_, listener, errno)) stop_listening();
    return false;
  }
  accept_failures_.note_accepted();
  const int fd = made.get();
  const std::uint64_t before = pending_.rejected();
  const std::uint32_t id = pending_.admit(context_, std::move(made));
  if (pending_.rejected() != before) limiter_.note_unauthenticated();
  if (!limiter_.watch(fd, event_tag(Source::pending, id))) {
    pending_.drop(context_, id, "it cannot be watched (epoll_ctl): " + net::error_text(errno));
    return true;
  }
  step_pending(id);  // its first bytes are usually there already
  return true;
}

/// Closes the listeners, which ends the attempts of peers that wait there.
void Connector::stop_listening() {
  watch_listeners(false);
  listeners_.clear();
}

void Connector::on_proven(net::PendingConnections::Connection&& connection) {
  limiter_.proven();
  const Rank rank = connection.handshake.peer();
  const auto found = contacts_.find(rank);
  // The peer has given up an inbound connection that this end was still answering; otherwise it would not connect
  // again. While this end has not told its identity, the peer cannot have accepted one of its attempts.
  const bool connecting = found != contacts_.end() && !found->second.inbound && found->second.race != nullptr &&
                          found->second.race->is_told();
  const net::Inbound what = net::resolve_inbound(self_.rank, rank, connecting, at(rank) != Known::nothing);
  if (what == net::Inbound::reject) {
    const bool up = at(rank) == Known::up;
    connection.handshake.reject(up ? net::Rejection::already_connected : net::Rejection::peer_failed);
    connection.handshake.step(connection.fd.get());
    return;
  }
  limiter_.forget(connection.fd.get());
  if (!watch(epoll_, connection.fd.get(), Source::contact, static_cast<std::uint32_t>(rank), false)) {
    once_.log(context_, 1,
              "a rank is rejected: its connection cannot be watched (epoll_ctl): " + net::error_text(errno));
    connection.handshake.reject(net::Rejection::no_resources);
    connection.handshake.step(connection.fd.get());
    return;
  }
  Contact& contact = contacts_[rank];
  contact.rank = rank;
  auto kept = std::make_unique<net::PendingConnections::Connection>(std::move(connection));
  if (what == net::Inbound::defer) {
    contact.deferred = std::move(kept);
  } else {
    take(contact, std::move(kept));
  }
}

/// Answers an inbound connection; drops this end's own attempt in its favour.
void Connector::take(Contact& contact, std::unique_ptr<net::PendingConnections::Connection> connection) {
  if (contact.race) contact.race->restart();
  contact.inbound = std::move(connection);
  contact.inbound->handshake.accept({});
  mark_due(contact);
}

/// Schedules another step if output is left. A fresh socket without room means that its host lacks memory: epoll may
/// report no event when memory is available again.
void Connector::push_again(Contact& contact, const Handshake& handshake) {
  if (handshake.wants_write()) mark_due(contact);
}

void Connector::mark_due(Contact& contact) {
  if (contact.due) return;
  contact.due = true;
  due_.push_back(contact.rank);
}

/// Starts to connect to an address of `rank`. Returns an empty descriptor and errno on failure.
net::UniqueFd Connector::dial(Rank rank, const net::Endpoint& to) {
  const net::Endpoint* const from = source_for(sources_, to);
  net::UniqueFd made = net::start_connect(to, from);
  if (!made && net::is_out_of_descriptors(errno) && !pending_.empty()) {
    pending_.clear();  // unauthenticated peers must not keep ranks from connecting
    made = net::start_connect(to, from);
  }
  if (made && !watch(epoll_, made.get(), Source::contact, static_cast<std::uint32_t>(rank), false)) made.reset();
  return made;
}

bool Connector::step(Sink& sink) {
  if (!waiting()) return false;
  check_limits();
  bool moved = false;
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
  if (pending_.expired(context_)) limiter_.ring();
  const std::uint64_t now = context_.now_ns();
  for (auto& [rank, contact] : contacts_) {
    if (contact.race && !contact.inbound && contact.race->is_due(now)) mark_due(contact);
  }
}

bool Connector::racing() const {
  return std::any_of(contacts_.begin(), contacts_.end(), [](const auto& one) {
    const Contact& contact = one.second;
    return contact.race && !contact.inbound && contact.race->has_waiting();
  });
}

void Connector::advance(Contact& contact, Sink& sink) {
  if (!contact.race) return;
  const auto dial_one = [&](const net::Endpoint& to) { return dial(contact.rank, to); };
  switch (contact.race->step(self_, context_, dial_one)) {
    case Race::State::running:
      if (contact.race->wants_write()) mark_due(contact);  // a host without memory: epoll may report nothing later
      return;
    case Race::State::won: {
      Race::Winner winner = contact.race->take();
      report_detour(contact, net::remote_endpoint(winner.fd.get()));
      return finish(contact.rank, winner.incarnation, std::move(winner.fd), sink);
    }
    case Race::State::lost:
      if (contact.deferred) return take(contact, std::move(contact.deferred));
      return give_up(contact, sink);
  }
}

/// Tells the user when the best address of a peer does not lead to it.
void Connector::report_detour(const Contact& contact, const net::Endpoint& where) {
  if (contact.race->problem().empty() || where.same_address(contact.race->best())) return;
  once_.log(context_, 1,
            "rank " + std::to_string(contact.rank) + " is reached by " + where.text() + "; " + contact.race->problem());
}

void Connector::advance_inbound(Contact& contact, Sink& sink) {
  switch (contact.inbound->handshake.step(contact.inbound->fd.get())) {
    case Handshake::State::done:
      return finish(contact.rank, contact.inbound->handshake.peer_incarnation(), std::move(contact.inbound->fd), sink);
    case Handshake::State::failed:
      break;
    case Handshake::State::working:
    case Handshake::State::identified:
      return push_again(contact, contact.inbound->handshake);
  }
  // The peer left before it had this end's answer: proceed as if it had never connected.
  contact.inbound.reset();
  if (!contact.race) {
    contacts_.erase(contact.rank);
    return;
  }
  if (contact.restarts++ < max_restarts) return mark_due(contact);
  give_up(contact, sink);
}

void Connector::finish(Rank rank, std::uint64_t incarnation, net::UniqueFd fd, Sink& sink) {
  const std::string where = net::remote_endpoint(fd.get()).text();
  contacts_.erase(rank);  // closes the losing connection
  set_known(rank, Known::up);
  sink.established(rank, incarnation, std::move(fd), where);
}

void Connector::give_up(Contact& contact, Sink& sink) {
  const Rank rank = contact.rank;
  const std::string reason = contact.race->problem();
  // Connection refused on this host: the process that listened is gone. From another host a firewall may be the reason.
  const bool lost = contact.race->refused() && contact.race->same_host();
  contacts_.erase(rank);
  set_failed(rank);
  sink.gave_up(rank, lost, reason);
}

}  // namespace canele::drivers::tcp
