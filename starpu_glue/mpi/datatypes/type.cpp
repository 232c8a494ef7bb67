// SPDX-License-Identifier: BSD-3-Clause
//
// Making and freeing datatypes. StarPU makes one per message.
//
// A reused slot keeps the small vectors of its last type, so that making a type allocates nothing in the steady state.
#include "starpu_glue/mpi/datatypes/type.hpp"

#include <algorithm>
#include <cassert>

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

/// Returns the type to the pool. Appends its constituents to `orphans`, for the caller to drop their references.
void recycle(Type& type, std::vector<Type*>& orphans) {
  orphans.insert(orphans.end(), type.contents.types.begin(), type.contents.types.end());
  if (type.inner != nullptr) orphans.push_back(type.inner);
  type.inner = nullptr;
  empty(type.contents.integers);
  empty(type.contents.addresses);
  empty(type.contents.counts);
  empty(type.contents.types);
  empty(type.many);
  type.name.clear();
  type.attributes.forget();  // the program has freed the type too often
  types_pool.release(type.handle);
}

/// Places blocks at displacements of `unit` bytes. `element_at(i)` gives the type of block i.
template <class ElementAt>
int place_blocks(Type& type, const Integers& blocks, const Integers& displacements, std::ptrdiff_t unit,
                 ElementAt element_at) {
  Builder builder(type);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Type& element = element_at(i);
    if (const int code = check_size(1, blocks[i], element); code != MPI_SUCCESS) return code;
    const auto count = static_cast<std::size_t>(blocks[i]);
    if (count == 0) continue;  // wherever it lies
    const std::ptrdiff_t displacement = builder.product(displacements[i], unit);
    builder.extend_bounds(element, displacement, count, element.extent());
    builder.place(repeat(element, displacement, count, element.extent()));
  }
  return builder.finish();
}

/// Places blocks of `block` elements at displacements of `unit` bytes.
int place_equal_blocks(Type& type, std::int64_t block, const Integers& displacements, std::ptrdiff_t unit,
                       const Type& element) {
  if (const int code = check_size(1, block, element); code != MPI_SUCCESS) return code;
  const auto elements = static_cast<std::size_t>(block);
  Builder builder(type);
  for (std::size_t i = 0; i < displacements.size() && elements > 0; ++i) {
    const std::ptrdiff_t displacement = builder.product(displacements[i], unit);
    builder.extend_bounds(element, displacement, elements, element.extent());
    builder.place(repeat(element, displacement, elements, element.extent()));
  }
  return builder.finish();
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

/// Places the runs of count * block elements, `stride` bytes between blocks.
int place_vector(Type& type, std::size_t count, std::size_t block, std::ptrdiff_t stride, Type& element) {
  Builder builder(type);
  if (count == 0 || block == 0) return MPI_SUCCESS;
  const std::ptrdiff_t last = builder.product(static_cast<std::ptrdiff_t>(count - 1), stride);
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
  return builder.finish();
}

}  // namespace

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

int add_constituent(Type& type, Type& element) {
  if (element.nesting >= kMaxNesting) {
    return fail(MPI_ERR_TYPE, "datatypes are nested more than %d deep; build the type in fewer steps", kMaxNesting);
  }
  type.nesting = std::max<std::uint16_t>(type.nesting, static_cast<std::uint16_t>(element.nesting + 1));
  add_reference(element);
  type.contents.types.push_back(&element);
  return MPI_SUCCESS;
}

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

int make_contiguous(std::int64_t count, Type& element, Type** made, Form form) {
  if (const int code = check_size(count, 1, element); code != MPI_SUCCESS) return code;
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_CONTIGUOUS, &type); code != MPI_SUCCESS) return code;
  Record(*type, form).count(count);
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) code = place_vector(*type, 1, static_cast<std::size_t>(count), 0, element);
  return finish_type(code, type, made);
}

