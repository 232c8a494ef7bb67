// SPDX-License-Identifier: BSD-3-Clause
//
// Cases: one collective and its oracle. The input of each position is a function of a seed, so each position knows its
// expected output without any communication.
//
// For tests/unit/collectives_engine, tests/process/collectives. An object is used by one thread. The whole output is
// compared, with the memory around it: bytes that no operation may touch hold a pattern.
#pragma once

#include <canele/collectives.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace canele::test {

enum class Op { barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, reduce_scatter, scan, exscan };
inline constexpr int op_count = static_cast<int>(Op::exscan) + 1;
inline constexpr const char* op_names[] = {"barrier",   "bcast",    "reduce",         "allreduce", "gather", "scatter",
                                           "allgather", "alltoall", "reduce_scatter", "scan",      "exscan"};

/// (a, b) stands for the function x -> a x + b. Composition is associative and does not commute.
struct Affine {
  std::uint32_t a, b;
  bool operator==(const Affine&) const = default;
};
inline Affine after(const Affine& first, const Affine& then) { return {first.a * then.a, first.b * then.a + then.b}; }
inline void combine_affine(const void* in, void* inout, std::size_t count, void*) {
  const auto* lower = static_cast<const Affine*>(in);
  auto* higher = static_cast<Affine*>(inout);
  for (std::size_t i = 0; i < count; ++i) higher[i] = after(lower[i], higher[i]);
}
/// Adds pairs, for algorithms that need an operator that commutes.
inline void combine_sum(const void* in, void* inout, std::size_t count, void*) {
  const auto* x = static_cast<const Affine*>(in);
  auto* y = static_cast<Affine*>(inout);
  for (std::size_t i = 0; i < count; ++i) y[i] = {x[i].a + y[i].a, x[i].b + y[i].b};
}

struct Case {
  Op op = Op::barrier;
  int size = 1;
  std::size_t length = 0;  ///< elements of 8 bytes: of a buffer, or of a part
  int root = 0;
  bool in_place = false, irregular = false, commutes = false;
  std::uint32_t seed = 1;
};

class Side {
 public:
  static constexpr std::size_t element = sizeof(Affine);

  Side(const Case& of, int position) : c_(of), me_(position), n_(of.size) {
    switch (c_.op) {
      case Op::barrier:
        break;
      case Op::bcast:
        fill(c_.length);
        expected_ = vector_of(c_.root, 0, c_.length);
        if (at_root()) output_ = expected_;
        break;
      case Op::gather:
      case Op::scatter:
      case Op::allgather:
      case Op::alltoall:
        make_parts();
        break;
      default:
        make_reduction();
    }
  }

  int start(canele_group_t* group, const canele_collective_options_t* options, canele_request_t* request) {
    const void* const input = in_place_ ? CANELE_IN_PLACE : static_cast<const void*>(input_.data());
    const canele_operator_t op{c_.commutes ? combine_sum : combine_affine, nullptr, element, c_.commutes ? 1 : 0};
    switch (c_.op) {
      case Op::barrier:
        return canele_ibarrier(group, options, request);
      case Op::bcast:
        return canele_ibcast(group, output_.data(), c_.length * element, c_.root, options, request);
      case Op::reduce:
        return canele_ireduce(group, input, output_.data(), c_.length, &op, c_.root, options, request);
      case Op::allreduce:
        return canele_iallreduce(group, input, output_.data(), c_.length, &op, options, request);
      case Op::gather:
        return canele_igather(group, input, own_length(), output_.data(), root_parts(), c_.root, options, request);
      case Op::scatter:
        return canele_iscatter(group, input_.data(), root_parts(), in_place_ ? nullptr : output_.data(), own_length(),
                               c_.root, options, request);
      case Op::allgather:
        return canele_iallgather(group, input, output_.data(), &out_parts_, options, request);
      case Op::alltoall:
        return canele_ialltoall(group, input, &in_parts_, output_.data(), &out_parts_, options, request);
      case Op::reduce_scatter:
        return canele_ireduce_scatter(group, input, output_.data(), c_.length, c_.irregular ? counts_.data() : nullptr,
                                      &op, options, request);
      case Op::scan:
        return canele_iscan(group, input, output_.data(), c_.length, &op, options, request);
      case Op::exscan:
        return canele_iexscan(group, input, output_.data(), c_.length, &op, options, request);
    }
    return CANELE_EINVAL;
  }

