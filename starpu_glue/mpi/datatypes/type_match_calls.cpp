// SPDX-License-Identifier: BSD-3-Clause
//
// Functions that find a predefined type by what it shall hold. Any thread.
//
// A type of MPI_Type_create_f90_real and its siblings is made once for each pair of arguments, and is never freed.
#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "calls/datatypes.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/datatypes/type_build.hpp"

namespace canele::mpi {
namespace {

/// A predefined type, and which decimal digits and powers of ten Fortran has in it.
struct Model {
  int digits;
  int range;
  MPI_Datatype type;
};

constexpr int kLongDigits = std::numeric_limits<long double>::digits10;  // 33 where it is Fortran's REAL(16)

struct Made {
  int combiner, digits, range;
  Type* type;
};
std::mutex made_lock;  // protects the list in made_types

/// Returns the types that were made so far.
std::vector<Made>& made_types() {
  static std::vector<Made> types;
  return types;
}

/// Makes a type that is `named`, but tells how it was asked for.
int make_parametrized(int combiner, std::span<const int> arguments, const Type& named, Type** made) {
  Type* type = nullptr;
  if (const int code = new_type(combiner, &type); code != MPI_SUCCESS) return code;
  type->contents.integers.assign(arguments.begin(), arguments.end());
  Builder builder(*type);
  builder.extend_bounds(named, 0, 1, 0);
  builder.place(repeat(named, 0, 1, 0));
  const int code = finish_type(builder.finish(), type, made);
  if (code != MPI_SUCCESS) return code;
  type->element = &named;
  type->basic = named.basic;
  type->predefined = true;
  return MPI_SUCCESS;
}

/// Finds the first model that has the digits and the range, and the type for it. Arguments may be MPI_UNDEFINED.
int find_model(int combiner, std::span<const Model> models, int digits, int range, MPI_Datatype* newtype) {
  const bool is_integer = combiner == MPI_COMBINER_F90_INTEGER;
  if (range == MPI_UNDEFINED && (is_integer || digits == MPI_UNDEFINED))
    return fail(MPI_ERR_ARG, "the arguments are MPI_UNDEFINED; expected: a number of digits, or a range");
  const auto model = std::find_if(models.begin(), models.end(),
                                  [&](const Model& one) { return digits <= one.digits && range <= one.range; });
  if (model == models.end())
    return fail(MPI_ERR_ARG, "no type has %d digits and the range 10^%d", std::max(digits, 0), std::max(range, 0));
  const std::lock_guard guard(made_lock);
  for (const Made& one : made_types()) {
    if (one.combiner == combiner && one.digits == digits && one.range == range) {
      *newtype = one.type->handle;
      return MPI_SUCCESS;
    }
  }
  made_types().reserve(made_types().size() + 1);
  const int arguments[] = {digits, range};
  Type* made = nullptr;
  const int code =
      make_parametrized(combiner, std::span(arguments).subspan(is_integer ? 1 : 0), *find_type(model->type), &made);
  if (code != MPI_SUCCESS) return code;
  made_types().push_back({combiner, digits, range, made});
  *newtype = made->handle;
  return MPI_SUCCESS;
}

}  // namespace

namespace calls {

int type_create_f90_integer(int r, MPI_Datatype* newtype) {
  const Model models[] = {
      {0, 2, MPI_INTEGER1}, {0, 4, MPI_INTEGER2}, {0, 9, MPI_INTEGER4}, {0, 18, MPI_INTEGER8}, {0, 38, MPI_INTEGER16}};
  return find_model(MPI_COMBINER_F90_INTEGER, models, 0, r, newtype);
}

int type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
  const Model models[] = {
      {6, 37, MPI_REAL4}, {15, 307, MPI_REAL8}, {kLongDigits, 4931, MPI_LONG_DOUBLE}, {33, 4931, MPI_REAL16}};
  return find_model(MPI_COMBINER_F90_REAL, models, p, r, newtype);
}

int type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
  const Model models[] = {{6, 37, MPI_COMPLEX8},
                          {15, 307, MPI_COMPLEX16},
                          {kLongDigits, 4931, MPI_C_LONG_DOUBLE_COMPLEX},
                          {33, 4931, MPI_COMPLEX32}};
  return find_model(MPI_COMBINER_F90_COMPLEX, models, p, r, newtype);
}

int type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
  const struct {
    int typeclass, size;
    MPI_Datatype type;
  } kTypes[] = {{MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},   {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
                {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},   {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
                {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16}, {MPI_TYPECLASS_REAL, 2, MPI_REAL2},
                {MPI_TYPECLASS_REAL, 4, MPI_REAL4},         {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
                {MPI_TYPECLASS_REAL, 16, MPI_REAL16},       {MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},
                {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},   {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
                {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32}};
  for (const auto& one : kTypes) {
    if (one.typeclass != typeclass || one.size != size) continue;
    *datatype = one.type;
    return MPI_SUCCESS;
  }
  return fail(MPI_ERR_ARG, "no type of the class %d has %d bytes", typeclass, size);
}

int type_get_value_index(Type& value_type, Type& index_type, MPI_Datatype* pair_type) {
  const struct {
    MPI_Datatype value, index, pair;
  } kPairs[] = {
      {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},     {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
      {MPI_LONG, MPI_INT, MPI_LONG_INT},       {MPI_INT, MPI_INT, MPI_2INT},
      {MPI_SHORT, MPI_INT, MPI_SHORT_INT},     {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
      {MPI_REAL, MPI_REAL, MPI_2REAL},         {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
      {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER}};
  *pair_type = MPI_DATATYPE_NULL;  // the standard's answer if there is no such pair
  for (const auto& one : kPairs) {
    if (one.value == value_type.handle && one.index == index_type.handle) *pair_type = one.pair;
  }
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
