// SPDX-License-Identifier: BSD-3-Clause
//
// Topology: how the ranks of a communicator are neighbours of each other.
//
// Constant once it belongs to a communicator, and shared with its duplicates. Any thread.
//
// A neighbourhood collective has one send for each destination, and one receive for each source. The engine lets the
// k-th send to a rank meet the k-th receive there from this rank. In graphs both ends have such edges in one order. In
// a periodic dimension of one or two ranks, both neighbours are the same rank. What it sends downwards comes from
// above, so receives are in another order than their blocks:
//
//     slots of the blocks    0: dimension 0, down    1: dimension 0, up    2: dimension 1, down    3: ...
//     order of the sends     0  1  2  3
//     order of the receives  1  0  3  2
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "starpu_glue/mpi/communicators/communicator.hpp"

namespace canele::mpi {

/// A grid. The last dimension varies fastest in ranks.
struct Grid {
  std::vector<int> dims;
  std::vector<int> periods;  ///< 0 or 1

  std::size_t size() const { return dims.size(); }
  void coordinates(int rank, std::span<int> coords) const;
  /// Returns the rank at coordinates within the grid.
  int rank(std::span<const int> coords) const;
  /// Returns the rank `distance` steps away in a dimension; MPI_PROC_NULL: outside of the grid.
  int shifted(int rank, std::size_t dimension, std::int64_t distance) const;
};

/// The edges of all ranks: those of rank i end before ends[i].
struct Graph {
  std::vector<int> ends, edges;

  std::span<const int> neighbors(int rank) const {
    const int begin = rank == 0 ? 0 : ends[static_cast<std::size_t>(rank) - 1];
    return std::span(edges).subspan(static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(ends[static_cast<std::size_t>(rank)] - begin));
  }
};

struct Topology {
  int kind = MPI_UNDEFINED;  ///< MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH
  Grid grid;                 ///< of MPI_CART
  Graph graph;               ///< of MPI_GRAPH
  bool weighted = false;     ///< of MPI_DIST_GRAPH
  std::vector<int> source_weights, destination_weights;
  /// Neighbours of this rank. MPI_PROC_NULL: no rank is there.
  std::vector<int> sources, destinations;

  /// Returns the slot of the `index`-th receive.
  std::size_t receive_slot(std::size_t index) const { return kind == MPI_CART ? index ^ 1U : index; }
};

/// Returns the topology of a communicator. MPI_ERR_TOPOLOGY: it has none, or another kind. MPI_UNDEFINED: any kind.
int get_topology(const Communicator& comm, int kind, const Topology** found);

/// Makes a communicator of the ranks that pass a topology, in the order of `key`. The others pass nullptr and get
/// MPI_COMM_NULL. Ranks with different colors get different communicators. All ranks take part.
int create_with(Communicator& parent, std::unique_ptr<Topology> topology, int color, int key, MPI_Comm* made);

/// Makes the topology of a grid for one of its ranks.
std::unique_ptr<Topology> make_grid(Grid grid, int rank);

/// Fills in the dimensions that are 0: their product with the others is `ranks`, they are as equal as can be, and not
/// increasing. Returns an MPI code.
int fill_dimensions(int ranks, std::span<int> dims);

}  // namespace canele::mpi
