// SPDX-License-Identifier: BSD-3-Clause
//
// one_sided.hpp - access to the memory of other ranks, in C++20: a thin layer on <canele/one_sided.h>, beside
// <canele/post.hpp>.
//
// Threads: any, as in one_sided.h; keys, lanes and words may be used by several threads at a time. Offsets are in bytes
// from the beginning of the memory. An operation comes in four forms:
//
//     remote.put(0, values);                                // blocks until the target's memory has the values
//     auto r = remote.iput(0, values);                      // returns a request
//     remote.iput(0, values, request);                      // uses a request that exists
//     remote.iput(0, values, done.entry_for(&tile));        // tells a queue, counter, condition or function
//     remote.iput(0, values, canele::until_flush);          // has no completion: a flush covers it
//
// Pitfall: memory, keys, lanes and notifications are destroyed before their engine.
//
//     canele::memory shared(engine, tiles);                 // on the target; send shared.key() by any message
//     canele::key remote(engine, bytes);                    // on an origin
//     const auto next = remote.word<std::uint64_t>(8);
//     const std::uint64_t mine = next.fetch_add(1);
#ifndef CANELE_ONE_SIDED_HPP
#define CANELE_ONE_SIDED_HPP

#include <canele/one_sided.h>

#include <array>
#include <canele/collectives.hpp>
#include <canele/post.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

namespace canele {

/// The bytes of a key, to be sent to other ranks by any message.
using key_bytes = std::array<std::byte, CANELE_KEY_SIZE>;

/// No completion: the next flush of the lane ends after the operation, and tells its error. The data lives until then.
inline constexpr completion until_flush{};

namespace detail {

/// Ends an object that has pending operations: waits for them. Ends the process in a callback, where waiting is
/// impossible.
template <typename Close>
void close_when_idle(canele_engine_t* owner, const char* what, Close close) noexcept {
  constexpr std::uint64_t interval_ns = 100'000;  // no event tells when the operations are over
  int code = close();
  while (code == CANELE_EBUSY) {
    canele_completion_counter_t never{};
    code = canele_completion_counter_wait(owner, &never, 1, canele_now(owner) + interval_ns);
    if (code == CANELE_ETIMEOUT) code = close();
  }
  if (code == CANELE_EDEADLK) destroyed_in_callback(what);
}

/// Types of words in memory that atomic operations apply to.
template <typename T>
concept atomic_word = std::integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

}  // namespace detail

/// Memory of this rank that other ranks access. The destructor revokes its keys: no rank accesses the memory
/// afterwards.
class memory {
 public:
  /// Registers the memory of `range`, which must live until this object is destroyed. allowed: bits of enum
  /// canele_access; 0: all kinds. Does not block. Throws canele::error.
  template <detail::receivable Range>
  memory(engine& owner, Range&& range, unsigned allowed = 0) {
    const auto options = native_options(allowed);
    detail::check(
        canele_memory_register(owner.native(), std::ranges::data(range), detail::byte_size(range), &options, &native_),
        "canele_memory_register");
  }
  memory(memory&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
  memory& operator=(memory&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }
  /// Like free(). Ends the process in a callback if gets are being served.
  ~memory() {
    if (native_ != nullptr && canele_memory_free(native_) == CANELE_EDEADLK)
      detail::destroyed_in_callback("memory in use");
  }

  /// Revokes all keys. Blocks until the data of gets that have begun is sent. Throws in a callback if there are such
  /// gets; the memory is then still registered.
  void free() {
    detail::check(canele_memory_free(native_), "canele_memory_free");
    native_ = nullptr;
  }

  /// Returns the key of the memory: bytes without pointers, valid on all ranks of the job.
  canele::key_bytes key() const {
    canele::key_bytes bytes{};
    detail::check(canele_memory_key(native_, bytes.data()), "canele_memory_key");
    return bytes;
  }

  /// Returns the handle for functions of one_sided.h.
  canele_memory_t* native() const noexcept { return native_; }

 protected:
  memory() noexcept = default;
  static canele_memory_options_t native_options(unsigned allowed) {
    canele_memory_options_t native{};
    native.struct_size = sizeof native;
    native.access = allowed;
    return native;
  }

  canele_memory_t* native_ = nullptr;
};

/// Memory that the library allocates: `count` objects of zero bytes. Ranks of this host access it directly, if they can
/// map it. The destructor frees the objects, too.
template <typename T>
requires std::is_trivially_copyable_v<T>
class allocated_memory : public memory {
 public:
  /// Allocates and registers. Throws canele::error.
  allocated_memory(engine& owner, std::size_t count, unsigned allowed = 0) {
    const auto options = native_options(allowed);
    void* base = nullptr;
    const std::size_t bytes = count > PTRDIFF_MAX / sizeof(T) ? SIZE_MAX : count * sizeof(T);
    detail::check(canele_memory_allocate(owner.native(), bytes, &options, &base, &native_), "canele_memory_allocate");
    values_ = std::span(static_cast<T*>(base), count);
  }
  /// Returns the objects. They live until this object is destroyed or freed.
  std::span<T> values() const noexcept { return values_; }

