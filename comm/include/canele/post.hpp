// SPDX-License-Identifier: BSD-3-Clause
//
// post.hpp - operations that say where their completion goes, in C++20: a thin layer on <canele/post.h>, beside
// <canele/canele.hpp>.
//
// Threads: any, as in post.h. Queues, counters and conditions may be used by several threads at a time. Functions given
// to call() run on the thread that sees the end. They must neither throw (the process ends by std::terminate) nor
// block. Pitfall: queues, counters and conditions contain their own memory, so they can be neither copied nor moved.
// They must live until every operation that names them has delivered its completion.
//
//     canele::queue<tile> done(engine);
//     canele::post_receive(session, 1, 7, values, done.entry_for(&mine));      // no request: the library has one
//     std::array<canele::entry<tile>, 16> room;
//     for (const auto& each : done.wait(room)) finish(*each.user(), each.outcome());
#ifndef CANELE_POST_HPP
#define CANELE_POST_HPP

#include <canele/post.h>

#include <algorithm>
#include <canele/canele.hpp>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace canele {

/// A deadline that never comes. Others are times of engine::now(), in nanoseconds; 0 looks once.
inline constexpr std::uint64_t no_deadline = UINT64_MAX;

/// Where the completion of an operation goes. Made by call(), queue, completion_counter and condition. An empty one
/// goes nowhere: the program waits for the request.
class completion {
 public:
  constexpr completion() noexcept = default;
  explicit constexpr completion(const canele_completion_t& native) noexcept : native_(native) {}
  /// Returns the completion for functions of post.h.
  constexpr const canele_completion_t& native() const noexcept { return native_; }

 private:
  canele_completion_t native_{};
};

/// No completion, and no request: an error goes to on_error(). The data must live until the program knows by other
/// means that the operation is over. Not for one-sided operations, whose errors would be lost: see until_flush.
inline constexpr completion unwatched{canele_completion_t{CANELE_COMPLETE_NONE, 0, nullptr, nullptr, nullptr}};

namespace detail {

template <typename Function>
void call_ended(canele_request_t* request, Function& function) noexcept {
  if constexpr (std::invocable<Function&>) {
    std::invoke(function);
  } else {
    canele_status_t native{};
    if (request != nullptr) canele_request_status(request, &native);
    std::invoke(function, status(native));
  }
}

/// Returns the address of a function object as the library keeps it.
template <typename Function>
void* address_of(Function& function) noexcept {
  return const_cast<void*>(static_cast<const void*>(std::addressof(function)));
}

}  // namespace detail

/// Calls function() or function(status) when the operation has ended. The function must live until then. Of counters
/// and notifications the status is empty. A request may be used again in the call.
template <typename Function>
requires std::is_object_v<Function> &&(std::invocable<Function&> || std::invocable<Function&, status>)completion
    call(Function& function) noexcept {
  const canele_callback_fn callback = [](canele_request_t* request, unsigned, void* user) noexcept {
    detail::call_ended(request, *static_cast<Function*>(user));
  };
  return completion(
      {CANELE_COMPLETE_CALLBACK, CANELE_EVENT_FINALIZED, nullptr, callback, detail::address_of(function)});
}

/// Calls function(request, events) for the events of the mask (of enum canele_event). The function must live until the
/// last of them. For a receive without a buffer, which gets its buffer in the event CANELE_EVENT_HEADER.
template <typename Function>
requires std::is_object_v<Function> && std::invocable<Function&, canele_request_t*, unsigned> completion
call(Function& function, unsigned mask)
noexcept {
  const canele_callback_fn callback = [](canele_request_t* request, unsigned events, void* user) noexcept {
    std::invoke(*static_cast<Function*>(user), request, events);
  };
  return completion({CANELE_COMPLETE_CALLBACK, mask, nullptr, callback, detail::address_of(function)});
}

// --- completion queues ----------------------------------------------------------------------------------------------

