// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages: handlers by id, fed by receives that are always posted.
//
// Used by active_api.cpp, and by the close of a session. Any thread. The engine below the API knows only MessageTaker.
// A handler keeps a few receives without a buffer posted, from any source, in a session of its own. While all of them
// are busy, further messages wait as unexpected messages do, within the limits of those.
//
//     ActiveMessages ──▶ id ──▶ Handler ──▶ Slot × 8, always posted
//       │                         │
//       │      short message ─────┼─▶ take(): copied to a block ─────────────┐
//       │      longer ────────────┼─▶ held(): the slot holds it ─────────────┼─▶ Mailbox ─▶ one task: serve_turn()
//       │      end of its receive ┴─▶ ended(): slot's message is complete ───┘               └─▶ arrived(), or the
//       queue └──▶ Session "active:label"
//
// The mailbox has messages in the order in which they were matched. One thread at a time takes them out, so no handler
// runs on two threads at a time. One turn of its task serves all messages that have come before it. A message waits
// there if a slot has an unfinished message of its source. That keeps the order of every source, and a long message
// delays no other source.
//
// If the program allows it, handlers are called at once: for a block by a task of its own, for a slot by the thread
// that completes it.
//
// A message lies in a block (state/active_blocks). A slot whose block was kept, or is in a queue, gets another one
// before it is posted again.
//
//     message:  head (8 bytes) | header | payload        declared as its header: the first two
//     head:     low 16 bits: length of the header; the others: number of the call, or 0 if no reply is expected
//
// Calls and their replies: see active_call_api.cpp.
//
// Rejected: a path of their own in the engine. It would need flow control of its own.
#pragma once

#include <canele/active_message.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/engine/engine.hpp"
#include "comm/state/active_blocks.hpp"
#include "comm/state/mailbox.hpp"
#include "comm/state/message_taker.hpp"
#include "ltask/task.hpp"

namespace canele::comm::api {

constexpr std::size_t am_word = sizeof(std::uint64_t);
constexpr std::size_t am_head_room = ActiveBlock::head_room;
static_assert(am_head_room <= CANELE_HEADER_MAX);

class Handler;
struct ActiveMessages;
struct Slot;

/// The first bytes of a message.
struct ActiveHead {
  static constexpr int number_shift = 16;
  static constexpr std::uint64_t most_calls = std::uint64_t{1} << 47;  ///< a tag has a bit more than a number

  std::uint64_t word;
  std::uint64_t header_length() const { return word & ((1u << number_shift) - 1); }
  std::uint64_t number() const { return word >> number_shift; }
};

/// Mail of a slot.
struct SlotMail : ActiveMail {
  SlotMail(Kind of, Slot& from) : ActiveMail(of), slot(from) {}
  Slot& slot;
};

/// One receive of a handler. It holds a message that is longer than a block, or that has found no block.
struct Slot final : MessageTaker {
  Slot() = default;
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  bool take(int from, std::span<const std::byte> message) override CANELE_UNDER_LOCK;
  void held() override CANELE_UNDER_LOCK;

  canele_request_t request{};
  Handler* handler = nullptr;
  SlotMail held_mail{ActiveMail::Kind::held, *this}, ended_mail{ActiveMail::Kind::ended, *this};
  int source = 0;                ///< of the message, once its head was read
  bool told = false;             ///< it holds a message for the handler
  bool listed = false;           ///< its message is among those that others may wait for
  bool complete = false;         ///< the receive has ended
  bool ended = false;            ///< it must not be posted again
  ActiveBlock* block = nullptr;  ///< for heads and small payloads; nullptr: waits for one
  ActiveBlock* large = nullptr;  ///< of a message whose payload does not fit `block`
  iovec pieces[2]{};
  canele_iov_t vector{};
  canele_data_t placed{};       ///< the payload, if the program has described its place
  std::size_t head_length = 0;  ///< of such a message

  /// The block that has the message.
  ActiveBlock& message_block() { return large != nullptr ? *large : *block; }
};

/// Where the messages of an id go: to the program's functions, or to a queue.
struct ActiveTarget {
  canele_am_handler_t program{};
  canele_am_options_t options{};
  CompletionQueue* queue = nullptr;
  void* user = nullptr;  ///< of the entries
};

class Handler final : public ActiveReceiver, private ltask::Task {
 public:
  Handler(ActiveMessages& owner, std::uint64_t id, const ActiveTarget& target);
  ~Handler();
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  /// Allocates the blocks. Returns false if there is no memory.
  bool prepare();
  /// Posts the receives.
  void start();
  /// Cancels the receives and blocks until no callback runs.
  void stop();
  /// Takes a message that has arrived. Returns false if a slot has to hold it.
  bool take(int source, std::span<const std::byte> message) CANELE_UNDER_LOCK;
  /// Adds to what the next turn handles. The handler may be freed afterwards.
  void put(ActiveMail& mail);

