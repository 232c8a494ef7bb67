// SPDX-License-Identifier: BSD-3-Clause
//
// Making and freeing datatypes. StarPU makes one per message.
//
// A reused slot keeps the small vectors of its last type, so that making a type allocates nothing in the steady state.
#include "starpu_glue/mpi/datatypes/type.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/datatypes/type_build.hpp"

namespace canele::mpi {

constinit TypePool types_pool;

namespace {

constexpr std::size_t kKeptCapacity = 64;

template <class T>
void empty(std::vector<T>& values) {
  if (values.capacity() > kKeptCapacity) {
    std::vector<T>().swap(values);
  } else {
    values.clear();
  }
}

int new_type(int combiner, Type** made) {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  Type* type = types_pool.acquire(&handle);
  if (type == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another datatype");
  type->references.store(1, std::memory_order_relaxed);
  type->handle = handle;
  type->combiner = combiner;
  type->dense = type->explicit_bounds = false;
  type->nesting = 0;
  type->alignment = 1;
  type->size = 0;
  type->lower = type->upper = type->true_lower = type->true_upper = 0;
  type->single = Run{};
  type->element = nullptr;
  *made = type;
  return MPI_SUCCESS;
}

/// Returns the type to the pool. Appends its constituents to `orphans`, for the caller to drop their references.
void recycle(Type& type, std::vector<Type*>& orphans) {
  orphans.insert(orphans.end(), type.contents.types.begin(), type.contents.types.end());
  if (type.inner != nullptr) orphans.push_back(type.inner);
  type.inner = nullptr;
  empty(type.contents.integers);
  empty(type.contents.addresses);
  empty(type.contents.types);
  empty(type.many);
  type.name.clear();
  type.attributes.forget();  // the program has freed the type too often
  types_pool.release(type.handle);
}

/// Builds a new type while its pieces are placed.
class Builder {
 public:
  explicit Builder(Type& type) : type_(type) {}

  /// Updates bounds, alignment and nesting for `count` elements from `first` on, `stride` bytes apart.
  void extend_bounds(const Type& element, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride) {
    if (count == 0) return;
    const std::ptrdiff_t last = first + static_cast<std::ptrdiff_t>(count - 1) * stride;
    const std::ptrdiff_t low = std::min(first, last);
    const std::ptrdiff_t high = std::max(first, last);
    if (element.explicit_bounds && !type_.explicit_bounds) any_ = false;  // from now on only markers count (MPI 4.1.6)
    if (element.explicit_bounds || !type_.explicit_bounds) {
      type_.lower = any_ ? std::min(type_.lower, low + element.lower) : low + element.lower;
      type_.upper = any_ ? std::max(type_.upper, high + element.upper) : high + element.upper;
      any_ = true;
    }
    if (element.size != 0) {
      type_.true_lower = bytes_ ? std::min(type_.true_lower, low + element.true_lower) : low + element.true_lower;
      type_.true_upper = bytes_ ? std::max(type_.true_upper, high + element.true_upper) : high + element.true_upper;
      bytes_ = true;
    }
    type_.alignment = std::max(type_.alignment, element.alignment);
    type_.explicit_bounds = type_.explicit_bounds || element.explicit_bounds;
  }

  void place(const Run& run) {
    if (run.size() == 0) return;
    if (!join(run)) {
      runs().push_back(run);
      runs().back().begin = type_.size;
    }
    type_.size += run.size();
  }

  void finish() {
    if (type_.many.size() == 1) {
      type_.single = type_.many.front();
      type_.many.clear();
    }
    if (type_.explicit_bounds) return;
    const auto alignment = static_cast<std::ptrdiff_t>(type_.alignment);
    const std::ptrdiff_t remainder = type_.extent() % alignment;
    if (remainder > 0) type_.upper += alignment - remainder;  // MPI's epsilon: arrays of the type stay aligned
  }

 private:
  std::vector<Run>& runs() { return type_.many; }

  /// Extends the last run if the new one continues it.
  bool join(const Run& run) {
    if (runs().empty() || !run.contiguous()) return false;
    Run& last = runs().back();
    if (last.child != nullptr) return false;
    if (last.count == 1 && last.first + static_cast<std::ptrdiff_t>(last.block) == run.first) {
      last.block += run.block;
      return true;
    }
    if (last.block != run.block) return false;
    if (last.count == 1) {
      last.stride = run.first - last.first;
      last.count = 2;
      return true;
    }
    if (run.first != last.first + static_cast<std::ptrdiff_t>(last.count) * last.stride) return false;
    ++last.count;
    return true;
  }

  Type& type_;
  bool any_ = false;    // an element, possibly an empty one, has set the bounds
  bool bytes_ = false;  // a byte has set the true bounds
};

/// Keeps `element` alive as a constituent of `type`.
int add_constituent(Type& type, Type& element) {
  if (element.nesting >= kMaxNesting) {
    return fail(MPI_ERR_TYPE, "datatypes are nested more than %d deep; build the type in fewer steps", kMaxNesting);
  }
  type.nesting = std::max<std::uint16_t>(type.nesting, static_cast<std::uint16_t>(element.nesting + 1));
  add_reference(element);
  type.contents.types.push_back(&element);
  return MPI_SUCCESS;
}

/// Checks that the size of count * block elements fits into 63 bits.
int check_size(std::int64_t count, std::int64_t block, const Type& element) {
  if (count < 0) return fail(MPI_ERR_COUNT, "count is %lld; expected: at least 0", static_cast<long long>(count));
  if (block < 0) {
    return fail(MPI_ERR_ARG, "block length is %lld; expected: at least 0", static_cast<long long>(block));
  }
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, block, &elements) ||
      __builtin_mul_overflow(elements, static_cast<std::int64_t>(element.size), &bytes) ||
      __builtin_mul_overflow(elements, static_cast<std::int64_t>(element.extent()), &bytes)) {
    return fail(MPI_ERR_COUNT, "the datatype would be larger than the address space");
  }
  return MPI_SUCCESS;
}

/// Places blocks at given displacements. `element_at(i)` gives the type, `displacement_at(i)` the displacement in
/// bytes.
template <class ElementAt, class DisplacementAt>
int place_blocks(Type& type, std::span<const int> blocks, ElementAt element_at, DisplacementAt displacement_at) {
  Builder builder(type);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Type& element = element_at(i);
    if (const int code = check_size(1, blocks[i], element); code != MPI_SUCCESS) return code;
    const auto count = static_cast<std::size_t>(blocks[i]);
    const std::ptrdiff_t displacement = displacement_at(i);
    builder.extend_bounds(element, displacement, count, element.extent());
    builder.place(repeat(element, displacement, count, element.extent()));
  }
  builder.finish();
  return MPI_SUCCESS;
}