/// What a queue tells of one completion. User: the type that its user pointer points to.
template <typename User = void>
class entry {
 public:
  /// Returns the pointer that was given to queue::entry_for.
  User* user() const noexcept { return static_cast<User*>(native_.user); }
  canele_entry_kind kind() const noexcept { return static_cast<canele_entry_kind>(native_.kind); }
  int code() const noexcept { return native_.error; }           ///< CANELE_OK or CANELE_E...
  int source() const noexcept { return native_.source; }        ///< rank of the peer; -1 of a counter
  std::uint64_t tag() const noexcept { return native_.tag; }    ///< of the message; of a put's notification: the offset
  std::uint32_t slot() const noexcept { return native_.slot; }  ///< of a notification
  /// Bytes of the message as sent, or of the put that has notified this rank.
  std::size_t length() const noexcept { return static_cast<std::size_t>(native_.length); }
  /// What a notification carries, or the value of a counter.
  std::uint64_t immediate() const noexcept { return native_.immediate; }
  /// Returns true if this is the end of `use`. Entries of the library's own requests belong to none.
  bool is_of(request& use) const noexcept { return native_.request == use.native(); }

  /// Returns the outcome as a request gives it. outcome().check() throws canele::error if the operation failed.
  status outcome() const noexcept {
    return status(canele_status_t{code(), source(), tag(), length(), code() == CANELE_ECANCELED ? 1 : 0});
  }
  const canele_entry_t& native() const noexcept { return native_; }

 private:
  canele_entry_t native_{};
};

/// A queue of completions. Several threads may take entries, and wait. Must be destroyed before its engine, after the
/// operations that name it have ended.
template <typename User = void>
class queue {
 public:
  explicit queue(engine& owner) noexcept : engine_(owner.native()) {}
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;
  /// Drops the entries that are left, and so gives their requests back. Makes progress once.
  ~queue() {
    canele_entry_t dropped[16];
    while (canele_queue_take(engine_, &native_, dropped, 16) > 0) {
    }
  }

  /// Returns the completion that adds an entry with this user pointer. Any number of operations may name it.
  completion entry_for(User* user = nullptr) noexcept {
    return completion({CANELE_COMPLETE_QUEUE, 0, &native_, nullptr, const_cast<void*>(static_cast<const void*>(user))});
  }

  /// Takes as many entries as there are, and as `room` has space for. Returns them, in the order of completion. Makes
  /// progress once if there is none. Never blocks.
  [[nodiscard]] std::span<const entry<User>> take(std::span<entry<User>> room) {
    const int count = canele_queue_take(engine_, &native_, first(room), size_of(room));
    if (count < 0) detail::refused(count, "canele_queue_take");
    return room.first(static_cast<std::size_t>(count));
  }
  /// Like take, but blocks until there is an entry. Returns nothing at the deadline. Throws in a callback.
  [[nodiscard]] std::span<const entry<User>> wait(std::span<entry<User>> room, std::uint64_t deadline = no_deadline) {
    const int count = canele_queue_wait(engine_, &native_, first(room), size_of(room), deadline);
    if (count == CANELE_ETIMEOUT) return {};
    if (count < 0) detail::refused(count, "canele_queue_wait");
    return room.first(static_cast<std::size_t>(count));
  }
  /// Blocks until there is an entry, and takes it. Throws in a callback.
  [[nodiscard]] entry<User> wait() {
    entry<User> one;
    static_cast<void>(wait(std::span(&one, 1)));
    return one;
  }

  /// Returns the queue for functions of post.h.
  canele_queue_t* native() noexcept { return &native_; }

 private:
  static_assert(sizeof(entry<User>) == sizeof(canele_entry_t) && std::is_standard_layout_v<entry<User>>);
  static canele_entry_t* first(std::span<entry<User>> room) { return reinterpret_cast<canele_entry_t*>(room.data()); }
  static int size_of(std::span<entry<User>> room) {
    return static_cast<int>(std::min<std::size_t>(room.size(), INT_MAX));
  }

  canele_engine_t* engine_;
  canele_queue_t native_{};
};

// --- completion counters, conditions --------------------------------------------------------------------------------

