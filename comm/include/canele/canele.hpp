// SPDX-License-Identifier: BSD-3-Clause
//
// canele.hpp - a thin C++20 layer on <canele/canele.h>: owners instead of handles, spans instead of pointers,
// exceptions instead of codes.
//
// Header only. A function of canele.h that this layer lacks can be called with native(). Beside it: <canele/post.hpp>,
// one_sided.hpp, collectives.hpp, active.hpp, device.hpp. Threads: as in canele.h, any thread may call any function at
// any time; but one object is used by one thread at a time. Pitfall: a request contains its own memory, so it can be
// neither copied nor moved. Destroying a pending request cancels it (a receive) and waits for it.
//
//     canele::engine engine;                         // joins the job
//     canele::session session(engine, "mine");       // a name space for tags
//     auto sent = session.isend(1, 42, values);      // values: any contiguous range of trivially copyable objects
//     sent.wait();                                   // throws canele::error if it failed
#ifndef CANELE_CANELE_HPP
#define CANELE_CANELE_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "canele.hpp needs C++20 (g++ -std=c++20); canele.h serves C99, C++98 and what is newer"
#endif

#include <canele/canele.h>

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <new>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace canele {

/// Exception of a failed call. what() describes the error, code() is a CANELE_E... value, and rank() is the peer
/// concerned (or -1).
class error : public std::runtime_error {
 public:
  error(int code, const std::string& text, int rank = -1) : std::runtime_error(text), code_(code), rank_(rank) {}
  int code() const noexcept { return code_; }
  int rank() const noexcept { return rank_; }

 private:
  int code_;
  int rank_;
};

namespace detail {

struct requests;  // post.hpp

/// Throws canele::error. In programs built without exceptions, prints the error and ends the process.
[[noreturn]] inline void fail(int code, const std::string& text, int rank) {
#if defined(__cpp_exceptions)
  throw error(code, text, rank);
#else
  static_cast<void>(code);
  static_cast<void>(rank);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::abort();
#endif
}

/// Reports a call that failed at once; canele_error_detail() has the details.
[[noreturn]] inline void refused(int code, const char* call) {
  std::string text = std::string(call) + ": " + canele_error_string(code);
  const std::string_view detail = canele_error_detail();
  if (!detail.empty()) text.append(": ").append(detail);
  fail(code, text, -1);
}
/// Ends the process: a destructor has to wait inside a completion callback.
[[noreturn]] inline void destroyed_in_callback(const char* what) {
  std::fprintf(stderr, "canele: %s was destroyed inside a completion callback\n", what);
  std::abort();
}
inline void check(int code, const char* call) {
  if (code != CANELE_OK) [[unlikely]]
    refused(code, call);
}

/// Calls a ..._json function until its text fits. Such a function returns the size that it needs.
template <typename Write>
std::string text_of(const char* call, Write write) {
  std::string text(64 * 1024, '\0');
  while (true) {
    std::size_t needed = 0;
    const int code = write(text.data(), text.size(), &needed);
    if (code == CANELE_ENOMEM && needed > text.size()) {
      text.resize(needed + 1024);  // the text may have grown by the next call
      continue;
    }
    check(code, call);
    text.resize(needed - 1);  // without the final NUL
    return text;
  }
}

/// A range whose bytes can be sent as they lie in memory, and which outlives the call (no temporaries).
template <typename Range>
concept sendable = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::ranges::borrowed_range<Range> && std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>;

/// A sendable range that may be written to.
template <typename Range>
concept receivable =
    sendable<Range> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

template <typename Range>
std::size_t byte_size(const Range& range) {
  return std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>);
}

/// Blocks until the request is finished. Returns its outcome. Throws canele::error only if waiting itself fails.
inline canele_status_t wait_for(canele_request_t& request) {
  canele_status_t outcome{};
  const int code = canele_wait(&request, &outcome);
  if (code != outcome.error) check(code, "canele_wait");
  return outcome;
}

}  // namespace detail

