// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous, both get and stream.
//
// A receive that is pulled is in no table. Only its Pull ends it, also when the peer dies, because the copy may be
// under way.
#include "comm/rendezvous/rendezvous.hpp"

#include <algorithm>
#include <cstring>

#include "comm/multicast/relay.hpp"
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

void fin(Engine& engine, Peer& peer, std::uint64_t handle, int outcome) {
  const auto word = static_cast<std::uint32_t>(-outcome);
  send_path::control(engine, peer, wire::Type::fin, handle, 0, 0, &word, sizeof word);
}

int outcome_of(std::uint32_t word) {
  constexpr auto no_memory = static_cast<std::uint32_t>(-CANELE_ENOMEM);
  constexpr auto let_go = static_cast<std::uint32_t>(-CANELE_ECANCELED);
  if (word == 0) return CANELE_OK;
  return word == no_memory ? CANELE_ENOMEM : word == let_go ? CANELE_ECANCELED : CANELE_EPEER;
}

Pull& new_pull(Engine& engine, Request& request, Peer& peer, std::span<const std::byte> exposure) {
  Pull* pull = engine.free_pulls;
  if (pull == nullptr) {
    engine.all_pulls.push_back(std::make_unique<Pull>());
    pull = engine.all_pulls.back().get();
  } else {
    engine.free_pulls = pull->next_free;
  }
  pull->kind = OpKind::pulled;
  pull->engine = &engine;
  pull->request = &request;
  pull->peer = &peer;
  pull->driver = peer.rail->slot->driver.get();
  pull->offset = 0;
  pull->exposure.size = static_cast<std::uint16_t>(exposure.size());
  std::memcpy(pull->exposure.bytes, exposure.data(), exposure.size());
  pull->outstanding = 0;
  pull->status = drivers::Status::ok;
  pull->claims = {};
  ++engine.pulls;
  return *pull;
}

void free_pull(Engine& engine, Pull& pull) {
  --engine.pulls;
  pull.request = nullptr;
  pull.pull = false;
  pull.next_free = engine.free_pulls;
  engine.free_pulls = &pull;
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
  Engine& engine = *pull.engine;
  engine.watch.moved();
  if (pull.status == drivers::Status::ok && pull.offset < pull.want) {
    CANELE_MARK(pull_goes_on);
    pull.prepare(pull_chunk);
    engine.tasks.submit(pull);
    return;
  }
  engine.submit(pull);  // the pull may be gone now
}

void start_pull(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::uint64_t want,
                std::span<const std::byte> exposure) {
  Pull& pull = new_pull(engine, request, peer, exposure);
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
  pull.engine->tasks.submit(pull);
}

/// Returns the length, in bytes, from which on a copy by the kernel is better than a stream.
static std::size_t copies_from(const Engine& engine, const Peer& peer) {
  const drivers::Capabilities& can = peer.rail->slot->driver->capabilities();
  return engine.shares_core() ? can.copy_from_shared_core : can.copy_from;
}

bool kernel_copies(const Engine& engine, const Peer& peer, const Request& request) {
  const std::size_t from = copies_from(engine, peer);
  // A limit (`from` above 0) says that two copies are quicker than one by the kernel. Above the limit the kernel's copy
  // is there for ends that compute. It is not used if both ends wait and no worker runs.
  return request.data.length >= from && (from == 0 || !request.streams || engine.worker.active());
}

void expose(Peer& peer, Request& request, drivers::Exposure& exposure) {
  constexpr int most_pieces = 16;
  drivers::Driver& driver = *peer.rail->slot->driver;
  exposure.size = 0;
  const drivers::Capabilities& can = driver.capabilities();
  if (!can.get || !can.copies_anywhere || CANELE_BUGGIFY(not_exposed)) return;
  if (!kernel_copies(*request.engine, peer, request)) return;
  iovec pieces[most_pieces];
  std::size_t covered = 0;
  const int count = data::pieces(request.data, 0, request.data.length, pieces, most_pieces, &covered);
  if (covered != request.data.length) return;  // too many pieces: the message will be streamed
  if (driver.expose(peer.rank, drivers::Access::get, pieces, count, &exposure) != drivers::Status::ok)
    exposure.size = 0;
}