/// Counts completions, of success and failure. Must live until no operation adds to it any more.
class completion_counter {
 public:
  /// A counter at 0 without a threshold.
  completion_counter() noexcept = default;
  /// A counter at 0 that delivers `then` once, when it reaches the threshold: n arrivals give one event.
  completion_counter(std::uint64_t threshold, const completion& then) { reset(threshold, then); }
  completion_counter(const completion_counter&) = delete;
  completion_counter& operator=(const completion_counter&) = delete;

  /// Sets the counter to 0, with a threshold (0: none). No other thread may use the counter meanwhile.
  void reset(std::uint64_t threshold = 0, const completion& then = {}) {
    detail::check(canele_completion_counter_init(&native_, threshold, &then.native()),
                  "canele_completion_counter_init");
  }
  /// Returns the completion that adds n (1 and up). Any number of operations may name it.
  completion adding(std::uint32_t n = 1) noexcept {
    return completion({CANELE_COMPLETE_COUNTER, n, &native_, nullptr, nullptr});
  }
  /// Adds n, as if operations of the program's own had ended.
  void add(std::uint64_t n) noexcept { canele_completion_counter_add(&native_, n); }

  std::uint64_t value() const noexcept { return canele_completion_counter_value(&native_); }
  /// Returns how many operations have failed.
  std::uint64_t errors() const noexcept { return canele_completion_counter_errors(&native_, nullptr); }
  /// Returns the error of the first operation that failed, or CANELE_OK.
  int first_error() const noexcept {
    int first = CANELE_OK;
    canele_completion_counter_errors(&native_, &first);
    return first;
  }

  /// Blocks until the value is at least n. Throws the first error that was counted.
  void wait(engine& progress, std::uint64_t n) { static_cast<void>(wait(progress, n, no_deadline)); }
  /// Like the other wait, with a deadline. Returns false if it came first.
  [[nodiscard]] bool wait(engine& progress, std::uint64_t n, std::uint64_t deadline) {
    const int code = canele_completion_counter_wait(progress.native(), &native_, n, deadline);
    if (code == CANELE_ETIMEOUT && value() < n) return false;
    if (code != CANELE_OK && code == first_error())
      detail::fail(code, std::string("completion counter: ") + canele_error_string(code), -1);
    detail::check(code, "canele_completion_counter_wait");
    return true;
  }

  /// Returns the counter for functions of post.h.
  canele_completion_counter_t* native() noexcept { return &native_; }

 private:
  canele_completion_counter_t native_{};
};

/// Sixteen bits that a thread waits for. Must live until every operation that sets its bits has ended.
class condition {
 public:
  condition() noexcept = default;
  condition(const condition&) = delete;
  condition& operator=(const condition&) = delete;

  /// Returns the completion that sets these bits (1 to 65535).
  completion setting(std::uint16_t bits) noexcept {
    return completion({CANELE_COMPLETE_CONDITION, bits, &native_, nullptr, nullptr});
  }
  /// Sets the bits, and wakes the thread that waits.
  void signal(std::uint16_t bits) noexcept { canele_condition_signal(&native_, bits); }
  /// Returns the bits of the mask that are set.
  std::uint16_t test(std::uint16_t mask) const noexcept { return canele_condition_test(&native_, mask); }
  /// Blocks until a bit of the mask is set. One thread waits at a time. Throws in a callback.
  void wait(engine& progress, std::uint16_t mask) {
    detail::check(canele_condition_wait(progress.native(), &native_, mask), "canele_condition_wait");
  }

  /// Returns the condition for functions of canele.h.
  canele_condition_t* native() noexcept { return &native_; }

 private:
  canele_condition_t native_{};
};

// --- posts ----------------------------------------------------------------------------------------------------------

/// What a post answers. Errors are exceptions.
enum class posted {
  taken,   ///< the completion is delivered once, possibly within the post
  done,    ///< with may_finish: the operation has ended within the post, and no completion is delivered
  no_room  ///< with only_if_room: nothing was taken; make progress, then try again
};

