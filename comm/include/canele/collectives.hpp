// SPDX-License-Identifier: BSD-3-Clause
//
// collectives.hpp - collectives in C++20: a thin layer on <canele/collectives.h>, beside <canele/canele.hpp>.
//
// Any thread, as in collectives.h, but one thread at a time for one group. The call made by all ranks of a group is one
// operation. Ranges give their lengths in elements, which must be equal on all ranks. For parts of different lengths
// call the C functions with native().
//
//     canele::group all(engine, "mine");                                 // all ranks of the job
//     auto sum = all.iallreduce(mine, total, canele::operation<double>(CANELE_SUM));
//     ...                                                                // compute; a worker does the rest
//     sum.wait();                                                        // throws canele::error if a rank has died
#ifndef CANELE_COLLECTIVES_HPP
#define CANELE_COLLECTIVES_HPP

#include <canele/collectives.h>

#include <canele/canele.hpp>
#include <cassert>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

namespace canele {

namespace detail {

template <typename T>
constexpr bool is_complex = false;
template <typename T>
constexpr bool is_complex<std::complex<T>> = true;

template <typename T>
constexpr int floating_place = std::is_same_v<T, float>    ? 0
                               : std::is_same_v<T, double> ? 1
                                                           : 2;

/// Returns the name of an arithmetic type in the C interface.
template <typename T>
constexpr canele_element element_of() {
  if constexpr (std::is_integral_v<T>) {
    constexpr int place = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<canele_element>((std::is_signed_v<T> ? CANELE_INT8 : CANELE_UINT8) + place);
  } else if constexpr (is_complex<T>) {
    return static_cast<canele_element>(CANELE_COMPLEX_FLOAT + floating_place<typename T::value_type>);
  } else {
    static_assert(std::is_floating_point_v<T>,
                  "there is no predefined operation for this type: fill canele_operator_t");
    return static_cast<canele_element>(CANELE_FLOAT + floating_place<T>);
  }
}

}  // namespace detail

/// Returns a predefined operation on integers, floating-point or complex numbers:
/// canele::operation<double>(CANELE_SUM). Throws canele::error if the type has no such operation. For other operations
/// fill a canele_operator_t.
template <typename T>
canele_operator_t operation(canele_operation which) {
  canele_operator_t result{};
  detail::check(canele_operator_of(which, detail::element_of<T>(), &result), "canele_operator_of");
  return result;
}

/// Options of a collective, equal on all ranks: see canele_collective_options_t.
struct collective_options {
  canele_algorithm algorithm = CANELE_ALGORITHM_AUTO;
  int radix = 0;
  std::size_t segment = 0;
  int window = 0;
  std::int32_t priority = 0;
};

/// Ranks that do collectives together. All must use the same label and list, and start the group's collectives in the
/// same order. Every operation returns a request. Its memory must neither move nor change until the request has
/// finished. A group must be destroyed before its engine, after its requests.
class group {
 public:
  /// Makes a group of all ranks of the job. Local: no rank waits for another. Throws canele::error.
  group(engine& owner, const char* label) {
    detail::check(canele_group_create(owner.native(), label, nullptr, 0, &native_), "canele_group_create");
  }
  /// Makes a group of these ranks, in this order. This rank must be among them.
  group(engine& owner, const char* label, std::span<const int> ranks) {
    const int none = 0;  // an empty list is an error, and does not mean all ranks
    const int* const list = ranks.empty() ? &none : ranks.data();
    detail::check(canele_group_create(owner.native(), label, list, ranks.size(), &native_), "canele_group_create");
  }
  group(group&& other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
  group& operator=(group&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }
  ~group() {
    [[maybe_unused]] const int code = canele_group_destroy(native_);
    assert(code == CANELE_OK && "a group was destroyed before its requests");
  }

  /// This rank's position, and the number of positions. Roots are given as positions.
  int rank() const noexcept { return canele_group_rank(native_); }
  int size() const noexcept { return canele_group_size(native_); }

  /// Takes this rank's turn in the next collective, which fails with `error` on all ranks: CANELE_ENOMEM or
  /// CANELE_EPROTOCOL.
  void skip(int error) { detail::check(canele_group_skip(native_, error), "canele_group_skip"); }
  /// Ends the group on all ranks, for a rank that takes no more part in it.
  void revoke() { detail::check(canele_group_revoke(native_), "canele_group_revoke"); }

  /// Barrier: ends when every rank has started it.
  [[nodiscard]] request ibarrier(const collective_options& options = {}) {
    return begin("canele_ibarrier", options,
                 [&](const auto* o, canele_request_t* r) { return canele_ibarrier(native_, o, r); });
  }

  /// Broadcast: sends the root's `range` to all.
  template <detail::receivable Range>
  [[nodiscard]] request ibcast(Range&& range, int root, const collective_options& options = {}) {
    return begin("canele_ibcast", options, [&](const auto* o, canele_request_t* r) {
      return canele_ibcast(native_, std::ranges::data(range), detail::byte_size(range), root, o, r);
    });
  }

  /// Reduction: output[i] on the root = input[i] of position 0 op input[i] of position 1 op ... Elsewhere output may be
  /// empty.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request ireduce(In&& input, Out&& output, const canele_operator_t& op, int root,
                                const collective_options& options = {}) {
    assert(canele_group_rank(native_) != root || same_size(input, output));
    return begin("canele_ireduce", options, [&](const auto* o, canele_request_t* r) {
      return canele_ireduce(native_, std::ranges::data(input), std::ranges::data(output), count(input, op), &op, root,
                            o, r);
    });
  }