/// Matches messages from any rank.
inline constexpr int any_source = CANELE_ANY_SOURCE;

/// The tags that a receive matches: a plain number matches that tag only, any_tag matches all, {value, mask} compares
/// the bits of the mask.
struct tag_match {
  std::uint64_t value = 0;
  std::uint64_t mask = CANELE_TAG_ANY;

  constexpr tag_match(std::uint64_t tag) : value(tag), mask(CANELE_TAG_EXACT) {}  // NOLINT: implicit on purpose
  constexpr tag_match(std::uint64_t tag, std::uint64_t bits) : value(tag), mask(bits) {}
};
inline constexpr tag_match any_tag{0, CANELE_TAG_ANY};

/// The outcome of a request, or the envelope of a message.
struct status {
  int code = CANELE_OK;     ///< CANELE_OK or CANELE_E...
  int source = any_source;  ///< rank of the peer
  std::uint64_t tag = 0;
  std::size_t length = 0;  ///< bytes as sent; with CANELE_ETRUNC more than was delivered
  bool cancelled = false;

  status() = default;
  explicit status(const canele_status_t& native)
      : code(native.error),
        source(native.source),
        tag(native.tag),
        length(native.length),
        cancelled(native.cancelled != 0) {}

  /// Throws canele::error unless the outcome is CANELE_OK.
  void check(const char* call = "request") const {
    if (code == CANELE_OK) return;
    detail::fail(code,
                 std::string(call) + ": " + canele_error_string(code) + " (peer " + std::to_string(source) + ", tag " +
                     std::to_string(tag) + ", " + std::to_string(length) + " bytes)",
                 source);
  }
};

/// Returns the bytes of one object, to be sent or received: session.isend(1, 7, canele::one(x)).
template <typename T>
requires std::is_trivially_copyable_v<T> std::span<T, 1> one(T& object) { return std::span<T, 1>(&object, 1); }

/// One instance of the library. The constructor joins the job, the destructor leaves it.
class engine {
 public:
  /// Joins the job that the launcher started (without a launcher: a job of one rank). Blocks until every rank has
  /// joined. settings: "CANELE_NAME=value" strings, which override the environment. Throws canele::error.
  explicit engine(std::initializer_list<const char*> settings = {})
      : engine(std::span<const char* const>(settings.begin(), settings.size())) {}
  /// Like the other constructor, with settings that are only known at run time.
  explicit engine(std::span<const char* const> settings) {
    detail::check(canele_abi_check(CANELE_ABI_VERSION), "canele_abi_check");
    canele_options_t options{};
    options.struct_size = sizeof options;
    options.settings = settings.data();
    options.settings_count = settings.size();
    detail::check(canele_init(&options, &native_), "canele_init");
  }

