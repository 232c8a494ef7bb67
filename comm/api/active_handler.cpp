// SPDX-License-Identifier: BSD-3-Clause
//
// The handler of an id: its slots, its mailbox, and the turns of its task.
//
// What only the serving thread uses needs no lock: the mailbox hands it over from turn to turn.
#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/api/active.hpp"
#include "comm/api/api.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/receive_eager.hpp"

namespace canele::comm::api {

std::size_t length_of_head(const std::byte* head, std::uint64_t length) {
  ActiveHead first;
  std::memcpy(&first, head, am_word);
  const std::uint64_t whole = am_word + first.header_length();
  return first.header_length() <= CANELE_AM_HEADER_MAX && whole <= length ? whole : 0;
}

namespace {

/// Lists the pieces of a message whose payload the program has placed.
int slot_segments(const void* context, std::size_t offset, iovec* out, int max) {
  const auto& slot = *static_cast<const Slot*>(context);
  return message_segments({slot.block->head, slot.head_length}, slot.placed, offset, out, max);
}

}  // namespace

// ---- what comes, on any thread --------------------------------------------------------------------------------------

bool Slot::take(int from, std::span<const std::byte> message) { return handler->take(from, message); }
void Slot::held() { handler->put(held_mail); }

/// Copies a short message to a spare block.
bool Handler::take(int source, std::span<const std::byte> message) {
  const std::size_t head_length = message.size() >= am_word ? length_of_head(message.data(), message.size()) : 0;
  const std::size_t length = message.size() - head_length;
  if (head_length == 0 || length > ActiveBlock::small) return false;
  ActiveBlock* const block = blocks_->take_arrived(target_.queue != nullptr);
  if (block == nullptr) return false;
  std::memcpy(block->head, message.data(), head_length);
  begin(*block, source, head_length, message.size());
  if (length != 0) {
    std::memcpy(block->payload(), message.data() + head_length, length);
    block->message.payload = block->payload();
  }
  if (!is_concurrent()) {
    put(*block);
  } else {
    block->receiver = this;
    holds_.fetch_add(1, std::memory_order_relaxed);  // while the slot that takes it has not ended
    block->ActiveCallTask::prepare(on_concurrent_call);
    session_.context->tasks.submit(static_cast<ActiveCallTask&>(*block));
  }
  return true;
}

void Handler::put(ActiveMail& mail) {
  if (mailbox_.put(mail)) session_.context->tasks.submit(*this);
}

/// The receive of a slot has ended.
void Handler::on_end(canele_request_t*, unsigned, void* argument) {
  Slot& slot = *static_cast<Slot*>(static_cast<MessageTaker*>(argument));
  Handler& handler = *slot.handler;
  if (handler.is_concurrent()) {
    handler.finish(slot);
    handler.deliver_held(slot);
  }
  handler.put(slot.ended_mail);
}

/// Calls the handler for a message that may be handled at any time.
void Handler::on_concurrent_call(ltask::Task& task) {
  auto& block = static_cast<ActiveBlock&>(static_cast<ActiveCallTask&>(task));
  auto& handler = static_cast<Handler&>(*block.receiver);
  ++callbacks_on_this_thread;
  handler.end_concurrent_call(handler.deliver(block, false) ? &block : nullptr);
  --callbacks_on_this_thread;
}

/// `block`: of the message, if the program has not kept it.
void Handler::end_concurrent_call(ActiveBlock* block) {
  block != nullptr ? blocks_->put_back(*block, *block) : blocks_->passed_on(1);
  release_hold();
}

/// A block has come back, or there is room in the queue.
void Handler::resume() {
  Engine& engine = engine_of(*session_.context);
  engine.tasks.submit(*this);  // the handler may be gone afterwards
  engine.after_submit();
}

// ---- begin and end --------------------------------------------------------------------------------------------------

Handler::Handler(ActiveMessages& owner, std::uint64_t id, const ActiveTarget& target)
    : owner_(owner),
      session_(*owner.session),
      id_(id),
      target_(target),
      blocks_(std::make_shared<ActiveBlocks>(session_.context->platform, *this)) {
  for (Slot& slot : slots_) slot.handler = this;
  waiting_.reserve(depth);
  ltask::Task::prepare(on_turn);
}

Handler::~Handler() {
  for (Slot& slot : slots_) {
    blocks_->put(slot.large);
    blocks_->put(slot.block);
  }
}

bool Handler::prepare() {
  blocks_->begin_turn();  // makes spare blocks
  return std::all_of(std::begin(slots_), std::end(slots_),
                     [&](Slot& slot) { return (slot.block = blocks_->take()) != nullptr; });
}

void Handler::start() {
  Engine& engine = engine_of(*session_.context);
  engine.lock_for_callback();
  for (Slot& slot : slots_) post(slot);
  engine.unlock();
}

void Handler::stop() {
  Engine& engine = engine_of(*session_.context);
  put(stop_mail_);
  engine.after_submit();
  canele_condition_wait(public_of(engine), &stopped_, 1);
}

// ---- a turn of the task ---------------------------------------------------------------------------------------------

void Handler::on_turn(ltask::Task& task) { static_cast<Handler&>(task).serve_turn(); }

/// Handles what has come before it. What comes meanwhile is left to another turn, so that a thread that makes progress
/// does not stay here. The handler may be freed afterwards.
void Handler::serve_turn() {
  ++callbacks_on_this_thread;
  blocks_->begin_turn();
  for (Mail* rest = mailbox_.take(); rest != nullptr;) {
    auto& mail = static_cast<ActiveMail&>(*rest);
    rest = mail.next_mail;
    handle(mail);
  }
  while (post_waiting_slots() || (!waiting_.empty() && !begin_wait())) {
  }
  give_back();
  end_turn();
  --callbacks_on_this_thread;
}

void Handler::handle(ActiveMail& mail) {
  switch (mail.kind) {
    case ActiveMail::Kind::block:
      return handle_block(static_cast<ActiveBlock&>(mail));
    case ActiveMail::Kind::held:
      return open(static_cast<SlotMail&>(mail).slot);
    case ActiveMail::Kind::ended:
      return handle_end(static_cast<SlotMail&>(mail).slot);
    case ActiveMail::Kind::resume:
      return;  // every turn posts the slots that wait
    case ActiveMail::Kind::stop:
      stopping_ = true;
      for (Slot& slot : slots_)
        canele_cancel(&slot.request);  // one that does not wait for a message goes on to its end
      return;
  }
}

void Handler::end_turn() {
  const bool over = stopping_ && live_ == 0;  // then no mail comes any more
  if (!mailbox_.end()) return session_.context->tasks.submit(*this);
  if (over) release_hold();
}

/// The last one to release its hold ends the handler, which may be freed afterwards.
void Handler::release_hold() {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) == 1) canele_condition_signal(&stopped_, 1);
}

