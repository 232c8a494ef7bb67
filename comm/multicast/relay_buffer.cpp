// SPDX-License-Identifier: BSD-3-Clause
//
// Stock of multicasts.
//
// The copy takes 256 KiB at a time, so that other tasks have their turn.
#include "comm/multicast/relay_buffer.hpp"

#include <algorithm>
#include <new>

#include "comm/multicast/relay.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/state/payload.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::multicast::stock {
namespace {

void end_copy(Context& context, CallOp& op) {
  Cast& cast = *static_cast<StockCopy&>(op).cast;
  const auto task = std::move(cast.copy);
  receive_path::delivered(context, *cast.receive, context.peer(cast.root), task->copied);
}

void copy_some(ltask::Task& base) {
  constexpr std::uint64_t most = 256 * 1024;
  auto& task = static_cast<StockCopy&>(base);
  const Cast& cast = *task.cast;
  const canele_data_t& to = cast.receive->data;
  const std::uint64_t all = std::min<std::uint64_t>(cast.length, to.length);
  const std::size_t size = std::min(most, all - task.copied);
  const std::size_t done = data::scatter(to, task.copied, cast.stock->memory.get() + task.copied, size);
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

void copy(Context& context, Cast& cast) {
  CANELE_MARK(stock_copied_to_receive);
  cast.copy = std::make_unique<StockCopy>();
  cast.copy->context = &context;
  cast.copy->cast = &cast;
  cast.copy->kind = OpKind::call;
  cast.copy->call = end_copy;
  cast.copy->prepare(copy_some);
  context.tasks.submit(*cast.copy);
}

}  // namespace

bool begin(Context& context, Cast& cast) {
  Peer& from = cast.source(context);
  Casts& casts = context.casts;
  if (from.gone() || cast.length > casts.stock_limit - casts.stock_bytes || CANELE_BUGGIFY(no_stock)) {
    CANELE_MARK(stock_refused);
    return false;
  }
  auto stock = std::make_unique<Stock>();
  stock->memory.reset(new (std::nothrow) std::byte[cast.length]);
  if (stock->memory == nullptr) return false;
  CANELE_MARK(stock_begun);
  casts.stock_bytes += cast.length;
  Request& fetch = stock->fetch;
  fetch.context = &context;
  fetch.session = cast.session;
  fetch.kind = Request::Kind::receive;
  fetch.stage = Request::Stage::moving;
  fetch.part = Request::Part::stock;
  fetch.rank = cast.root;
  fetch.tick = context.watch.tick();
  fetch.status_length = cast.length;
  fetch.data = canele_data_contiguous(stock->memory.get(), cast.length);
  fetch.expected = cast.length;
  new (&fetch.receive) Direction::Receive{};
  fetch.receive.sink = &cast;
  cast.stock = std::move(stock);
  rendezvous::grant(context, fetch, from, cast.send, 0);
  return true;
}

const canele_data_t* source(const Cast& cast) { return cast.stock != nullptr ? &cast.stock->fetch.data : nullptr; }

void filled(Context& context, Cast& cast, int outcome) {
  if (outcome == CANELE_OK) {
    cast.stock->complete = true;
    if (cast.receive != nullptr) copy(context, cast);
  } else if (cast.receive != nullptr) {
    cast.outcome = outcome;
    cast.waiting = true;
  }
}

bool takes_over(Context& context, Request& request, Cast& cast) {
  if (cast.stock == nullptr || cast.failed) return false;  // a failed one waits for those that still read it
  CANELE_MARK(receive_met_stock);
  cast.receive = &request;
  if (cast.stock->complete) copy(context, cast);
  return true;
}

void drop(Context& context, Cast& cast) {
  if (cast.stock == nullptr) return;
  context.casts.stock_bytes -= cast.length;
  cast.stock.reset();
}

}  // namespace canele::comm::multicast::stock