  engine(engine&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
  engine& operator=(engine&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }

  /// Leaves the job as finalize() does, but cannot report errors. Call finalize() to receive them.
  ~engine() { canele_finalize(native_); }

  /// Waits until this rank's sends are delivered and all ranks call finalize(), then leaves the job. Throws
  /// canele::error. The engine is empty afterwards. Sessions and requests must be destroyed before.
  void finalize() { detail::check(canele_finalize(std::exchange(native_, nullptr)), "canele_finalize"); }

  int rank() const noexcept { return canele_rank(native_); }
  int size() const noexcept { return canele_size(native_); }
  /// This rank's index among the ranks of this host, and the number of those ranks.
  int local_rank() const noexcept { return canele_local_rank(native_); }
  int local_size() const noexcept { return canele_local_size(native_); }
  /// Returns the monotonic time in nanoseconds, comparable within this process.
  std::uint64_t now() const noexcept { return canele_now(native_); }

  /// Makes communication progress once. Returns true if it did any work. Never blocks.
  bool progress() noexcept { return canele_progress(native_) != 0; }

  /// Starts the bound worker if it does not run, and pins it to these processing units (none: not pinned).
  void bind_worker(std::span<const int> indexes, canele_index_kind kind = CANELE_INDEX_LOGICAL) {
    detail::check(canele_worker_bind(native_, kind, indexes.data(), static_cast<int>(indexes.size())),
                  "canele_worker_bind");
  }
  /// Starts these workers (of enum canele_worker) and stops all others. Blocks briefly.
  void use_workers(unsigned kinds) { detail::check(canele_worker_use(native_, kinds), "canele_worker_use"); }
  /// Stops all workers; progress is then made only inside wait, test and progress. Blocks briefly.
  void stop_worker() { detail::check(canele_worker_stop(native_), "canele_worker_stop"); }
  /// Returns true if the bound worker makes progress for this engine.
  bool worker_active() const noexcept { return canele_worker_active(native_) != 0; }

  /// Ends the whole job with exit code `code`. Does not return.
  [[noreturn]] void abort(int code, const char* reason) {
    canele_abort(native_, code, reason);
    std::abort();  // not reached
  }

  /// Returns the counters of the engine, its peers and drivers, as JSON.
  std::string counters_json() const {
    return detail::text_of("canele_counters_json", [this](char* text, std::size_t size, std::size_t* needed) {
      return canele_counters_json(native_, text, size, needed);
    });
  }
  /// Returns what canele-info shows, as JSON.
  std::string info_json() const {
    return detail::text_of("canele_info_json", [this](char* text, std::size_t size, std::size_t* needed) {
      return canele_info_json(native_, text, size, needed);
    });
  }

  /// Returns a report of what is pending now and why.
  std::string report() const {
    return detail::text_of("canele_report", [this](char* text, std::size_t size, std::size_t* needed) {
      return canele_report(native_, text, size, needed);
    });
  }
  /// Sends hang reports to `callback` instead of stderr (nullptr: to stderr again). `callback` must not throw.
  void on_hang(canele_hang_fn callback, void* argument = nullptr) {
    detail::check(canele_on_hang(native_, callback, argument), "canele_on_hang");
  }

  /// Returns the handle for functions of canele.h.
  canele_engine_t* native() const noexcept { return native_; }

 private:
  canele_engine_t* native_ = nullptr;
};

/// One send or receive. Made by session, or empty and passed to session. Neither copied nor moved, because the library
/// keeps its address. May be used again once it has finished.
class request {
 public:
  request() noexcept = default;
  request(const request&) = delete;
  request& operator=(const request&) = delete;

  /// Cancels a receive that is still pending, and waits until the library no longer accesses the buffer. A receive
  /// without a buffer that holds a message drops it. Ends the process inside a completion callback, where waiting is
  /// impossible.
  ~request() {
    if (!pending_ || ended()) return;
    canele_cancel(&native_);  // a send cannot be cancelled: this waits for it
    if (late_) drop_message();
    if (canele_wait(&native_, nullptr) == CANELE_EDEADLK) detail::destroyed_in_callback("a pending request");
  }

  /// Blocks until finished. Throws canele::error if the request failed, was truncated or was cancelled.
  status wait() {
    const status outcome = wait(std::nothrow);
    outcome.check("wait");
    return outcome;
  }

  /// Like wait(), but a failure is in status::code. Throws only if waiting itself fails (CANELE_EDEADLK in a callback).
  status wait(std::nothrow_t) {
    const status outcome(detail::wait_for(native_));
    pending_ = false;
    return outcome;
  }

  /// Returns the outcome if finished, else nothing. Makes progress once. Throws if the request failed.
  std::optional<status> test() {
    int done = 0;
    canele_status_t native{};
    const int code = canele_test(&native_, &done, &native);
    if (done == 0) {
      detail::check(code, "canele_test");
      return std::nullopt;
    }
    pending_ = false;
    const status outcome(native);
    outcome.check("test");
    return outcome;
  }

  /// Cancels a receive that no message has matched; wait() then returns the outcome. Throws for a send.
  void cancel() { detail::check(canele_cancel(&native_), "canele_cancel"); }

  /// Registers callback(request, events, argument); see canele_request_on_event.
  void on_event(unsigned mask, canele_callback_fn callback, void* argument) {
    detail::check(canele_request_on_event(&native_, mask, callback, argument), "canele_request_on_event");
  }

