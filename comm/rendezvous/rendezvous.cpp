// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous, both get and stream.
//
// A receive that is pulled is in no table. Only its Pull ends it, also when the peer dies, because the copy may be
// under way.
#include "comm/rendezvous/rendezvous.hpp"

#include <algorithm>
#include <cstring>

#include "comm/link/queue.hpp"
#include "comm/protocol/credit_sender.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/rendezvous/async_get.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"
#include "comm/rendezvous/shared_copy.hpp"
#include "comm/state/payload.hpp"
#include "comm/wire/wire.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::rendezvous {

void fin(Context& context, Peer& peer, std::uint64_t handle, int outcome) {
  const auto word = static_cast<std::uint32_t>(-outcome);
  link::control(context, peer, wire::Type::fin, handle, 0, 0, &word, sizeof word);
}

Pull& new_pull(Context& context, Request& request, Peer& peer, std::span<const std::byte> exposure) {
  Pull* pull = context.large.free_pulls;
  if (pull == nullptr) {
    context.large.all_pulls.push_back(std::make_unique<Pull>());
    pull = context.large.all_pulls.back().get();
  } else {
    context.large.free_pulls = pull->next_free;
  }
  pull->kind = OpKind::pulled;
  pull->context = &context;
  pull->request = &request;
  pull->peer = &peer;
  pull->driver = peer.rail->slot->driver.get();
  pull->offset = 0;
  pull->exposure.size = static_cast<std::uint16_t>(exposure.size());
  std::memcpy(pull->exposure.bytes, exposure.data(), exposure.size());
  pull->outstanding = 0;
  pull->status = drivers::Status::ok;
  pull->claims = {};
  ++context.large.pulls;
  return *pull;
}

void free_pull(Context& context, Pull& pull) {
  --context.large.pulls;
  pull.request = nullptr;
  pull.pull = false;
  pull.next_free = context.large.free_pulls;
  context.large.free_pulls = &pull;
}

namespace {

/// Copies one chunk of a pull, outside the lock, on any thread that makes progress. Submits the pull again until all is
/// copied.
void pull_chunk(ltask::Task& task) {
  const std::size_t chunk = CANELE_BUGGIFY(short_pull) ? 4096 : 256 * 1024;  // then other tasks get a turn
  auto& pull = static_cast<Pull&>(task);
  iovec pieces[64];
  std::size_t size = 0;
  drivers::Driver& driver = *pull.driver;
  const std::size_t most = std::min<std::uint64_t>({chunk, driver.capabilities().max_copy, pull.want - pull.offset});
  const int count = data::pieces(pull.request->data, pull.offset, most, pieces, 64, &size);
  pull.status =
      count == 0 ? drivers::Status::failed
                 : driver.remote_copy(pull.peer->rank, drivers::Access::get, {pull.exposure.bytes, pull.exposure.size},
                                      pull.offset, pieces, count, size, &pull);
  pull.offset += size;
  Context& context = *pull.context;
  context.watch.moved();
  if (pull.status == drivers::Status::ok && pull.offset < pull.want) {
    CANELE_MARK(pull_goes_on);
    pull.prepare(pull_chunk);
    context.tasks.submit(pull);
    return;
  }
  context.submit(pull);  // the pull may be gone now
}

void start_pull(Context& context, Request& request, Peer& peer, std::uint64_t handle, std::uint64_t want,
                std::span<const std::byte> exposure) {
  Pull& pull = new_pull(context, request, peer, exposure);
  pull.handle = handle;
  pull.want = want;
  if (pull.driver->capabilities().copies_anywhere) {
    pull_alone(pull);
  } else {
    fetch::submit(*peer.rail->slot, pull);
  }
}

}  // namespace

void pull_alone(Pull& pull) {
  pull.prepare(pull_chunk);
  pull.context->tasks.submit(pull);
}

