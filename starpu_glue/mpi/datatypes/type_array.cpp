// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes that are parts of arrays: MPI_Type_create_subarray and MPI_Type_create_darray. Any thread.
//
// Both are built from the dimension whose elements adjoin up to the others. Each dimension is a vector of what the
// ones before it made, in bytes of the whole array. So a part of blocks at equal distances becomes one run.
#include <array>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/datatypes/type_build.hpp"

namespace canele::mpi {
namespace {

/// The part of an array that is built, one dimension after the other.
class Part {
 public:
  explicit Part(Type& element) : made_(&element), stride_(element.extent()) { add_reference(element); }
  ~Part() {
    if (made_ != nullptr) drop_reference(*made_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  /// Adds a dimension of `size` elements: blocks of `block` elements, one every `distance` elements from `start` on,
  /// and `rest` elements behind the last one. Returns an MPI code.
  int add_dimension(std::int64_t size, std::int64_t start, std::int64_t blocks, std::int64_t block,
                    std::int64_t distance, std::int64_t rest) {
    Type *made = nullptr, *tail = nullptr;
    int code = make_vector(block, 1, stride_, true, *made_, &made);
    if (code == MPI_SUCCESS && blocks != 1)
      code = replace(made, [&](Type** to) { return make_vector(blocks, 1, distance * stride_, true, *made, to); });
    if (code == MPI_SUCCESS && rest > 0) code = make_vector(rest, 1, stride_, true, *made_, &tail);
    if (code == MPI_SUCCESS && rest > 0) {
      const std::array<std::int64_t, 2> lengths{1, 1}, places{0, blocks * distance * stride_};
      const std::array<Type*, 2> parts{made, tail};
      code = replace(made, [&](Type** to) { return make_struct(lengths, places, parts, to); });
    }
    if (tail != nullptr) drop_reference(*tail);
    drop_reference(*made_);
    made_ = made;
    start_ += start * stride_;
    stride_ *= size;
    return code;
  }

  /// Makes `type` the part, with the bounds of the whole array.
  int complete(Type& type) {
    type.inner = made_;
    made_ = nullptr;
    type.nesting = std::max<std::uint16_t>(type.nesting, static_cast<std::uint16_t>(type.inner->nesting + 1));
    Builder builder(type);
    builder.extend_bounds(*type.inner, start_, 1, 0);
    builder.place(repeat(*type.inner, start_, 1, 0));
    const int code = builder.finish();
    type.lower = 0;
    type.upper = stride_;
    type.explicit_bounds = true;
    return code;
  }

 private:
  /// Replaces a type by what make() makes of it, or by null after an error.
  template <class Make>
  static int replace(Type*& one, Make make) {
    Type* made = nullptr;
    const int code = make(&made);
    drop_reference(*one);
    one = made;
    return code;
  }

  Type* made_;                // holds a reference; null after an error
  std::ptrdiff_t start_ = 0;  // bytes before the part
  std::ptrdiff_t stride_;     // bytes of all elements of the dimensions so far
};

/// Checks the dimensions of an array and its order, and that its bytes fit into 63 bits. Returns an MPI code.
int check_array(const Integers& sizes, int order, const Type& element) {
  if (sizes.size() < 1) return fail(MPI_ERR_ARG, "the array has no dimensions; expected: at least 1");
  if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
    return fail(MPI_ERR_ARG, "the order is %d; expected: MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
  std::int64_t bytes = element.extent();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1)
      return fail(MPI_ERR_ARG, "dimension %zu has %lld elements; expected: at least 1", i,
                  static_cast<long long>(sizes[i]));
    if (__builtin_mul_overflow(bytes, sizes[i], &bytes))
      return fail(MPI_ERR_COUNT, "the array would be larger than the address space");
  }
  return MPI_SUCCESS;
}

int check_subarray(const Subarray& part) {
  for (std::size_t i = 0; i < part.sizes.size(); ++i) {
    const std::int64_t size = part.sizes[i], subsize = part.subsizes[i], start = part.starts[i];
    if (subsize < 1 || subsize > size || start < 0 || start > size - subsize)
      return fail(MPI_ERR_ARG, "%lld elements from %lld on, of %lld in dimension %zu; expected: a part of them",
                  static_cast<long long>(subsize), static_cast<long long>(start), static_cast<long long>(size), i);
  }
  return MPI_SUCCESS;
}

int check_dimension(const Distributed& array, std::size_t i) {
  const int distribution = array.distributions[i], argument = array.arguments[i], processes = array.grid[i];
  if (processes < 1) return fail(MPI_ERR_ARG, "dimension %zu has %d processes; expected: at least 1", i, processes);
  if (argument != MPI_DISTRIBUTE_DFLT_DARG && argument < 1)
    return fail(MPI_ERR_ARG, "the argument of dimension %zu is %d; expected: at least 1", i, argument);
  switch (distribution) {
    case MPI_DISTRIBUTE_NONE:
      if (processes == 1) return MPI_SUCCESS;
      return fail(MPI_ERR_ARG, "dimension %zu is not distributed, over %d processes; expected: 1", i, processes);
    case MPI_DISTRIBUTE_BLOCK:
      if (argument == MPI_DISTRIBUTE_DFLT_DARG || std::int64_t{argument} * processes >= array.sizes[i])
        return MPI_SUCCESS;
      return fail(MPI_ERR_ARG, "%d processes with %d elements each do not have all of dimension %zu", processes,
                  argument, i);
    case MPI_DISTRIBUTE_CYCLIC:
      return MPI_SUCCESS;
    default:
      return fail(MPI_ERR_ARG, "%d is no distribution; expected: MPI_DISTRIBUTE_NONE, _BLOCK or _CYCLIC", distribution);
  }
}

int check_distributed(const Distributed& array) {
  std::int64_t processes = 1;
  for (std::size_t i = 0; i < array.sizes.size(); ++i) {
    if (const int code = check_dimension(array, i); code != MPI_SUCCESS) return code;
    if (__builtin_mul_overflow(processes, std::int64_t{array.grid[i]}, &processes)) processes = -1;
  }
  if (array.size < 1 || processes != array.size)
    return fail(MPI_ERR_ARG, "the grid does not have %d processes", array.size);
  if (array.rank < 0 || array.rank >= array.size)
    return fail(MPI_ERR_RANK, "rank %d of %d processes", array.rank, array.size);
  return MPI_SUCCESS;
}

/// Adds what the process at `place` of dimension `i` has.
int add_distributed(Part& part, const Distributed& array, std::size_t i, std::int64_t place) {
  const std::int64_t size = array.sizes[i], processes = array.grid[i];
  const bool whole = array.distributions[i] == MPI_DISTRIBUTE_NONE;
  if (whole) return part.add_dimension(size, 0, 1, size, 0, 0);
  const bool usual = array.arguments[i] == MPI_DISTRIBUTE_DFLT_DARG;
  if (array.distributions[i] == MPI_DISTRIBUTE_BLOCK) {
    const std::int64_t block = usual ? (size - 1) / processes + 1 : array.arguments[i];
    const std::int64_t start = std::min(place * block, size);
    return part.add_dimension(size, start, 1, std::min(block, size - start), 0, 0);
  }
  const std::int64_t block = usual ? 1 : array.arguments[i];
  const std::int64_t start = std::min(place * block, size), period = std::min(processes * block, size);
  const std::int64_t blocks = size - start < block ? 0 : (size - start - block) / period + 1;
  const std::int64_t rest = std::max<std::int64_t>(size - start - blocks * period, 0);
  return part.add_dimension(size, start, blocks, block, period, rest);
}

}  // namespace

int make_subarray(const Subarray& part, Type& element, Type** made, Form form) {
  int code = check_array(part.sizes, part.order, element);
  if (code == MPI_SUCCESS) code = check_subarray(part);
  if (code != MPI_SUCCESS) return code;
  Type* type = nullptr;
  code = new_type(MPI_COMBINER_SUBARRAY, &type);
  if (code != MPI_SUCCESS) return code;
  const std::size_t dimensions = part.sizes.size();
  Record record(*type, form);
  record.integer(static_cast<std::int64_t>(dimensions));
  for (const Integers& list : {part.sizes, part.subsizes, part.starts}) record.counts(list);
  record.integer(part.order);
  code = add_constituent(*type, element);
  Part built(element);
  for (std::size_t i = 0; i < dimensions && code == MPI_SUCCESS; ++i) {
    const std::size_t at = part.order == MPI_ORDER_C ? dimensions - 1 - i : i;
    code = built.add_dimension(part.sizes[at], part.starts[at], 1, part.subsizes[at], 0, 0);
  }
  if (code == MPI_SUCCESS) code = built.complete(*type);
  return finish_type(code, type, made);
}

int make_distributed(const Distributed& array, Type& element, Type** made, Form form) {
  int code = check_array(array.sizes, array.order, element);
  if (code == MPI_SUCCESS) code = check_distributed(array);
  if (code != MPI_SUCCESS) return code;
  Type* type = nullptr;
  code = new_type(MPI_COMBINER_DARRAY, &type);
  if (code != MPI_SUCCESS) return code;
  const std::size_t dimensions = array.sizes.size();
  Record record(*type, form);
  for (const std::int64_t value : {std::int64_t{array.size}, std::int64_t{array.rank}, std::ssize(array.grid)})
    record.integer(value);
  record.counts(array.sizes);
  for (const std::span<const int> list : {array.distributions, array.arguments, array.grid}) {
    for (const int value : list) record.integer(value);
  }
  record.integer(array.order);
  std::vector<std::int64_t> places(dimensions);
  for (std::size_t i = dimensions, rank = static_cast<std::size_t>(array.rank); i-- > 0;) {
    const auto processes = static_cast<std::size_t>(array.grid[i]);
    places[i] = static_cast<std::int64_t>(rank % processes);
    rank /= processes;
  }
  code = add_constituent(*type, element);
  Part built(element);
  for (std::size_t i = 0; i < dimensions && code == MPI_SUCCESS; ++i) {
    const std::size_t at = array.order == MPI_ORDER_C ? dimensions - 1 - i : i;
    code = add_distributed(built, array, at, places[at]);
  }
  if (code == MPI_SUCCESS) code = built.complete(*type);
  return finish_type(code, type, made);
}

}  // namespace canele::mpi