  /// Returns source, tag and length of the message that a receive without a buffer holds (after CANELE_EVENT_HEADER).
  status envelope() const {
    canele_status_t native{};
    detail::check(canele_receive_envelope(&native_, &native), "canele_receive_envelope");
    return status(native);
  }
  /// Copies the first bytes of the message that a receive without a buffer holds.
  void peek(std::span<std::byte> out) {
    detail::check(canele_receive_peek(&native_, out.data(), out.size()), "canele_receive_peek");
  }
  /// Gives a receive without a buffer its buffer.
  template <detail::receivable Range>
  void bind(Range&& buffer) {
    const auto data = canele_data_contiguous(std::ranges::data(buffer), detail::byte_size(buffer));
    detail::check(canele_receive_bind(&native_, &data), "canele_receive_bind");
    late_ = false;
  }

  /// Changes the priority of a send that is still queued.
  void set_priority(std::int32_t priority) {
    detail::check(canele_send_set_priority(&native_, priority), "canele_send_set_priority");
  }

  /// Returns the request for functions of canele.h.
  canele_request_t* native() noexcept { return &native_; }

 private:
  friend class session;
  friend class group;              // collectives.hpp
  friend struct detail::requests;  // post.hpp, one_sided.hpp
  template <typename... Requests>
  requires(std::same_as<Requests, request>&&...) friend void wait_all(Requests&... requests);
  friend void wait_all(std::span<request> requests);
  friend std::size_t wait_any(std::span<request> requests);

  /// Posts in place, so that session can return a request although a request cannot be moved.
  template <typename Post>
  requires std::invocable<Post, canele_request_t*> request(const char* call, Post post) { start(call, post); }

  template <typename Post>
  void start(const char* call, Post post, bool late = false) {
    detail::check(begin(post, late, false), call);
  }

  /// Posts, and returns what the post answers. A callback may run within the post, and use or destroy the request.
  /// After a post with success nothing is therefore written here.
  template <typename Post>
  int begin(Post post, bool late, bool watched) {
    assert((!pending_ || watched_) && "the request is still in use");
    const bool pending = std::exchange(pending_, true), was_late = std::exchange(late_, late);
    const bool was_watched = std::exchange(watched_, watched);
    const int code = post(&native_);
    if (code != CANELE_OK) [[unlikely]] {  // the request is not in use, or still in its former use
      pending_ = pending && code < 0;
      late_ = was_late;
      watched_ = was_watched;
    }
    return code;
  }

  /// Returns true if the request is finalized: a callback, or the owner of a queue, may know that.
  bool ended() noexcept {
    canele_request_t* const self = &native_;
    return canele_find_done(1, &self, 0) == 0;
  }

  /// Completes a matched receive without a buffer, which ends only when it gets a buffer: binds one of no bytes.
  void drop_message() noexcept {
    const auto nothing = canele_data_contiguous(nullptr, 0);
    int done = 0;
    while (canele_test(&native_, &done, nullptr) == CANELE_OK && done == 0) {
      if (canele_receive_bind(&native_, &nothing) == CANELE_OK) return;
    }
  }

  canele_request_t native_{};
  bool pending_ = false;
  bool late_ = false;     ///< a receive without a buffer, before bind()
  bool watched_ = false;  ///< a callback, queue, counter or condition is told of the end: see post.hpp
};

/// Options of a send.
struct send_options {
  std::int32_t priority = 0;  ///< higher is sent sooner, if the strategy supports it.
  bool synchronous = false;   ///< finished only after the receiver has matched it.
  std::size_t header = 0;     ///< first bytes to send ahead, for peek(); at most CANELE_HEADER_MAX.