/// Returns the length, in bytes, from which on a copy by the kernel is better than a stream.
static std::size_t copies_from(const Context& context, const Peer& peer) {
  const drivers::Capabilities& can = peer.rail->slot->driver->capabilities();
  return context.shares_core() ? can.copy_from_shared_core : can.copy_from;
}

bool kernel_copies(const Context& context, const Peer& peer, const Request& request) {
  const std::size_t from = copies_from(context, peer);
  // A limit (`from` above 0) says that two copies are quicker than one by the kernel. Above the limit the kernel's copy
  // is there for ends that compute. It is not used if both ends wait and no worker runs.
  return request.data.length >= from && (from == 0 || !request.streams || context.worker_active());
}

void expose(Peer& peer, Request& request, drivers::Exposure& exposure) {
  constexpr int most_pieces = 16;
  drivers::Driver& driver = *peer.rail->slot->driver;
  exposure.size = 0;
  const drivers::Capabilities& can = driver.capabilities();
  if (!can.get || !can.copies_anywhere || CANELE_BUGGIFY(not_exposed)) return;
  if (!kernel_copies(*request.context, peer, request)) return;
  iovec pieces[most_pieces];
  std::size_t covered = 0;
  const int count = data::pieces(request.data, 0, request.data.length, pieces, most_pieces, &covered);
  if (covered != request.data.length) return;  // too many pieces: the message will be streamed
  if (driver.expose(peer.rank, drivers::Access::get, pieces, count, &exposure) != drivers::Status::ok)
    exposure.size = 0;
}

void grant(Context& context, Request& request, Peer& peer, std::uint64_t send, std::uint64_t offset) {
  context.trace(Event::cts_sent, peer.rank, request.session, request.status_tag, request.expected - offset);
  request.receive.peer = &peer;
  request.bulk_key = send;
  request.handle = context.transfers.add(request);
  if (Sink* const sink = request.receive.sink; sink != nullptr && sink->asks(context, request, peer, offset)) return;
  const wire::Cts cts{request.handle, offset, request.expected - offset};
  link::control(context, peer, wire::Type::cts, send, 0, 0, &cts, sizeof cts);
}

void start(Context& context, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure,
           std::uint8_t exposed_by) {
  request.stage = Request::Stage::moving;
  request.moved = request.expected = 0;
  Sink* const sink = request.receive.sink;
  if (sink != nullptr && sink->bound(context, request)) return;
  if (peer.gone()) {
    CANELE_MARK(rendezvous_with_the_gone);
    receive_path::failed(context, request, peer.error);
    return;
  }
  if (context.stage == Stage::leaving) {  // the peer lets go of its memory as soon as it hears of that
    CANELE_RARE_MARK(rendezvous_while_leaving);
    receive_path::failed(context, request, CANELE_ECANCELED);
    return;
  }
  const std::uint64_t want = std::min<std::uint64_t>(request.status_length, request.data.length);
  if (want == 0) {
    CANELE_MARK(rendezvous_of_nothing);
    fin(context, peer, handle, CANELE_OK);
    receive_path::delivered(context, request, peer, 0);
    return;
  }
  const DriverSlot* slot = peer.rail->slot;
  if (!exposure.empty() && slot != nullptr && slot->mark() == exposed_by && slot->driver->capabilities().get) {
    // If both ends wait, one of them may have gone on: sharing the copy with it is no help.
    const bool helped = !request.streams || context.worker_active();
    if (sink == nullptr && helped && advert::share(context, request, peer, handle, exposure)) return;
    CANELE_MARK(rendezvous_pulled);
    start_pull(context, request, peer, handle, want, exposure);
    return;
  }
  stream(context, request, peer, handle, want);
}

void stream(Context& context, Request& request, Peer& peer, std::uint64_t handle, std::uint64_t want) {
  CANELE_MARK(rendezvous_streamed);
  request.moved = 0;
  request.expected = want;
  const Sink* const sink = request.receive.sink;
  grant(context, request, sink != nullptr ? sink->source(context) : peer, handle, 0);
}

