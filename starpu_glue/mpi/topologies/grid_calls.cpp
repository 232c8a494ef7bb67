// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Cart functions, MPI_Dims_create and MPI_Topo_test, called by their entry points. Any thread.
//
// Ranks are never reordered.
#include <algorithm>
#include <utility>

#include "calls/topologies.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/topologies/topology.hpp"

namespace canele::mpi {
namespace {

/// Reads a grid that a program describes. *ranks: how many it has.
int read_grid(const Communicator& comm, int ndims, const int* dims, const int* periods, Grid* grid, int* ranks) {
  std::int64_t product = 1;
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] < 1) return fail(MPI_ERR_DIMS, "dimension %d has %d ranks; expected: at least 1", i, dims[i]);
    product *= dims[i];
    if (product > comm.size()) {
      return fail(MPI_ERR_DIMS, "the grid has more ranks than the communicator, which has %d", comm.size());
    }
    grid->dims.push_back(dims[i]);
    grid->periods.push_back(periods[i] != 0 ? 1 : 0);
  }
  *ranks = static_cast<int>(product);
  return MPI_SUCCESS;
}

int get_grid(const Communicator& comm, const Grid** grid) {
  const Topology* topology = nullptr;
  const int code = get_topology(comm, MPI_CART, &topology);
  if (code == MPI_SUCCESS) *grid = &topology->grid;
  return code;
}

int check_room(const Grid& grid, int maxdims) {
  if (static_cast<std::size_t>(maxdims) >= grid.size()) return MPI_SUCCESS;
  return fail(MPI_ERR_ARG, "maxdims is %d; the grid has %zu dimensions", maxdims, grid.size());
}

std::span<int> first(int* values, const Grid& grid) { return {values, grid.size()}; }

}  // namespace

namespace calls {

int cart_create(Communicator& comm_old, int ndims, const int dims[], const int periods[], int /*reorder*/,
                MPI_Comm* comm_cart) {
  Grid grid;
  int ranks = 0;
  const int code = read_grid(comm_old, ndims, dims, periods, &grid, &ranks);
  if (code != MPI_SUCCESS) return code;
  std::unique_ptr<Topology> topology;
  if (comm_old.rank() < ranks) topology = make_grid(std::move(grid), comm_old.rank());
  return create_with(comm_old, std::move(topology), 0, comm_old.rank(), comm_cart);
}

int cart_map(Communicator& comm, int ndims, const int dims[], const int periods[], int* newrank) {
  Grid grid;
  int ranks = 0;
  const int code = read_grid(comm, ndims, dims, periods, &grid, &ranks);
  if (code == MPI_SUCCESS) *newrank = comm.rank() < ranks ? comm.rank() : MPI_UNDEFINED;
  return code;
}

int cart_sub(Communicator& comm, const int remain_dims[], MPI_Comm* newcomm) {
  const Grid* grid = nullptr;
  int code = get_grid(comm, &grid);
  if (code == MPI_SUCCESS && grid->size() != 0) code = given({{"remain_dims", remain_dims}});
  if (code != MPI_SUCCESS) return code;
  std::vector<int> coords(grid->size()), inner, outer;
  grid->coordinates(comm.rank(), coords);
  Grid kept, dropped;
  for (std::size_t i = 0; i < grid->size(); ++i) {
    Grid& part = remain_dims[i] != 0 ? kept : dropped;
    part.dims.push_back(grid->dims[i]);
    part.periods.push_back(grid->periods[i]);
    (remain_dims[i] != 0 ? inner : outer).push_back(coords[i]);
  }
  const int rank = kept.rank(inner);
  return create_with(comm, make_grid(std::move(kept), rank), dropped.rank(outer), rank, newcomm);
}

int cartdim_get(Communicator& comm, int* ndims) {
  const Grid* grid = nullptr;
  const int code = get_grid(comm, &grid);
  if (code == MPI_SUCCESS) *ndims = static_cast<int>(grid->size());
  return code;
}

int cart_get(Communicator& comm, int maxdims, int dims[], int periods[], int coords[]) {
  const Grid* grid = nullptr;
  int code = get_grid(comm, &grid);
  if (code == MPI_SUCCESS) code = check_room(*grid, maxdims);
  if (code != MPI_SUCCESS) return code;
  std::copy(grid->dims.begin(), grid->dims.end(), dims);
  std::copy(grid->periods.begin(), grid->periods.end(), periods);
  grid->coordinates(comm.rank(), first(coords, *grid));
  return MPI_SUCCESS;
}

int cart_coords(Communicator& comm, int rank, int maxdims, int coords[]) {
  const Grid* grid = nullptr;
  int code = get_grid(comm, &grid);
  if (code == MPI_SUCCESS) code = check_room(*grid, maxdims);
  if (code != MPI_SUCCESS) return code;
  if (!comm.has_rank(rank)) return fail(MPI_ERR_RANK, "rank %d; expected: 0 to %d", rank, comm.size() - 1);
  grid->coordinates(rank, first(coords, *grid));
  return MPI_SUCCESS;
}

int cart_rank(Communicator& comm, const int coords[], int* rank) {
  const Grid* grid = nullptr;
  int code = get_grid(comm, &grid);
  if (code == MPI_SUCCESS && grid->size() != 0) code = given({{"coords", coords}});
  if (code != MPI_SUCCESS) return code;
  std::vector<int> within;
  for (std::size_t i = 0; i < grid->size(); ++i) {
    const int extent = grid->dims[i], at = coords[i];
    if (grid->periods[i] == 0 && (at < 0 || at >= extent)) {
      return fail(MPI_ERR_ARG, "coordinate %zu is %d; expected: 0 to %d", i, at, extent - 1);
    }
    within.push_back((at % extent + extent) % extent);
  }
  *rank = grid->rank(within);
  return MPI_SUCCESS;
}

int cart_shift(Communicator& comm, int direction, int disp, int* rank_source, int* rank_dest) {
  const Grid* grid = nullptr;
  if (const int code = get_grid(comm, &grid); code != MPI_SUCCESS) return code;
  if (direction < 0 || static_cast<std::size_t>(direction) >= grid->size()) {
    return fail(MPI_ERR_DIMS, "direction is %d; the grid has %zu dimensions", direction, grid->size());
  }
  const auto dimension = static_cast<std::size_t>(direction);
  *rank_source = grid->shifted(comm.rank(), dimension, -std::int64_t{disp});
  *rank_dest = grid->shifted(comm.rank(), dimension, disp);
  return MPI_SUCCESS;
}

int dims_create(int nnodes, int ndims, int dims[]) {
  return fill_dimensions(nnodes, std::span(dims, static_cast<std::size_t>(ndims)));
}

int topo_test(Communicator& comm, int* status) {
  *status = comm.topology() == nullptr ? MPI_UNDEFINED : comm.topology()->kind;
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