void grant(Engine& engine, Request& request, Peer& peer, std::uint64_t send, std::uint64_t offset) {
  engine.trace(Event::cts_sent, peer.rank, request.session, request.status_tag, request.expected - offset);
  request.receive.peer = &peer;
  request.bulk_key = send;
  request.handle = engine.transfers.add(request);
  if (Cast* const cast = request.receive.cast; cast != nullptr) {
    cast->fetching = &request;
    cast->landing = false;
    if (peer.rank != cast->root) return multicast::want(engine, request, peer, offset);
  }
  const wire::Cts cts{request.handle, offset, request.expected - offset};
  send_path::control(engine, peer, wire::Type::cts, send, 0, 0, &cts, sizeof cts);
}

void start(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure,
           std::uint8_t exposed_by) {
  request.stage = Request::Stage::moving;
  request.moved = request.expected = 0;
  Cast* const cast = request.receive.cast;
  if (cast != nullptr && multicast::bound(engine, request, *cast)) return;
  if (peer.gone()) {
    CANELE_MARK(rendezvous_with_the_gone);
    receive_path::failed(engine, request, peer.error);
    return;
  }
  if (engine.stage == Stage::leaving) {  // the peer lets go of its memory as soon as it hears of that
    CANELE_RARE_MARK(rendezvous_while_leaving);
    receive_path::failed(engine, request, CANELE_ECANCELED);
    return;
  }
  const std::uint64_t want = std::min<std::uint64_t>(request.status_length, request.data.length);
  if (want == 0) {
    CANELE_MARK(rendezvous_of_nothing);
    fin(engine, peer, handle, CANELE_OK);
    receive_path::delivered(engine, request, peer, 0);
    return;
  }
  const DriverSlot* slot = peer.rail->slot;
  if (!exposure.empty() && slot != nullptr && slot->mark() == exposed_by && slot->driver->capabilities().get) {
    // If both ends wait, one of them may have gone on: sharing the copy with it is no help.
    const bool helped = !request.streams || engine.worker.active();
    if (cast == nullptr && helped && advert::share(engine, request, peer, handle, exposure)) return;
    CANELE_MARK(rendezvous_pulled);
    start_pull(engine, request, peer, handle, want, exposure);
    return;
  }
  stream(engine, request, peer, handle, want);
}

void stream(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::uint64_t want) {
  CANELE_MARK(rendezvous_streamed);
  request.moved = 0;
  request.expected = want;
  const Cast* cast = request.receive.cast;
  grant(engine, request, cast != nullptr ? multicast::source_of(engine, *cast) : peer, handle, 0);
}

const char* on_cts(Engine& engine, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload) {
  wire::Cts cts;
  Request* request = engine.sends.find(handle);
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
  engine.trace(Event::cts_received, peer.rank, request->session, request->status_tag, cts.length);
  if (request->withheld) flow_out::taken(engine, peer, *request);
  fetch::withdraw(peer, *request);  // the receiver does not fetch, or no longer
  request->bulk_key = cts.key;
  request->moved = cts.offset;
  request->expected = cts.offset + cts.length;
  const std::int32_t priority = request->item.priority;
  request->item = strategies::Item{};
  request->item.kind = strategies::Kind::bulk;
  request->item.priority = priority;
  send_path::enqueue(engine, peer, request->item);
  return nullptr;
}

const char* on_fin(Engine& engine, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload) {
  std::uint32_t outcome;
  Request* request = engine.sends.find(handle);
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
  if (request->withheld) flow_out::taken(engine, peer, *request);
  engine.sends.remove(handle);
  fetch::withdraw(peer, *request);
  engine.finish(*request, outcome_of(outcome));
  return nullptr;
}

void on_again(Engine& engine, Peer& peer, std::uint64_t key) {
  Request* request = engine.transfers.find(key);
  if (request == nullptr || request->receive.peer != &peer || peer.bundle == nullptr) return;  // all of it has come
  CANELE_MARK(granted_again);
  grant_again(engine, *request);
}

void grant_again(Engine& engine, Request& request) {
  Peer& peer = *request.receive.peer;
  if (peer.bundle != nullptr) {
    for (OpenLanding& landing : peer.bundle->landings) {
      if (landing.key != request.handle) continue;
      CANELE_RARE_MARK(asked_again_while_landing);
      landing.asked_again = true;
      return;
    }
  }
  engine.transfers.remove(request.handle);
  if (request.receive.cast != nullptr) return multicast::ask_again(engine, request);
  grant(engine, request, peer, request.bulk_key, request.moved);
}

