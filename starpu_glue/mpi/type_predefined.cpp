// SPDX-License-Identifier: BSD-3-Clause
//
// The predefined datatypes, in the order of their handles in mpi.h.
//
// The pool entries are made at the first look-up, so that loading and unloading the library runs no code.
#include <complex>

#include "starpu_glue/mpi/type_build.hpp"

namespace canele::mpi {
namespace {

struct Row {
  const char* name;
  int handle;
  Basic basic;
  std::size_t size;    // packed bytes
  std::size_t extent;  // bytes in memory
  std::size_t alignment;
  std::size_t first = 0;  // bytes of the value of a pair whose index does not follow at once
};

template <class T>
constexpr Basic integer_kind() {
  constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
  switch (sizeof(T)) {
    case 1:
      return is_signed ? Basic::i8 : Basic::u8;
    case 2:
      return is_signed ? Basic::i16 : Basic::u16;
    case 4:
      return is_signed ? Basic::i32 : Basic::u32;
    default:
      return is_signed ? Basic::i64 : Basic::u64;
  }
}

template <class T>
constexpr Row plain(const char* name, int handle, Basic basic) {
  return {name, handle, basic, sizeof(T), sizeof(T), alignof(T)};
}
template <class T>
constexpr Row integer(const char* name, int handle) {
  return plain<T>(name, handle, integer_kind<T>());
}
template <class Value>
constexpr Row pair(const char* name, int handle, Basic basic) {
  struct Pair {
    Value value;
    int index;
  };
  constexpr bool has_gap = offsetof(Pair, index) != sizeof(Value);
  return {name, handle, basic, sizeof(Value) + sizeof(int), sizeof(Pair), alignof(Pair), has_gap ? sizeof(Value) : 0};
}

constexpr Row kRows[] = {
    {"MPI_DATATYPE_NULL", MPI_DATATYPE_NULL, Basic::none, 0, 0, 1},
    {"MPI_BYTE", MPI_BYTE, Basic::byte, 1, 1, 1},
    {"MPI_PACKED", MPI_PACKED, Basic::none, 1, 1, 1},
    integer<char>("MPI_CHAR", MPI_CHAR),
    integer<signed char>("MPI_SIGNED_CHAR", MPI_SIGNED_CHAR),
    integer<unsigned char>("MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR),
    integer<wchar_t>("MPI_WCHAR", MPI_WCHAR),
    integer<short>("MPI_SHORT", MPI_SHORT),
    integer<unsigned short>("MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT),
    integer<int>("MPI_INT", MPI_INT),
    integer<unsigned>("MPI_UNSIGNED", MPI_UNSIGNED),
    integer<long>("MPI_LONG", MPI_LONG),
    integer<unsigned long>("MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG),
    integer<long long>("MPI_LONG_LONG_INT", MPI_LONG_LONG_INT),
    integer<unsigned long long>("MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG),
    plain<float>("MPI_FLOAT", MPI_FLOAT, Basic::f32),
    plain<double>("MPI_DOUBLE", MPI_DOUBLE, Basic::f64),
    plain<long double>("MPI_LONG_DOUBLE", MPI_LONG_DOUBLE, Basic::f80),
    integer<std::int8_t>("MPI_INT8_T", MPI_INT8_T),
    integer<std::int16_t>("MPI_INT16_T", MPI_INT16_T),
    integer<std::int32_t>("MPI_INT32_T", MPI_INT32_T),
    integer<std::int64_t>("MPI_INT64_T", MPI_INT64_T),
    integer<std::uint8_t>("MPI_UINT8_T", MPI_UINT8_T),
    integer<std::uint16_t>("MPI_UINT16_T", MPI_UINT16_T),
    integer<std::uint32_t>("MPI_UINT32_T", MPI_UINT32_T),
    integer<std::uint64_t>("MPI_UINT64_T", MPI_UINT64_T),
    plain<bool>("MPI_C_BOOL", MPI_C_BOOL, Basic::boolean),
    plain<std::complex<float>>("MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, Basic::c32),
    plain<std::complex<double>>("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, Basic::c64),
    plain<std::complex<long double>>("MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX, Basic::c80),
    integer<MPI_Aint>("MPI_AINT", MPI_AINT),
    integer<MPI_Count>("MPI_COUNT", MPI_COUNT),
    integer<MPI_Offset>("MPI_OFFSET", MPI_OFFSET),
    pair<float>("MPI_FLOAT_INT", MPI_FLOAT_INT, Basic::float_int),
    pair<double>("MPI_DOUBLE_INT", MPI_DOUBLE_INT, Basic::double_int),
    pair<long>("MPI_LONG_INT", MPI_LONG_INT, Basic::long_int),
    pair<int>("MPI_2INT", MPI_2INT, Basic::int_int),
    pair<short>("MPI_SHORT_INT", MPI_SHORT_INT, Basic::short_int),
    pair<long double>("MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT, Basic::long_double_int),
};
static_assert(sizeof kRows / sizeof kRows[0] == kPredefinedTypes);

/// Lays a pair out whose index does not follow its value at once.
void place_pair(const Row& row, Type& type) {
  const auto index = static_cast<std::ptrdiff_t>(row.extent - sizeof(int));
  type.many = {{0, 0, 0, 1, row.first, nullptr}, {row.first, index, 0, 1, sizeof(int), nullptr}};
  type.true_upper = static_cast<std::ptrdiff_t>(row.extent);
}

/// Makes the predefined types in the pool, before any look-up finds them. Returns false if there is no memory.
bool make_predefined() {
  for (std::uint32_t i = 1; i < kPredefinedTypes; ++i) {
    Type* type = types_pool.reserved(i);
    if (type == nullptr) return false;
    const Row& row = kRows[i];
    type->handle = row.handle;
    type->basic = row.basic;
    type->predefined = true;
    type->element = type;
    type->alignment = static_cast<std::uint32_t>(row.alignment);
    type->size = row.size;
    type->upper = static_cast<std::ptrdiff_t>(row.extent);
    type->true_upper = static_cast<std::ptrdiff_t>(row.size);
    type->single.count = 1;
    type->single.block = row.size;
    type->fixed_name = row.name;
    if (row.first != 0) place_pair(row, *type);
    type->seal();
    TypePool::open(*type);
  }
  return true;
}

constexpr bool handles_match() {
  for (std::uint32_t i = 1; i < kPredefinedTypes; ++i) {
    if (kRows[i].handle != make_handle(Kind::datatype, i)) return false;
  }
  return true;
}
static_assert(handles_match(), "mpi.h and kRows name the types in different orders");

}  // namespace

Type* find_predefined_type(MPI_Datatype handle) {
  if (!is_kind(handle, Kind::datatype) || handle_index(handle) >= kPredefinedTypes) return nullptr;
  static const bool made = make_predefined();
  return made ? types_pool.find(handle) : nullptr;
}

}  // namespace canele::mpi