 private:
  std::span<T> values_;
};

/// A stream of operations with an order of its own. Cheap; meant to be one for each thread. Destroying a lane waits for
/// its operations.
class lane {
 public:
  explicit lane(engine& owner) : engine_(owner.native()) {
    detail::check(canele_lane_open(engine_, &native_), "canele_lane_open");
  }
  lane(lane&& other) noexcept : engine_(other.engine_), native_(std::exchange(other.native_, nullptr)) {}
  lane& operator=(lane&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(native_, other.native_);
    return *this;
  }
  ~lane() {
    if (native_ == nullptr) return;
    detail::close_when_idle(engine_, "a lane in use", [this] { return canele_lane_close(native_); });
  }

  /// Flushes the lane if it has nothing to wait for and no error to tell. Else returns false, with no effect.
  bool try_flush() noexcept { return canele_lane_try_flush(native_) == 1; }
  /// Returns the handle for functions of one_sided.h.
  canele_lane_t* native() const noexcept { return native_; }

 private:
  canele_engine_t* engine_;
  canele_lane_t* native_ = nullptr;
};

/// A slot of this rank for notifications. Each notification that names the slot delivers `then`, as the end of an
/// operation would. The destructor closes the slot. What `then` names must live longer: a notification that is being
/// delivered may still arrive.
class notification {
 public:
  notification(engine& owner, const completion& then) : engine_(owner.native()) {
    detail::check(canele_notification_open(engine_, &then.native(), &slot_), "canele_notification_open");
  }
  notification(notification&& other) noexcept : engine_(other.engine_), slot_(std::exchange(other.slot_, 0)) {}
  notification& operator=(notification&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~notification() {
    if (slot_ != 0) canele_notification_close(engine_, slot_);
  }

  /// Returns the number of the slot, 1 and up, to be sent to other ranks by any message.
  std::uint32_t slot() const noexcept { return slot_; }

 private:
  canele_engine_t* engine_;
  std::uint32_t slot_ = 0;
};

/// Options of a one-sided operation.
struct access_options {
  const canele::lane* lane = nullptr;   ///< nullptr: the engine's default lane.
  std::int32_t priority = 0;            ///< higher leaves sooner, if the strategy supports it.
  std::uint32_t slot = 0;               ///< of a put: notification at the target, after the data is visible; 0: none.
  std::uint64_t immediate = 0;          ///< what the notification carries.
  std::uint64_t block = 0, stride = 0;  ///< of a put or get: see "Strided memory" in one_sided.h; 0: one piece.
};

namespace detail {

inline canele_access_options_t native_options(const completion& done, const access_options& options) {
  canele_access_options_t native{};
  native.struct_size = sizeof native;
  native.done = done.native();
  native.lane = options.lane != nullptr ? options.lane->native() : nullptr;
  native.priority = options.priority;
  native.slot = options.slot;
  native.immediate = options.immediate;
  native.block = options.block;
  native.stride = options.stride;
  return native;
}

/// One operation in its forms. Post: called with options and a request.
template <typename Post>
class access {
 public:
  access(const char* call, Post post) : call_(call), post_(post) {}