void landing_closed(Engine& engine, Peer& peer, std::size_t index) {
  const OpenLanding landing = peer.bundle->landings[index];
  peer.bundle->landings.erase(peer.bundle->landings.begin() + static_cast<std::ptrdiff_t>(index));
  Request* request = peer.gone() ? engine.transfers.find(landing.key) : nullptr;
  if (request != nullptr && request->receive.peer == &peer) {  // its end has waited for this landing only
    engine.transfers.remove(landing.key);
    lost_source(engine, *request, peer);
  } else if (landing.asked_again && !peer.gone()) {
    on_again(engine, peer, landing.key);
  }
}

void lost_source(Engine& engine, Request& request, const Peer& peer) {
  const Cast* cast = request.receive.cast;
  if (cast != nullptr && cast->root != peer.rank) {
    multicast::ask_again(engine, request);
  } else {
    receive_path::failed(engine, request, peer.error);
  }
}

/// Finds the landing of a transfer that a driver has open. A transfer lands through one driver at a time: what another
/// driver brings for it is not wanted.
static std::vector<OpenLanding>::iterator find_open(Bundle& bundle, std::uint64_t key) {
  return std::find_if(bundle.landings.begin(), bundle.landings.end(),
                      [&](const OpenLanding& one) { return one.key == key; });
}

int landing(Engine& engine, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t offset,
            std::uint64_t length, iovec* out, int max) {
  Request* request = engine.transfers.find(key);
  if (request == nullptr || request->receive.peer != &peer) return 0;
  if (offset >= request->expected || length > request->expected - offset) return 0;
  const Rail* rail = peer.rail_of(slot);
  if (rail == nullptr || !rail->up) return 0;  // a connection that is not used, or that belongs to a peer that is gone
  if (request->receive.cast != nullptr) request->receive.cast->landing = true;
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
static void came(Engine& engine, Request& request, Peer& peer) {
  const bool cast = request.receive.cast != nullptr;
  if (cast) multicast::advanced(engine, request);
  if (request.moved != request.expected) return;
  CANELE_MARK(stream_landed);
  engine.transfers.remove(request.handle);
  if (cast) {
    multicast::fetched(engine, request, peer);
  } else if (request.confirm) {
    fin(engine, peer, request.bulk_key, CANELE_OK);
  }
  receive_path::delivered(engine, request, peer, request.expected);
}

void landed(Engine& engine, Peer& peer, const DriverSlot& slot, std::uint64_t key, std::uint64_t length) {
  Request* request = engine.transfers.find(key);
  const bool wanted = request != nullptr && request->receive.peer == &peer && !peer.gone() &&
                      length <= request->expected - request->moved;
  engine.watch.moved();
  if (wanted) {
    request->moved += length;
    engine.trace(Event::bulk_received, peer.rank, request->session, request->status_tag, length);
    came(engine, *request, peer);
  }
  if (peer.bundle == nullptr) return;
  const auto closed = find_open(*peer.bundle, key);
  if (closed == peer.bundle->landings.end() || closed->slot != &slot) return;
  landing_closed(engine, peer, static_cast<std::size_t>(closed - peer.bundle->landings.begin()));
}

void pulled(Engine& engine, Pull& pull) {
  if (pull.claims) {
    shared_copy::over(engine, pull);
    return;
  }
  Peer& peer = *pull.peer;
  if (peer.gone()) {  // even if all was copied: the peer may have given us up, and let go of its memory meanwhile
    CANELE_MARK(pull_from_the_gone);
    receive_path::failed(engine, *pull.request, peer.error);
  } else if (pull.status == drivers::Status::ok) {
    CANELE_MARK(pull_done);
    fin(engine, peer, pull.handle, CANELE_OK);
    engine.counters.add(Counter::rma_get_bytes, pull.want);
    engine.trace(Event::bulk_received, peer.rank, pull.request->session, pull.request->status_tag, pull.want);
    receive_path::delivered(engine, *pull.request, peer, pull.want);
  } else {  // the copy may be forbidden; or the peer is about to be found dead, and that ends the transfer
    CANELE_MARK(pull_failed_and_streams);
    stream(engine, *pull.request, peer, pull.handle, pull.want);
  }
  free_pull(engine, pull);
}

}  // namespace canele::comm::rendezvous
