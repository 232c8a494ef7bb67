// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operators: kernels for every pair of predefined operator and type that MPI allows.
//
// Who: reductions. Threads: any.
// Surprise: MPI_LXOR of integers gives 0 or 1, and MPI_MINLOC of equal values takes the lower index.
#include "starpu_glue/mpi/operation.hpp"

#include <complex>
#include <type_traits>

#include "starpu_glue/mpi/error.hpp"
#include "starpu_glue/mpi/handles.hpp"

namespace canele::mpi {
namespace {

constinit HandlePool<MPI_User_function*, Kind::op, 16, 128> operations_pool;

using Kernel = void (*)(const void*, void*, std::size_t);

template <class T>
struct Indexed {
  T value;
  int index;
};
template <class T>
constexpr bool is_indexed = false;
template <class T>
constexpr bool is_indexed<Indexed<T>> = true;
template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

enum Code : int { sum = 1, prod, min, max, land, lor, lxor, band, bor, bxor, minloc, maxloc };

/// Which operators MPI allows for which kind of type (MPI 3.1, section 5.9.2).
template <Code kCode, class T, bool kByte>
constexpr bool allowed() {
  constexpr bool integer = std::is_integral_v<T> && !std::is_same_v<T, bool> && !kByte;
  switch (kCode) {
    case sum:
    case prod:
      return integer || std::is_floating_point_v<T> || is_complex<T>;
    case min:
    case max:
      return integer || std::is_floating_point_v<T>;
    case land:
    case lor:
    case lxor:
      return integer || std::is_same_v<T, bool>;
    case band:
    case bor:
    case bxor:
      return integer || kByte;
    case minloc:
    case maxloc:
      return is_indexed<T>;
  }
  return false;
}

/// Integer sums and products wrap round, in unsigned arithmetic that is at least an int wide.
template <class T>
struct Wide {
  using type = T;
};
template <class T>
requires std::is_integral_v<T>
struct Wide<T> {
  using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};
template <>
struct Wide<bool> {
  using type = unsigned;
};

template <Code kCode, class T>
T combine(const T& a, const T& b) {
  if constexpr (kCode == sum || kCode == prod) {
    using W = typename Wide<T>::type;
    const W x = static_cast<W>(a);
    const W y = static_cast<W>(b);
    return static_cast<T>(kCode == sum ? x + y : x * y);
  } else if constexpr (kCode == min) {
    return b < a ? b : a;
  } else if constexpr (kCode == max) {
    return a < b ? b : a;
  } else if constexpr (kCode == land) {
    return static_cast<T>(a && b);
  } else if constexpr (kCode == lor) {
    return static_cast<T>(a || b);
  } else if constexpr (kCode == lxor) {
    return static_cast<T>(!a != !b);
  } else if constexpr (kCode == band) {
    return static_cast<T>(a & b);
  } else if constexpr (kCode == bor) {
    return static_cast<T>(a | b);
  } else {
    static_assert(kCode == bxor);
    return static_cast<T>(a ^ b);
  }
}

/// MINLOC and MAXLOC. Member by member: the padding behind the last pair of a buffer need not be there.
template <Code kCode, class T>
void locate(const T& a, T& b) {
  if (a.value == b.value) {
    b.index = a.index < b.index ? a.index : b.index;
  } else if (kCode == minloc ? a.value < b.value : b.value < a.value) {
    b.value = a.value;
    b.index = a.index;
  }
}

template <Code kCode, class T>
void kernel(const void* in, void* inout, std::size_t count) {
  const T* a = static_cast<const T*>(in);
  T* b = static_cast<T*>(inout);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (is_indexed<T>) {
      locate<kCode, T>(a[i], b[i]);
    } else {
      b[i] = combine<kCode, T>(a[i], b[i]);
    }
  }
}

template <Code kCode, class T, bool kByte>
Kernel one() {
  if constexpr (allowed<kCode, T, kByte>()) return kernel<kCode, T>;
  return nullptr;
}

template <class T, bool kByte = false>
Kernel select(int code) {
  switch (code) {
    case sum:
      return one<sum, T, kByte>();
    case prod:
      return one<prod, T, kByte>();
    case min:
      return one<min, T, kByte>();
    case max:
      return one<max, T, kByte>();
    case land:
      return one<land, T, kByte>();
    case lor:
      return one<lor, T, kByte>();
    case lxor:
      return one<lxor, T, kByte>();
    case band:
      return one<band, T, kByte>();
    case bor:
      return one<bor, T, kByte>();
    case bxor:
      return one<bxor, T, kByte>();
    case minloc:
      return one<minloc, T, kByte>();
    case maxloc:
      return one<maxloc, T, kByte>();
    default:
      return nullptr;
  }
}

Kernel select_for(Basic basic, int code) {
  switch (basic) {
    case Basic::none:
      return nullptr;
    case Basic::i8:
      return select<std::int8_t>(code);
    case Basic::i16:
      return select<std::int16_t>(code);
    case Basic::i32:
      return select<std::int32_t>(code);
    case Basic::i64:
      return select<std::int64_t>(code);
    case Basic::u8:
      return select<std::uint8_t>(code);
    case Basic::u16:
      return select<std::uint16_t>(code);
    case Basic::u32:
      return select<std::uint32_t>(code);
    case Basic::u64:
      return select<std::uint64_t>(code);
    case Basic::f32:
      return select<float>(code);
    case Basic::f64:
      return select<double>(code);
    case Basic::f80:
      return select<long double>(code);
    case Basic::c32:
      return select<std::complex<float>>(code);
    case Basic::c64:
      return select<std::complex<double>>(code);
    case Basic::c80:
      return select<std::complex<long double>>(code);
    case Basic::boolean:
      return select<bool>(code);
    case Basic::byte:
      return select<std::uint8_t, true>(code);
    case Basic::float_int:
      return select<Indexed<float>>(code);
    case Basic::double_int:
      return select<Indexed<double>>(code);
    case Basic::long_int:
      return select<Indexed<long>>(code);
    case Basic::int_int:
      return select<Indexed<int>>(code);
  }
  return nullptr;
}

constexpr const char* kNames[] = {"MPI_OP_NULL", "MPI_SUM",    "MPI_PROD",  "MPI_MIN",  "MPI_MAX",
                                  "MPI_LAND",    "MPI_LOR",    "MPI_LXOR",  "MPI_BAND", "MPI_BOR",
                                  "MPI_BXOR",    "MPI_MINLOC", "MPI_MAXLOC"};

}  // namespace

