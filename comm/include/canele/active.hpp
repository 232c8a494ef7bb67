// SPDX-License-Identifier: BSD-3-Clause
//
// active.hpp - active messages in C++20: a thin layer on those of <canele/canele.h> and <canele/active_message.h>,
// beside <canele/canele.hpp>.
//
// Threads: any, as in canele.h; but one object is used by one thread at a time. The function of a handler runs on any
// thread that makes progress, for one message at a time unless its options say otherwise. Messages that go to a queue
// run nothing.
//
//     // On the receiving rank: a function, or a queue.
//     canele::handler told(session, 7, [](const canele_am_message_t& message) { ... });
//     canele::active_queue to_me(session, 8, queue);
//     const canele::kept_message message(queue.wait());
//
//     // On the sending rank:
//     canele::active_message message;
//     message.send(session, rank, 7, canele::one(task));
//     message.wait();
//
//     // A call, and its answer in the function or later:
//     canele::active_call call;
//     call.post(session, rank, 9, canele::one(key), std::span<const std::byte>{}, value);
//     call.wait();
//     canele::reply_token(message).inject(session, value_of(message));
#ifndef CANELE_ACTIVE_HPP
#define CANELE_ACTIVE_HPP

#include <canele/active_message.h>

#include <canele/canele.hpp>
#include <canele/post.hpp>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <utility>

namespace canele {

/// An active message in transfer. Like a request, neither copied nor moved. Destroying a pending one waits for it.
class active_message {
 public:
  active_message() noexcept = default;
  active_message(const active_message&) = delete;
  active_message& operator=(const active_message&) = delete;
  ~active_message() {
    if (pending_) canele_wait(&native_.request, nullptr);
  }

  /// Sends `header` and the bytes of `payload` to the handler of `id` on rank `destination`: see canele_am_send. The
  /// header has at most CANELE_AM_HEADER_MAX bytes and is copied; the payload must not change until wait(). Does not
  /// block. Throws canele::error.
  template <detail::sendable Header, detail::sendable Payload = std::span<const std::byte>>
  void send(session& from, int destination, std::uint64_t id, Header&& header, Payload&& payload = {}) {
    assert(!pending_ && "the active message is still under way");
    const auto data = detail::data_of(payload);
    detail::check(canele_am_send(from.native(), destination, id, std::ranges::data(header), detail::byte_size(header),
                                 &data, nullptr, &native_),
                  "canele_am_send");
    pending_ = true;
  }

  /// Like send, with the completion of the operation: see canele_am_post. This object must live until the completion is
  /// delivered. Throws canele::error.
  template <detail::sendable Header, detail::sendable Payload = std::span<const std::byte>>
  posted post(session& from, int destination, std::uint64_t id, Header&& header, Payload&& payload,
              const completion& done, const post_options& options = {}) {
    assert(!pending_ && "the active message is still under way");
    const auto data = detail::data_of(payload);
    const auto native = detail::native_options(done, options);
    const posted answer = detail::answer_of(canele_am_post(from.native(), destination, id, std::ranges::data(header),
                                                           detail::byte_size(header), &data, &native, &native_),
                                            "canele_am_post");
    pending_ = answer == posted::taken;
    return answer;
  }

  /// Blocks until the payload may change. Throws canele::error if the message was not delivered.
  void wait() {
    const status outcome(detail::wait_for(native_.request));
    pending_ = false;
    outcome.check("active message");
  }

  /// Returns the message for functions of canele.h.
  canele_am_t* native() noexcept { return &native_; }

 private:
  canele_am_t native_{};
  bool pending_ = false;
};

/// How a handler is called.
struct handler_options {
  bool concurrent = false;  ///< its calls may overlap: see CANELE_AM_CONCURRENT
};

/// Calls a function for the active messages of one id during its lifetime: see canele_am_register. The function must
/// neither throw nor block. A handler must be destroyed before its session, and not inside a callback.
class handler {
 public:
  handler(session& owner, std::uint64_t id, std::function<void(const canele_am_message_t&)> arrived,
          const handler_options& options = {})
      : session_(owner), id_(id), arrived_(std::move(arrived)) {
    const canele_am_handler_t native = {sizeof native, call, nullptr, this};
    const canele_am_options_t how = {sizeof how, options.concurrent ? unsigned{CANELE_AM_CONCURRENT} : 0u, nullptr};
    detail::check(canele_am_register_with(session_.native(), id_, &native, &how), "canele_am_register_with");
  }
  handler(const handler&) = delete;
  handler& operator=(const handler&) = delete;
  ~handler() { canele_am_unregister(session_.native(), id_); }

 private:
  static void call(const canele_am_message_t* message, void* argument) {
    static_cast<handler*>(argument)->arrived_(*message);
  }
  session& session_;
  const std::uint64_t id_;
  const std::function<void(const canele_am_message_t&)> arrived_;
};

/// A message that the program keeps: no copy is made. Its memory goes back to the library when this object is
/// destroyed, before its engine.
class kept_message {
 public:
  kept_message() noexcept = default;
  /// Keeps the message that a handler is called with, in that call. Throws canele::error.
  explicit kept_message(const canele_am_message_t& message)
      : source_(message.source), code_(message.error), length_(message.payload_length) {
    detail::check(canele_am_keep(&message, &payload_), "canele_am_keep");
  }
  /// Takes over the message of a queue's entry of kind CANELE_ENTRY_ACTIVE_MESSAGE. One object may do this.
  template <typename User>
  explicit kept_message(const entry<User>& taken) noexcept
      : source_(taken.source()), code_(taken.code()), length_(taken.length()), payload_(taken.native().payload) {}
  kept_message(kept_message&& other) noexcept { swap(other); }
  kept_message& operator=(kept_message&& other) noexcept {
    swap(other);
    return *this;
  }
  ~kept_message() {
    if (payload_ != nullptr) canele_am_release(payload_);
  }

