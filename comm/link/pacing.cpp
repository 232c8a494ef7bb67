// SPDX-License-Identifier: BSD-3-Clause
#include "comm/link/pacing.hpp"

#include <algorithm>
#include <utility>

#include "comm/state/driver_instance.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::pacing {
namespace {

using strategies::RailLoad;

bool crosses_network(const Rail& rail) {
  return !rail.instance->memory_only() && rail.instance->driver->capabilities().bulk_stream;
}

/// Returns whether a rail may carry a part of what the preferred rail carries. Rails within a host and rails of a
/// network do not share: the former cost the time of cores that the latter need.
bool may_share(const Peer& peer, const Rail& rail) {
  return rail.is_connected() && crosses_network(rail) && crosses_network(*peer.rail) && rail.local == peer.rail->local;
}

RailLoad load_of(const Peer& peer, const Rail& rail, std::uint64_t now_ns) {
  if (!may_share(peer, rail)) return {};
  const strategies::Costs& costs = rail.instance->costs;
  const double rate = rail.pace.bytes_per_second(static_cast<double>(costs.bytes_per_second), now_ns);
  const std::uint64_t latency = rail.pace.latency_ns() != 0 ? rail.pace.latency_ns() : costs.latency_ns;
  return {std::max(rate, 1.), latency, rail.pace.ahead(), true};
}

/// Returns the lowest latency of the connected rails that is known, in nanoseconds.
std::uint64_t least_latency(const Peer& peer) {
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto& rail : peer.rails) {
    if (rail->is_connected()) least = std::min(least, rail->pace.latency_ns());
  }
  return least;
}

Rail* find_rail(const Peer& peer, std::uint32_t tag) {
  for (const auto& rail : peer.rails) {
    if (rail->is_connected() && rail->instance->driver_tag() == tag) return rail.get();
  }
  return nullptr;
}

wire::Head chunk_of(const Rail& rail, wire::Type type, std::uint64_t tag) {
  return {tag, rail.instance->driver_tag(), 0, type, 0};
}

}  // namespace

View view_of(const Context& context, Peer& peer, const Rail& rail) {
  View view;
  view.quick = rail.pace.is_quick(least_latency(peer));
  const auto sharing =
      std::count_if(peer.rails.begin(), peer.rails.end(), [&](const auto& one) { return may_share(peer, *one); });
  if (sharing < 2 || peer.rails.size() > strategies::RailView::most_rails) {
    view.bulk_allowed = peer.rail == &rail;
    return view;
  }
  const std::uint64_t now_ns = context.platform.now_ns();
  std::vector<RailLoad>& loads = peer.rail_group->loads;
  loads.clear();
  for (const auto& one : peer.rails) {
    if (one.get() == &rail) view.asking = loads.size();
    loads.push_back(load_of(peer, *one, now_ns));
  }
  view.loads = loads;
  view.bulk_allowed = loads[view.asking].usable && rail.pace.has_room(now_ns);
  return view;
}

std::optional<wire::Head> take_due(const Context& context, Rail& rail) {
  RailPace& pace = rail.pace;
  if (rail.echo_due != 0) return chunk_of(rail, wire::Type::rail_echo, std::exchange(rail.echo_due, 0));
  if (std::exchange(rail.report_due, false)) return chunk_of(rail, wire::Type::rail_report, pace.take_report());
  if (!std::exchange(rail.probe_due, false)) return std::nullopt;
  CANELE_COVER(rail_probed);
  return chunk_of(rail, wire::Type::rail_probe, context.platform.now_ns() + 1);  // never 0
}

void put_back(Rail& rail, const wire::Head& chunk) {
  if (chunk.type == wire::Type::rail_echo) rail.echo_due = chunk.tag;
  if (chunk.type == wire::Type::rail_report) rail.report_due = true;
  if (chunk.type == wire::Type::rail_probe) rail.probe_due = true;
}

Verdict on_probe(Context& context, Peer& peer, const wire::Head& chunk) {
  if (chunk.tag == 0) return Verdict::violation("a probe of a rail is malformed");
  // A peer with several drivers for this rank probes, too, if this rank has one for the peer: it gets no echo.
  Rail* const rail = peer.rail_group != nullptr ? find_rail(peer, chunk.seq) : nullptr;
  if (rail == nullptr) return Verdict::ok();  // or it is not up at this end
  rail->echo_due = chunk.tag;
  context.mark_backlogged(peer);
  return Verdict::ok();
}

Verdict on_echo(Context& context, Peer& peer, const wire::Head& chunk) {
  const std::uint64_t now_ns = context.platform.now_ns();
  if (peer.rail_group == nullptr || chunk.tag == 0 || chunk.tag > now_ns + 1)
    return Verdict::violation("an echo of a rail is malformed");
  Rail* const rail = find_rail(peer, chunk.seq);
  if (rail == nullptr) return Verdict::ok();
  CANELE_COVER(rail_latency_known);
  rail->pace.note_round_trip(now_ns + 1 - chunk.tag);
  rail->probe_due = rail->pace.wants_probe();
  if (rail->probe_due) context.mark_backlogged(peer);
  return Verdict::ok();
}

Verdict on_report(Context& context, Peer& peer, const wire::Head& chunk) {
  if (peer.rail_group == nullptr) return Verdict::violation("a report names no rail");
  Rail* const rail = find_rail(peer, chunk.seq);
  if (rail == nullptr) return Verdict::ok();
  if (!rail->pace.report(chunk.tag, context.platform.now_ns()))
    return Verdict::violation("a report says that more bytes have arrived by a rail than were sent");
  context.mark_backlogged(peer);
  return Verdict::ok();
}

void arrived(Context& context, Peer& peer, const DriverInstance& instance, std::uint64_t bytes) {
  if (peer.rail_group == nullptr || peer.disconnected()) return;
  Rail* const rail = peer.rail_of(instance);
  if (rail == nullptr || !rail->pace.arrived(bytes) || !rail->is_connected()) return;
  rail->report_due = true;
  context.mark_backlogged(peer);
}

void transfer_ended(Context& context, Peer& peer) {
  for (const auto& rail : peer.rails) {
    if (!rail->is_connected() || !rail->pace.has_unreported()) continue;
    rail->report_due = true;
    context.mark_backlogged(peer);
  }
}

}  // namespace canele::comm::pacing
