// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages: handlers by id, fed by receives that are always posted.
//
// Used by active_api.cpp, and by the close of a session. Any thread; told() runs as a callback of the request. The
// engine below the API does not know active messages. A handler keeps a few receives without a buffer posted, from any
// source, in a session of its own. While all of them are busy, further messages wait as unexpected messages do, within
// the limits of those.
//
//     ActiveMessages ──▶ id ──▶ Handler ──▶ Slot × 8     post ─▶ HEADER: head is read, place() asked, buffer bound
//       │                                                  ▲       FINALIZED: ready ─▶ its turn: arrived() ─┐
//       └──▶ Session "active:label"                        └────────────────────────────────────────────────┘
//
// Slots are matched in the order in which they were posted. One thread at a time serves them, so no handler runs on two
// threads at a time. It serves a slot when no earlier one has an unfinished message of the same source. That keeps the
// order of every source, and a long message delays no other source.
//
// If the program allows it, the thread that completes a slot calls the handler at once, whatever the other slots do.
//
// A short message arrives in the block of its slot, and only its end is told. A longer one is held by the slot until
// its head is read, and its payload has a place.
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

namespace canele::comm::api {

constexpr std::size_t am_word = sizeof(std::uint64_t);
constexpr std::size_t am_head_room = ActiveBlock::head_room;
static_assert(am_head_room <= CANELE_HEADER_MAX);

class Handler;
struct ActiveMessages;

/// The first bytes of a message.
struct ActiveHead {
  static constexpr int number_shift = 16;
  static constexpr std::uint64_t most_calls = std::uint64_t{1} << 47;  ///< a tag has a bit more than a number

  std::uint64_t word;
  std::uint64_t header_length() const { return word & ((1u << number_shift) - 1); }
  std::uint64_t number() const { return word >> number_shift; }
};

/// One receive of a handler.
struct Slot {
  /// Decides which thread cancels: a receive is posted by its own callback, and cancelled by another thread.
  enum class State { idle, posted, stopped };
  static constexpr int unknown = -1;

  canele_request_t request{};
  Handler* handler = nullptr;
  std::atomic<State> state{State::idle};
  std::atomic<int> source{unknown};  ///< of the message; unknown: none has come, or its head was not read yet
  std::atomic<bool> ready{false};    ///< it may be served
  bool told = false;                 ///< it holds a message for the handler
  bool ended = false;                ///< it must not be posted again
  bool opened = false;               ///< its message is longer than a block, or its head would be
  ActiveBlock* block = nullptr;      ///< for heads and small payloads; nullptr: waits for one
  ActiveBlock* large = nullptr;      ///< of a message whose payload does not fit `block`
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

class Handler final : public ActiveReceiver {
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

 private:
  static constexpr std::size_t depth = 8;
  static void on_event(canele_request_t* request, unsigned events, void* argument);
  bool claim() override { return turns_.fetch_add(1, std::memory_order_acq_rel) == 0; }
  void resume() override;
  void post(Slot& slot);
  bool post_or_wait(Slot& slot);
  void open(Slot& slot);
  void read(Slot& slot, const canele_status_t& status);
  void begin(Slot& slot, int source, std::size_t head_length, std::uint64_t length);
  void reject_malformed(int source);
  void* memory_for(Slot& slot);
  canele_data_t place(Slot& slot, std::size_t head_length);
  bool is_placed_by_program(Slot& slot);
  bool is_concurrent() const { return (target_.options.flags & CANELE_AM_CONCURRENT) != 0; }
  void finish(Slot& slot);
  void serve(Slot& slot);
  void deliver(Slot& slot);
  bool serve_one();
  bool post_waiting();
  bool begin_wait();
  void serve_in_turn(std::uint32_t turns);

  ActiveMessages& owner_;
  Session& session_;
  const std::uint64_t id_;
  const ActiveTarget target_;
  const std::shared_ptr<ActiveBlocks> blocks_;
  Slot slots_[depth];
  std::atomic<std::uint32_t> turns_{1};  ///< calls of serve_in_turn that are not done; 0: no thread serves
  // Owned by the serving thread.
  std::vector<Slot*> posted_;   ///< in the order of their posts
  std::vector<Slot*> waiting_;  ///< for a block, or for room in the queue
  std::size_t live_ = depth;    ///< slots that have not ended
  bool told_ = false;           ///< stop() is told that none is left
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