/// Gives back the blocks of messages that were handled.
void Handler::give_back() {
  if (served_ != nullptr) blocks_->put_back(*std::exchange(served_, nullptr), *last_served_);
  if (passed_on_ != 0) blocks_->passed_on(std::exchange(passed_on_, 0));
}

// ---- messages -------------------------------------------------------------------------------------------------------

/// Handles a message now, or after the messages of its source that slots hold.
void Handler::handle_block(ActiveBlock& block) {
  if (first_message_ != nullptr && waits_for_slot(block.message.source)) return append(block);
  handle_now(block);
}

bool Handler::waits_for_slot(int source) const {
  return std::any_of(std::begin(slots_), std::end(slots_),
                     [&](const Slot& slot) { return slot.listed && slot.source == source; });
}

void Handler::append(ActiveMail& mail) {
  mail.next_mail = nullptr;
  (first_message_ != nullptr ? last_message_->next_mail : first_message_) = &mail;
  last_message_ = &mail;
}

void Handler::handle_now(ActiveBlock& block) {
  if (!deliver(block, false)) {
    ++passed_on_;
    return;
  }
  block.next_free = served_;
  if (served_ == nullptr) last_served_ = &block;
  served_ = &block;
}

/// Calls the handler, or adds the message to the queue. `counts`: it takes room there, and has not taken any yet.
/// Returns whether the block is still the handler's.
bool Handler::deliver(ActiveBlock& block, bool counts) {
  if (target_.queue != nullptr) {
    block.user = target_.user;
    blocks_->enqueue(block, *target_.queue, counts);
    return false;
  }
  ActiveCall call{*blocks_};
  block.call = &call;
  target_.program.arrived(&block.message, target_.program.argument);
  if (call.kept) return false;  // the program may have given it back
  block.call = nullptr;
  block.end_unanswered();
  return true;
}

