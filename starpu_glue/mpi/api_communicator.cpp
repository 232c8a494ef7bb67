// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Comm_ and MPI_Group_ functions. Called from any thread.
//
// The Fortran handle of a communicator is the number of the handle, which fits an INTEGER.
#include <climits>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "starpu_glue/mpi/api.hpp"
#include "starpu_glue/mpi/communicator.hpp"
#include "starpu_glue/mpi/info.hpp"
#include "starpu_glue/mpi/state.hpp"

namespace canele::mpi {
namespace {

int check_member(const Ranks& group, int rank) {
  if (rank >= 0 && rank < group.size()) return MPI_SUCCESS;
  return fail(MPI_ERR_RANK, "rank %d is not in the group of %d", rank, group.size());
}

int compare(const Ranks& first, const Ranks& second) {
  if (first.size() != second.size()) return MPI_UNEQUAL;
  int result = MPI_CONGRUENT;
  for (int rank = 0; rank < first.size(); ++rank) {
    const int world = first.world_rank(rank);
    if (second.world_rank(rank) == world) continue;
    if (second.position(world) == MPI_UNDEFINED) return MPI_UNEQUAL;
    result = MPI_SIMILAR;
  }
  return result;
}

/// Marks the ranks of a list in the order of the group. Returns an MPI code, also for a rank that is named twice.
int mark(const Ranks& group, std::span<const int> chosen, std::vector<char>* marks) {
  marks->assign(static_cast<std::size_t>(group.size()), 0);
  for (const int rank : chosen) {
    if (const int code = check_member(group, rank); code != MPI_SUCCESS) return code;
    if ((*marks)[static_cast<std::size_t>(rank)]++ != 0) return fail(MPI_ERR_RANK, "rank %d is named twice", rank);
  }
  return MPI_SUCCESS;
}

/// Makes the group of the chosen ranks, in the order of the list.
int include(const Ranks& group, std::span<const int> chosen, MPI_Group* made) {
  std::vector<char> marks;
  if (const int code = mark(group, chosen, &marks); code != MPI_SUCCESS) return code;
  std::vector<int> list;
  for (const int rank : chosen) list.push_back(group.world_rank(rank));
  return new_group(std::make_shared<const Ranks>(std::move(list)), made);
}

/// Makes the group of all other ranks, in the order of the group.
int exclude(const Ranks& group, std::span<const int> chosen, MPI_Group* made) {
  std::vector<char> marks;
  if (const int code = mark(group, chosen, &marks); code != MPI_SUCCESS) return code;
  std::vector<int> list;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (marks[static_cast<std::size_t>(rank)] == 0) list.push_back(group.world_rank(rank));
  }
  return new_group(std::make_shared<const Ranks>(std::move(list)), made);
}

/// Lists the ranks of ranges: first, last and step of each.
int expand(const Ranks& group, int count, const int (*ranges)[3], std::vector<int>* chosen) {
  for (int i = 0; i < count; ++i) {
    const int first = ranges[i][0], last = ranges[i][1], step = ranges[i][2];
    if (step == 0) return fail(MPI_ERR_ARG, "the step of range %d is 0", i);
    for (const int end : {first, last}) {
      if (const int code = check_member(group, end); code != MPI_SUCCESS) return code;
    }
    for (int rank = first; step > 0 ? rank <= last : rank >= last; rank += step) {
      chosen->push_back(rank);
      if (chosen->size() > static_cast<std::size_t>(group.size()))
        return fail(MPI_ERR_RANK, "the ranges name a rank twice");
      if (std::abs(static_cast<long>(step)) > group.size()) break;  // `rank` does not overflow
    }
  }
  return MPI_SUCCESS;
}

/// Returns the value of an attribute that all communicators have; nullptr if it is none of them.
const int* predefined_attribute(int keyval) {
  static constexpr int tag_upper_bound = INT_MAX, io = MPI_ANY_SOURCE, host = MPI_PROC_NULL, wtime_is_global = 0,
                       last_used_code = MPI_ERR_LASTCODE;
  switch (keyval) {
    case MPI_TAG_UB:
      return &tag_upper_bound;
    case MPI_IO:
      return &io;
    case MPI_HOST:
      return &host;
    case MPI_WTIME_IS_GLOBAL:
      return &wtime_is_global;
    case MPI_LASTUSEDCODE:
      return &last_used_code;
    default:
      return nullptr;
  }
}

/// Makes a communicator of another one: check(), then make(parent), which may block and writes to *made.
template <class Check, class Make>
int derive_communicator(Function function, MPI_Comm comm, Argument made, Check check, Make make) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({made}); code != MPI_SUCCESS) return call.end(code);
  Communicator* parent = nullptr;
  int code = get_communicator(comm, &parent);
  if (code == MPI_SUCCESS) code = check();
  if (code == MPI_SUCCESS) code = may_block();
  if (code == MPI_SUCCESS) code = make(*parent);
  return call.end(code, parent);
}

