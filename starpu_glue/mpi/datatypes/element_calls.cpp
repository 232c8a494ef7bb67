// SPDX-License-Identifier: BSD-3-Clause
//
// Basic elements in the data of a status: MPI_Get_elements, MPI_Status_set_elements, and their siblings. Any thread.
//
// Basic elements are the predefined types that a datatype consists of. A pair for MPI_MINLOC counts as two. The last
// element of a datatype may have come in part: its basic elements are counted one after the other, in the order of the
// packed form.
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "calls/datatypes.hpp"
#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {
namespace {

/// Basic elements and their packed bytes.
struct Elements {
  std::int64_t count = 0, bytes = 0;

  /// Adds so many times what another object holds.
  void add(std::int64_t times, const Elements& other) {
    count += times * other.count;
    bytes += times * other.bytes;
  }
};

/// Which of both numbers is given, while the other one is computed.
enum class Given { count, bytes };
std::int64_t of(const Elements& elements, Given given) {
  return given == Given::count ? elements.count : elements.bytes;
}

std::int64_t size_of(const Type& type) { return static_cast<std::int64_t>(type.size); }

/// Returns the bytes of the first of the two basic elements of a predefined type; 0 if it is one.
std::int64_t first_of_pair(const Type& named) {
  if (named.handle == MPI_2REAL || named.handle == MPI_2DOUBLE_PRECISION) return size_of(named) / 2;
  switch (named.basic) {
    case Basic::float_int:
    case Basic::double_int:
    case Basic::long_int:
    case Basic::int_int:
    case Basic::short_int:
    case Basic::long_double_int:
      return size_of(named) - static_cast<std::int64_t>(sizeof(int));
    default:
      return 0;
  }
}

bool is_named(const Type& type) { return type.combiner == MPI_COMBINER_NAMED; }

/// Returns the type of which a whole number makes the type, unless it is predefined or a structure of several.
const Type* single_part(const Type& type) {
  if (type.element != nullptr && type.element != &type) return type.element;
  return is_named(type) || type.combiner == MPI_COMBINER_STRUCT ? nullptr : type.contents.types.front();
}

/// Counts in one datatype. A structure that occurs in others many times is counted once.
class Counter {
 public:
  /// Returns what the first part of any number of elements has, up to `limit`. Nothing: a basic element is cut there.
  std::optional<Elements> first_of(const Type& type, std::int64_t limit, Given given) {
    if (limit == 0) return Elements{};
    const Elements whole = all_of(type);
    if (whole.bytes == 0) return std::nullopt;
    Elements found;
    found.add(limit / of(whole, given), whole);
    return add_to(found, part_of(type, limit % of(whole, given), given));
  }

  /// Returns what one element of the type has.
  Elements all_of(const Type& type) {
    if (type.size == 0) return {};
    if (const Type* const part = single_part(type); part != nullptr)
      return {size_of(type) / size_of(*part) * all_of(*part).count, size_of(type)};
    if (is_named(type)) return {first_of_pair(type) != 0 ? 2 : 1, size_of(type)};
    if (const auto known = structures_.find(&type); known != structures_.end()) return known->second;
    Elements sum;
    for (std::size_t i = 0; i < type.contents.types.size(); ++i)
      sum.add(block_length(type, i), all_of(*type.contents.types[i]));
    structures_.emplace(&type, sum);
    return sum;
  }

 private:
  static std::optional<Elements> add_to(Elements found, const std::optional<Elements>& rest) {
    if (!rest) return rest;
    found.add(1, *rest);
    return found;
  }

  /// Returns what the first part of one element has, up to `limit`, which is less than all of it.
  std::optional<Elements> part_of(const Type& type, std::int64_t limit, Given given) {
    if (limit == 0) return Elements{};
    if (const Type* const part = single_part(type); part != nullptr) return first_of(*part, limit, given);
    Elements found;
    if (is_named(type)) {
      found = {1, first_of_pair(type)};
      return found.bytes != 0 && of(found, given) == limit ? std::optional(found) : std::nullopt;
    }
    for (std::size_t i = 0; i < type.contents.types.size(); ++i) {
      const Type& part = *type.contents.types[i];
      Elements block;
      block.add(block_length(type, i), all_of(part));
      if (of(found, given) + of(block, given) > limit)
        return add_to(found, first_of(part, limit - of(found, given), given));
      found.add(1, block);
    }
    return found;
  }

  std::unordered_map<const Type*, Elements> structures_;
};

MPI_Count elements_of(const MPI_Status& status, const Type& type) {
  const auto found = Counter().first_of(type, status.size, Given::bytes);
  return found ? found->count : MPI_UNDEFINED;
}

int set_elements(MPI_Status* status, const Type& type, MPI_Count count) {
  if (count < 0) return fail(MPI_ERR_COUNT, "count is %lld; expected: at least 0", static_cast<long long>(count));
  Counter counter;
  const Elements whole = counter.all_of(type);
  std::int64_t bytes = 0;
  if (count != 0 && whole.count == 0) return fail(MPI_ERR_ARG, "the datatype has no elements, and count is not 0");
  if (count != 0 && __builtin_mul_overflow(count / whole.count + 1, whole.bytes, &bytes))
    return fail(MPI_ERR_COUNT, "%lld elements are too many bytes", static_cast<long long>(count));
  status->size = counter.first_of(type, count, Given::count)->bytes;
  return MPI_SUCCESS;
}

}  // namespace

namespace calls {

int get_elements(const MPI_Status* status, Type& datatype, MPI_Count* count) {
  *count = elements_of(*status, datatype);
  return MPI_SUCCESS;
}

int get_elements_x(const MPI_Status* status, Type& datatype, MPI_Count* count) {
  *count = elements_of(*status, datatype);
  return MPI_SUCCESS;
}

int status_set_elements(MPI_Status* status, Type& datatype, MPI_Count count) {
  return set_elements(status, datatype, count);
}

int status_set_elements_x(MPI_Status* status, Type& datatype, MPI_Count count) {
  return set_elements(status, datatype, count);
}

}  // namespace calls
}  // namespace canele::mpi
