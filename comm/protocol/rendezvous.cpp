// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous. See rendezvous.hpp for the two ways. Threads: under the engine's lock, except pull_chunk.
// Surprise: a receive that is pulled is in no table: only its Pull ends it, also when the peer dies, because the
//     copy may be under way.
#include "comm/protocol/rendezvous.hpp"

#include <algorithm>
#include <cstring>

#include "comm/core/data.hpp"
#include "comm/packet/wire.hpp"
#include "comm/protocol/receive_path.hpp"
#include "comm/protocol/send_path.hpp"

namespace canele::comm::rendezvous {
namespace {

void fin(Engine& engine, Peer& peer, std::uint64_t handle, int outcome) {
  const auto word = static_cast<std::uint32_t>(-outcome);
  send_path::control(engine, peer, wire::Type::fin, handle, 0, 0, &word, sizeof word);
}

bool pulls_from(const drivers::Driver& driver) {
  return driver.capabilities().get && driver.capabilities().copies_anywhere;
}

/// One chunk of a pull; runs on whatever thread makes progress, outside the lock. Submits itself again until all is
/// there.
void pull_chunk(ltask::Task& task) {
  constexpr std::size_t chunk = 256 * 1024;  // then others get a turn
  auto& pull = static_cast<Pull&>(task);
  iovec pieces[64];
  std::size_t size = 0;
  drivers::Driver& driver = *pull.peer->rail.slot->driver;
  const std::size_t most = std::min<std::uint64_t>({chunk, driver.capabilities().max_copy, pull.want - pull.offset});
  const int count = data::pieces(pull.request->data, pull.offset, most, pieces, 64, &size);
  pull.status =
      count == 0 ? drivers::Status::failed
                 : driver.remote_copy(pull.peer->rank, drivers::Access::get, {pull.exposure.bytes, pull.exposure.size},
                                      pull.offset, pieces, count, size, &pull);
  pull.offset += size;
  Engine& engine = *pull.engine;
  if (pull.status == drivers::Status::ok && pull.offset < pull.want) {
    pull.prepare(pull_chunk);
    engine.tasks.submit(pull);
    return;
  }
  engine.submit(pull);  // the pull may be gone now
}

Pull& new_pull(Engine& engine) {
  Pull* pull = engine.free_pulls;
  if (pull == nullptr) {
    engine.all_pulls.push_back(std::make_unique<Pull>());
    return *engine.all_pulls.back();
  }
  engine.free_pulls = pull->next_free;
  return *pull;
}

void start_pull(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::uint64_t want,
                std::span<const std::byte> exposure) {
  Pull& pull = new_pull(engine);
  pull.kind = OpKind::pulled;
  pull.engine = &engine;
  pull.request = &request;
  pull.peer = &peer;
  pull.handle = handle;
  pull.want = want;
  pull.offset = 0;
  pull.exposure.size = static_cast<std::uint16_t>(exposure.size());
  std::memcpy(pull.exposure.bytes, exposure.data(), exposure.size());
  ++engine.pulls;
  pull.prepare(pull_chunk);
  engine.tasks.submit(pull);
}

}  // namespace

void expose(Peer& peer, Request& request, drivers::Exposure& exposure) {
  constexpr int most_pieces = 16;
  drivers::Driver& driver = *peer.rail.slot->driver;
  exposure.size = 0;
  if (!pulls_from(driver)) return;
  iovec pieces[most_pieces];
  std::size_t covered = 0;
  const int count = data::pieces(request.data, 0, request.data.length, pieces, most_pieces, &covered);
  if (covered != request.data.length) return;  // too many pieces: it will be streamed
  if (driver.expose(peer.rank, drivers::Access::get, pieces, count, &exposure) != drivers::Status::ok)
    exposure.size = 0;
}

void start(Engine& engine, Request& request, Peer& peer, std::uint64_t handle, std::span<const std::byte> exposure) {
  request.stage = Request::Stage::moving;
  if (peer.gone()) {
    engine.finish(request, peer.error);
    return;
  }
  const std::uint64_t want = std::min<std::uint64_t>(request.status_length, request.data.length);
  if (want == 0) {
    fin(engine, peer, handle, CANELE_OK);
    receive_path::delivered(engine, request, peer, 0);
    return;
  }
  if (!exposure.empty() && peer.rail.slot != nullptr && pulls_from(*peer.rail.slot->driver)) {
    start_pull(engine, request, peer, handle, want, exposure);
    return;
  }
  request.moved = 0;
  request.expected = want;
  request.receive.peer = &peer;
  request.handle = engine.transfers.add(request);
  const wire::Cts cts{request.handle, 0, want};
  send_path::control(engine, peer, wire::Type::cts, handle, 0, 0, &cts, sizeof cts);
}

const char* on_cts(Engine& engine, Peer& peer, std::uint64_t handle, std::span<const std::byte> payload) {
  wire::Cts cts;
  Request* request = engine.sends.find(handle);
  if (!wire::take(payload, cts)) return "a clear to send is too short";
  if (request == nullptr || request->rank != peer.rank || !request->rendezvous || request->expected != 0) {
    return "a clear to send names no send that waits for one";
  }
  if (cts.offset != 0 || cts.length == 0 || cts.length > request->data.length) {
    return "a clear to send asks for bytes that the message does not have";
  }
  request->bulk_key = cts.key;
  request->moved = 0;
  request->expected = cts.length;
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
  if (request == nullptr || request->rank != peer.rank || !request->rendezvous || request->expected != 0) {
    return "an end of transfer names no send that waits for one";
  }
  engine.sends.remove(handle);
  engine.finish(*request, outcome == 0 ? CANELE_OK : CANELE_EPEER);
  return nullptr;
}

int landing(Engine& engine, Peer& peer, std::uint64_t key, std::uint64_t offset, std::uint64_t length, iovec* out,
            int max) {
  Request* request = engine.transfers.find(key);
  if (request == nullptr || request->receive.peer != &peer) return 0;
  if (offset >= request->expected || length > request->expected - offset) return 0;
  std::size_t covered = 0;
  return data::pieces(request->data, offset, length, out, max, &covered);
}

void landed(Engine& engine, Peer& peer, std::uint64_t key, std::uint64_t length) {
  Request* request = engine.transfers.find(key);
  if (request == nullptr || request->receive.peer != &peer || length > request->expected - request->moved) return;
  request->moved += length;
  if (request->moved < request->expected) return;
  engine.transfers.remove(key);
  receive_path::delivered(engine, *request, peer, request->expected);
}

void pulled(Engine& engine, Pull& pull) {
  const bool ok = pull.status == drivers::Status::ok;
  --engine.pulls;
  fin(engine, *pull.peer, pull.handle, ok ? CANELE_OK : CANELE_EPEER);
  if (ok) {
    engine.counters.add(Counter::copies_pulled, pull.want);
    receive_path::delivered(engine, *pull.request, *pull.peer, pull.want);
  } else {
    engine.finish(*pull.request, CANELE_EPEER);
  }
  pull.next_free = engine.free_pulls;
  engine.free_pulls = &pull;
}

}  // namespace canele::comm::rendezvous