/// Options of a post.
struct post_options {
  std::int32_t priority = 0;  ///< of a send: higher is sent sooner, if the strategy supports it.
  bool synchronous = false;   ///< of a send: ended only after the receiver has matched it.
  bool may_finish = false;    ///< allows the answer `done`.
  bool only_if_room = false;  ///< of a send: allows the answer `no_room`.
  std::size_t header = 0;     ///< of a send: first bytes to send ahead, for peek(); at most CANELE_HEADER_MAX.
};

namespace detail {

[[nodiscard]] inline posted answer_of(int code, const char* call) {
  if (code == CANELE_OK) [[likely]]
    return posted::taken;
  if (code == CANELE_DONE) return posted::done;
  if (code == CANELE_EAGAIN) return posted::no_room;
  refused(code, call);
}

/// Access to the private part of requests, for operations of other headers.
struct requests {
  /// Returns a request that post(request) has posted. Throws if the post failed.
  template <typename Post>
  static request make(const char* call, Post post) {
    return request(call, post);
  }
  /// Posts with a request that exists.
  template <typename Post>
  static int begin(request& use, const completion& done, bool late, Post post) {
    return use.begin(post, late, done.native().kind != CANELE_COMPLETE_POLL);
  }
  /// Returns the handles of the pending requests, and nullptr for the others.
  static std::vector<canele_request_t*> pending(std::span<request> all) {
    std::vector<canele_request_t*> natives;
    natives.reserve(all.size());
    for (request& each : all) natives.push_back(each.pending_ ? each.native() : nullptr);
    return natives;
  }
  static void ended(request& use) noexcept { use.pending_ = false; }
};

inline canele_post_options_t native_options(const completion& done, const post_options& options) {
  canele_post_options_t native{};
  native.struct_size = sizeof native;
  native.done = done.native();
  native.priority = options.priority;
  native.flags = (options.synchronous ? std::uint32_t{CANELE_POST_SYNCHRONOUS} : 0) |
                 (options.may_finish ? std::uint32_t{CANELE_POST_MAY_FINISH} : 0) |
                 (options.only_if_room ? std::uint32_t{CANELE_POST_TRY} : 0);
  native.header = options.header;
  return native;
}

template <typename Range>
canele_data_t data_of(const Range& range) {
  return canele_data_contiguous(std::ranges::data(range), byte_size(range));
}

}  // namespace detail

/// Sends the bytes of `range` without a request of the program. They must not change until the completion. Throws
/// canele::error; nothing was taken then.
template <detail::sendable Range>
posted post_send(session& from, int destination, std::uint64_t tag, Range&& range, const completion& done,
                 const post_options& options = {}) {
  const auto data = detail::data_of(range);
  const auto native = detail::native_options(done, options);
  return detail::answer_of(canele_post_send(from.native(), destination, tag, &data, &native, nullptr),
                           "canele_post_send");
}
/// Sends with a request of the program. With a completion, the request must live until that is delivered: until the
/// call has begun, the entry is taken, or the counter or condition is told. It can then be used again. Else wait for
/// it.
template <detail::sendable Range>
posted post_send(session& from, int destination, std::uint64_t tag, Range&& range, request& use,
                 const completion& done = {}, const post_options& options = {}) {
  const auto data = detail::data_of(range);
  const auto native = detail::native_options(done, options);
  const int code = detail::requests::begin(use, done, false, [&](canele_request_t* r) {
    return canele_post_send(from.native(), destination, tag, &data, &native, r);
  });
  return detail::answer_of(code, "canele_post_send");
}