  /// Reduction with the result on all ranks.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request iallreduce(In&& input, Out&& output, const canele_operator_t& op,
                                   const collective_options& options = {}) {
    assert(same_size(input, output));
    return begin("canele_iallreduce", options, [&](const auto* o, canele_request_t* r) {
      return canele_iallreduce(native_, std::ranges::data(input), std::ranges::data(output), count(input, op), &op, o,
                               r);
    });
  }
  /// Reduction with the result on all ranks, in place on all of them.
  template <detail::receivable Range>
  [[nodiscard]] request iallreduce(Range&& range, const canele_operator_t& op, const collective_options& options = {}) {
    return begin("canele_iallreduce", options, [&](const auto* o, canele_request_t* r) {
      return canele_iallreduce(native_, CANELE_IN_PLACE, std::ranges::data(range), count(range, op), &op, o, r);
    });
  }

  /// Gathers the inputs of all ranks, of equal length, one after the other in the root's output. Elsewhere output may
  /// be empty.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request igather(In&& input, Out&& output, int root, const collective_options& options = {}) {
    assert(canele_group_rank(native_) != root || fits(input, output));
    const canele_parts_t parts{detail::byte_size(input), nullptr, nullptr};
    return begin("canele_igather", options, [&](const auto* o, canele_request_t* r) {
      return canele_igather(native_, std::ranges::data(input), parts.length, std::ranges::data(output), &parts, root, o,
                            r);
    });
  }

  /// Scatters equal parts of the root's input to the outputs. Elsewhere input may be empty.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request iscatter(In&& input, Out&& output, int root, const collective_options& options = {}) {
    assert(canele_group_rank(native_) != root || fits(output, input));
    const canele_parts_t parts{detail::byte_size(output), nullptr, nullptr};
    return begin("canele_iscatter", options, [&](const auto* o, canele_request_t* r) {
      return canele_iscatter(native_, std::ranges::data(input), &parts, std::ranges::data(output), parts.length, root,
                             o, r);
    });
  }

  /// Gathers the inputs of all ranks, of equal length, one after the other on every rank.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request iallgather(In&& input, Out&& output, const collective_options& options = {}) {
    assert(fits(input, output));
    const canele_parts_t parts{detail::byte_size(input), nullptr, nullptr};
    return begin("canele_iallgather", options, [&](const auto* o, canele_request_t* r) {
      return canele_iallgather(native_, std::ranges::data(input), std::ranges::data(output), &parts, o, r);
    });
  }

  /// Sends part r of input to position r, where it becomes the part of this position. All parts have equal length.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request ialltoall(In&& input, Out&& output, const collective_options& options = {}) {
    assert(same_size(input, output));
    const canele_parts_t parts{detail::byte_size(input) / static_cast<std::size_t>(size()), nullptr, nullptr};
    return begin("canele_ialltoall", options, [&](const auto* o, canele_request_t* r) {
      return canele_ialltoall(native_, std::ranges::data(input), &parts, std::ranges::data(output), &parts, o, r);
    });
  }

  /// Exchange with neighbours: sends the parts of input that `sends` names, and receives into those of output that
  /// `receives` names. The k-th edge to a position meets the k-th edge from this rank there.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request ineighbor_exchange(In&& input, std::span<const canele_edge_t> sends, Out&& output,
                                           std::span<const canele_edge_t> receives,
                                           const collective_options& options = {}) {
    return begin("canele_ineighbor_exchange", options, [&](const auto* o, canele_request_t* r) {
      return canele_ineighbor_exchange(native_, std::ranges::data(input), sends.data(), sends.size(),
                                       std::ranges::data(output), receives.data(), receives.size(), o, r);
    });
  }

  /// Reduces, and sends part r of the result, as long as output, to position r.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request ireduce_scatter(In&& input, Out&& output, const canele_operator_t& op,
                                        const collective_options& options = {}) {
    assert(fits(output, input));
    return begin("canele_ireduce_scatter", options, [&](const auto* o, canele_request_t* r) {
      return canele_ireduce_scatter(native_, std::ranges::data(input), std::ranges::data(output), count(output, op),
                                    nullptr, &op, o, r);
    });
  }

  /// Scan: output at position r = input of 0 op ... op input of r.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request iscan(In&& input, Out&& output, const canele_operator_t& op,
                              const collective_options& options = {}) {
    assert(same_size(input, output));
    return begin("canele_iscan", options, [&](const auto* o, canele_request_t* r) {
      return canele_iscan(native_, std::ranges::data(input), std::ranges::data(output), count(input, op), &op, o, r);
    });
  }
  /// Exclusive scan: like iscan, without this rank's own input. output is untouched at position 0.
  template <detail::sendable In, detail::receivable Out>
  [[nodiscard]] request iexscan(In&& input, Out&& output, const canele_operator_t& op,
                                const collective_options& options = {}) {
    assert(same_size(input, output));
    return begin("canele_iexscan", options, [&](const auto* o, canele_request_t* r) {
      return canele_iexscan(native_, std::ranges::data(input), std::ranges::data(output), count(input, op), &op, o, r);
    });
  }

  /// Returns the handle for functions of collectives.h.
  canele_group_t* native() const noexcept { return native_; }

 private:
  template <typename Post>
  request begin(const char* call, const collective_options& options, Post post) {
    canele_collective_options_t native{};
    native.struct_size = sizeof native;
    native.algorithm = options.algorithm;
    native.radix = options.radix;
    native.segment = options.segment;
    native.window = options.window;
    native.priority = options.priority;
    return request(call, [&](canele_request_t* r) { return post(&native, r); });
  }
  template <typename Range>
  static std::size_t count(const Range& range, const canele_operator_t& op) {
    return detail::byte_size(range) / op.element;
  }
  template <typename A, typename B>
  static bool same_size(const A& a, const B& b) {
    return detail::byte_size(a) == detail::byte_size(b);
  }
  /// Returns true if `all` has the size of one `part` for each position.
  template <typename Part, typename All>
  bool fits(const Part& part, const All& all) const {
    return detail::byte_size(all) == detail::byte_size(part) * static_cast<std::size_t>(size());
  }

  canele_group_t* native_ = nullptr;
};

}  // namespace canele

#endif