/// MPI_Group_incl and _excl: make(group, chosen, part).
template <class Make>
int choose(Function function, MPI_Group group, int count, const int* chosen, MPI_Group* part, Make make) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"part", part}}); code != MPI_SUCCESS) return call.end(code);
  RanksPointer ranks;
  int code = get_group(group, &ranks);
  if (code == MPI_SUCCESS && (count < 0 || count > ranks->size())) {
    code = fail(MPI_ERR_ARG, "count is %d; the group has %d ranks", count, ranks->size());
  }
  if (code == MPI_SUCCESS && count > 0) code = given({{"array of ranks", chosen}});
  if (code == MPI_SUCCESS) code = make(*ranks, std::span(chosen, static_cast<std::size_t>(count)), part);
  return call.end(code);
}

/// MPI_Group_range_incl and _range_excl.
template <class Make>
int choose_ranges(Function function, MPI_Group group, int count, const int (*ranges)[3], MPI_Group* part, Make make) {
  const Call call(function);
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"part", part}}); code != MPI_SUCCESS) return call.end(code);
  RanksPointer ranks;
  std::vector<int> chosen;
  int code = get_group(group, &ranks);
  if (code == MPI_SUCCESS && count < 0) code = fail(MPI_ERR_ARG, "count is %d; expected: at least 0", count);
  if (code == MPI_SUCCESS && count > 0) code = given({{"array of ranges", ranges}});
  if (code == MPI_SUCCESS) code = expand(*ranks, count, ranges, &chosen);
  if (code == MPI_SUCCESS) code = make(*ranks, std::span<const int>(chosen), part);
  return call.end(code);
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Comm_rank(MPI_Comm comm, int* rank) {
  const Call call("MPI_Comm_rank");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"rank", rank}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  const int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) *rank = found->rank();
  return call.end(code);
}
CANELE_MPI_NAME(Comm_rank);

extern "C" int PMPI_Comm_size(MPI_Comm comm, int* size) {
  const Call call("MPI_Comm_size");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"size", size}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  const int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) *size = found->size();
  return call.end(code);
}
CANELE_MPI_NAME(Comm_size);

extern "C" int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  return derive_communicator(
      "MPI_Comm_dup", comm, {"copy", copy}, [] { return MPI_SUCCESS; },
      [&](Communicator& parent) { return duplicate(parent, copy); });
}
CANELE_MPI_NAME(Comm_dup);

extern "C" int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
  const auto check = [&]() -> int {
    if (color >= 0 || color == MPI_UNDEFINED) return MPI_SUCCESS;
    return fail(MPI_ERR_ARG, "color is %d; expected: at least 0, or MPI_UNDEFINED", color);
  };
  return derive_communicator("MPI_Comm_split", comm, {"part", part}, check,
                             [&](Communicator& parent) { return split(parent, color, key, part); });
}
CANELE_MPI_NAME(Comm_split);

extern "C" int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
  const auto check = [&] {
    if (type != MPI_COMM_TYPE_SHARED && type != MPI_UNDEFINED)
      return fail(MPI_ERR_ARG, "the type is %d; expected: MPI_COMM_TYPE_SHARED or MPI_UNDEFINED", type);
    InfoPairs hints;  // none is known
    return hint_pairs(info, &hints);
  };
  return derive_communicator("MPI_Comm_split_type", comm, {"part", part}, check, [&](Communicator& parent) {
    return split_by_memory(parent, type == MPI_COMM_TYPE_SHARED, key, part);
  });
}
CANELE_MPI_NAME(Comm_split_type);

