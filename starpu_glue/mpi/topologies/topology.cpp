// SPDX-License-Identifier: BSD-3-Clause
//
// Topologies: grids, and communicators made with a topology.
#include "starpu_glue/mpi/topologies/topology.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "starpu_glue/mpi/communicators/creation.hpp"
#include "starpu_glue/mpi/core/error.hpp"

namespace canele::mpi {

void Grid::coordinates(int rank, std::span<int> coords) const {
  for (std::size_t i = size(); i-- > 0;) {
    coords[i] = rank % dims[i];
    rank /= dims[i];
  }
}

int Grid::rank(std::span<const int> coords) const {
  int rank = 0;
  for (std::size_t i = 0; i < size(); ++i) rank = rank * dims[i] + coords[i];
  return rank;
}

int Grid::shifted(int rank, std::size_t dimension, std::int64_t distance) const {
  std::vector<int> coords(size());
  coordinates(rank, coords);
  const std::int64_t extent = dims[dimension];
  std::int64_t wanted = coords[dimension] + distance;
  if (periods[dimension] != 0) wanted = (wanted % extent + extent) % extent;
  if (wanted < 0 || wanted >= extent) return MPI_PROC_NULL;
  coords[dimension] = static_cast<int>(wanted);
  return this->rank(coords);
}

int get_topology(const Communicator& comm, int kind, const Topology** found) {
  *found = comm.topology().get();
  if (*found == nullptr) return fail(MPI_ERR_TOPOLOGY, "the communicator has no topology");
  if (kind == MPI_UNDEFINED || (*found)->kind == kind) return MPI_SUCCESS;
  return fail(MPI_ERR_TOPOLOGY, "the communicator has a topology of another kind");
}

int create_with(Communicator& parent, std::unique_ptr<Topology> topology, int color, int key, MPI_Comm* made) {
  const std::shared_ptr<const Topology> shared = std::move(topology);
  const int code = split(parent, shared == nullptr ? MPI_UNDEFINED : color, key, made);
  if (code == MPI_SUCCESS && shared != nullptr) find_communicator(*made)->set_topology(shared);
  return code;
}

std::unique_ptr<Topology> make_grid(Grid grid, int rank) {
  auto topology = std::make_unique<Topology>();
  topology->kind = MPI_CART;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    for (const int step : {-1, 1}) topology->sources.push_back(grid.shifted(rank, i, step));
  }
  topology->destinations = topology->sources;
  topology->grid = std::move(grid);
  return topology;
}

namespace {

/// Finds factors of a number, not increasing: those whose largest and smallest differ least. Of several such solutions
/// it takes the one with the largest smallest factor, then with the largest one before that, and so on.
class Factors {
 public:
  Factors(int number, std::size_t count) : factors_(count) {
    for (std::int64_t i = 1; i * i <= number; ++i) {
      if (number % i != 0) continue;
      divisors_.push_back(static_cast<int>(i));
      if (number / i != i) divisors_.push_back(number / static_cast<int>(i));
    }
    std::sort(divisors_.begin(), divisors_.end());
    if (count != 0) search(0, number, number);
  }
  const std::vector<int>& best() const { return best_; }

 private:
  static constexpr int kNone = INT_MAX;

  /// Returns base to the power of `exponent`, or a number above all ints.
  static std::int64_t power(int base, std::size_t exponent) {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < exponent && product <= INT_MAX && base != 1; ++i) product *= base;
    return product;
  }

  /// Chooses the factors from `index` on, none above `most`; their product is `rest`. Tries small ones first.
  void search(std::size_t index, int rest, int most) {
    const std::size_t left = factors_.size() - index;
    if (left == 0) {
      const int difference = factors_.front() - factors_.back();
      const bool is_larger =
          std::lexicographical_compare(best_.rbegin(), best_.rend(), factors_.rbegin(), factors_.rend());
      if (rest != 1 || difference > difference_ || (difference == difference_ && !is_larger)) return;
      difference_ = difference;
      best_ = factors_;
      return;
    }
    for (const int factor : divisors_) {
      const int least = (index == 0 ? factor : factors_.front()) - difference_;  // of all factors
      if (factor > most || (least > 1 && power(least, left) > rest)) return;
      if (rest % factor != 0 || factor < least || power(factor, left) < rest) continue;
      factors_[index] = factor;
      search(index + 1, rest / factor, factor);
    }
  }

  std::vector<int> divisors_, factors_, best_;
  int difference_ = kNone;
};

}  // namespace

int fill_dimensions(int ranks, std::span<int> dims) {
  std::int64_t given = 1;
  std::vector<int*> open;
  for (int& dim : dims) {
    if (dim < 0) return fail(MPI_ERR_DIMS, "a dimension is %d; expected: at least 0", dim);
    if (dim == 0) {
      open.push_back(&dim);
    } else if (given <= ranks) {
      given *= dim;
    }
  }
  if (ranks < 1 || ranks % given != 0 || (open.empty() && given != ranks)) {
    return fail(MPI_ERR_DIMS, "%d ranks do not fill a grid with the dimensions given", ranks);
  }
  const int rest = ranks / static_cast<int>(given);
  const Factors factors(rest, open.size());
  for (std::size_t i = 0; i < open.size(); ++i) *open[i] = factors.best()[i];
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
