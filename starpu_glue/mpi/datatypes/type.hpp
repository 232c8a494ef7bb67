// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes: immutable, reference-counted descriptions of where the bytes of an element lie in memory.
//
// Usable from any thread; a type never changes after creation, except for its name and the commit flag. A type that
// looks strided but is not (a vector whose stride is its block length, contiguous of contiguous) becomes one block at
// creation. Sending such a type costs the same as sending bytes.
//
// Layout. The packed form of one element is the concatenation of its runs. A run is `count` blocks of `block` packed
// bytes; the i-th begins at `first + i * stride`. A block is contiguous (child == nullptr) or laid out like `child`.
//
//   struct { int a; char pad[12]; double matrix[2][8] (3 of 8 columns used); }
//
//     runs[0]  begin 0   first 0    count 1  block 4                    a
//     runs[1]  begin 4   first 16   count 2  stride 64  block 24        two rows of three doubles
//
// A position in the packed form is found by binary search over runs, then one division: random access without state.
//
// The constructors join what continues a pattern. So a type of equal blocks at equal distances (a vector, a matrix
// block, whatever they were nested in) is one run without a child from its creation on, and no call has to look for the
// pattern. Rejected: the full list of pieces. A matrix of 10^6 rows would cost 16 MB per message.
#pragma once

#include <canele/canele.h>
#include <mpi.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starpu_glue/mpi/core/attributes.hpp"
#include "starpu_glue/mpi/core/device.hpp"
#include "starpu_glue/mpi/core/handles.hpp"
#include "starpu_glue/mpi/core/integers.hpp"

namespace canele::mpi {

struct Type;

struct Run {
  std::size_t begin = 0;      ///< position of the first byte in the packed form
  std::ptrdiff_t first = 0;   ///< address of the first block, relative to the element
  std::ptrdiff_t stride = 0;  ///< bytes from one block to the next
  std::size_t count = 0;
  std::size_t block = 0;        ///< packed bytes per block
  const Type* child = nullptr;  ///< holds no reference: the type's constituents keep it alive

  std::size_t size() const { return count * block; }
  bool contiguous() const { return count == 1 && child == nullptr; }
  /// Returns whether it is several equal blocks, one stride apart.
  bool regular() const { return count > 1 && child == nullptr; }
};

/// The kind of a predefined type, for the reduction operators.
enum class Basic : std::uint8_t {
  none,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f32,
  f64,
  f80,
  c32,
  c64,
  c80,
  boolean,
  byte,
  float_int,
  double_int,
  long_int,
  int_int,
  short_int,
  long_double_int
};

/// Arguments of the call that made a type, for MPI_Type_get_contents.
struct Contents {
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;  ///< of a form for large counts: all counts, lengths and displacements
  std::vector<Type*> types;       ///< hold references
};

struct Type {
  std::atomic<int> references{0};  ///< not counted for predefined types
  int combiner = MPI_COMBINER_NAMED;
  MPI_Datatype handle{};
  Basic basic = Basic::none;
  bool dense = false;            ///< elements follow each other without a gap: any number of them is one block
  bool explicit_bounds = false;  ///< made from MPI_Type_create_resized: no padding is added
  bool predefined = false;
  std::uint16_t nesting = 0;
  std::uint32_t alignment = 1;
  std::size_t size = 0;  ///< packed bytes
  Run single;            ///< the run, if there is exactly one
  std::ptrdiff_t lower = 0;
  std::ptrdiff_t upper = 0;
  std::ptrdiff_t true_lower = 0;
  std::ptrdiff_t true_upper = 0;
  std::vector<Run> many;  ///< the runs, if there are several
  Contents contents;
  const Type* element = nullptr;  ///< the predefined type of all its bytes; null: it has several, or no bytes
  Type* inner = nullptr;          ///< a helper type that belongs to this one (holds a reference), see make_vector
  const char* fixed_name = "";    ///< of a predefined type
  std::string name;
  Attributes attributes;
  std::atomic<int> more_handles{0};  ///< that the program has from MPI_Type_get_contents, and frees as well