const char* on_cts(Context& context, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload) {
  wire::Cts cts;
  Request* request = context.sends.find(handle);
  if (!wire::take(payload, cts)) return "a clear to send is too short";
  const bool has_another = request != nullptr && !request->withheld && request->expected != 0;
  if (request == nullptr || request->rank != peer.rank || !request->rendezvous || has_another ||
      !request->announced() || request->part == Request::Part::forward) {
    return "a clear to send names no send that waits for one";
  }
  const std::uint64_t length = request->data.length;
  if (cts.length == 0 || cts.length > length || cts.offset > length - cts.length) {
    return "a clear to send asks for bytes that the message does not have";
  }
  CANELE_MARK(cts_arrived);
  context.trace(Event::cts_received, peer.rank, request->session, request->status_tag, cts.length);
  if (request->withheld) flow_out::taken(context, peer, *request);
  fetch::withdraw(peer, *request);  // the receiver does not fetch, or no longer
  request->bulk_key = cts.key;
  request->moved = cts.offset;
  request->expected = cts.offset + cts.length;
  const std::int32_t priority = request->item.priority;
  request->item = strategies::Item{};
  request->item.kind = strategies::Kind::bulk;
  request->item.priority = priority;
  link::enqueue(context, peer, request->item);
  return nullptr;
}

const char* on_fin(Context& context, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload) {
  std::uint32_t outcome;
  Request* request = context.sends.find(handle);
  if (!wire::take(payload, outcome)) return "an end of transfer is too short";
  const bool under_way = request != nullptr && !request->withheld && request->moved != request->expected;
  if (request == nullptr || request->rank != peer.rank || !request->rendezvous || !request->announced() ||
      (under_way && !request->confirm) || request->part == Request::Part::forward) {
    return "an end of transfer names no send that waits for one";
  }
  if (under_way) {  // the rail has not given the last of its memory back
    CANELE_MARK(fin_before_the_rail_let_go);
    request->confirmed = true;
    return nullptr;
  }
  CANELE_MARK(fin_arrived);
  if (request->withheld) flow_out::taken(context, peer, *request);
  context.sends.remove(handle);
  fetch::withdraw(peer, *request);
  context.finish(*request, send_path::decode_outcome(outcome));
  return nullptr;
}

void on_again(Context& context, Peer& peer, std::uint64_t key) {
  Request* request = context.transfers.find(key);
  if (request == nullptr || request->receive.peer != &peer || peer.bundle == nullptr) return;  // all of it has come
  CANELE_MARK(granted_again);
  grant_again(context, *request);
}

void grant_again(Context& context, Request& request) {
  Peer& peer = *request.receive.peer;
  if (peer.bundle != nullptr) {
    for (OpenLanding& landing : peer.bundle->landings) {
      if (landing.key != request.handle) continue;
      CANELE_RARE_MARK(asked_again_while_landing);
      landing.asked_again = true;
      return;
    }
  }
  context.transfers.remove(request.handle);
  if (request.receive.sink != nullptr) return request.receive.sink->ask_again(context, request);
  grant(context, request, peer, request.bulk_key, request.moved);
}

void landing_closed(Context& context, Peer& peer, std::size_t index) {
  const OpenLanding landing = peer.bundle->landings[index];
  peer.bundle->landings.erase(peer.bundle->landings.begin() + static_cast<std::ptrdiff_t>(index));
  Request* request = peer.gone() ? context.transfers.find(landing.key) : nullptr;
  if (request != nullptr && request->receive.peer == &peer) {  // its end has waited for this landing only
    context.transfers.remove(landing.key);
    lost_source(context, *request, peer);
  } else if (landing.asked_again && !peer.gone()) {
    on_again(context, peer, landing.key);
  }
}

