// SPDX-License-Identifier: BSD-3-Clause
//
// The messages of large puts and gets.
#include "comm/protocol/one_sided_transfer.hpp"

#include "comm/protocol/one_sided_origin.hpp"
#include "comm/protocol/one_sided_target.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"
#include "comm/protocol/send.hpp"
#include "comm/state/request_setup.hpp"

namespace canele::comm::one_sided {
namespace {

std::uint64_t tag_of(const TransferName& name) {
  constexpr unsigned lane_shift = 48, get_shift = 47;
  constexpr std::uint64_t numbers = (std::uint64_t{1} << get_shift) - 1;
  return std::uint64_t{name.lane} << lane_shift | std::uint64_t{name.get} << get_shift | (name.number & numbers);
}

/// Returns the session of the messages. A target that has no memory registered must take them, too.
Session& session_of(Context& context) CANELE_UNDER_LOCK;
Session& session_of(Context& context) {
  Session* const open = context.one_sided.session.load(std::memory_order_relaxed);  // written under the lock
  return open != nullptr ? *open : context.sessions.find_or_make(context, session_label);
}

void post_receive(Context& context, Transfer& transfer, int source, std::uint64_t tag,
                  canele_data_t data) CANELE_UNDER_LOCK;

void end(Context& context, CallOp& op) CANELE_UNDER_LOCK;
void end(Context& context, CallOp& op) {
  auto& transfer = static_cast<Transfer&>(op);
  const Request& message = transfer.message;
  if (message.kind == Request::Kind::receive && message.status_error == CANELE_ENOMEM) {  // its message still comes
    const PostedNode& node = message.receive.node;
    return post_receive(context, transfer, node.source, node.tag, message.data);
  }
  transfer.operation != nullptr ? on_transferred(context, transfer) : on_served(context, transfer);
}

/// The message has ended. Called by a task, without the lock.
void on_message_end(canele_request_t* request, unsigned /*events*/, void* argument) {
  auto& transfer = *static_cast<Transfer*>(argument);
  transfer.kind = OpKind::call;
  transfer.call = end;
  request_of(request).context->submit(transfer);  // the transfer may be gone now
}

/// Registers for the end of a message that is about to be posted.
void listen(Transfer& transfer) {
  Request& message = transfer.message;
  message.callback = on_message_end;
  message.argument = &transfer;
  message.word.store(std::uint64_t{event::finalized} << RequestWord::wanted_shift, std::memory_order_relaxed);
}

void post_receive(Context& context, Transfer& transfer, int source, std::uint64_t tag, canele_data_t data) {
  Session& session = session_of(context);
  Request& message = transfer.message;
  prepare_outcome(message, session, Request::Kind::receive);
  transition(message, Request::Stage::posted);
  receive_path::fill(context, {&message, &session, tag, CANELE_TAG_EXACT, source, data});
  listen(transfer);
  receive_path::accept(context, message);
}

}  // namespace

void send(Context& context, Transfer& transfer, const TransferName& name, const canele_data_t& data,
          std::int32_t priority) {
  context.one_sided.transfers.begin(transfer);
  prepare_send(transfer.message, session_of(context), name.peer, tag_of(name), data, 0);
  transfer.message.item.priority = priority;
  listen(transfer);
  send_path::on_send_posted(context, transfer.message);
}

void receive(Context& context, Transfer& transfer, const TransferName& name, const canele_data_t& data) {
  context.one_sided.transfers.begin(transfer);
  post_receive(context, transfer, name.peer, tag_of(name), data);
}

bool stop_receiving(Context& context, Transfer& transfer) {
  Request& message = transfer.message;
  if (message.stage != Request::Stage::posted || !message.receive.node.queued) return false;
  if (message.handle != Handle::none && !context.withdraw_rtr(message)) return false;
  receive_path::take_out(context, message);
  context.finish(message, CANELE_ECANCELED);
  return true;
}

void TransferList::begin(Transfer& one) {
  one.next = first_;
  if (first_ != nullptr) first_->previous = &one;
  first_ = &one;
}

void TransferList::end(Transfer& one) {
  (one.previous != nullptr ? one.previous->next : first_) = one.next;
  if (one.next != nullptr) one.next->previous = one.previous;
  delete &one;
}

std::uint32_t TransferList::answers_sent(int rank) const {
  std::uint32_t count = 0;
  for (const Transfer* one = first_; one != nullptr; one = one->next) {
    const Request& message = one->message;
    const bool answers = one->operation == nullptr && message.kind == Request::Kind::send && message.rank == rank;
    count += answers && message.finalized();
  }
  return count;
}

}  // namespace canele::comm::one_sided