  std::ptrdiff_t extent() const { return upper - lower; }
  /// Completes the type; the last step of its creation.
  void seal() { dense = many.empty() && single.contiguous() && static_cast<std::ptrdiff_t>(single.block) == extent(); }
  std::span<const Run> runs() const {
    return many.empty() ? std::span<const Run>(&single, size != 0 ? 1 : 0) : std::span<const Run>(many);
  }
};

constexpr std::uint32_t kTypesReserved = 0x2ec;  ///< up to MPI_COMPLEX32
using TypePool = HandlePool<Type, MPI_Datatype, Kind::datatype, kTypesReserved, 32768>;
extern constinit TypePool types_pool;

/// Finds a type whose handle is not in the pool. The first look-up of a predefined type makes all of them.
Type* find_predefined_type(MPI_Datatype handle);

/// Returns the type of a live handle, else nullptr.
inline Type* find_type(MPI_Datatype handle) {
  if (Type* type = types_pool.find(handle)) [[likely]]
    return type;
  return find_predefined_type(handle);
}

/// Looks a type up like find_type, but returns an MPI code and sets the detail.
int get_type(MPI_Datatype handle, Type** found);

void add_reference(Type& type);
/// Drops a reference. The last one returns the type to the pool.
void drop_reference(Type& type);

struct DropReference {
  void operator()(Type* type) const { drop_reference(*type); }
};
/// A reference on a type, which its end drops.
using TypeReference = std::unique_ptr<Type, DropReference>;
inline TypeReference reference_to(const Type& type) {
  auto& counted = const_cast<Type&>(type);  // the count is no part of what a type describes
  add_reference(counted);
  return TypeReference(&counted);
}

/// Constructors. They return MPI_SUCCESS and a type with one reference, or an error code with a detail. A type that
/// reaches beyond 63 bits is MPI_ERR_COUNT. `form` says how the program called, for MPI_Type_get_contents.
int make_contiguous(std::int64_t count, Type& element, Type** made, Form form = Form::small);
/// `stride` is in bytes if `bytes`, else in extents of the element.
int make_vector(std::int64_t count, std::int64_t block, std::ptrdiff_t stride, bool bytes, Type& element, Type** made,
                Form form = Form::small);
int make_indexed(const Integers& blocks, const Integers& displacements, Type& element, Type** made,
                 Form form = Form::small);
int make_hindexed(const Integers& blocks, const Integers& displacements, Type& element, Type** made,
                  Form form = Form::small);
/// Blocks of `block` elements each.
int make_indexed_block(const Integers& displacements, std::int64_t block, Type& element, Type** made,
                       Form form = Form::small);
int make_hindexed_block(const Integers& displacements, std::int64_t block, Type& element, Type** made,
                        Form form = Form::small);
int make_struct(const Integers& blocks, const Integers& displacements, std::span<Type* const> elements, Type** made,
                Form form = Form::small);
int make_resized(Type& element, std::ptrdiff_t lower, std::ptrdiff_t extent, Type** made, Form form = Form::small);
int make_duplicate(Type& element, Type** made);

/// Part of an array: `subsizes` elements from `starts` on, of `sizes` elements in each dimension.
struct Subarray {
  Integers sizes, subsizes, starts;
  int order;  ///< MPI_ORDER_C: the last dimension is contiguous; MPI_ORDER_FORTRAN: the first one is
};
int make_subarray(const Subarray& part, Type& element, Type** made, Form form = Form::small);

/// The part of an array that one process of a grid has. The last dimension of the grid varies fastest over the ranks.
struct Distributed {
  int size, rank;  ///< processes of the grid, and which of them
  Integers sizes;
  std::span<const int> distributions, arguments, grid;
  int order;
};
int make_distributed(const Distributed& array, Type& element, Type** made, Form form = Form::small);

/// Returns the length of block `index` of a type that MPI_Type_create_struct made.
inline std::int64_t block_length(const Type& type, std::size_t index) {
  return type.contents.counts.empty() ? type.contents.integers[index + 1] : type.contents.counts[index + 1];
}

/// Returns the run that is equal to `count` elements from `first` on, `stride` bytes apart (begin = 0).
Run repeat(const Type& element, std::ptrdiff_t first, std::size_t count, std::ptrdiff_t stride);

/// Data of one message: `count` elements at `base`. The object and its type must live as long as the transfer.
struct Payload {
  Run layout;
  char* base = nullptr;
  std::size_t length = 0;

  Payload() = default;
  Payload(const void* memory, std::size_t count, const Type& type)
      : layout(type.dense ? Run{0, type.single.first, 0, 1, type.size * count, nullptr}
                          : repeat(type, 0, count, type.extent())),
        base(static_cast<char*>(const_cast<void*>(memory))),
        length(type.size * count) {}

  bool contiguous() const { return layout.contiguous() || length == 0; }
  /// Returns whether its first byte is in the memory of a GPU.
  bool is_on_device() const { return devices_in_use() && length != 0 && is_first_on_device(); }
  /// Describes the data for the engine; the result refers to *this unless the data is contiguous.
  canele_data_t describe() const;
  /// Writes up to `max` pieces from packed position `offset` on; returns how many.
  int pieces(std::size_t offset, struct iovec* out, int max) const;

 private:
  [[gnu::cold]] bool is_first_on_device() const;
};

/// Bytes [from, from + length) of the packed data. The payload must live as long as the slice.
struct PayloadSlice {
  const Payload* payload = nullptr;
  std::size_t from = 0;
  std::size_t length = 0;

  /// Describes the data for the engine; the result refers to *this unless the payload is contiguous.
  canele_data_t describe() const;
};

/// Copy packed bytes [offset, offset + length) between `packed` and the payload's memory.
void pack(const Payload& payload, std::size_t offset, std::size_t length, void* packed);
void unpack(const Payload& payload, std::size_t offset, std::size_t length, const void* packed);

}  // namespace canele::mpi
