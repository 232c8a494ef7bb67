// SPDX-License-Identifier: BSD-3-Clause
//
// active.hpp - active messages in C++20: a thin layer on those of <canele/canele.h>, beside <canele/canele.hpp>.
//
// Threads: any, as in canele.h; but one object is used by one thread at a time. The function of a handler runs on any
// thread that makes progress, for one message at a time.
//
//     // On the receiving rank:
//     canele::handler told(session, 7, [](const canele_am_message_t& message) { ... });
//
//     // On the sending rank:
//     canele::active_message message;
//     message.send(session, rank, 7, canele::one(task));
//     message.wait();
#ifndef CANELE_ACTIVE_HPP
#define CANELE_ACTIVE_HPP

#include <canele/canele.hpp>
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
    const auto data = canele_data_contiguous(std::ranges::data(payload), detail::byte_size(payload));
    detail::check(canele_am_send(from.native(), destination, id, std::ranges::data(header), detail::byte_size(header),
                                 &data, nullptr, &native_),
                  "canele_am_send");
    pending_ = true;
  }

  /// Blocks until the payload may change. Throws canele::error if the message was not delivered.
  void wait() {
    canele_status_t native{};
    const int code = canele_wait(&native_.request, &native);
    if (code != native.error) detail::check(code, "canele_wait");  // waiting itself failed
    pending_ = false;
    status(native).check("active message");
  }

  /// Returns the message for functions of canele.h.
  canele_am_t* native() noexcept { return &native_; }

 private:
  canele_am_t native_{};
  bool pending_ = false;
};

/// Calls a function for the active messages of one id during its lifetime: see canele_am_register. The function must
/// neither throw nor block. A handler must be destroyed before its session, and not inside a callback.
class handler {
 public:
  handler(session& owner, std::uint64_t id, std::function<void(const canele_am_message_t&)> arrived)
      : session_(owner), id_(id), arrived_(std::move(arrived)) {
    const canele_am_handler_t native = {sizeof native, call, nullptr, this};
    detail::check(canele_am_register(session_.native(), id_, &native), "canele_am_register");
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

}  // namespace canele

#endif