int make_vector(std::int64_t count, std::int64_t block, std::ptrdiff_t stride, bool bytes, Type& element, Type** made,
                Form form) {
  if (const int code = check_size(count, block, element); code != MPI_SUCCESS) return code;
  Type* type = nullptr;
  if (const int code = new_type(bytes ? MPI_COMBINER_HVECTOR : MPI_COMBINER_VECTOR, &type); code != MPI_SUCCESS) {
    return code;
  }
  Record record(*type, form);
  record.count(count);
  record.count(block);
  bytes ? record.address(stride) : record.count(stride);
  int code = add_constituent(*type, element);
  if (!bytes && code == MPI_SUCCESS && __builtin_mul_overflow(stride, element.extent(), &stride))
    code = fail(MPI_ERR_COUNT, "the stride is larger than the address space");
  if (code == MPI_SUCCESS) {
    code = place_vector(*type, static_cast<std::size_t>(count), static_cast<std::size_t>(block), stride, element);
  }
  return finish_type(code, type, made);
}

int make_indexed(const Integers& blocks, const Integers& displacements, Type& element, Type** made, Form form) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_INDEXED, &type); code != MPI_SUCCESS) return code;
  Record record(*type, form);
  record.count(static_cast<std::int64_t>(blocks.size()));
  record.counts(blocks);
  record.counts(displacements);
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS)
    code = place_blocks(*type, blocks, displacements, element.extent(), [&](std::size_t) -> Type& { return element; });
  return finish_type(code, type, made);
}

int make_hindexed(const Integers& blocks, const Integers& displacements, Type& element, Type** made, Form form) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_HINDEXED, &type); code != MPI_SUCCESS) return code;
  Record record(*type, form);
  record.count(static_cast<std::int64_t>(blocks.size()));
  record.counts(blocks);
  record.addresses(displacements);
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS)
    code = place_blocks(*type, blocks, displacements, 1, [&](std::size_t) -> Type& { return element; });
  return finish_type(code, type, made);
}

int make_indexed_block(const Integers& displacements, std::int64_t block, Type& element, Type** made, Form form) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_INDEXED_BLOCK, &type); code != MPI_SUCCESS) return code;
  Record record(*type, form);
  record.count(static_cast<std::int64_t>(displacements.size()));
  record.count(block);
  record.counts(displacements);
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) code = place_equal_blocks(*type, block, displacements, element.extent(), element);
  return finish_type(code, type, made);
}

int make_hindexed_block(const Integers& displacements, std::int64_t block, Type& element, Type** made, Form form) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_HINDEXED_BLOCK, &type); code != MPI_SUCCESS) return code;
  Record record(*type, form);
  record.count(static_cast<std::int64_t>(displacements.size()));
  record.count(block);
  record.addresses(displacements);
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) code = place_equal_blocks(*type, block, displacements, 1, element);
  return finish_type(code, type, made);
}

int make_struct(const Integers& blocks, const Integers& displacements, std::span<Type* const> elements, Type** made,
                Form form) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_STRUCT, &type); code != MPI_SUCCESS) return code;
  Record record(*type, form);
  record.count(static_cast<std::int64_t>(blocks.size()));
  record.counts(blocks);
  record.addresses(displacements);
  int code = MPI_SUCCESS;
  for (std::size_t i = 0; i < elements.size() && code == MPI_SUCCESS; ++i) code = add_constituent(*type, *elements[i]);
  if (code == MPI_SUCCESS)
    code = place_blocks(*type, blocks, displacements, 1, [&](std::size_t i) -> Type& { return *elements[i]; });
  return finish_type(code, type, made);
}

int make_resized(Type& element, std::ptrdiff_t lower, std::ptrdiff_t extent, Type** made, Form form) {
  Type* type = nullptr;
  if (const int code = new_type(MPI_COMBINER_RESIZED, &type); code != MPI_SUCCESS) return code;
  Record record(*type, form);
  record.address(lower);
  record.address(extent);
  int code = add_constituent(*type, element);
  if (code == MPI_SUCCESS) code = place_vector(*type, 1, 1, 0, element);
  type->lower = lower;
  if (code == MPI_SUCCESS && __builtin_add_overflow(lower, extent, &type->upper))
    code = fail(MPI_ERR_COUNT, "the upper bound of the datatype is beyond the address space");
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