extern "C" int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* created) {
  RanksPointer ranks;
  return derive_communicator(
      "MPI_Comm_create", comm, {"created", created}, [&] { return get_group(group, &ranks); },
      [&](Communicator& parent) { return create_together(parent, *ranks, created); });
}
CANELE_MPI_NAME(Comm_create);

extern "C" int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* created) {
  RanksPointer ranks;
  const auto check = [&] {
    if (const int code = get_group(group, &ranks); code != MPI_SUCCESS || tag >= 0) return code;
    return fail(MPI_ERR_TAG, "tag is %d; expected: at least 0", tag);
  };
  return derive_communicator("MPI_Comm_create_group", comm, {"created", created}, check,
                             [&](Communicator& parent) { return create_from_group(parent, ranks, tag, created); });
}
CANELE_MPI_NAME(Comm_create_group);

extern "C" int PMPI_Comm_free(MPI_Comm* comm) {
  const Call call("MPI_Comm_free");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"comm", comm}}); code != MPI_SUCCESS) return call.end(code);
  return call.end(free_communicator(comm));
}
CANELE_MPI_NAME(Comm_free);

extern "C" int PMPI_Comm_compare(MPI_Comm first, MPI_Comm second, int* result) {
  const Call call("MPI_Comm_compare");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"result", result}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* a = nullptr;
  Communicator* b = nullptr;
  int code = get_communicator(first, &a);
  if (code == MPI_SUCCESS) code = get_communicator(second, &b);
  if (code == MPI_SUCCESS) *result = a == b ? MPI_IDENT : compare(*a->ranks(), *b->ranks());
  return call.end(code);
}
CANELE_MPI_NAME(Comm_compare);

extern "C" int PMPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  const Call call("MPI_Comm_group");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"group", group}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) code = new_group(found->ranks(), group);
  return call.end(code, found);
}
CANELE_MPI_NAME(Comm_group);

extern "C" int PMPI_Comm_set_name(MPI_Comm comm, const char* name) {
  const Call call("MPI_Comm_set_name");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"name", name}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  const int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) found->set_name(name);
  return call.end(code);
}
CANELE_MPI_NAME(Comm_set_name);

extern "C" int PMPI_Comm_get_name(MPI_Comm comm, char* name, int* length) {
  const Call call("MPI_Comm_get_name");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"name", name}, {"length", length}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  const int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) found->name(name, length);
  return call.end(code);
}
CANELE_MPI_NAME(Comm_get_name);

extern "C" int PMPI_Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* flag) {
  const Call call("MPI_Comm_get_attr");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"value", value}, {"flag", flag}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  if (const int code = get_communicator(comm, &found); code != MPI_SUCCESS) return call.end(code);
  const int* attribute = predefined_attribute(keyval);
  *flag = attribute != nullptr ? 1 : 0;
  if (attribute != nullptr)
    std::memcpy(value, &attribute, sizeof attribute);  // the caller gives the address of a pointer
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Comm_get_attr);

extern "C" int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  const Call call("MPI_Comm_set_errhandler");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  Communicator* found = nullptr;
  int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS && handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN) {
    code = fail(MPI_ERR_ARG, "0x%zx is not an error handler; expected: MPI_ERRORS_ARE_FATAL or MPI_ERRORS_RETURN",
                handle_bits(handler));
  }
  if (code == MPI_SUCCESS) found->set_error_handler(handler);
  return call.end(code, found);
}
CANELE_MPI_NAME(Comm_set_errhandler);

extern "C" int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* handler) {
  const Call call("MPI_Comm_get_errhandler");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"handler", handler}}); code != MPI_SUCCESS) return call.end(code);
  Communicator* found = nullptr;
  const int code = get_communicator(comm, &found);
  if (code == MPI_SUCCESS) *handler = found->error_handler();
  return call.end(code);
}
CANELE_MPI_NAME(Comm_get_errhandler);