void Operator::apply(const void* in, void* inout, std::int64_t count, MPI_Datatype type) const {
  if (user == nullptr) {
    kernel(in, inout, static_cast<std::size_t>(count));
    return;
  }
  int elements = static_cast<int>(count);
  user(const_cast<void*>(in), inout, &elements, &type);
}

int get_operator(MPI_Op handle, const Type& type, Operator* found) {
  if (MPI_User_function* const* user = operations_pool.find(handle)) {
    found->user = *user;
    return MPI_SUCCESS;
  }
  const std::uint32_t code = handle_index(handle);
  if (!is_kind(handle, Kind::op) || code < sum || code > maxloc) {
    return fail(MPI_ERR_OP, "operator 0x%x is neither predefined nor made by MPI_Op_create",
                static_cast<unsigned>(handle));
  }
  found->kernel = select_for(type.basic, static_cast<int>(code));
  if (found->kernel != nullptr) return MPI_SUCCESS;
  return fail(MPI_ERR_OP, "%s is not defined for the datatype %s; use a fitting predefined type or MPI_Op_create",
              kNames[code], type.predefined ? type.fixed_name : "made by the program");
}

int new_operator(MPI_User_function* function, MPI_Op* handle) {
  if (function == nullptr) return fail(MPI_ERR_ARG, "the function of the operator is NULL");
  MPI_Op made = MPI_OP_NULL;
  MPI_User_function** slot = operations_pool.acquire(&made);
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another operator");
  *slot = function;
  *handle = made;
  return MPI_SUCCESS;
}

int free_operator(MPI_Op* handle) {
  if (operations_pool.find(*handle) == nullptr) {
    return fail(MPI_ERR_OP, "operator 0x%x was not made by MPI_Op_create", static_cast<unsigned>(*handle));
  }
  operations_pool.release(*handle);
  *handle = MPI_OP_NULL;
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