/// Places `count` blocks of `block` elements at given displacements in bytes.
template <class DisplacementAt>
int place_equal_blocks(Type& type, std::size_t count, int block, const Type& element, DisplacementAt displacement_at) {
  if (const int code = check_size(1, block, element); code != MPI_SUCCESS) return code;
  const auto elements = static_cast<std::size_t>(block);
  Builder builder(type);
  for (std::size_t i = 0; i < count; ++i) {
    builder.extend_bounds(element, displacement_at(i), elements, element.extent());
    builder.place(repeat(element, displacement_at(i), elements, element.extent()));
  }
  builder.finish();
  return MPI_SUCCESS;
}

/// Checks the part of an array. *whole gets the bytes of all of it.
int check_subarray(const Subarray& part, const Type& element, std::ptrdiff_t* whole) {
  std::int64_t bytes = element.extent();
  for (std::size_t i = 0; i < part.sizes.size(); ++i) {
    const int size = part.sizes[i], subsize = part.subsizes[i], start = part.starts[i];
    if (size < 1 || subsize < 1 || subsize > size || start < 0 || start > size - subsize)
      return fail(MPI_ERR_ARG, "%d elements from %d on, of %d in dimension %zu; expected: a part of them", subsize,
                  start, size, i);
    if (__builtin_mul_overflow(bytes, std::int64_t{size}, &bytes))
      return fail(MPI_ERR_COUNT, "the array would be larger than the address space");
  }
  *whole = bytes;
  return MPI_SUCCESS;
}

/// Makes the block of an array, without what is before it: a vector of vectors. *start gets the bytes before it.
int make_block_of_array(const Subarray& part, Type& element, Type** made, std::ptrdiff_t* start) {
  const std::size_t dimensions = part.sizes.size();
  std::ptrdiff_t stride = element.extent();
  add_reference(element);
  *made = &element;
  *start = 0;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t at = part.order == MPI_ORDER_C ? dimensions - 1 - i : i;
    Type* const inner = *made;
    const int code = make_vector(part.subsizes[at], 1, stride, true, *inner, made);
    drop_reference(*inner);
    if (code != MPI_SUCCESS) {
      *made = nullptr;
      return code;
    }
    *start += part.starts[at] * stride;
    stride *= part.sizes[at];
  }
  return MPI_SUCCESS;
}