/// The message of a slot is complete, or the receive was cancelled.
void Handler::handle_end(Slot& slot) {
  if (!is_concurrent()) finish(slot);
  if (slot.listed) return handle_waiting_messages();
  deliver_held(slot);
  post_again(slot);
}

/// Handles the messages that no slot delays any more: those before which no slot has an unfinished message of their
/// source.
void Handler::handle_waiting_messages() {
  int unfinished[depth];
  int* end = unfinished;
  auto* mail = static_cast<ActiveMail*>(std::exchange(first_message_, nullptr));
  while (mail != nullptr) {
    ActiveMail& one = *mail;
    mail = static_cast<ActiveMail*>(one.next_mail);
    Slot* const slot = one.kind == ActiveMail::Kind::held ? &static_cast<SlotMail&>(one).slot : nullptr;
    const int source = slot != nullptr ? slot->source : static_cast<ActiveBlock&>(one).message.source;
    if ((slot != nullptr && !slot->complete) || std::find(unfinished, end, source) != end) {
      if (slot != nullptr) *end++ = source;
      append(one);
    } else if (slot != nullptr) {
      slot->listed = false;
      deliver_held(*slot);
      post_again(*slot);
    } else {
      handle_now(static_cast<ActiveBlock&>(one));
    }
  }
}

// ---- slots ----------------------------------------------------------------------------------------------------------

/// Posts the receive of a slot. Its end is wanted from the beginning: an event that is registered after the post would
/// cost another look at the request.
void Handler::post(Slot& slot) {
  Engine& engine = engine_of(*session_.context);
  Request& request = request_of(&slot.request);
  slot.told = slot.complete = false;
  listen_next(request, {event::finalized, on_end, static_cast<MessageTaker*>(&slot), nullptr});
  prepare_outcome(request, session_, Request::Kind::receive);
  request.unbound = true;
  transition(request, Request::Stage::posted);
  receive_path::fill(engine, {&request, &session_, id_, CANELE_TAG_EXACT, CANELE_ANY_SOURCE, {}});
  request.role = Request::InternalRole::taker;
  receive_path::accept(engine, request);
}

/// Posts a slot again. Returns false if it has no block, or its message no room.
bool Handler::post_or_wait(Slot& slot) {
  if (slot.block == nullptr) slot.block = blocks_->take();
  if (slot.block == nullptr || (target_.queue != nullptr && !blocks_->has_room())) return false;
  Engine& engine = engine_of(*session_.context);
  engine.lock_for_callback();
  post(slot);
  engine.unlock();
  engine.after_submit();
  return true;
}

/// Posts a slot that has given up its message, or lets it wait for a block or for room.
void Handler::post_again(Slot& slot) {
  if (slot.ended || stopping_) {
    --live_;
  } else if (!post_or_wait(slot)) {
    waiting_.push_back(&slot);
  }
}

/// Returns false if a slot that waits may go on.
bool Handler::begin_wait() {
  const bool for_block =
      std::any_of(waiting_.begin(), waiting_.end(), [](Slot* slot) { return slot->block == nullptr; });
  return blocks_->begin_wait(for_block);
}

/// Posts slots that waited, and ends them if the handler is being stopped. Returns true if there was such a slot.
bool Handler::post_waiting_slots() {
  return std::erase_if(waiting_, [this](Slot* slot) {
           if (!stopping_) return post_or_wait(*slot);
           --live_;
           return true;
         }) != 0;
}

/// Reads the head of the message that the slot holds, and binds its buffer.
void Handler::open(Slot& slot) {
  canele_status_t envelope{};
  if (canele_receive_envelope(&slot.request, &envelope) != CANELE_OK) return;  // the end of the engine came first
  std::byte* const head = slot.block->head;
  std::size_t head_length = 0;
  if (envelope.length >= am_word && canele_receive_peek(&slot.request, head, am_word) == CANELE_OK)
    head_length = length_of_head(head, envelope.length);
  if (head_length == 0 || canele_receive_peek(&slot.request, head, head_length) != CANELE_OK) {
    reject_malformed(envelope.source);
    const canele_data_t nothing = canele_data_contiguous(nullptr, 0);
    canele_receive_bind(&slot.request, &nothing);
    return;
  }
  begin(*slot.block, envelope.source, head_length, envelope.length);
  slot.told = true;
  slot.source = envelope.source;
  slot.listed = !is_concurrent();
  if (slot.listed) append(slot.held_mail);
  const canele_data_t whole = place(slot, head_length);
  canele_receive_bind(&slot.request, &whole);
}

