// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages of the C ABI: handlers.
//
// The thread that has served a slot posts it again. One exchange of the slot's state decides whether stop() or that
// thread cancels the slot.
#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/api/active.hpp"
#include "comm/api/api.hpp"
#include "comm/state/payload.hpp"

namespace canele::comm::api {

std::shared_ptr<ActiveMessages> active_of(Session& session, int* code) {
  if (fork::in_child) {
    *code = reject_in_child("active messages");
    return nullptr;
  }
  if (!session.open) {
    *code = error(CANELE_ESTATE, "session \"" + session.label + "\" is closed");
    return nullptr;
  }
  Engine& engine = engine_of(*session.context);
  engine.lock_for_callback();
  auto active = std::static_pointer_cast<ActiveMessages>(session.active_messages);
  if (active == nullptr) session.active_messages = active = std::make_shared<ActiveMessages>();
  engine.unlock();
  const std::lock_guard lock(active->mutex);
  if (active->replies == nullptr)
    active->replies = open_session(engine, "canele.reply:" + session.label, CANELE_ORDER_PER_TAG, code);
  if (active->replies == nullptr) return nullptr;
  if (active->session == nullptr)
    active->session = open_session(engine, "active:" + session.label, CANELE_ORDER_PER_TAG, code);
  session.active = active->session;
  return active->session == nullptr ? nullptr : active;
}

int message_segments(std::span<const std::byte> head, const canele_data_t& payload, std::size_t offset, iovec* out,
                     int max) {
  int count = 0;
  if (offset < head.size() && max > 0) {
    out[count++] = {const_cast<std::byte*>(head.data()) + offset, head.size() - offset};
    offset = head.size();
  }
  std::size_t covered = 0;
  const std::size_t from = offset - head.size();
  return count + data::pieces(payload, from, payload.length - from, out + count, max - count, &covered);
}

namespace {

/// Returns the length of head and header of a message; 0: they are malformed.
std::size_t length_of_head(const std::byte* head, std::uint64_t length) {
  ActiveHead first;
  std::memcpy(&first, head, am_word);
  const std::uint64_t whole = am_word + first.header_length();
  return first.header_length() <= CANELE_AM_HEADER_MAX && whole <= length ? whole : 0;
}

/// Lists the pieces of a message whose payload the program has placed.
int slot_segments(const void* context, std::size_t offset, iovec* out, int max) {
  const auto& slot = *static_cast<const Slot*>(context);
  return message_segments({slot.block->head, slot.head_length}, slot.placed, offset, out, max);
}

/// Records whether the id has a handler from now on. Messages to an id without one wait for the next handler, or for
/// the end of the session.
void serve_id(Session& session, std::uint64_t id, bool served) {
  Engine& engine = engine_of(*session.context);
  engine.lock_for_callback();
  std::erase(session.served, id);
  if (served) session.served.push_back(id);
  engine.unlock();
}

}  // namespace

Handler::Handler(ActiveMessages& owner, std::uint64_t id, const ActiveTarget& target)
    : owner_(owner),
      session_(*owner.session),
      id_(id),
      target_(target),
      blocks_(std::make_shared<ActiveBlocks>(session_.context->platform, *this)) {
  for (Slot& slot : slots_) slot.handler = this;
  posted_.reserve(depth);
  waiting_.reserve(depth);
}

Handler::~Handler() {
  for (Slot& slot : slots_) {
    blocks_->put(slot.large);
    blocks_->put(slot.block);
  }
}

bool Handler::prepare() {
  return std::all_of(std::begin(slots_), std::end(slots_),
                     [&](Slot& slot) { return (slot.block = blocks_->take()) != nullptr; });
}

/// Posts all slots before any is served: a slot that is posted again would come before one that was not yet.
void Handler::start() {
  for (Slot& slot : slots_) post(slot);
  serve_in_turn(1);
}

void Handler::post(Slot& slot) {
  slot.told = slot.opened = false;
  slot.source.store(Slot::unknown, std::memory_order_relaxed);
  posted_.push_back(&slot);
  const canele_data_t room = canele_data_contiguous(slot.block->head, am_word + ActiveBlock::small);
  const int code = receive(&session_, CANELE_ANY_SOURCE, id_, CANELE_TAG_EXACT, room, true, &request_of(&slot.request));
  if (code != CANELE_OK) {  // the session is being closed
    slot.ended = true;
    slot.ready.store(true, std::memory_order_release);
    return;
  }
  auto idle = Slot::State::idle;
  const bool stopped = !slot.state.compare_exchange_strong(idle, Slot::State::posted);
  if (stopped) canele_cancel(&slot.request);
  canele_request_on_event(&slot.request, CANELE_EVENT_HEADER | CANELE_EVENT_FINALIZED, on_event, &slot);
}

void Handler::stop() {
  for (Slot& slot : slots_) {
    if (slot.state.exchange(Slot::State::stopped) == Slot::State::posted) canele_cancel(&slot.request);
  }
  if (claim()) resume();  // ends the slots that wait
  canele_condition_wait(public_of(engine_of(*session_.context)), &stopped_, 1);
}

void Handler::on_event(canele_request_t*, unsigned events, void* argument) {
  Slot& slot = *static_cast<Slot*>(argument);
  if ((events & CANELE_EVENT_HEADER) != 0) slot.handler->open(slot);
  if ((events & CANELE_EVENT_FINALIZED) != 0) slot.handler->finish(slot);
}

/// Reads the head of the message that the slot holds, and binds its buffer.
void Handler::open(Slot& slot) {
  slot.opened = true;
  canele_status_t envelope{};
  canele_receive_envelope(&slot.request, &envelope);
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
  begin(slot, envelope.source, head_length, envelope.length);
  const canele_data_t whole = place(slot, head_length);
  slot.source.store(envelope.source, std::memory_order_release);
  canele_receive_bind(&slot.request, &whole);
}

/// Reads a short message, which has arrived in the slot's block. Its payload is moved to where it is aligned.
void Handler::read(Slot& slot, const canele_status_t& status) {
  ActiveBlock& block = *slot.block;
  const std::size_t head_length = status.length >= am_word ? length_of_head(block.head, status.length) : 0;
  if (head_length == 0) return reject_malformed(status.source);
  begin(slot, status.source, head_length, status.length);
  if (const std::size_t length = block.message.payload_length; length != 0) {
    std::memmove(block.payload(), block.head + head_length, length);
    block.message.payload = block.payload();
  }
  slot.source.store(status.source, std::memory_order_release);
}

/// The slot has a message for the program. Its payload has no place yet.
void Handler::begin(Slot& slot, int source, std::size_t head_length, std::uint64_t length) {
  ActiveHead first;
  std::memcpy(&first, slot.block->head, am_word);
  slot.told = true;
  slot.block->set(
      {source, id_, slot.block->head + am_word, first.header_length(), nullptr, length - head_length, CANELE_OK});
  slot.block->owe_reply(&owner_, first.number());
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

void Handler::finish(Slot& slot) {
  canele_status_t status{};
  canele_request_status(&slot.request, &status);
  if (!slot.opened && status.error == CANELE_OK && status.cancelled == 0) read(slot, status);
  if (!slot.told && status.error == CANELE_ENOMEM) {  // there was no memory even for its head
    slot.told = true;
    slot.block->set({status.source, id_, slot.block->head, 0, nullptr, 0, status.error});
    slot.block->owe_reply(nullptr, 0);
  }
  canele_am_message_t& message = slot.message_block().message;
  if (slot.told && message.error == CANELE_OK) message.error = status.error;
  auto posted = Slot::State::posted;
  const bool stopped = !slot.state.compare_exchange_strong(posted, Slot::State::idle);
  slot.ended = stopped || status.cancelled != 0;  // cancelled: by stop(), or by the end of the engine
  if (is_concurrent() && std::exchange(slot.told, false)) deliver(slot);
  slot.ready.store(true, std::memory_order_release);
  if (claim()) serve_in_turn(1);
}

/// A block has come back, or there is room in the queue. Runs like a callback.
void Handler::resume() {
  ++callbacks_on_this_thread;
  serve_in_turn(1);
  --callbacks_on_this_thread;
}

/// Serves the slots that are ready, and posts those that waited. That includes slots that become ready meanwhile,
/// inside a call of ours or on another thread. The handler may be freed afterwards.
void Handler::serve_in_turn(std::uint32_t turns) {
  bool stopped = false;
  do {
    blocks_->end_wait();
    do {
      while (serve_one()) {
      }
    } while (post_waiting() || (!waiting_.empty() && !begin_wait()));
    if (live_ == 0 && !std::exchange(told_, true)) stopped = true;
    turns = turns_.fetch_sub(turns, std::memory_order_acq_rel) - turns;
  } while (turns != 0);
  if (stopped) canele_condition_signal(&stopped_, 1);
}

/// Serves the first slot that is ready and has no unfinished message of its source before it. Returns false if there is
/// none.
bool Handler::serve_one() {
  int unfinished[depth];
  int* end = unfinished;
  for (auto at = posted_.begin(); at != posted_.end(); ++at) {
    Slot& slot = **at;
    const bool ready = slot.ready.load(std::memory_order_acquire);   // partner: finish()
    const int source = slot.source.load(std::memory_order_acquire);  // partner: open()
    if (ready && (is_concurrent() || std::find(unfinished, end, source) == end)) {
      slot.ready.store(false, std::memory_order_relaxed);
      posted_.erase(at);
      serve(slot);
      return true;
    }
    if (!ready && source == Slot::unknown && !is_concurrent()) return false;  // it may have a message of any source
    *end++ = source;
  }
  return false;
}

/// Gives the message to the program, and posts the slot again.
void Handler::serve(Slot& slot) {
  if (slot.told) deliver(slot);
  blocks_->put(std::exchange(slot.large, nullptr));
  if (slot.ended) {
    --live_;
  } else if (!post_or_wait(slot)) {
    waiting_.push_back(&slot);
  }
}

/// Calls the handler, or adds the message to the queue. A block that the program keeps is no longer the slot's.
void Handler::deliver(Slot& slot) {
  ActiveBlock& block = slot.message_block();
  ActiveBlock* replacement = nullptr;
  if (target_.queue == nullptr) {
    ActiveCall call{*blocks_};
    block.call = &call;
    target_.program.arrived(&block.message, target_.program.argument);
    if (!call.kept) {
      block.call = nullptr;
      return block.end_unanswered();
    }
    replacement = call.replacement;
  } else {
    block.user = target_.user;
    blocks_->enqueue(block, *target_.queue);
  }
  if (slot.large != nullptr) {
    slot.large = nullptr;
  } else {
    slot.block = replacement;
  }
}

/// Returns false if the slot has no block, or its message no room.
bool Handler::post_or_wait(Slot& slot) {
  if (slot.block == nullptr) slot.block = blocks_->take();
  if (slot.block == nullptr || (target_.queue != nullptr && !blocks_->has_room())) return false;
  post(slot);
  return true;
}

/// Returns false if a slot that waits may go on.
bool Handler::begin_wait() {
  const bool for_block =
      std::any_of(waiting_.begin(), waiting_.end(), [](Slot* slot) { return slot->block == nullptr; });
  return blocks_->begin_wait(for_block);
}

/// Posts slots that waited, and ends them if the handler is being stopped. Returns true if there was such a slot.
bool Handler::post_waiting() {
  return std::erase_if(waiting_, [this](Slot* slot) {
           if (slot->state.load() != Slot::State::stopped) return post_or_wait(*slot);
           --live_;
           return true;
         }) != 0;
}

int register_handler(Session& session, std::uint64_t id, const ActiveTarget& target, const char* call) {
  int code = CANELE_OK;
  const auto active = active_of(session, &code);
  if (active == nullptr) return code;
  auto handler = std::make_unique<Handler>(*active, id, target);
  if (!handler->prepare()) return error(CANELE_ENOMEM, call, "no memory for the handler");
  const std::lock_guard lock(active->mutex);
  auto& place = active->handlers[id];
  if (place != nullptr)
    return error(CANELE_EBUSY, std::string(call) + ": id " + std::to_string(id) + " has a handler already");
  place = std::move(handler);
  serve_id(*active->session, id, true);
  place->start();
  return CANELE_OK;
}

namespace {

/// Returns the error of a close while calls are under way, of this rank or to it.
int check_calls(const ActiveMessages& active) {
  const std::int64_t unanswered = active.unanswered.load(std::memory_order_acquire);  // partner: note_answered()
  if (unanswered != 0) {
    return error(CANELE_EBUSY, "canele_session_close: " + std::to_string(unanswered) +
                                   " calls of other ranks are not answered; expected: a reply to each, or its message "
                                   "given back");
  }
  if (active.replies == nullptr) return CANELE_OK;
  Engine& engine = engine_of(*active.replies->context);
  engine.lock_for_callback();
  const std::uint64_t pending = active.replies->pending;
  engine.unlock();
  if (pending == 0) return CANELE_OK;
  return error(CANELE_EBUSY,
               "canele_session_close: " + std::to_string(pending) + " calls, or replies to calls, are pending");
}

int close_carrier(Session*& carrier) {
  if (carrier == nullptr) return CANELE_OK;
  const int code = canele_session_close(public_of(*carrier));
  if (code == CANELE_OK) carrier = nullptr;
  return code;
}

}  // namespace

int stop_active_messages(Session& session) {
  if (session.active_messages == nullptr) return CANELE_OK;
  if (callback_depth() != 0) {
    return error(CANELE_EDEADLK, "canele_session_close inside a completion callback, with active messages");
  }
  const auto active = std::static_pointer_cast<ActiveMessages>(session.active_messages);
  if (const int code = check_calls(*active); code != CANELE_OK) return code;
  for (auto& [id, handler] : active->handlers) handler->stop();
  active->handlers.clear();
  int code = check_calls(*active);  // a handler may have kept another one
  // In this order: while messages are in transfer, the session stays as it is, with its calls.
  if (code == CANELE_OK) code = close_carrier(active->session);
  if (code == CANELE_OK) code = close_carrier(active->replies);
  if (code != CANELE_OK) return code;
  session.active = nullptr;
  session.active_messages.reset();
  return CANELE_OK;
}

}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

namespace {

int register_program(const char* call, canele_session_t* session, std::uint64_t id, const canele_am_handler_t* handler,
                     const canele_am_options_t* options) {
  if (session == nullptr || handler == nullptr || handler->struct_size < sizeof *handler ||
      handler->arrived == nullptr) {
    return error(CANELE_EINVAL, call, "session, handler, its struct_size and its function `arrived` must be given");
  }
  if (const int code = check_size(handler, handler->struct_size, sizeof *handler, call, "canele_am_handler_t");
      code != CANELE_OK)
    return code;
  canele_am_options_t known;
  if (const int code = copy_options(options, call, "canele_am_options_t", &known); code != CANELE_OK) return code;
  if ((known.flags & ~static_cast<unsigned>(CANELE_AM_CONCURRENT)) != 0)
    return error(CANELE_EINVAL, std::string(call) + ": options->flags is " + std::to_string(known.flags) +
                                    "; expected: flags of enum canele_am_flags");
  return register_handler(session_of(session), id, {*handler, known, nullptr, nullptr}, call);
}

}  // namespace

int canele_am_register(canele_session_t* session, uint64_t id, const canele_am_handler_t* handler) try {
  return register_program("canele_am_register", session, id, handler, nullptr);
} catch (...) {
  return caught();
}

int canele_am_register_with(canele_session_t* session, uint64_t id, const canele_am_handler_t* handler,
                            const canele_am_options_t* options) try {
  return register_program("canele_am_register_with", session, id, handler, options);
} catch (...) {
  return caught();
}

int canele_am_unregister(canele_session_t* session, uint64_t id) try {
  if (session == nullptr) return error(CANELE_EINVAL, "canele_am_unregister: session is NULL");
  if (callback_depth() != 0) return error(CANELE_EDEADLK, "canele_am_unregister inside a completion callback");
  int code = CANELE_OK;
  const auto active = active_of(session_of(session), &code);
  if (active == nullptr) return code;
  std::unique_ptr<Handler> handler;
  {
    const std::lock_guard lock(active->mutex);
    const auto found = active->handlers.find(id);
    if (found == active->handlers.end()) {
      return error(CANELE_ESTATE, "canele_am_unregister: id " + std::to_string(id) + " has no handler");
    }
    handler = std::move(found->second);
    active->handlers.erase(found);
  }
  handler->stop();
  serve_id(*active->session, id, false);
  return CANELE_OK;
} catch (...) {
  return caught();
}