/// Begins a use of the request before its operation is known. Threads may wait for it from then on. One call of
/// send_begun() or complete() must follow. Throws canele::error.
inline void begin(engine& of, request& use) {
  const int code = detail::requests::begin(use, {}, false,
                                           [&](canele_request_t* r) { return canele_request_begin(of.native(), r); });
  detail::check(code, "canele_request_begin");
}
/// Sends the bytes of `range` with a begun request, from any thread. They must not change until that has ended. Throws
/// canele::error; the request is begun as before then.
template <detail::sendable Range>
void send_begun(session& from, int destination, std::uint64_t tag, Range&& range, request& use,
                const send_options& options = {}) {
  const canele_send_options_t native = options.native();
  const auto data = detail::data_of(range);
  detail::check(canele_isend_data(from.native(), destination, tag, &data, &native, use.native()), "canele_isend_data");
}
/// Ends a begun request without an operation, with CANELE_OK or a CANELE_E... code. The request may be destroyed as
/// soon as another thread has seen its end.
inline void complete(request& use, int code = CANELE_OK) {
  detail::check(canele_request_complete(use.native(), code), "canele_request_complete");
}

/// Receives the next message that matches into the memory of `range`, without a request of the program. Options other
/// than may_finish must have their defaults.
template <detail::receivable Range>
posted post_receive(session& at, int source, tag_match tag, Range&& range, const completion& done,
                    const post_options& options = {}) {
  const auto data = detail::data_of(range);
  const auto native = detail::native_options(done, options);
  return detail::answer_of(canele_post_receive(at.native(), source, tag.value, tag.mask, &data, &native, nullptr),
                           "canele_post_receive");
}
/// Receives with a request of the program, which must live as for post_send.
template <detail::receivable Range>
posted post_receive(session& at, int source, tag_match tag, Range&& range, request& use, const completion& done = {},
                    const post_options& options = {}) {
  const auto data = detail::data_of(range);
  const auto native = detail::native_options(done, options);
  const int code = detail::requests::begin(use, done, false, [&](canele_request_t* r) {
    return canele_post_receive(at.native(), source, tag.value, tag.mask, &data, &native, r);
  });
  return detail::answer_of(code, "canele_post_receive");
}
/// Posts a receive without a buffer. On CANELE_EVENT_HEADER call envelope() and peek() of the request, then bind().
inline void post_receive_late(session& at, int source, tag_match tag, request& use, const completion& done) {
  const auto native = detail::native_options(done, {});
  const int code = detail::requests::begin(use, done, true, [&](canele_request_t* r) {
    return canele_post_receive(at.native(), source, tag.value, tag.mask, nullptr, &native, r);
  });
  detail::check(code, "canele_post_receive");
}

/// A send, receive or put that repeats: see canele_send_init. Like a request, neither copied nor moved. Destroying one
/// that is under way waits for it; a receive is cancelled first.
class persistent {
 public:
  persistent() noexcept = default;
  persistent(const persistent&) = delete;
  persistent& operator=(const persistent&) = delete;
  ~persistent() {
    if (!pending_) return;
    canele_cancel(&native_.request);  // does nothing to a send or a put
    canele_wait(&native_.request, nullptr);
  }

  /// Describes a send of the bytes of `range`, which must live as long as this object is started. Throws canele::error.
  template <detail::sendable Range>
  void send(session& from, int destination, std::uint64_t tag, Range&& range, const completion& done = {},
            const post_options& options = {}) {
    const auto data = detail::data_of(range);
    const auto native = detail::native_options(done, options);
    detail::check(canele_send_init(from.native(), destination, tag, &data, &native, &native_), "canele_send_init");
    is_waited_for_ = done.native().kind == CANELE_COMPLETE_POLL;
  }
  /// Describes a receive likewise.
  template <detail::receivable Range>
  void receive(session& at, int source, tag_match tag, Range&& range, const completion& done = {},
               const post_options& options = {}) {
    const auto data = detail::data_of(range);
    const auto native = detail::native_options(done, options);
    detail::check(canele_receive_init(at.native(), source, tag.value, tag.mask, &data, &native, &native_),
                  "canele_receive_init");
    is_waited_for_ = done.native().kind == CANELE_COMPLETE_POLL;
  }

  /// Posts the operation. Throws canele::error.
  posted start() {
    const posted answer = detail::answer_of(canele_start(&native_), "canele_start");
    pending_ = is_waited_for_ && answer == posted::taken;
    return answer;
  }
  /// Blocks until the operation has ended. Throws canele::error if it failed.
  status wait() {
    const status outcome(detail::wait_for(native_.request));
    pending_ = false;
    outcome.check("persistent operation");
    return outcome;
  }
  /// Returns the operation for functions of post.h. One that is started there is waited for there.
  canele_persistent_t* native() noexcept { return &native_; }

