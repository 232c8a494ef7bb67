// SPDX-License-Identifier: BSD-3-Clause
//
// Conversion to external32 and back: the types of the numbers in their order, and each number.
//
// A type keeps where its bytes lie, but not of which numbers they are. The arguments that made it tell that. Data is
// packed in pieces of a small buffer, and the numbers there are converted.
#include "starpu_glue/mpi/datatypes/external.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cstring>
#include <limits>

#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {
namespace {

enum class Number : std::uint8_t { same_size, signed_integer, unsigned_integer, extended };

/// `count` equal numbers of `native` bytes in memory and `external` bytes in external32.
struct Numbers {
  std::size_t native = 0, external = 0, count = 0;
  Number kind = Number::same_size;
};
/// What a predefined type consists of: numbers, and of a pair also the index.
struct Format {
  Numbers value, index;

  std::size_t external() const { return value.external * value.count + index.external * index.count; }
};

constexpr std::size_t kExternalLong = 4, kExternalWide = 2;  // bytes of MPI_LONG and MPI_WCHAR

constexpr Numbers same(std::size_t bytes, std::size_t count = 1) { return {bytes, bytes, count, Number::same_size}; }

constexpr Numbers long_double(std::size_t count) {
  return {sizeof(long double), 16, count, LDBL_MANT_DIG == 64 ? Number::extended : Number::same_size};
}

Format pair_of(Numbers value) { return {value, same(sizeof(int))}; }

/// Types of Fortran that are not in C.
Format fortran_format(const Type& named) {
  const MPI_Datatype handle = named.handle;
  const bool of_two =
      handle == MPI_2REAL || handle == MPI_2DOUBLE_PRECISION || handle == MPI_COMPLEX4 || handle == MPI_COMPLEX32;
  return {of_two ? same(named.size / 2, 2) : same(named.size), {}};
}

Format format_of(const Type& named) {
  constexpr Numbers kLong{sizeof(long), kExternalLong, 1, Number::signed_integer};
  switch (named.basic) {
    case Basic::none:
      return fortran_format(named);
    case Basic::c32:
    case Basic::c64:
      return {same(named.size / 2, 2), {}};
    case Basic::f80:
      return {long_double(1), {}};
    case Basic::c80:
      return {long_double(2), {}};
    case Basic::float_int:
      return pair_of(same(sizeof(float)));
    case Basic::double_int:
      return pair_of(same(sizeof(double)));
    case Basic::long_int:
      return pair_of(kLong);
    case Basic::int_int:
      return pair_of(same(sizeof(int)));
    case Basic::short_int:
      return pair_of(same(sizeof(short)));
    case Basic::long_double_int:
      return pair_of(long_double(1));
    default:
      break;
  }
  if (named.handle == MPI_LONG) return {kLong, {}};
  if (named.handle == MPI_UNSIGNED_LONG) return {{sizeof(long), kExternalLong, 1, Number::unsigned_integer}, {}};
  if (named.handle == MPI_WCHAR) return {{sizeof(wchar_t), kExternalWide, 1, Number::unsigned_integer}, {}};
  return {same(named.size), {}};
}

/// Calls visit(predefined type, number of them) for all elements, in their order. Returns the first error.
template <class Visit>
int each_named(const Type& type, std::int64_t count, Visit& visit) {
  if (type.size == 0 || count == 0) return MPI_SUCCESS;
  const auto ratio = [&](const Type& part) { return static_cast<std::int64_t>(type.size / part.size); };
  if (type.element != nullptr) return visit(*type.element, count * ratio(*type.element));
  const auto& parts = type.contents.types;
  if (type.combiner != MPI_COMBINER_STRUCT) return each_named(*parts.front(), count * ratio(*parts.front()), visit);
  for (std::int64_t done = 0; done < count; ++done) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (const int code = each_named(*parts[i], block_length(type, i), visit); code != MPI_SUCCESS) return code;
    }
  }
  return MPI_SUCCESS;
}

void store(std::uint64_t value, std::size_t bytes, char* out) {
  for (std::size_t i = bytes; i-- > 0; value >>= 8) out[i] = static_cast<char>(value & 0xff);
}

std::uint64_t load(const char* in, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(in[i]);
  return value;
}

void copy_swapped(const char* in, std::size_t bytes, char* out) {
  if (std::endian::native == std::endian::big) {
    std::copy_n(in, bytes, out);
  } else {
    std::reverse_copy(in, in + bytes, out);
  }
}

// A number of 80 bits has 64 bits of mantissa, with its highest bit stored. IEEE's number of 128 bits has 113, and the
// highest one is not stored. Sign and exponent, the first 16 bits, are equal.

void store_extended(const char* in, char* out) {
  std::uint64_t mantissa = 0;
  std::uint16_t head = 0;
  std::memcpy(&mantissa, in, sizeof mantissa);
  std::memcpy(&head, in + sizeof mantissa, sizeof head);
  store(head, sizeof head, out);
  store(mantissa << 1, sizeof mantissa, out + sizeof head);
  store(0, 6, out + sizeof head + sizeof mantissa);
}