  int source() const noexcept { return source_; }  ///< rank of the sender; -1: no message
  int code() const noexcept { return code_; }      ///< CANELE_OK, or why the payload is missing
  std::span<const std::byte> header() const noexcept {
    std::size_t length = 0;
    const void* const first = payload_ != nullptr ? canele_am_header(payload_, &length) : nullptr;
    return {static_cast<const std::byte*>(first), length};
  }
  void* native() const noexcept { return payload_; }  ///< for functions of active_message.h; nullptr: no message
  /// Aligned to 16 bytes.
  std::span<std::byte> payload() const noexcept { return {static_cast<std::byte*>(payload_), length_}; }

 private:
  void swap(kept_message& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(code_, other.code_);
    std::swap(length_, other.length_);
    std::swap(payload_, other.payload_);
  }

  int source_ = -1, code_ = CANELE_OK;
  std::size_t length_ = 0;
  void* payload_ = nullptr;
};

/// Adds the active messages of one id to a queue during its lifetime: see canele_am_open. Entries may be left in the
/// queue afterwards. Destroyed before its session, and not inside a callback.
class active_queue {
 public:
  template <typename User>
  active_queue(session& owner, std::uint64_t id, queue<User>& to, User* user = nullptr) : session_(owner), id_(id) {
    void* const given = const_cast<void*>(static_cast<const void*>(user));
    detail::check(canele_am_open(session_.native(), id_, to.native(), given), "canele_am_open");
  }
  active_queue(const active_queue&) = delete;
  active_queue& operator=(const active_queue&) = delete;
  ~active_queue() { canele_am_unregister(session_.native(), id_); }

 private:
  session& session_;
  const std::uint64_t id_;
};

/// Sends a short active message without an object: see canele_am_inject. Returns false if there is no room: make
/// progress and try again, or post the message. Room that appears ends no blocking wait. Throws canele::error.
template <detail::sendable Header, detail::sendable Payload = std::span<const std::byte>>
[[nodiscard]] bool inject_active(session& from, int destination, std::uint64_t id, Header&& header,
                                 Payload&& payload = {}) {
  const int code = canele_am_inject(from.native(), destination, id, std::ranges::data(header),
                                    detail::byte_size(header), std::ranges::data(payload), detail::byte_size(payload));
  return detail::answer_of(code, "canele_am_inject") != posted::no_room;
}

/// An active message that is answered by a reply. Like a request, neither copied nor moved. Destroying a pending one
/// waits for it.
class active_call {
 public:
  active_call() noexcept = default;
  active_call(const active_call&) = delete;
  active_call& operator=(const active_call&) = delete;
  ~active_call() {
    if (pending_) canele_wait(&native_.request, nullptr);
  }

  /// Sends `header` and the bytes of `payload` to `id` on rank `destination`, and receives the reply into the memory of
  /// `reply`: see canele_am_call. `done` is told when the reply is here. Throws canele::error.
  template <detail::sendable Header, detail::sendable Payload, detail::receivable Reply>
  void post(session& from, int destination, std::uint64_t id, Header&& header, Payload&& payload, Reply&& reply,
            const completion& done = {}) {
    assert(!pending_ && "the call is still under way");
    const auto data = detail::data_of(payload);
    const auto room = detail::data_of(reply);
    const auto native = detail::native_options(done, {});
    detail::check(canele_am_call(from.native(), destination, id, std::ranges::data(header), detail::byte_size(header),
                                 &data, &room, &native, &native_),
                  "canele_am_call");
    pending_ = true;
  }

  /// Blocks until the reply is here. Returns its length, in bytes. Throws canele::error if there is none.
  std::size_t wait() {
    const status outcome(detail::wait_for(native_.request));
    pending_ = false;
    outcome.check("active call");
    return outcome.length;
  }

  /// Returns the call for functions of active_message.h.
  canele_call_t* native() noexcept { return &native_; }

 private:
  canele_call_t native_{};
  bool pending_ = false;
};

/// The right to answer one call, once. May be copied; one of the copies answers.
class reply_token {
 public:
  /// Takes the token of the message that a handler is called with. Throws canele::error if no reply is expected.
  explicit reply_token(const canele_am_message_t& message) {
    detail::check(canele_am_take_token(&message, &native_), "canele_am_take_token");
  }
  /// Takes the token of a message that the program keeps. Throws likewise.
  explicit reply_token(const kept_message& message) {
    detail::check(canele_am_take_token(canele_am_message_of(message.native()), &native_), "canele_am_take_token");
  }

  /// Answers with the bytes of `range`, which must not change until `use` has ended: see canele_am_reply. `of` is the
  /// session of the handler.
  template <detail::sendable Range>
  posted post(session& of, Range&& range, request& use, const completion& done = {}, const post_options& options = {}) {
    const auto data = detail::data_of(range);
    const auto native = detail::native_options(done, options);
    const int code = detail::requests::begin(use, done, false, [&](canele_request_t* r) {
      return canele_am_reply(of.native(), &native_, &data, &native, r);
    });
    return detail::answer_of(code, "canele_am_reply");
  }
  /// Answers with a copy of the bytes of `range`: see canele_am_inject_reply. Returns false if there is no room.
  template <detail::sendable Range>
  [[nodiscard]] bool inject(session& of, Range&& range) {
    const int code = canele_am_inject_reply(of.native(), &native_, std::ranges::data(range), detail::byte_size(range));
    return detail::answer_of(code, "canele_am_inject_reply") != posted::no_room;
  }

 private:
  canele_am_token_t native_{};
};

}  // namespace canele

#endif