/// Returns the predefined type of which all constituents consist; nullptr if there is none.
const Type* common_element(const Type& type) {
  const Type* found = nullptr;
  for (const Type* const part : type.contents.types) {
    if (part->size == 0) continue;
    if (part->element == nullptr || (found != nullptr && part->element != found)) return nullptr;
    found = part->element;
  }
  return found;
}

/// Returns the finished type in *made, or frees it after an error.
int finish_type(int code, Type* type, Type** made) {
  if (code == MPI_SUCCESS) {
    type->seal();
    type->element = common_element(*type);
    *made = type;
  } else {
    drop_reference(*type);
  }
  return code;
}

int to_int(std::int64_t value) {
  return static_cast<int>(
      std::clamp<std::int64_t>(value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

/// Places the runs of count * block elements, `stride` bytes between blocks.
int place_vector(Type& type, std::size_t count, std::size_t block, std::ptrdiff_t stride, Type& element) {
  Builder builder(type);
  if (count == 0 || block == 0) return MPI_SUCCESS;
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(count - 1) * stride;
  builder.extend_bounds(element, 0, block, element.extent());
  builder.extend_bounds(element, last, block, element.extent());
  const Run row = repeat(element, 0, block, element.extent());
  if (row.count != 0) {
    if (const auto run = stack_runs(row, 0, count, stride)) {
      builder.place(*run);
    } else {
      if (const int code = make_contiguous(static_cast<std::int64_t>(block), element, &type.inner);
          code != MPI_SUCCESS) {
        return code;
      }
      builder.place(repeat(*type.inner, 0, count, stride));
    }
  }
  builder.finish();
  return MPI_SUCCESS;
}

}  // namespace

int get_type(MPI_Datatype handle, Type** found) {
  *found = find_type(handle);
  if (*found != nullptr) return MPI_SUCCESS;
  if (handle == MPI_DATATYPE_NULL) return fail(MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL");
  return fail(MPI_ERR_TYPE, "0x%zx is not a datatype, or was freed", handle_bits(handle));
}

void add_reference(Type& type) {
  if (!type.predefined) type.references.fetch_add(1, std::memory_order_relaxed);
}

void drop_reference(Type& type) {
  if (type.predefined) return;
  const int before = type.references.fetch_sub(1, std::memory_order_acq_rel);
  assert(before > 0);
  if (before > 1) return;
  // A loop instead of recursion, because types can be nested in long chains.
  std::vector<Type*> orphans;
  recycle(type, orphans);
  while (!orphans.empty()) {
    Type& orphan = *orphans.back();
    orphans.pop_back();
    if (orphan.predefined) continue;
    if (orphan.references.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(orphan, orphans);
  }
}

int make_contiguous(std::int64_t count, Type& element, Type** made) {
  if (const int code = check_size(count, 1, element); code != MPI_SUCCESS) return code;
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_CONTIGUOUS, &type); code != MPI_SUCCESS) return code;
  type->contents.integers = {to_int(count)};
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) code = place_vector(*type, 1, static_cast<std::size_t>(count), 0, element);
  return finish_type(code, type, made);
}

int make_vector(std::int64_t count, std::int64_t block, std::ptrdiff_t stride, bool bytes, Type& element, Type** made) {
  if (const int code = check_size(count, block, element); code != MPI_SUCCESS) return code;
  Type* type = nullptr;
  if (const int code = new_type(bytes ? MPI_COMBINER_HVECTOR : MPI_COMBINER_VECTOR, &type); code != MPI_SUCCESS) {
    return code;
  }
  type->contents.integers = {to_int(count), to_int(block)};
  if (bytes) {
    type->contents.addresses = {stride};
  } else {
    type->contents.integers.push_back(to_int(stride));
    stride *= element.extent();
  }
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) {
    code = place_vector(*type, static_cast<std::size_t>(count), static_cast<std::size_t>(block), stride, element);
  }
  return finish_type(code, type, made);
}

int make_indexed(std::span<const int> blocks, std::span<const int> displacements, Type& element, Type** made) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_INDEXED, &type); code != MPI_SUCCESS) return code;
  auto& integers = type->contents.integers;
  integers = {static_cast<int>(blocks.size())};
  integers.insert(integers.end(), blocks.begin(), blocks.end());
  integers.insert(integers.end(), displacements.begin(), displacements.end());
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) {
    code = place_blocks(
        *type, blocks, [&](std::size_t) -> Type& { return element; },
        [&](std::size_t i) { return displacements[i] * element.extent(); });
  }
  return finish_type(code, type, made);
}