void lost_source(Context& context, Request& request, const Peer& peer) {
  Sink* const sink = request.receive.sink;
  if (sink != nullptr && sink->outlives(peer)) {
    sink->ask_again(context, request);
  } else {
    receive_path::failed(context, request, peer.error);
  }
}

/// Finds the landing of a transfer that a driver has open. A transfer lands through one driver at a time: what another
/// driver brings for it is not wanted.
static std::vector<OpenLanding>::iterator find_open(Bundle& bundle, std::uint64_t key) {
  return std::find_if(bundle.landings.begin(), bundle.landings.end(),
                      [&](const OpenLanding& one) { return one.key == key; });
}

int landing(Context& context, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t offset,
            std::uint64_t length, iovec* out, int max) {
  Request* request = context.transfers.find(key);
  if (request == nullptr || request->receive.peer != &peer) return 0;
  if (offset >= request->expected || length > request->expected - offset) return 0;
  const Rail* rail = peer.rail_of(slot);
  if (rail == nullptr || !rail->up) return 0;  // a connection that is not used, or that belongs to a peer that is gone
  if (request->receive.sink != nullptr) request->receive.sink->landing_begun();
  std::size_t covered = 0;
  if (peer.bundle == nullptr) return data::pieces(request->data, offset, length, out, max, &covered);
  const auto open = find_open(*peer.bundle, key);
  const bool is_open = open != peer.bundle->landings.end();
  if (is_open && open->slot != &slot) return 0;
  const int count = data::pieces(request->data, offset, length, out, max, &covered);
  if (count > 0 && !is_open) peer.bundle->landings.push_back({&slot, key});
  return count;
}

/// Handles that a stream has come further.
static void came(Context& context, Request& request, Peer& peer) {
  Sink* const sink = request.receive.sink;
  if (sink != nullptr) sink->advanced(context, request);
  if (request.moved != request.expected) return;
  CANELE_MARK(stream_landed);
  context.transfers.remove(request.handle);
  if (sink != nullptr) {
    sink->fetched(context, request, peer);
  } else if (request.confirm) {
    fin(context, peer, request.bulk_key, CANELE_OK);
  }
  receive_path::delivered(context, request, peer, request.expected);
}

void landed(Context& context, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t length) {
  Request* request = context.transfers.find(key);
  const bool wanted = request != nullptr && request->receive.peer == &peer && !peer.gone() &&
                      length <= request->expected - request->moved;
  context.watch.moved();
  if (wanted) {
    request->moved += length;
    context.trace(Event::bulk_received, peer.rank, request->session, request->status_tag, length);
    came(context, *request, peer);
  }
  if (peer.bundle == nullptr) return;
  const auto closed = find_open(*peer.bundle, key);
  if (closed == peer.bundle->landings.end() || closed->slot != &slot) return;
  landing_closed(context, peer, static_cast<std::size_t>(closed - peer.bundle->landings.begin()));
}

void pulled(Context& context, Pull& pull) {
  if (pull.claims) {
    shared_copy::over(context, pull);
    return;
  }
  Peer& peer = *pull.peer;
  if (peer.gone()) {  // even if all was copied: the peer may have given us up, and let go of its memory meanwhile
    CANELE_MARK(pull_from_the_gone);
    receive_path::failed(context, *pull.request, peer.error);
  } else if (pull.status == drivers::Status::ok) {
    CANELE_MARK(pull_done);
    fin(context, peer, pull.handle, CANELE_OK);
    context.counters.add(Counter::rma_get_bytes, pull.want);
    context.trace(Event::bulk_received, peer.rank, pull.request->session, pull.request->status_tag, pull.want);
    receive_path::delivered(context, *pull.request, peer, pull.want);
  } else {  // the copy may be forbidden; or the peer is about to be found dead, and that ends the transfer
    CANELE_MARK(pull_failed_and_streams);
    stream(context, *pull.request, peer, pull.handle, pull.want);
  }
  free_pull(context, pull);
}

}  // namespace canele::comm::rendezvous