  canele_send_options_t native() const noexcept {
    return {sizeof(canele_send_options_t), priority, synchronous ? std::uint32_t{CANELE_SEND_SYNCHRONOUS} : 0, header};
  }
};

/// Options of a multicast.
struct multicast_options {
  std::int32_t priority = 0;
  canele_shape shape = CANELE_SHAPE_AUTO;
  std::size_t header = 0;  ///< as in send_options
};

/// A tag space, shared by the ranks that open the same label. Must be destroyed before its engine, after its requests.
class session {
 public:
  /// Opens the session called `label` (1 to 63 bytes). Local operation. Throws canele::error.
  session(engine& owner, const char* label, canele_session_flags order = CANELE_ORDER_PER_TAG) {
    detail::check(canele_session_open(owner.native(), label, order, &native_), "canele_session_open");
  }
  session(session&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
  session& operator=(session&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }
  ~session() {
    if (native_ == nullptr) return;
    [[maybe_unused]] const int code = canele_session_close(native_);
    assert(code == CANELE_OK && "a session was destroyed before its requests");
  }

  /// Sends the bytes of `range` (vector, array, span, string ... of trivially copyable objects). They must not change
  /// until the request has finished. auto r = session.isend(1, 7, values);
  template <detail::sendable Range>
  [[nodiscard]] request isend(int destination, std::uint64_t tag, Range&& range) {
    return request("canele_isend", send_of(destination, tag, range));
  }
  /// Sends like the other isend, with a request that exists already, e.g. one of an array.
  template <detail::sendable Range>
  void isend(int destination, std::uint64_t tag, Range&& range, request& use) {
    use.start("canele_isend", send_of(destination, tag, range));
  }
  /// Sends with options.
  template <detail::sendable Range>
  void isend(int destination, std::uint64_t tag, Range&& range, const send_options& options, request& use) {
    const canele_send_options_t native = options.native();
    const auto data = canele_data_contiguous(std::ranges::data(range), detail::byte_size(range));
    use.start("canele_isend_data",
              [&](canele_request_t* r) { return canele_isend_data(native_, destination, tag, &data, &native, r); });
  }

  /// Sends one message to all of these ranks: see canele_imulticast. The ranks are copied. The data must not change
  /// until the request has finished. session.imulticast(std::array{1, 2, 5}, 7, values);
  template <detail::sendable Range>
  [[nodiscard]] request imulticast(std::span<const int> destinations, std::uint64_t tag, Range&& range,
                                   const multicast_options& options = {}) {
    return request("canele_imulticast", [&](canele_request_t* r) {
      const auto data = canele_data_contiguous(std::ranges::data(range), detail::byte_size(range));
      canele_multicast_options_t native{};
      native.struct_size = sizeof native;
      native.priority = options.priority;
      native.shape = options.shape;
      native.header = options.header;
      return canele_imulticast(native_, destinations.data(), destinations.size(), tag, &data, &native, r);
    });
  }

  /// Receives the next message from `source` whose tag matches, into the memory of `range`. A longer message fills the
  /// memory and ends with CANELE_ETRUNC. auto r = session.irecv(0, 7, values);
  template <detail::receivable Range>
  [[nodiscard]] request irecv(int source, tag_match tag, Range&& range) {
    return request("canele_irecv", receive_of(source, tag, range));
  }
  template <detail::receivable Range>
  void irecv(int source, tag_match tag, Range&& range, request& use) {
    use.start("canele_irecv", receive_of(source, tag, range));
  }
  /// Posts a receive without a buffer: on CANELE_EVENT_HEADER call envelope() and peek(), then bind().
  void irecv_late(int source, tag_match tag, request& use) {
    const auto post = [&](canele_request_t* r) { return canele_irecv_late(native_, source, tag.value, tag.mask, r); };
    use.start("canele_irecv_late", post, true);
  }

  /// Sends and waits. Throws canele::error.
  template <detail::sendable Range>
  void send(int destination, std::uint64_t tag, Range&& range) {
    isend(destination, tag, range).wait();
  }
  /// Receives and waits. Throws canele::error.
  template <detail::receivable Range>
  status recv(int source, tag_match tag, Range&& range) {
    return irecv(source, tag, range).wait();
  }

  /// Returns the envelope of the message that a receive with the same arguments would get now, or nothing. Makes
  /// progress once.
  std::optional<status> iprobe(int source, tag_match tag) {
    int found = 0;
    canele_status_t native{};
    detail::check(canele_iprobe(native_, source, tag.value, tag.mask, &found, &native), "canele_iprobe");
    if (found == 0) return std::nullopt;
    return status(native);
  }
  /// Like iprobe, but takes the message out of matching: `use` is then a receive without a buffer that needs bind().
  std::optional<status> improbe(int source, tag_match tag, request& use) {
    assert((!use.pending_ || use.watched_) && "the request is still in use");
    int found = 0;
    canele_status_t native{};
    detail::check(canele_improbe(native_, source, tag.value, tag.mask, &found, use.native(), &native),
                  "canele_improbe");
    if (found == 0) return std::nullopt;
    use.pending_ = use.late_ = true;
    use.watched_ = false;
    return status(native);
  }

  /// Blocks until every rank has called it on a session with the same label.
  void barrier() { detail::check(canele_barrier(native_), "canele_barrier"); }

  /// Returns the handle for functions of canele.h.
  canele_session_t* native() const noexcept { return native_; }

 private:
  template <typename Range>
  auto send_of(int destination, std::uint64_t tag, Range& range) {
    return [this, destination, tag, data = std::ranges::data(range), length = detail::byte_size(range)](
               canele_request_t* r) { return canele_isend(native_, destination, tag, data, length, r); };
  }
  template <typename Range>
  auto receive_of(int source, tag_match tag, Range& range) {
    return [this, source, tag, data = std::ranges::data(range), length = detail::byte_size(range)](
               canele_request_t* r) { return canele_irecv(native_, source, tag.value, tag.mask, data, length, r); };
  }

  canele_session_t* native_ = nullptr;
};

namespace detail {

/// Waits for all requests and returns their statuses. Throws if waiting itself fails.
inline std::vector<canele_status_t> wait_for(std::span<canele_request_t* const> natives) {
  std::vector<canele_status_t> statuses(natives.size());
  const int code = canele_wait_all(natives.size(), natives.data(), statuses.data());
  bool told = code == CANELE_OK;
  for (const auto& each : statuses) told = told || each.error == code;
  if (!told) check(code, "canele_wait_all");
  return statuses;
}

inline void check_all(const std::vector<canele_status_t>& statuses) {
  for (const auto& each : statuses) status(each).check("wait_all");
}

}  // namespace detail

/// Blocks until all these requests have finished: wait_all(sent, received). Throws the first failure among them.
template <typename... Requests>
requires(std::same_as<Requests, request>&&...) void wait_all(Requests&... requests) {
  const std::array<canele_request_t*, sizeof...(requests)> natives = {requests.native()...};
  const auto statuses = detail::wait_for(natives);
  ((requests.pending_ = false), ...);
  detail::check_all(statuses);
}

/// Blocks until all requests of an array have finished. Throws the first failure among them.
inline void wait_all(std::span<request> requests) {
  std::vector<canele_request_t*> natives;
  for (request& each : requests) natives.push_back(each.native());
  const auto statuses = detail::wait_for(natives);
  for (request& each : requests) each.pending_ = false;
  detail::check_all(statuses);
}

/// Blocks until one of the requests has finished, and returns its index. Throws if that request failed.
inline std::size_t wait_any(std::span<request> requests) {
  std::vector<canele_request_t*> natives;
  for (request& each : requests) natives.push_back(each.pending_ ? each.native() : nullptr);
  std::size_t index = 0;
  canele_status_t native{};
  const int code = canele_wait_any(natives.size(), natives.data(), &index, &native);
  if (code != native.error) detail::check(code, "canele_wait_any");  // waiting itself failed
  if (index == requests.size()) return index;                        // all were finished before
  requests[index].pending_ = false;
  status(native).check("wait_any");
  return index;
}

/// Returns the version of the library, as "1.2.3".
inline std::string_view version() { return canele_version(); }

}  // namespace canele

#endif