  /// Returns "" or what is wrong.
  std::string check() const {
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      if (output_[i] == expected_[i]) continue;
      return std::string(op_names[static_cast<int>(c_.op)]) + ", position " + std::to_string(me_) + " of " +
             std::to_string(n_) + ", element " + std::to_string(i) + " of " + std::to_string(expected_.size()) + ": (" +
             std::to_string(output_[i].a) + ", " + std::to_string(output_[i].b) + "), must be (" +
             std::to_string(expected_[i].a) + ", " + std::to_string(expected_[i].b) + ")";
    }
    return "";
  }

 private:
  using Vector = std::vector<Affine>;
  static constexpr Affine untouched{0xeeeeeeee, 0x11111111};

  bool at_root() const { return me_ == c_.root; }
  Affine value(int from, int to, std::size_t i) const {
    const auto x = static_cast<std::uint32_t>(i) * 2654435761u + static_cast<std::uint32_t>(from) * 40503u +
                   static_cast<std::uint32_t>(to) * 9973u + c_.seed * 7919u;
    return {x | 1, x ^ (x >> 15)};
  }
  Vector vector_of(int from, int to, std::size_t count) const {
    Vector all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = value(from, to, i);
    return all;
  }
  void fill(std::size_t count) { output_.assign(count, untouched); }
  std::size_t block_length(int from, int to) const {
    if (!c_.irregular) return c_.length;
    const auto u = static_cast<std::size_t>(from) * 5 + static_cast<std::size_t>(to) * 3;
    return u % 3 == 1 ? 0 : c_.length + u % 4;
  }
  /// Returns the length of the part of position r in gather, scatter, allgather. In alltoall it depends on both
  /// positions.
  std::size_t length_of(int r) const { return block_length(r, 0); }
  std::size_t own_length() const { return length_of(me_) * element; }

  Affine reduced(int first, int last, std::size_t i) const {
    Affine sum = value(first, 0, i);
    for (int r = first + 1; r <= last; ++r) {
      const Affine next = value(r, 0, i);
      sum = c_.commutes ? Affine{sum.a + next.a, sum.b + next.b} : after(sum, next);
    }
    return sum;
  }

  void make_reduction() {
    std::size_t count = c_.length, first = 0, mine = c_.length;
    if (c_.op == Op::reduce_scatter) {
      count = 0;
      for (int r = 0; r < n_; ++r) {
        if (r == me_) first = count;
        counts_.push_back(length_of(r));
        count += length_of(r);
      }
      mine = length_of(me_);
    }
    in_place_ = c_.in_place && (c_.op != Op::reduce || at_root());
    input_ = vector_of(me_, 0, count);
    fill(c_.op == Op::reduce_scatter && !in_place_ ? mine : count);
    if (in_place_) output_ = input_;
    expected_ = output_;
    if ((c_.op == Op::reduce && !at_root()) || (c_.op == Op::exscan && me_ == 0)) return;
    const int last = c_.op == Op::scan ? me_ : c_.op == Op::exscan ? me_ - 1 : n_ - 1;
    for (std::size_t i = 0; i < mine; ++i) expected_[i] = reduced(0, last, first + i);
    if (in_place_) expected_.resize(mine);  // of reduce_scatter, the memory behind the result has no defined contents
  }

  /// Parts with a hole of one element after each, where they have lengths of their own; else one after the other.
  struct Layout {
    std::vector<std::size_t> lengths, offsets;
    std::size_t all = 0;  ///< elements
  };
  template <typename Length>
  Layout lay_out(Length length, std::size_t hole) const {
    Layout layout;
    for (int r = 0; r < n_; ++r) {
      layout.lengths.push_back(length(r) * element);
      layout.offsets.push_back(layout.all * element);
      layout.all += length(r) + hole;
    }
    return layout;
  }
  canele_parts_t parts_of(const Layout& layout, bool with_offsets) const {
    if (!c_.irregular) return {c_.length * element, nullptr, nullptr};
    return {0, layout.lengths.data(), with_offsets ? layout.offsets.data() : nullptr};
  }
  void put(Vector& where, const Layout& layout, int part, int from, int to) const {
    const std::size_t at = layout.offsets[static_cast<std::size_t>(part)] / element;
    const std::size_t count = layout.lengths[static_cast<std::size_t>(part)] / element;
    for (std::size_t i = 0; i < count; ++i) where[at + i] = value(from, to, i);
  }

  void make_parts() {
    const bool exchange = c_.op == Op::alltoall;
    const std::size_t hole = c_.irregular ? 1 : 0;
    in_ = lay_out([&](int r) { return exchange ? block_length(me_, r) : length_of(r); }, 0);
    out_ = lay_out([&](int r) { return exchange ? block_length(r, me_) : length_of(r); }, hole);
    in_parts_ = parts_of(in_, false);
    out_parts_ = parts_of(out_, true);
    in_place_ = c_.in_place && (at_root() || c_.op == Op::allgather || exchange) && !(exchange && c_.irregular);
    if (c_.op == Op::scatter) return make_scatter();
    const bool receives = c_.op != Op::gather || at_root();
    if (receives) fill(out_.all);
    if (exchange) {
      input_.assign(in_.all, untouched);
      for (int r = 0; r < n_; ++r) put(in_place_ ? output_ : input_, in_, r, me_, r);
    } else {
      input_ = vector_of(me_, 0, length_of(me_));
      if (in_place_) put(output_, out_, me_, me_, 0);
    }
    if (!receives) return;
    expected_ = output_;
    for (int r = 0; r < n_; ++r) put(expected_, out_, r, r, exchange ? me_ : 0);
  }

  void make_scatter() {
    out_parts_ = in_parts_;  // what root_parts() returns
    if (at_root()) {
      input_.assign(in_.all, untouched);
      for (int r = 0; r < n_; ++r) put(input_, in_, r, c_.root, r);
    }
    if (in_place_) return;
    fill(length_of(me_));
    expected_ = vector_of(c_.root, me_, length_of(me_));
  }

  /// All ranks know equal parts; only the root knows others.
  const canele_parts_t* root_parts() const { return c_.irregular && !at_root() ? nullptr : &out_parts_; }

  const Case c_;
  const int me_, n_;
  bool in_place_ = false;
  Vector input_, output_, expected_;
  std::vector<std::size_t> counts_;
  Layout in_, out_;
  canele_parts_t in_parts_{}, out_parts_{};
};

}  // namespace canele::test