  request start(const access_options& options) const {
    const auto native = native_options({}, options);
    return requests::make(call_, [&](canele_request_t* r) { return post_(&native, r); });
  }
  void start(const access_options& options, request& use, const completion& done = {}) const {
    const auto native = native_options(done, options);
    const auto post = [&](canele_request_t* r) { return post_(&native, r); };
    check(requests::begin(use, done, false, post), call_);
  }
  void start(const access_options& options, const completion& done) const {
    const auto native = native_options(done, options);
    check(post_(&native, static_cast<canele_request_t*>(nullptr)), call_);
  }

 private:
  const char* call_;
  Post post_;
};

}  // namespace detail

/// A word of 4 or 8 bytes in the memory of a rank, for atomic operations. Made by key::word; used while that key is
/// open. Operations are atomic with respect to all other atomic operations on that memory, of all ranks. Those without
/// an i block, and return the value that the word had before. All throw canele::error.
template <detail::atomic_word T>
class remote_word {
 public:
  remote_word(canele_key_t* key, std::uint64_t offset) noexcept : key_(key), offset_(offset) {}

  T load(const access_options& options = {}) const { return fetch(CANELE_ATOMIC_READ, 0, 0, options); }
  T exchange(T value, const access_options& options = {}) const { return fetch(CANELE_ATOMIC_SWAP, value, 0, options); }
  T fetch_add(T value, const access_options& options = {}) const { return fetch(CANELE_ATOMIC_ADD, value, 0, options); }
  T fetch_and(T value, const access_options& options = {}) const { return fetch(CANELE_ATOMIC_AND, value, 0, options); }
  T fetch_or(T value, const access_options& options = {}) const { return fetch(CANELE_ATOMIC_OR, value, 0, options); }
  T fetch_xor(T value, const access_options& options = {}) const { return fetch(CANELE_ATOMIC_XOR, value, 0, options); }
  /// Writes `desired` if the word equals `expected`. It did if the value returned equals `expected`.
  T compare_exchange(T expected, T desired, const access_options& options = {}) const {
    return fetch(CANELE_ATOMIC_COMPARE_AND_SWAP, desired, expected, options);
  }

  /// Adds without a result. By default a flush covers it. Does not block.
  void iadd(T value, const completion& done = until_flush, const access_options& options = {}) const {
    operation(CANELE_ATOMIC_ADD, value, 0, nullptr).start(options, done);
  }
  /// Starts any operation. *before (nullptr: not wanted) gets the value that the word had, and lives until the end of
  /// the operation.
  [[nodiscard]] request iatomic(canele_atomic_operation which, T operand, T compare, T* before,
                                const access_options& options = {}) const {
    return operation(which, operand, compare, before).start(options);
  }
  void iatomic(canele_atomic_operation which, T operand, T compare, T* before, request& use,
               const completion& done = {}, const access_options& options = {}) const {
    operation(which, operand, compare, before).start(options, use, done);
  }
  void iatomic(canele_atomic_operation which, T operand, T compare, T* before, const completion& done,
               const access_options& options = {}) const {
    operation(which, operand, compare, before).start(options, done);
  }

 private:
  static std::uint64_t bits(T value) { return static_cast<std::make_unsigned_t<T>>(value); }
  auto operation(canele_atomic_operation which, T operand, T compare, T* before) const {
    return detail::access(
        "canele_atomic", [key = key_, offset = offset_, which, operand, compare, before](const auto* o, auto* r) {
          return canele_atomic(key, offset, which, sizeof(T), bits(operand), bits(compare), before, o, r);
        });
  }
  T fetch(canele_atomic_operation which, T operand, T compare, const access_options& options) const {
    T before = 0;
    operation(which, operand, compare, &before).start(options).wait();
    return before;
  }