 private:
  canele_persistent_t native_{};
  bool pending_ = false, is_waited_for_ = true;
};

/// Sends a copy of `range`, at most limit(engine, peer, CANELE_LIMIT_INJECT) bytes, without a request. Returns false if
/// there is no room now. A later error goes to on_error().
template <detail::sendable Range>
[[nodiscard]] bool inject(session& from, int destination, std::uint64_t tag, Range&& range) {
  const int code = canele_inject(from.native(), destination, tag, std::ranges::data(range), detail::byte_size(range));
  return detail::answer_of(code, "canele_inject") == posted::taken;
}

/// Returns true if a send of `length` bytes to `destination` would not be held back now.
[[nodiscard]] inline bool send_room(session& from, int destination, std::size_t length) {
  const int answer = canele_send_room(from.native(), destination, length);
  if (answer < 0) detail::refused(answer, "canele_send_room");
  return answer == 1;
}

/// Returns a limit towards `peer`, in bytes.
[[nodiscard]] inline std::size_t limit(engine& owner, int peer, canele_limit_kind kind) {
  std::size_t value = 0;
  detail::check(canele_limit(owner.native(), peer, kind, &value), "canele_limit");
  return value;
}

/// Sends errors of this session's operations that have no completion to `callback` (nullptr: they are dropped).
/// `callback` must not throw.
inline void on_error(session& of, canele_error_fn callback, void* argument = nullptr) {
  detail::check(canele_session_on_error(of.native(), callback, argument), "canele_session_on_error");
}

// --- waits with deadlines -------------------------------------------------------------------------------------------

/// Like request::wait, with a deadline. Returns nothing if that came first; the operation then goes on.
[[nodiscard]] inline std::optional<status> wait_until(request& use, std::uint64_t deadline) {
  canele_status_t native{};
  const int code = canele_wait_until(use.native(), deadline, &native);
  if (code == CANELE_ETIMEOUT && native.error != code) return std::nullopt;
  if (code != native.error) detail::check(code, "canele_wait_until");  // waiting itself failed
  detail::requests::ended(use);
  const status outcome(native);
  outcome.check("wait_until");
  return outcome;
}

/// One request that has ended: its position, and its outcome as a value.
struct ended_request {
  std::size_t index;
  status outcome;
};

/// Blocks until at least one of the pending requests has ended, and returns all that have. Returns nothing at the
/// deadline, or if none was pending.
[[nodiscard]] inline std::vector<ended_request> wait_some(std::span<request> all,
                                                          std::uint64_t deadline = no_deadline) {
  const auto natives = detail::requests::pending(all);
  std::vector<std::size_t> indexes(all.size());
  std::vector<canele_status_t> statuses(all.size());
  std::size_t count = 0;
  const int code = canele_wait_some(natives.size(), natives.data(), indexes.data(), statuses.data(), &count, deadline);
  if (code == CANELE_ETIMEOUT) return {};
  detail::check(code, "canele_wait_some");
  std::vector<ended_request> ended;
  for (std::size_t i = 0; i < count; ++i) {
    detail::requests::ended(all[indexes[i]]);
    ended.push_back({indexes[i], status(statuses[i])});
  }
  return ended;
}

/// Returns the position of a pending request that has ended, or nothing. Makes progress once. Throws if that request
/// failed.
[[nodiscard]] inline std::optional<std::size_t> test_any(std::span<request> all) {
  const auto natives = detail::requests::pending(all);
  std::size_t index = 0;
  canele_status_t native{};
  detail::check(canele_test_any(natives.size(), natives.data(), &index, &native), "canele_test_any");
  if (index == all.size()) return std::nullopt;
  detail::requests::ended(all[index]);
  status(native).check("test_any");
  return index;
}

}  // namespace canele

#endif