extern "C" MPI_Fint PMPI_Comm_c2f(MPI_Comm comm) { return static_cast<MPI_Fint>(handle_bits(comm)); }
CANELE_MPI_NAME(Comm_c2f);

extern "C" MPI_Comm PMPI_Comm_f2c(MPI_Fint comm) { return to_handle<MPI_Comm>(comm); }
CANELE_MPI_NAME(Comm_f2c);

extern "C" int PMPI_Group_size(MPI_Group group, int* size) {
  const Call call("MPI_Group_size");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"size", size}}); code != MPI_SUCCESS) return call.end(code);
  RanksPointer ranks;
  const int code = get_group(group, &ranks);
  if (code == MPI_SUCCESS) *size = ranks->size();
  return call.end(code);
}
CANELE_MPI_NAME(Group_size);

extern "C" int PMPI_Group_rank(MPI_Group group, int* rank) {
  const Call call("MPI_Group_rank");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"rank", rank}}); code != MPI_SUCCESS) return call.end(code);
  RanksPointer ranks;
  const int code = get_group(group, &ranks);
  if (code == MPI_SUCCESS) *rank = ranks->position(world()->rank());
  return call.end(code);
}
CANELE_MPI_NAME(Group_rank);

extern "C" int PMPI_Group_incl(MPI_Group group, int count, const int* chosen, MPI_Group* part) {
  return choose("MPI_Group_incl", group, count, chosen, part, include);
}
CANELE_MPI_NAME(Group_incl);

extern "C" int PMPI_Group_excl(MPI_Group group, int count, const int* chosen, MPI_Group* part) {
  return choose("MPI_Group_excl", group, count, chosen, part, exclude);
}
CANELE_MPI_NAME(Group_excl);

extern "C" int PMPI_Group_range_incl(MPI_Group group, int count, int ranges[][3], MPI_Group* part) {
  return choose_ranges("MPI_Group_range_incl", group, count, ranges, part, include);
}
CANELE_MPI_NAME(Group_range_incl);

extern "C" int PMPI_Group_range_excl(MPI_Group group, int count, int ranges[][3], MPI_Group* part) {
  return choose_ranges("MPI_Group_range_excl", group, count, ranges, part, exclude);
}
CANELE_MPI_NAME(Group_range_excl);

extern "C" int PMPI_Group_compare(MPI_Group first, MPI_Group second, int* result) {
  const Call call("MPI_Group_compare");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"result", result}}); code != MPI_SUCCESS) return call.end(code);
  RanksPointer a, b;
  int code = get_group(first, &a);
  if (code == MPI_SUCCESS) code = get_group(second, &b);
  if (code != MPI_SUCCESS) return call.end(code);
  const int found = compare(*a, *b);
  *result = found == MPI_CONGRUENT ? MPI_IDENT : found;
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Group_compare);

extern "C" int PMPI_Group_translate_ranks(MPI_Group from, int count, const int* ranks, MPI_Group to, int* translated) {
  const Call call("MPI_Group_translate_ranks");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  RanksPointer source;
  RanksPointer target;
  int code = get_group(from, &source);
  if (code == MPI_SUCCESS) code = get_group(to, &target);
  if (code == MPI_SUCCESS && count > 0) code = given({{"array of ranks", ranks}, {"array of results", translated}});
  for (int i = 0; code == MPI_SUCCESS && i < count; ++i) {
    if (ranks[i] == MPI_PROC_NULL) {
      translated[i] = MPI_PROC_NULL;
      continue;
    }
    code = check_member(*source, ranks[i]);
    if (code == MPI_SUCCESS) translated[i] = target->position(source->world_rank(ranks[i]));
  }
  return call.end(code);
}
CANELE_MPI_NAME(Group_translate_ranks);

extern "C" int PMPI_Group_free(MPI_Group* group) {
  const Call call("MPI_Group_free");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"group", group}}); code != MPI_SUCCESS) return call.end(code);
  RanksPointer ranks;
  const int code = get_group(*group, &ranks);
  if (code == MPI_SUCCESS) {
    free_group(*group);
    *group = MPI_GROUP_NULL;
  }
  return call.end(code);
}
CANELE_MPI_NAME(Group_free);