  canele_key_t* key_;
  std::uint64_t offset_;
};

/// Memory of a rank, as an origin sees it. Destroying a key waits for its operations.
class key {
 public:
  /// Opens the key that memory::key has returned on one of the ranks. Begins to connect to that rank. Does not
  /// block. Throws canele::error.
  key(engine& owner, const key_bytes& bytes) : engine_(owner.native()) {
    detail::check(canele_key_open(engine_, bytes.data(), &native_), "canele_key_open");
  }
  key(key&& other) noexcept : engine_(other.engine_), native_(std::exchange(other.native_, nullptr)) {}
  key& operator=(key&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(native_, other.native_);
    return *this;
  }
  ~key() {
    if (native_ == nullptr) return;
    detail::close_when_idle(engine_, "a key in use", [this] { return canele_key_close(native_); });
  }

  /// The rank that owns the memory, and its length in bytes.
  int rank() const noexcept { return canele_key_rank(native_); }
  std::size_t length() const noexcept { return canele_key_length(native_); }

  /// Returns the objects of the target's memory in this process, for plain loads and stores. The program synchronises
  /// them. Valid while the key is open. Throws canele::error (CANELE_EDRIVER) if this process cannot map the memory.
  template <typename T = std::byte>
  requires std::is_trivially_copyable_v<T> std::span<T> map()
  const {
    void* base = nullptr;
    detail::check(canele_key_map(native_, &base), "canele_key_map");
    return std::span(static_cast<T*>(base), length() / sizeof(T));
  }

  /// Writes the bytes of `range` at `offset`. They must not change until the end of the operation, when they are
  /// visible in the memory of the target. Does not block. Throws canele::error.
  template <detail::sendable Range>
  [[nodiscard]] request iput(std::uint64_t offset, Range&& range, const access_options& options = {}) const {
    return writing(offset, range).start(options);
  }
  template <detail::sendable Range>
  void iput(std::uint64_t offset, Range&& range, request& use, const completion& done = {},
            const access_options& options = {}) const {
    writing(offset, range).start(options, use, done);
  }
  template <detail::sendable Range>
  void iput(std::uint64_t offset, Range&& range, const completion& done, const access_options& options = {}) const {
    writing(offset, range).start(options, done);
  }
  /// Writes, and waits until the bytes are visible in the memory of the target.
  template <detail::sendable Range>
  void put(std::uint64_t offset, Range&& range, const access_options& options = {}) const {
    writing(offset, range).start(options).wait();
  }

  /// Reads the bytes at `offset` into `range`. Does not block. Throws canele::error.
  template <detail::receivable Range>
  [[nodiscard]] request iget(std::uint64_t offset, Range&& range, const access_options& options = {}) const {
    return reading(offset, range).start(options);
  }
  template <detail::receivable Range>
  void iget(std::uint64_t offset, Range&& range, request& use, const completion& done = {},
            const access_options& options = {}) const {
    reading(offset, range).start(options, use, done);
  }
  template <detail::receivable Range>
  void iget(std::uint64_t offset, Range&& range, const completion& done, const access_options& options = {}) const {
    reading(offset, range).start(options, done);
  }
  /// Reads, and waits for the bytes.
  template <detail::receivable Range>
  void get(std::uint64_t offset, Range&& range, const access_options& options = {}) const {
    reading(offset, range).start(options).wait();
  }

