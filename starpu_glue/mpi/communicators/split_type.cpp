// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Comm_split_type: by shared memory, by hardware, or by a set of processes.
//
// All types, and MPI_UNDEFINED, take the same steps, because a rank does not know the types of the others: each rank
// tells all others where it is, and chooses a color by what it has heard.
#include <canele/one_sided.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "starpu_glue/mpi/communicators/creation.hpp"
#include "starpu_glue/mpi/communicators/hardware.hpp"
#include "starpu_glue/mpi/communicators/session.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

constexpr const char* kResourceKey = "mpi_hw_resource_type";
constexpr const char* kSetKey = "mpi_pset_name";

/// What a rank tells the others.
struct Whereabouts {
  std::int32_t type;  ///< MPI_COMM_TYPE_SHARED, _HW_GUIDED (also by a set of processes), _HW_UNGUIDED, or MPI_UNDEFINED
  std::int32_t resource;  ///< a kind of hardware, or hardware_kind_count and more: a set of processes; -1: none
  std::int32_t error;     ///< MPI code: the rank has no memory to share
  HardwarePlace place;
  unsigned char key[CANELE_KEY_SIZE];  ///< of some memory, if the type is MPI_COMM_TYPE_SHARED
};

/// Memory by which others find out whether they share memory with this rank.
class SharedPiece {
 public:
  ~SharedPiece() {
    if (memory_ != nullptr) canele_memory_free(memory_);
  }
  int allocate(unsigned char* key) {
    void* base = nullptr;
    const int code = from_engine(canele_memory_allocate(engine(), sizeof(std::uint64_t), nullptr, &base, &memory_));
    if (code == MPI_SUCCESS) canele_memory_key(memory_, key);
    return code;
  }

 private:
  canele_memory_t* memory_ = nullptr;
};

/// Returns the first rank whose memory this process can map.
int first_sharer(const Communicator& comm, const std::vector<Whereabouts>& ranks) {
  for (int rank = 0; rank < comm.rank(); ++rank) {
    const Whereabouts& one = ranks[static_cast<std::size_t>(rank)];
    canele_key_t* key = nullptr;
    void* address = nullptr;
    if (one.type != MPI_COMM_TYPE_SHARED || canele_key_open(engine(), one.key, &key) != CANELE_OK) continue;
    const bool is_shared = canele_key_map(key, &address) == CANELE_OK;
    canele_key_close(key);
    if (is_shared) return rank;
  }
  return comm.rank();
}

/// Returns whether a rank is restricted to the same object of a kind.
bool is_beside(const Whereabouts& a, const Whereabouts& b, int kind) {
  return a.place.objects[kind] >= 0 && a.place.objects[kind] == b.place.objects[kind] &&
         std::strcmp(a.place.machine, b.place.machine) == 0;
}

/// Returns the first rank that wants the same, and is restricted to the same object; MPI_UNDEFINED: this one is not.
int first_beside(const std::vector<Whereabouts>& ranks, const Whereabouts& mine, int kind) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Whereabouts& other = ranks[rank];
    if (other.type == mine.type && other.resource == mine.resource && is_beside(mine, other, kind))
      return static_cast<int>(rank);
  }
  return MPI_UNDEFINED;
}

/// Returns the largest kind of hardware whose objects split the communicator; -1: none does. All ranks find the same.
int largest_that_splits(const std::vector<Whereabouts>& ranks) {
  for (int kind = 0; kind < hardware_kind_count; ++kind) {
    const auto is_restricted = [&](const Whereabouts& one) {
      return one.type == MPI_COMM_TYPE_HW_UNGUIDED && one.place.objects[kind] >= 0;
    };
    const auto is_beside_the_first = [&](const Whereabouts& one) {
      return is_restricted(one) && is_beside(ranks.front(), one, kind);
    };
    const bool any = std::any_of(ranks.begin(), ranks.end(), is_restricted);
    if (any && !std::all_of(ranks.begin(), ranks.end(), is_beside_the_first)) return kind;
  }
  return -1;
}