 private:
  static constexpr std::size_t depth = 8;
  static void on_end(canele_request_t* request, unsigned events, void* argument);
  static void on_turn(ltask::Task& task);
  static void on_concurrent_call(ltask::Task& task);
  bool claim() override { return mailbox_.put(resume_mail_); }
  void resume() override;
  bool is_concurrent() const { return (target_.options.flags & CANELE_AM_CONCURRENT) != 0; }

  // A turn.
  void serve_turn();
  void handle(ActiveMail& mail);
  void give_back();
  void end_turn();
  void end_concurrent_call(ActiveBlock* block);
  void release_hold();

  // Messages, in the order of each source.
  void handle_block(ActiveBlock& block);
  bool waits_for_slot(int source) const;
  void append(ActiveMail& mail);
  void handle_now(ActiveBlock& block);
  bool deliver(ActiveBlock& block, bool counts);
  void handle_end(Slot& slot);
  void handle_waiting_messages();

  // Slots.
  void post(Slot& slot) CANELE_UNDER_LOCK;
  bool post_or_wait(Slot& slot);
  void post_again(Slot& slot);
  bool post_waiting_slots();
  bool begin_wait();
  void open(Slot& slot);
  void begin(ActiveBlock& block, int source, std::size_t head_length, std::uint64_t length);
  void reject_malformed(int source);
  void* memory_for(Slot& slot);
  canele_data_t place(Slot& slot, std::size_t head_length);
  bool is_placed_by_program(Slot& slot);
  void finish(Slot& slot);
  void deliver_held(Slot& slot);

  ActiveMessages& owner_;
  Session& session_;
  const std::uint64_t id_;
  const ActiveTarget target_;
  const std::shared_ptr<ActiveBlocks> blocks_;
  Slot slots_[depth];
  Mailbox mailbox_;
  ActiveMail resume_mail_{ActiveMail::Kind::resume}, stop_mail_{ActiveMail::Kind::stop};
  std::atomic<std::uint32_t> holds_{1};  ///< concurrent calls under way, and 1 until all slots have ended
  // Owned by the serving thread.
  Mail *first_message_ = nullptr, *last_message_ = nullptr;  ///< held by slots, and those that wait for them; linked
  std::vector<Slot*> waiting_;                               ///< for a block, or for room in the queue
  ActiveBlock *served_ = nullptr, *last_served_ = nullptr;   ///< to be given back, linked
  std::size_t passed_on_ = 0;                                ///< blocks that went to the program in this turn
  std::size_t live_ = depth;                                 ///< slots that have not ended
  bool stopping_ = false;
  canele_condition_t stopped_{};
};

/// The active messages of one session.
struct ActiveMessages final : ActiveReplies {
  std::mutex mutex;
  Session* session = nullptr;  ///< carries the messages
  Session* replies = nullptr;  ///< carries the replies to calls
  std::map<std::uint64_t, std::unique_ptr<Handler>> handlers;
  std::atomic<std::uint64_t> calls{0};      ///< made by this rank so far
  std::atomic<std::int64_t> unanswered{0};  ///< calls of other ranks that have come and are not answered

  void end_unanswered(int source, std::uint64_t number) override;
  /// The reply to a call has been posted. The session may be gone afterwards.
  void note_answered() { unanswered.fetch_sub(1, std::memory_order_release); }  // partner: check_calls()
};

/// Returns the length of head and header of a message; 0: they are malformed.
std::size_t length_of_head(const std::byte* head, std::uint64_t length);
/// Lists the pieces of a message from `offset` on: head, then payload. Returns their number, at most `max`.
int message_segments(std::span<const std::byte> head, const canele_data_t& payload, std::size_t offset, iovec* out,
                     int max);

/// Returns the session's active messages, made at first use. nullptr: *code is the error.
std::shared_ptr<ActiveMessages> active_of(Session& session, int* code);

/// Returns the session that carries the active messages of a session. nullptr: *code is the error.
Session* carrier_of(Session& session, int* code);
/// Returns the active messages of a session without the lock, once they are made. nullptr: *code is the error.
ActiveMessages* messages_of(Session& session, int* code);

/// What a message is made of.
struct ActiveParts {
  const void* header;
  std::size_t header_length;
  const canele_data_t* payload;
  std::uint64_t number = 0;  ///< of the call; 0: no reply is expected
};

/// Fills the program's memory for a message, and describes head and payload. The request must be postable.
int prepare_sending(Session& active, const ActiveParts& parts, const char* call, canele_am_t* message,
                    canele_data_t* whole);

/// Reads the options of a post of an active message, which has no option `header`.
int read_active_options(const canele_post_options_t* options, const char* call, canele_post_options_t* out);

/// Finds the block of a payload that the program keeps. Returns nullptr, with the error told, if there is none.
ActiveBlock* kept_block(const void* payload, const char* call);

/// Registers a handler, or the queue that takes its place. Returns the error to answer.
int register_handler(Session& session, std::uint64_t id, const ActiveTarget& target, const char* call);

}  // namespace canele::comm::api
