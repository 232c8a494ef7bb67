// SPDX-License-Identifier: BSD-3-Clause
//
// The predefined datatypes. The number of each is its handle in mpi_constants.h, and the index of its slot.
//
// Types of Fortran that neither C nor the engine has are bytes: they can be sent, but not reduced.
//
// The pool entries are made at the first look-up, so that loading and unloading the library runs no code.
#include <complex>

#include "starpu_glue/mpi/datatypes/type_build.hpp"

namespace canele::mpi {
namespace {

constexpr std::uint32_t kNullType = 0x200;  // MPI_DATATYPE_NULL

struct Row {
  const char* name;
  std::uint32_t number;
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
constexpr Row plain(const char* name, std::uint32_t number, Basic basic) {
  return {name, number, basic, sizeof(T), sizeof(T), alignof(T)};
}
template <class T>
constexpr Row integer(const char* name, std::uint32_t number) {
  return plain<T>(name, number, integer_kind<T>());
}
template <class Value>
constexpr Row pair(const char* name, std::uint32_t number, Basic basic) {
  struct Pair {
    Value value;
    int index;
  };
  constexpr bool has_gap = offsetof(Pair, index) != sizeof(Value);
  return {name, number, basic, sizeof(Value) + sizeof(int), sizeof(Pair), alignof(Pair), has_gap ? sizeof(Value) : 0};
}

constexpr Row kRows[] = {
    integer<MPI_Aint>("MPI_AINT", 0x201),
    integer<MPI_Count>("MPI_COUNT", 0x202),
    integer<MPI_Offset>("MPI_OFFSET", 0x203),
    {"MPI_PACKED", 0x207, Basic::none, 1, 1, 1},
    integer<short>("MPI_SHORT", 0x208),
    integer<int>("MPI_INT", 0x209),
    integer<long>("MPI_LONG", 0x20a),
    integer<long long>("MPI_LONG_LONG_INT", 0x20b),
    integer<unsigned short>("MPI_UNSIGNED_SHORT", 0x20c),
    integer<unsigned>("MPI_UNSIGNED", 0x20d),
    integer<unsigned long>("MPI_UNSIGNED_LONG", 0x20e),
    integer<unsigned long long>("MPI_UNSIGNED_LONG_LONG", 0x20f),
    plain<float>("MPI_FLOAT", 0x210, Basic::f32),
    plain<std::complex<float>>("MPI_C_FLOAT_COMPLEX", 0x212, Basic::c32),
    plain<std::complex<float>>("MPI_CXX_FLOAT_COMPLEX", 0x213, Basic::c32),
    plain<double>("MPI_DOUBLE", 0x214, Basic::f64),
    plain<std::complex<double>>("MPI_C_DOUBLE_COMPLEX", 0x216, Basic::c64),
    plain<std::complex<double>>("MPI_CXX_DOUBLE_COMPLEX", 0x217, Basic::c64),
    integer<int>("MPI_LOGICAL", 0x218),
    integer<int>("MPI_INTEGER", 0x219),
    plain<float>("MPI_REAL", 0x21a, Basic::f32),
    plain<std::complex<float>>("MPI_COMPLEX", 0x21b, Basic::c32),
    plain<double>("MPI_DOUBLE_PRECISION", 0x21c, Basic::f64),
    plain<std::complex<double>>("MPI_DOUBLE_COMPLEX", 0x21d, Basic::c64),
    integer<char>("MPI_CHARACTER", 0x21e),
    plain<long double>("MPI_LONG_DOUBLE", 0x220, Basic::f80),
    plain<std::complex<long double>>("MPI_C_LONG_DOUBLE_COMPLEX", 0x224, Basic::c80),
    plain<std::complex<long double>>("MPI_CXX_LONG_DOUBLE_COMPLEX", 0x225, Basic::c80),
    pair<float>("MPI_FLOAT_INT", 0x228, Basic::float_int),
    pair<double>("MPI_DOUBLE_INT", 0x229, Basic::double_int),
    pair<long>("MPI_LONG_INT", 0x22a, Basic::long_int),
    pair<int>("MPI_2INT", 0x22b, Basic::int_int),
    pair<short>("MPI_SHORT_INT", 0x22c, Basic::short_int),
    pair<long double>("MPI_LONG_DOUBLE_INT", 0x22d, Basic::long_double_int),
    {"MPI_2REAL", 0x230, Basic::none, 8, 8, 4},
    {"MPI_2DOUBLE_PRECISION", 0x231, Basic::none, 16, 16, 8},
    pair<int>("MPI_2INTEGER", 0x232, Basic::int_int),
    plain<bool>("MPI_C_BOOL", 0x238, Basic::boolean),
    plain<bool>("MPI_CXX_BOOL", 0x239, Basic::boolean),
    integer<wchar_t>("MPI_WCHAR", 0x23c),
    integer<std::int8_t>("MPI_INT8_T", 0x240),
    integer<std::uint8_t>("MPI_UINT8_T", 0x241),
    integer<char>("MPI_CHAR", 0x243),
    integer<signed char>("MPI_SIGNED_CHAR", 0x244),
    integer<unsigned char>("MPI_UNSIGNED_CHAR", 0x245),
    {"MPI_BYTE", 0x247, Basic::byte, 1, 1, 1},
    integer<std::int16_t>("MPI_INT16_T", 0x248),
    integer<std::uint16_t>("MPI_UINT16_T", 0x249),
    integer<std::int32_t>("MPI_INT32_T", 0x250),
    integer<std::uint32_t>("MPI_UINT32_T", 0x251),
    integer<std::int64_t>("MPI_INT64_T", 0x258),
    integer<std::uint64_t>("MPI_UINT64_T", 0x259),
    integer<std::int8_t>("MPI_LOGICAL1", 0x2c0),
    integer<std::int8_t>("MPI_INTEGER1", 0x2c1),
    integer<std::int16_t>("MPI_LOGICAL2", 0x2c8),
    integer<std::int16_t>("MPI_INTEGER2", 0x2c9),
    {"MPI_REAL2", 0x2ca, Basic::none, 2, 2, 2},
    integer<std::int32_t>("MPI_LOGICAL4", 0x2d0),
    integer<std::int32_t>("MPI_INTEGER4", 0x2d1),
    plain<float>("MPI_REAL4", 0x2d2, Basic::f32),
    {"MPI_COMPLEX4", 0x2d3, Basic::none, 4, 4, 2},
    integer<std::int64_t>("MPI_LOGICAL8", 0x2d8),
    integer<std::int64_t>("MPI_INTEGER8", 0x2d9),
    plain<double>("MPI_REAL8", 0x2da, Basic::f64),
    plain<std::complex<float>>("MPI_COMPLEX8", 0x2db, Basic::c32),
    {"MPI_LOGICAL16", 0x2e0, Basic::none, 16, 16, 16},
    {"MPI_INTEGER16", 0x2e1, Basic::none, 16, 16, 16},
    {"MPI_REAL16", 0x2e2, Basic::none, 16, 16, 16},
    plain<std::complex<double>>("MPI_COMPLEX16", 0x2e3, Basic::c64),
    {"MPI_COMPLEX32", 0x2eb, Basic::none, 32, 32, 16},
};

constexpr bool is_in_order() {
  std::uint32_t last = kNullType;
  for (const Row& row : kRows) {
    if (row.number <= last || row.number >= kTypesReserved) return false;
    last = row.number;
  }
  return true;
}
static_assert(is_in_order(), "a number is there twice, or is not among the reserved ones");

/// Lays a pair out whose index does not follow its value at once.
void place_pair(const Row& row, Type& type) {
  const auto index = static_cast<std::ptrdiff_t>(row.extent - sizeof(int));
  type.many = {{0, 0, 0, 1, row.first, nullptr}, {row.first, index, 0, 1, sizeof(int), nullptr}};
  type.true_upper = static_cast<std::ptrdiff_t>(row.extent);
}

/// Makes the predefined types in the pool, before any look-up finds them. Returns false if there is no memory.
bool make_predefined() {
  for (const Row& row : kRows) {
    const auto handle = to_handle<MPI_Datatype>(static_cast<int>(row.number));
    Type* type = types_pool.reserved(handle);
    if (type == nullptr) return false;
    type->handle = handle;
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

}  // namespace

Type* find_predefined_type(MPI_Datatype handle) {
  const std::size_t number = handle_bits(handle);
  if (number <= kNullType || number >= kTypesReserved) return nullptr;
  static const bool made = make_predefined();
  return made ? types_pool.find(handle) : nullptr;
}

}  // namespace canele::mpi