  /// Combines `values` with the memory from `offset` on, element by element. which: enum canele_operation or
  /// canele_accumulate_operation. By default a flush covers it. Does not block. Throws canele::error.
  template <detail::sendable Range>
  void iaccumulate(std::uint64_t offset, Range&& values, int which, const completion& done = until_flush,
                   const access_options& options = {}) const {
    combining(offset, values, which, nullptr).start(options, done);
  }
  /// The same, and waits until it is done.
  template <detail::sendable Range>
  void accumulate(std::uint64_t offset, Range&& values, int which, const access_options& options = {}) const {
    combining(offset, values, which, nullptr).start(options).wait();
  }
  /// The same. `before` gets the former elements, as many as `values` has.
  template <detail::sendable Range, detail::receivable Before>
  void fetch_accumulate(std::uint64_t offset, Range&& values, int which, Before&& before,
                        const access_options& options = {}) const {
    if (detail::byte_size(before) < detail::byte_size(values))
      throw error(CANELE_EINVAL, "canele_accumulate: no room for the former elements");
    combining(offset, values, which, std::ranges::data(before)).start(options).wait();
  }

  /// Returns the word at `offset`, for atomic operations: key.word<std::uint64_t>(8).fetch_add(1).
  template <detail::atomic_word T>
  remote_word<T> word(std::uint64_t offset) const noexcept {
    return {native_, offset};
  }

  /// Returns the handle for functions of one_sided.h.
  canele_key_t* native() const noexcept { return native_; }

 private:
  template <typename Range>
  auto writing(std::uint64_t offset, const Range& range) const {
    return detail::access("canele_put", [key = native_, offset, data = detail::data_of(range)](const auto* o, auto* r) {
      return canele_put(key, offset, &data, o, r);
    });
  }
  template <typename Range>
  auto reading(std::uint64_t offset, Range& range) const {
    return detail::access("canele_get", [key = native_, offset, data = detail::data_of(range)](const auto* o, auto* r) {
      return canele_get(key, offset, &data, o, r);
    });
  }

  template <typename Range>
  auto combining(std::uint64_t offset, const Range& range, int which, void* before) const {
    return detail::access("canele_accumulate", [key = native_, offset, data = detail::data_of(range), which, before](
                                                   const auto* o, auto* r) {
      return canele_accumulate(key, offset, &data, which, detail::element_of<std::ranges::range_value_t<Range>>(),
                               before, o, r);
    });
  }

  canele_engine_t* engine_;
  canele_key_t* native_ = nullptr;
};

namespace detail {

inline auto notifying(engine& owner, int rank) {
  return access("canele_notify",
                [native = owner.native(), rank](const auto* o, auto* r) { return canele_notify(native, rank, o, r); });
}
inline auto flushing(engine& owner, int rank) {
  return access("canele_flush",
                [native = owner.native(), rank](const auto* o, auto* r) { return canele_flush(native, rank, o, r); });
}

}  // namespace detail

/// Sends a notification without data to options.slot of `rank`, after the earlier operations of its lane to that rank.
/// It ends when the target has it. Does not block.
[[nodiscard]] inline request inotify(engine& owner, int rank, const access_options& options) {
  return detail::notifying(owner, rank).start(options);
}
inline void inotify(engine& owner, int rank, const access_options& options, request& use, const completion& done = {}) {
  detail::notifying(owner, rank).start(options, use, done);
}
inline void inotify(engine& owner, int rank, const access_options& options, const completion& done) {
  detail::notifying(owner, rank).start(options, done);
}

/// Ends when all earlier operations of the lane to `rank` are over, with the first error of those that had no
/// completion. options: lane. Does not block.
[[nodiscard]] inline request iflush(engine& owner, int rank, const access_options& options = {}) {
  return detail::flushing(owner, rank).start(options);
}
inline void iflush(engine& owner, int rank, request& use, const completion& done = {},
                   const access_options& options = {}) {
  detail::flushing(owner, rank).start(options, use, done);
}
inline void iflush(engine& owner, int rank, const completion& done, const access_options& options = {}) {
  detail::flushing(owner, rank).start(options, done);
}
/// Waits until all earlier operations of the lane to `rank` are over. Throws the first error.
inline void flush(engine& owner, int rank, const access_options& options = {}) { iflush(owner, rank, options).wait(); }

}  // namespace canele

#endif
