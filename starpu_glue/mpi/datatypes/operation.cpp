// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operators: which of MPI's operators exist for which type, and the table of the user's operators.
//
// No arithmetic is done here: the engine has it. MPI_C_BOOL is the engine's 8-bit integer, for which MPI allows the
// logical operators. MPI_BYTE is the same integer, and arithmetic is allowed for it, too: Open MPI allows it, and
// PaRSEC relies on it.
#include "starpu_glue/mpi/datatypes/operation.hpp"

#include <algorithm>
#include <array>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/handles.hpp"

namespace canele::mpi {
namespace {

struct UserOperator {
  UserFunction function;
  bool commutes = false;
};

constinit HandlePool<UserOperator, MPI_Op, Kind::op, 1, 128> operations_pool;

struct PredefinedOperator {
  const char* name = nullptr;
  canele_operation operation{};
};

constexpr std::size_t kOperatorNumbers = 0x20;

/// Returns the place of an operator in kOperators, or one beyond its end.
constexpr std::size_t place_of(OperatorNumber number) {
  return static_cast<std::size_t>(number) - static_cast<std::size_t>(OperatorNumber::null);
}

/// By handle, from MPI_OP_NULL on. Those without a name do not exist, or are for one-sided operations only.
constexpr auto kOperators = [] {
  std::array<PredefinedOperator, kOperatorNumbers> operators{};
  const auto set = [&](OperatorNumber number, PredefinedOperator one) { operators[place_of(number)] = one; };
  set(OperatorNumber::sum, {"MPI_SUM", CANELE_SUM});
  set(OperatorNumber::min, {"MPI_MIN", CANELE_MIN});
  set(OperatorNumber::max, {"MPI_MAX", CANELE_MAX});
  set(OperatorNumber::prod, {"MPI_PROD", CANELE_PROD});
  set(OperatorNumber::band, {"MPI_BAND", CANELE_BAND});
  set(OperatorNumber::bor, {"MPI_BOR", CANELE_BOR});
  set(OperatorNumber::bxor, {"MPI_BXOR", CANELE_BXOR});
  set(OperatorNumber::land, {"MPI_LAND", CANELE_LAND});
  set(OperatorNumber::lor, {"MPI_LOR", CANELE_LOR});
  set(OperatorNumber::lxor, {"MPI_LXOR", CANELE_LXOR});
  set(OperatorNumber::minloc, {"MPI_MINLOC", CANELE_MINLOC});
  set(OperatorNumber::maxloc, {"MPI_MAXLOC", CANELE_MAXLOC});
  return operators;
}();

/// Returns nullptr if the handle is not that of a predefined operator.
const PredefinedOperator* find_predefined(MPI_Op handle) {
  const std::size_t place = place_of(number_of(handle));
  return place < kOperatorNumbers && kOperators[place].name != nullptr ? &kOperators[place] : nullptr;
}

bool is_logical(canele_operation operation) {
  return operation == CANELE_LAND || operation == CANELE_LOR || operation == CANELE_LXOR;
}

/// Finds the engine's element type. Returns false if MPI has no such operation for the type. The other pairs that MPI
/// does not allow do not exist in the engine either.
bool element_of(Basic basic, canele_operation operation, canele_element* element) {
  constexpr canele_element kElements[] = {
      CANELE_INT8,
      CANELE_INT16,
      CANELE_INT32,
      CANELE_INT64,
      CANELE_UINT8,
      CANELE_UINT16,
      CANELE_UINT32,
      CANELE_UINT64,
      CANELE_FLOAT,
      CANELE_DOUBLE,
      CANELE_LONG_DOUBLE,
      CANELE_COMPLEX_FLOAT,
      CANELE_COMPLEX_DOUBLE,
      CANELE_COMPLEX_LONG_DOUBLE,
      CANELE_UINT8 /* boolean */,
      CANELE_UINT8 /* byte */,
      CANELE_FLOAT_INT,
      CANELE_DOUBLE_INT,
      CANELE_INT64_INT,
      CANELE_INT32_INT,
      CANELE_INT16_INT,
      CANELE_LONG_DOUBLE_INT,
  };
  static_assert(sizeof kElements / sizeof kElements[0] == static_cast<std::size_t>(Basic::long_double_int));
  if (basic == Basic::none) return false;
  if (basic == Basic::boolean && !is_logical(operation)) return false;
  *element = kElements[static_cast<std::size_t>(basic) - 1];
  return true;
}

/// Operators by operation and basic type; combine is null if MPI has none.
struct KnownOperators {
  KnownOperators() {
    for (std::size_t which = 0; which < kOperatorNumbers; ++which) {
      if (kOperators[which].name == nullptr) continue;
      for (std::size_t basic = 0; basic < kBasics; ++basic) {
        const canele_operation operation = kOperators[which].operation;
        canele_element element{};
        canele_operator_t& one = known[which][basic];
        if (!element_of(static_cast<Basic>(basic), operation, &element) ||
            canele_operator_of(operation, element, &one) != CANELE_OK) {
          one = {};
        }
      }
    }
  }
  static constexpr std::size_t kBasics = static_cast<std::size_t>(Basic::long_double_int) + 1;
  canele_operator_t known[kOperatorNumbers][kBasics]{};
};

int no_such_operator(MPI_Op handle) {
  return fail(MPI_ERR_OP, "operator 0x%zx is neither predefined nor made by MPI_Op_create", handle_bits(handle));
}

}  // namespace

void call_once(const UserFunction& function, void* in, void* inout, std::int64_t count, MPI_Datatype type) {
  if (function.large != nullptr) {
    MPI_Count elements = count;
    function.large(in, inout, &elements, &type);
  } else {
    int elements = static_cast<int>(count);
    function.small(in, inout, &elements, &type);
  }
}

void Operator::apply(const void* in, void* inout, std::int64_t count, const Type& type) const {
  if (!user) return predefined.combine(in, inout, static_cast<std::size_t>(count), predefined.argument);
  const std::int64_t most = std::min(most_at_once(user), std::max<std::int64_t>(count, 1));
  for (std::int64_t done = 0; done < count; done += most) {
    const std::ptrdiff_t place = static_cast<std::ptrdiff_t>(done) * type.extent();
    call_once(user, static_cast<char*>(const_cast<void*>(in)) + place, static_cast<char*>(inout) + place,
              std::min(most, count - done), type.handle);
  }
}

const canele_operator_t* predefined_operator(MPI_Op handle, Basic basic) {
  static const KnownOperators operators;
  const std::size_t place = place_of(number_of(handle));
  if (place >= kOperatorNumbers) return nullptr;
  const canele_operator_t& one = operators.known[place][static_cast<std::size_t>(basic)];
  return one.combine == nullptr ? nullptr : &one;
}

int get_operator(MPI_Op handle, const Type& type, Operator* found) {
  if (const UserOperator* made = operations_pool.find(handle)) {
    found->user = made->function;
    found->commutes = made->commutes;
    return MPI_SUCCESS;
  }
  const PredefinedOperator* predefined = find_predefined(handle);
  if (predefined == nullptr) return no_such_operator(handle);
  if (const canele_operator_t* known = predefined_operator(handle, type.basic); known != nullptr) {
    found->predefined = *known;
    found->commutes = found->predefined.commutes != 0;
    return MPI_SUCCESS;
  }
  return fail(MPI_ERR_OP, "%s is not defined for the datatype %s; use a fitting predefined type or MPI_Op_create",
              predefined->name, type.predefined ? type.fixed_name : "made by the program");
}

int get_target_operation(MPI_Op handle, const Type& element_type, int* operation, canele_element* element) {
  const bool replaces = handle == MPI_REPLACE;
  if (replaces || handle == MPI_NO_OP) {
    *operation = replaces ? static_cast<int>(CANELE_REPLACE) : static_cast<int>(CANELE_NO_OP);
    if (element_of(element_type.basic, CANELE_LAND, element)) return MPI_SUCCESS;  // LAND: any type that has elements
    return fail(MPI_ERR_TYPE, "%s has no elements", element_type.fixed_name);
  }
  const PredefinedOperator* const predefined = find_predefined(handle);
  if (predefined == nullptr)
    return fail(MPI_ERR_OP, "operator 0x%zx is not predefined; expected: one that is, MPI_REPLACE or MPI_NO_OP",
                handle_bits(handle));
  if (predefined_operator(handle, element_type.basic) == nullptr)
    return fail(MPI_ERR_OP, "%s is not defined for the datatype %s", predefined->name, element_type.fixed_name);
  *operation = predefined->operation;
  element_of(element_type.basic, predefined->operation, element);
  return MPI_SUCCESS;
}

int new_operator(const UserFunction& function, bool commutes, MPI_Op* handle) {
  if (!function) return fail(MPI_ERR_ARG, "the function of the operator is NULL");
  MPI_Op made = MPI_OP_NULL;
  UserOperator* slot = operations_pool.acquire(&made);
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another operator");
  *slot = {function, commutes};
  *handle = made;
  return MPI_SUCCESS;
}

int is_commutative(MPI_Op handle, bool* commutes) {
  const UserOperator* made = operations_pool.find(handle);
  const bool of_windows = handle == MPI_REPLACE || handle == MPI_NO_OP;  // each takes one of its two arguments
  if (made == nullptr && !of_windows && find_predefined(handle) == nullptr) return no_such_operator(handle);
  *commutes = made == nullptr ? !of_windows : made->commutes;
  return MPI_SUCCESS;
}

int free_operator(MPI_Op* handle) {
  if (operations_pool.find(*handle) == nullptr) {
    return fail(MPI_ERR_OP, "operator 0x%zx was not made by MPI_Op_create", handle_bits(*handle));
  }
  operations_pool.release(*handle);
  *handle = MPI_OP_NULL;
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