void load_extended(const char* in, char* out) {
  auto head = static_cast<std::uint16_t>(load(in, 2));
  const std::uint64_t fraction = load(in + 2, 8), rest = load(in + 10, 6);
  constexpr std::uint64_t kHighest = std::uint64_t{1} << 63;
  const unsigned exponent = head & 0x7fffu;
  std::uint64_t mantissa = fraction >> 1 | (exponent != 0 ? kHighest : 0);
  if (exponent == 0x7fff) {
    if ((fraction | rest) != 0) mantissa |= kHighest >> 1;                 // not a number, whatever bits are lost
  } else if ((fraction & 1) != 0 && (rest != 0 || (mantissa & 1) != 0)) {  // to the nearest, or the even one
    ++mantissa;
    if (mantissa == 0 || (exponent == 0 && mantissa == kHighest)) ++head;
    if (mantissa == 0) mantissa = kHighest;
  }
  std::memset(out, 0, sizeof(long double));
  std::memcpy(out, &mantissa, sizeof mantissa);
  std::memcpy(out + sizeof mantissa, &head, sizeof head);
}

/// Widens the integer at `in`.
std::uint64_t load_native(const char* in, const Numbers& numbers) {
  if (numbers.native == sizeof(std::uint64_t)) {
    std::uint64_t value = 0;
    std::memcpy(&value, in, sizeof value);
    return value;
  }
  std::uint32_t value = 0;
  std::memcpy(&value, in, sizeof value);
  if (numbers.kind == Number::unsigned_integer) return value;
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)});
}

int store_integer(const char* in, const Numbers& numbers, char* out) {
  const std::uint64_t value = load_native(in, numbers);
  const auto bits = static_cast<int>(numbers.external * 8);
  const auto number = static_cast<std::int64_t>(value);
  const bool fits = numbers.kind == Number::unsigned_integer ? value >> bits == 0
                                                             : number >> (bits - 1) == 0 || number >> (bits - 1) == -1;
  if (!fits)
    return fail(MPI_ERR_VALUE_TOO_LARGE, "a number has more than the %d bits that external32 has for its type", bits);
  store(value, numbers.external, out);
  return MPI_SUCCESS;
}

void load_integer(const char* in, const Numbers& numbers, char* out) {
  std::uint64_t value = load(in, numbers.external);
  const std::uint64_t sign = std::uint64_t{1} << (numbers.external * 8 - 1);
  if (numbers.kind == Number::signed_integer) value = (value ^ sign) - sign;
  if (numbers.native == sizeof value) {
    std::memcpy(out, &value, sizeof value);
  } else {
    const auto small = static_cast<std::uint32_t>(value);
    std::memcpy(out, &small, sizeof small);
  }
}

/// Converts numbers, and moves both pointers behind them.
int store_numbers(const Numbers& numbers, const char*& in, char*& out) {
  for (std::size_t i = 0; i < numbers.count; ++i, in += numbers.native, out += numbers.external) {
    if (numbers.kind == Number::same_size) {
      copy_swapped(in, numbers.native, out);
    } else if (numbers.kind == Number::extended) {
      store_extended(in, out);
    } else if (const int code = store_integer(in, numbers, out); code != MPI_SUCCESS) {
      return code;
    }
  }
  return MPI_SUCCESS;
}

void load_numbers(const Numbers& numbers, const char*& in, char*& out) {
  for (std::size_t i = 0; i < numbers.count; ++i, in += numbers.external, out += numbers.native) {
    if (numbers.kind == Number::same_size) {
      copy_swapped(in, numbers.native, out);
    } else if (numbers.kind == Number::extended) {
      load_extended(in, out);
    } else {
      load_integer(in, numbers, out);
    }
  }
}

constexpr std::size_t kBuffer = 4096;

/// Calls convert(format, elements, packed offset, packed bytes) for parts of the data that fit into the buffer.
template <class Convert>
int each_buffer(std::int64_t count, const Type& type, Convert convert) {
  std::size_t offset = 0;
  auto visit = [&](const Type& named, std::int64_t elements) {
    const Format format = format_of(named);
    const auto most = static_cast<std::int64_t>(kBuffer / named.size);
    while (elements > 0) {
      const std::int64_t now = std::min(elements, most);
      const std::size_t bytes = static_cast<std::size_t>(now) * named.size;
      if (const int code = convert(format, now, offset, bytes); code != MPI_SUCCESS) return code;
      offset += bytes;
      elements -= now;
    }
    return MPI_SUCCESS;
  };
  return each_named(type, count, visit);
}

}  // namespace

std::int64_t external_size(const Type& type) {
  std::int64_t bytes = 0;
  auto visit = [&](const Type& named, std::int64_t elements) {
    bytes += static_cast<std::int64_t>(format_of(named).external()) * elements;
    return MPI_SUCCESS;
  };
  each_named(type, 1, visit);
  return bytes;
}

int to_external(const Payload& payload, std::int64_t count, const Type& type, char* external) {
  char buffer[kBuffer];
  return each_buffer(count, type, [&](const Format& format, std::int64_t elements, std::size_t at, std::size_t bytes) {
    pack(payload, at, bytes, buffer);
    const char* in = buffer;
    int code = MPI_SUCCESS;
    for (std::int64_t i = 0; i < elements && code == MPI_SUCCESS; ++i) {
      code = store_numbers(format.value, in, external);
      if (code == MPI_SUCCESS) code = store_numbers(format.index, in, external);
    }
    return code;
  });
}

int from_external(const Payload& payload, std::int64_t count, const Type& type, const char* external) {
  char buffer[kBuffer];
  return each_buffer(count, type, [&](const Format& format, std::int64_t elements, std::size_t at, std::size_t bytes) {
    char* out = buffer;
    for (std::int64_t i = 0; i < elements; ++i) {
      load_numbers(format.value, external, out);
      load_numbers(format.index, external, out);
    }
    unpack(payload, at, bytes, buffer);
    return MPI_SUCCESS;
  });
}

}  // namespace canele::mpi