/// Describes a message for the program. Its payload has no place yet.
void Handler::begin(ActiveBlock& block, int source, std::size_t head_length, std::uint64_t length) {
  ActiveHead first;
  std::memcpy(&first, block.head, am_word);
  block.set({source, id_, block.head + am_word, first.header_length(), nullptr, length - head_length, CANELE_OK});
  block.owe_reply(&owner_, first.number());
  if (first.number() != 0) owner_.unanswered.fetch_add(1, std::memory_order_relaxed);
}

void Handler::reject_malformed(int source) {
  session_.context->log(LogLevel::error, "rank " + std::to_string(source) + " sent an active message to " +
                                             std::to_string(id_) + " with a malformed head; it is dropped");
}

/// Finds memory for the payload. Returns where the whole message goes.
canele_data_t Handler::place(Slot& slot, std::size_t head_length) {
  if (is_placed_by_program(slot)) {
    slot.head_length = head_length;
    return canele_data_segments(slot_segments, &slot, head_length + slot.placed.length);
  }
  void* const memory = memory_for(slot);
  canele_am_message_t& message = slot.message_block().message;
  message.payload = memory;
  slot.pieces[0] = {slot.message_block().head, head_length};
  slot.pieces[1] = {memory, memory == nullptr ? 0 : message.payload_length};
  slot.vector = {slot.pieces, 2};
  return canele_data_iov(&slot.vector);
}

/// Asks the program for a description of the payload's place. Returns false if it gives none.
bool Handler::is_placed_by_program(Slot& slot) {
  canele_am_message_t& message = slot.block->message;
  if (target_.options.place_data == nullptr || message.payload_length <= ActiveBlock::small) return false;
  slot.placed = {};
  if (target_.options.place_data(&message, &slot.placed, target_.program.argument) == 0) return false;
  slot.block->is_elsewhere = true;
  if (slot.placed.length != message.payload_length || check_data(&slot.placed, "place_data") != CANELE_OK) {
    session_.context->log(LogLevel::error, "place_data of active message " + std::to_string(id_) + " describes " +
                                               std::to_string(slot.placed.length) + " bytes; expected: " +
                                               std::to_string(message.payload_length) + " in valid pieces");
    slot.placed = canele_data_contiguous(nullptr, 0);
    message.error = CANELE_EINVAL;
  }
  return true;
}

/// Returns the memory of the payload. NULL: there is no payload, or no memory for it.
void* Handler::memory_for(Slot& slot) {
  canele_am_message_t& message = slot.block->message;
  const std::size_t length = message.payload_length;
  if (length == 0) return nullptr;
  if (length <= ActiveBlock::small) return slot.block->payload();
  const canele_am_handler_t& program = target_.program;
  const bool asks = program.place != nullptr && target_.options.place_data == nullptr;
  void* const memory = !asks ? nullptr : program.place(&message, program.argument);
  if (memory != nullptr) return memory;
  slot.large = ActiveBlock::make(length);
  if (slot.large == nullptr) {
    message.error = CANELE_ENOMEM;
    return nullptr;
  }
  std::memcpy(slot.large->head, slot.block->head, am_word + message.header_length);
  slot.large->set(message);
  slot.large->owe_reply(&owner_, slot.block->take_reply());
  slot.large->message.header = slot.large->head + am_word;
  return slot.large->payload();
}

/// Reads how the receive of a slot has ended.
void Handler::finish(Slot& slot) {
  canele_status_t status{};
  canele_request_status(&slot.request, &status);
  if (!slot.told && status.error == CANELE_ENOMEM) {  // there was no memory even for its head
    slot.told = true;
    slot.block->set({status.source, id_, slot.block->head, 0, nullptr, 0, status.error});
    slot.block->owe_reply(nullptr, 0);
  }
  canele_am_message_t& message = slot.message_block().message;
  if (slot.told && message.error == CANELE_OK) message.error = status.error;
  slot.complete = true;
  slot.ended = status.cancelled != 0;  // by stop(), or by the end of the engine
}

/// Gives the program the message of a slot, if it has one. A block that the program keeps is no longer the slot's.
void Handler::deliver_held(Slot& slot) {
  const bool is_large = slot.large != nullptr;
  if (std::exchange(slot.told, false) && !deliver(slot.message_block(), true))
    (is_large ? slot.large : slot.block) = nullptr;
  blocks_->put(std::exchange(slot.large, nullptr));
}

}  // namespace canele::comm::api