/// Returns the number that stands for what the hints of a guided split name; -1: nothing that is known.
int resource_of(int type, const InfoPairs& hints) {
  const std::string* const set = type == MPI_COMM_TYPE_RESOURCE_GUIDED ? find_value(hints, kSetKey) : nullptr;
  for (int i = 0; set != nullptr && i < process_sets(); ++i) {
    if (*set == process_set(i)) return hardware_kind_count + i;
  }
  const std::string* const name = find_value(hints, kResourceKey);
  return set == nullptr && name != nullptr ? hardware_kind(*name) : -1;
}

/// Returns the first rank of the communicator that is in the same set of processes as this one. Each rank is in all
/// sets: that of all ranks, and its own.
int first_of_set(const Communicator& comm, const std::vector<Whereabouts>& ranks, const Whereabouts& mine) {
  if (mine.resource != hardware_kind_count) return comm.rank();
  const auto same = [&](const Whereabouts& one) { return one.type == mine.type && one.resource == mine.resource; };
  return static_cast<int>(std::find_if(ranks.begin(), ranks.end(), same) - ranks.begin());
}

int color_of(const Communicator& comm, const std::vector<Whereabouts>& ranks, const Whereabouts& mine,
             std::string* resource) {
  if (mine.type == MPI_COMM_TYPE_SHARED) return first_sharer(comm, ranks);
  if (mine.type == MPI_COMM_TYPE_HW_UNGUIDED) {
    const int kind = largest_that_splits(ranks);
    if (kind < 0) return MPI_UNDEFINED;
    *resource = hardware_kinds[kind];
    return first_beside(ranks, mine, kind);
  }
  if (mine.type == MPI_UNDEFINED || mine.resource < 0) return MPI_UNDEFINED;
  if (mine.resource < hardware_kind_count) return first_beside(ranks, mine, mine.resource);
  return first_of_set(comm, ranks, mine);
}

/// Fills in what this rank tells the others.
Whereabouts own_whereabouts(int type, const InfoPairs& hints, SharedPiece& piece) {
  Whereabouts mine{};
  mine.type = type;
  mine.resource = -1;
  const bool is_guided = type == MPI_COMM_TYPE_HW_GUIDED || type == MPI_COMM_TYPE_RESOURCE_GUIDED;
  const std::string* const name = is_guided ? find_value(hints, kResourceKey) : nullptr;
  if (name != nullptr && *name == "mpi_shared_memory") {
    mine.type = MPI_COMM_TYPE_SHARED;
  } else if (is_guided) {
    mine.type = MPI_COMM_TYPE_HW_GUIDED;
    mine.resource = resource_of(type, hints);
  }
  if (mine.type == MPI_COMM_TYPE_SHARED) mine.error = piece.allocate(mine.key);
  if (type == MPI_COMM_TYPE_HW_UNGUIDED || (mine.resource >= 0 && mine.resource < hardware_kind_count))
    mine.place = own_hardware_place();
  return mine;
}

}  // namespace

int split_by_type(Communicator& parent, int type, int key, const InfoPairs& hints, std::string* resource,
                  MPI_Comm* made) {
  SharedPiece piece;  // until all ranks have mapped what they can: the split at the end has met them
  const Whereabouts mine = own_whereabouts(type, hints, piece);
  std::vector<Whereabouts> ranks;
  const int code = exchange(parent, mine, &ranks);
  if (code != MPI_SUCCESS) return code;
  for (const Whereabouts& one : ranks) {
    if (one.error != MPI_SUCCESS)
      return mine.error != MPI_SUCCESS ? mine.error : fail(one.error, "another rank has no memory to share");
  }
  return split(parent, color_of(parent, ranks, mine, resource), key, made);
}

}  // namespace canele::mpi
