// SPDX-License-Identifier: BSD-3-Clause
//
// ActiveBlock: the memory of one active message that has arrived. ActiveBlocks: the small blocks of one handler.
//
// Any thread. A spin lock guards the list, and is held for a few instructions. A block belongs to a slot of the
// handler, then to a completion queue or to the program, which gives it back. Blocks may outlive their handler.
//
//   take() ─────────▶ slot ─┬─▶ the handler was called ─▶ the slot's next message, or put_back()
//   take_arrived() ─▶ mail ─┤
//                           ├─▶ keep() ─────────────────────────┐
//                           └─▶ enqueue() ─▶ taken() ───────────┴─▶ the program ─▶ give_back() ─▶ free list
//
// A short message is copied into a spare block where it arrives, without an allocation. If there was none, there are
// more from the handler's next turn on, up to a limit. Until then the slots hold messages.
//
// A handler without memory for the next message, or with too many messages in its queue, receives nothing. Its senders
// then run out of credit. It goes on when a block comes back, or an entry is taken.
#pragma once

#include <canele/canele.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/state/completion_queue.hpp"
#include "comm/state/mailbox.hpp"
#include "comm/state/queue_node.hpp"
#include "ltask/platform.hpp"
#include "ltask/task.hpp"

namespace canele::comm {

class ActiveBlocks;
class ActiveReceiver;
struct ActiveBlock;

/// Answers calls for which the program has taken no token.
class ActiveReplies {
 public:
  virtual void end_unanswered(int source, std::uint64_t number) = 0;

 protected:
  ~ActiveReplies() = default;
};

/// A message as the program sees it, and the block that it is part of.
struct ActiveMessage : canele_am_message_t {
  ActiveBlock* block;
};

/// A call of a handler. What it has kept may be given back, and freed, before it returns.
struct ActiveCall {
  ActiveBlocks& blocks;
  bool kept = false;
};

/// What a handler finds in its mailbox.
struct ActiveMail : Mail {
  enum class Kind : std::uint8_t {
    block,   ///< a message in a block
    held,    ///< a slot holds a message
    ended,   ///< the receive of a slot has ended
    resume,  ///< a slot that has waited may go on
    stop
  };
  explicit ActiveMail(Kind of) : kind(of) {}
  const Kind kind;
};

/// Calls a concurrent handler for the message of a block.
struct ActiveCallTask : ltask::Task {};

/// The payload follows the block in memory.
struct alignas(16) ActiveBlock : QueueNode, ActiveMail, ActiveCallTask {
  static constexpr std::size_t small = 1024;  ///< bytes of payload in a block of the list
  static constexpr std::size_t head_room = sizeof(std::uint64_t) + CANELE_AM_HEADER_MAX;
  static constexpr std::uint64_t valid = 0x43414e424c4f434b;

  std::uint64_t mark = valid;            ///< else the program has given back something that is no block
  std::shared_ptr<ActiveBlocks> blocks;  ///< set while the block belongs to a queue or to the program
  ActiveBlock* next_free = nullptr;
  ActiveReceiver* receiver = nullptr;  ///< of a message that calls a concurrent handler
  ActiveMessage message{{}, this};
  bool large = false;          ///< of one message, not of the list
  bool is_elsewhere = false;   ///< the program has described pieces for the payload
  ActiveCall* call = nullptr;  ///< set while its handler may keep it
  ActiveReplies* replies = nullptr;
  std::atomic<std::uint64_t> reply_number{0};  ///< of the source's call; 0: no reply is due, or its token was taken
  alignas(16) std::byte head[head_room];

  ActiveBlock() : ActiveMail(Kind::block) {}
  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
  static ActiveBlock* of(const void* payload) {
    return const_cast<ActiveBlock*>(static_cast<const ActiveBlock*>(payload)) - 1;
  }
  static ActiveBlock* of(const canele_am_message_t* message) {
    return static_cast<const ActiveMessage*>(message)->block;
  }
  void set(const canele_am_message_t& content) {
    static_cast<canele_am_message_t&>(message) = content;
    is_elsewhere = false;
  }
  /// Makes the program, or this block, owe a reply.
  void owe_reply(ActiveReplies* to, std::uint64_t number) {
    replies = to;
    reply_number.store(number, std::memory_order_relaxed);  // the block has one owner
  }
  /// Returns the number of the reply that is due. It is the caller's to send. 0: none is due.
  std::uint64_t take_reply() { return reply_number.exchange(0, std::memory_order_relaxed); }
  /// The message is given up. Sends the reply that is still due.
  void end_unanswered() {
    if (reply_number.load(std::memory_order_relaxed) != 0) [[unlikely]]
      replies->end_unanswered(message.source, take_reply());
  }

  /// Returns a block with room for a payload, or nullptr if there is no memory.
  static ActiveBlock* make(std::size_t room);
  static void destroy(ActiveBlock* block);
};

/// The handler as its blocks see it.
class ActiveReceiver {
 public:
  /// Announces a call of resume(). Returns false if another thread will do what that call would. Called under the lock
  /// of the blocks, while the receiver waits for one.
  virtual bool claim() = 0;
  /// Receives again.
  virtual void resume() = 0;

 protected:
  ~ActiveReceiver() = default;
};

class ActiveBlocks : public std::enable_shared_from_this<ActiveBlocks> {
 public:
  static constexpr std::size_t most_enqueued = 256;
  static constexpr std::size_t first_spare = 8, most_spare = 64;

  ActiveBlocks(Platform& platform, ActiveReceiver& receiver) : platform_(platform), receiver_(receiver) {}
  ~ActiveBlocks();
  ActiveBlocks(const ActiveBlocks&) = delete;
  ActiveBlocks& operator=(const ActiveBlocks&) = delete;

  /// Returns whether the queue has room for the message that a slot would receive.
  bool has_room();
  /// Returns a small block for a slot, or nullptr if there is no memory.
  ActiveBlock* take();
  /// Returns a spare block for a message that arrives, or nullptr. `counts`: it takes room in the queue.
  ActiveBlock* take_arrived(bool counts);
  /// Begins a turn of the receiver, which does not wait now: makes more spare blocks if there were too few.
  void begin_turn();
  /// Makes the receiver wait until there is room and, if it waits for one, a block. Returns false if that is so now.
  bool begin_wait(bool for_block);
  /// Lets the program keep the block.
  void keep(ActiveBlock& block);
  /// Adds the message to a queue. `counts`: it takes room there, and has not taken any yet.
  void enqueue(ActiveBlock& block, CompletionQueue& queue, bool counts);
  /// The program has taken the message out of the queue.
  void taken();
  /// Takes a block back from a slot.
  void put(ActiveBlock* block);
  /// Counts blocks of messages that had arrived, and that are no longer the receiver's.
  void passed_on(std::size_t count);
  /// Takes back blocks of messages that had arrived, linked from `first` to `last`.
  void put_back(ActiveBlock& first, ActiveBlock& last);

  /// Takes a block back from the program.
  static void give_back(ActiveBlock& block);

 private:
  bool claim_locked();
  void resume_if(bool claimed);

  Platform& platform_;
  ActiveReceiver& receiver_;  ///< used only while it waits
  std::atomic<bool> guard_{false};
  ActiveBlock* free_ = nullptr;
  std::size_t spare_ = 0;  ///< blocks that are free, or have a message for the receiver
  std::size_t spare_wanted_ = first_spare;
  bool ran_dry_ = false;  ///< a message has found no spare block since the last turn
  std::size_t enqueued_ = 0;
  bool waits_ = false;  ///< the receiver has a slot without a block, or without room
};

}  // namespace canele::comm
