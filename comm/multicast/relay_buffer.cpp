// SPDX-License-Identifier: BSD-3-Clause
//
// Relay buffers of multicasts.
//
// The copy takes 256 KiB at a time, so that other tasks have their turn.
#include "comm/multicast/relay_buffer.hpp"

#include <algorithm>
#include <new>

#include "comm/multicast/relay.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/payload.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::multicast::relay_buffer {
namespace {

void end_copy(Context& context, CallOp& op) CANELE_UNDER_LOCK {
  IncomingMulticast& incoming = *static_cast<RelayCopy&>(op).multicast;
  const auto task = std::move(incoming.copy);
  receive_path::complete_receive(context, *incoming.receive, context.peer(incoming.root), task->copied);
}

void copy_some(ltask::Task& base) {
  constexpr std::uint64_t most = 256 * 1024;
  auto& task = static_cast<RelayCopy&>(base);
  const IncomingMulticast& incoming = *task.multicast;
  const canele_data_t& to = incoming.receive->data;
  const std::uint64_t all = std::min<std::uint64_t>(incoming.length, to.length);
  const std::size_t size = std::min(most, all - task.copied);
  const std::size_t done = data::scatter(to, task.copied, incoming.relay_buffer->memory.get() + task.copied, size);
  task.copied += done;
  Context& context = *task.context;
  context.watch.moved();
  if (done == size && task.copied < all) {
    task.prepare(copy_some);
    context.tasks.submit(task);
  } else {
    context.submit(task);
  }
}

void copy(Context& context, IncomingMulticast& incoming) {
  CANELE_COVER(relay_buffer_copied);
  incoming.copy = std::make_unique<RelayCopy>();
  incoming.copy->context = &context;
  incoming.copy->multicast = &incoming;
  incoming.copy->kind = OpKind::call;
  incoming.copy->call = end_copy;
  incoming.copy->prepare(copy_some);
  context.tasks.submit(*incoming.copy);
}

}  // namespace

bool begin(Context& context, IncomingMulticast& incoming) {
  Peer& from = incoming.next_source(context);
  MulticastState& multicasts = context.multicasts;
  if (from.disconnected() || incoming.length > multicasts.relay_limit - multicasts.relay_bytes ||
      CANELE_BUGGIFY(no_stock)) {
    CANELE_COVER(relay_buffer_rejected);
    return false;
  }
  auto buffer = std::make_unique<RelayBuffer>();
  buffer->memory.reset(new (std::nothrow) std::byte[incoming.length]);
  if (buffer->memory == nullptr) return false;
  CANELE_COVER(relay_buffer_begun);
  multicasts.relay_bytes += incoming.length;
  Request& fetch = buffer->fetch;
  fetch.context = &context;
  fetch.session = incoming.session;
  fetch.kind = Request::Kind::receive;
  transition(fetch, Request::Stage::moving);
  fetch.role = Request::InternalRole::relay_buffer;
  fetch.rank = incoming.root;
  fetch.tick = context.watch.tick();
  fetch.status_length = incoming.length;
  fetch.data = canele_data_contiguous(buffer->memory.get(), incoming.length);
  fetch.expected = incoming.length;
  new (&fetch.receive) Direction::Receive{};
  fetch.receive.sink = &incoming;
  incoming.relay_buffer = std::move(buffer);
  rendezvous::grant(context, fetch, from, incoming.root_handle, 0);
  return true;
}

const canele_data_t* source(const IncomingMulticast& incoming) {
  return incoming.relay_buffer != nullptr ? &incoming.relay_buffer->fetch.data : nullptr;
}

void on_filled(Context& context, IncomingMulticast& incoming, int outcome) {
  if (outcome == CANELE_OK) {
    incoming.relay_buffer->complete = true;
    if (incoming.receive != nullptr) copy(context, incoming);
  } else if (incoming.receive != nullptr) {
    incoming.outcome = outcome;
    incoming.waiting = true;
  }
}

bool attach(Context& context, Request& request, IncomingMulticast& incoming) {
  if (incoming.relay_buffer == nullptr || incoming.failed)
    return false;  // a failed one waits for those that still read it
  CANELE_COVER(receive_met_relay_buffer);
  incoming.receive = &request;
  if (incoming.relay_buffer->complete) copy(context, incoming);
  return true;
}

void drop(Context& context, IncomingMulticast& incoming) {
  if (incoming.relay_buffer == nullptr) return;
  context.multicasts.relay_bytes -= incoming.length;
  incoming.relay_buffer.reset();
}

}  // namespace canele::comm::multicast::relay_buffer