int make_hindexed(std::span<const int> blocks, std::span<const MPI_Aint> displacements, Type& element, Type** made) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_HINDEXED, &type); code != MPI_SUCCESS) return code;
  auto& integers = type->contents.integers;
  integers = {static_cast<int>(blocks.size())};
  integers.insert(integers.end(), blocks.begin(), blocks.end());
  type->contents.addresses.assign(displacements.begin(), displacements.end());
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) {
    code = place_blocks(
        *type, blocks, [&](std::size_t) -> Type& { return element; }, [&](std::size_t i) { return displacements[i]; });
  }
  return finish_type(code, type, made);
}

int make_indexed_block(std::span<const int> displacements, int block, Type& element, Type** made) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_INDEXED_BLOCK, &type); code != MPI_SUCCESS) return code;
  auto& integers = type->contents.integers;
  integers = {static_cast<int>(displacements.size()), block};
  integers.insert(integers.end(), displacements.begin(), displacements.end());
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS)
    code = place_equal_blocks(*type, displacements.size(), block, element,
                              [&](std::size_t i) { return displacements[i] * element.extent(); });
  return finish_type(code, type, made);
}

int make_hindexed_block(std::span<const MPI_Aint> displacements, int block, Type& element, Type** made) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_HINDEXED_BLOCK, &type); code != MPI_SUCCESS) return code;
  type->contents.integers = {static_cast<int>(displacements.size()), block};
  type->contents.addresses.assign(displacements.begin(), displacements.end());
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS)
    code = place_equal_blocks(*type, displacements.size(), block, element,
                              [&](std::size_t i) { return displacements[i]; });
  return finish_type(code, type, made);
}

int make_subarray(const Subarray& part, Type& element, Type** made) {
  std::ptrdiff_t whole = 0, start = 0;
  int code = check_subarray(part, element, &whole);
  if (code != MPI_SUCCESS) return code;
  Type* type = nullptr;
  code = new_type(MPI_COMBINER_SUBARRAY, &type);
  if (code != MPI_SUCCESS) return code;
  auto& integers = type->contents.integers;
  integers = {static_cast<int>(part.sizes.size())};
  for (const std::span<const int> list : {part.sizes, part.subsizes, part.starts})
    integers.insert(integers.end(), list.begin(), list.end());
  integers.push_back(part.order);
  code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) code = make_block_of_array(part, element, &type->inner, &start);
  if (code == MPI_SUCCESS) {
    type->nesting = std::max<std::uint16_t>(type->nesting, static_cast<std::uint16_t>(type->inner->nesting + 1));
    Builder builder(*type);
    builder.extend_bounds(*type->inner, start, 1, 0);
    builder.place(repeat(*type->inner, start, 1, 0));
    builder.finish();
    type->lower = 0;
    type->upper = whole;
    type->explicit_bounds = true;
  }
  return finish_type(code, type, made);
}

int make_struct(std::span<const int> blocks, std::span<const MPI_Aint> displacements, std::span<Type* const> elements,
                Type** made) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_STRUCT, &type); code != MPI_SUCCESS) return code;
  auto& integers = type->contents.integers;
  integers = {static_cast<int>(blocks.size())};
  integers.insert(integers.end(), blocks.begin(), blocks.end());
  type->contents.addresses.assign(displacements.begin(), displacements.end());
  int code = MPI_SUCCESS;
  for (std::size_t i = 0; i < elements.size() && code == MPI_SUCCESS; ++i) code = add_constituent(*type, *elements[i]);
  if (code == MPI_SUCCESS) {
    code = place_blocks(
        *type, blocks, [&](std::size_t i) -> Type& { return *elements[i]; },
        [&](std::size_t i) { return displacements[i]; });
  }
  return finish_type(code, type, made);
}

int make_resized(Type& element, std::ptrdiff_t lower, std::ptrdiff_t extent, Type** made) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_RESIZED, &type); code != MPI_SUCCESS) return code;
  type->contents.addresses = {lower, extent};
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) code = place_vector(*type, 1, 1, 0, element);
  type->lower = lower;
  type->upper = lower + extent;
  type->explicit_bounds = true;
  return finish_type(code, type, made);
}

int make_duplicate(Type& element, Type** made) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_DUP, &type); code != MPI_SUCCESS) return code;
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) code = place_vector(*type, 1, 1, 0, element);
  return finish_type(code, type, made);
}

}  // namespace canele::mpi
