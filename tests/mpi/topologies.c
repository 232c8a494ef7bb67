/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Topologies: grids, graphs and distributed graphs, and what they say about themselves. Run by ctest at 1 to 8 ranks.
 * One thread.
 */
#include "check.h"

enum { most = 64 };

static int kind_of(MPI_Comm comm) {
  int kind = -1;
  MPI_Topo_test(comm, &kind);
  return kind;
}

/* The rank at coordinates, or MPI_PROC_NULL outside of the grid. */
static int rank_at(int ndims, const int *dims, const int *periods, const int *coords) {
  int rank = 0;
  for (int i = 0; i < ndims; ++i) {
    int at = coords[i];
    if (periods[i]) at = (at % dims[i] + dims[i]) % dims[i];
    if (at < 0 || at >= dims[i]) return MPI_PROC_NULL;
    rank = rank * dims[i] + at;
  }
  return rank;
}

static void check_grid(MPI_Comm grid, int ndims, const int *dims, const int *periods) {
  int count = -1, rank, size, had_dims[4], had_periods[4], coords[4], moved[4], found, source, dest;
  CHECK_EQ(kind_of(grid), MPI_CART);
  MPI_Cartdim_get(grid, &count);
  CHECK_EQ(count, ndims);
  MPI_Comm_rank(grid, &rank);
  MPI_Comm_size(grid, &size);
  MPI_Cart_get(grid, 4, had_dims, had_periods, coords);
  for (int i = 0; i < ndims; ++i) {
    CHECK_EQ(had_dims[i], dims[i]);
    CHECK_EQ(!had_periods[i], !periods[i]);
  }
  CHECK_EQ(rank_at(ndims, dims, periods, coords), rank);
  for (int other = 0; other < size; ++other) {
    MPI_Cart_coords(grid, other, 4, moved);
    CHECK_EQ(rank_at(ndims, dims, periods, moved), other);
    for (int i = 0; i < ndims; ++i) moved[i] += periods[i] ? (other % 5 - 2) * dims[i] : 0;
    MPI_Cart_rank(grid, moved, &found);
    CHECK_EQ(found, other);
  }
  for (int i = 0; i < ndims; ++i) {
    for (int by = -9; by <= 9; ++by) {
      MPI_Cart_shift(grid, i, by, &source, &dest);
      memcpy(moved, coords, sizeof moved);
      moved[i] = coords[i] + by;
      CHECK_EQ(dest, rank_at(ndims, dims, periods, moved));
      moved[i] = coords[i] - by;
      CHECK_EQ(source, rank_at(ndims, dims, periods, moved));
    }
  }
}

/* All parts of a grid: by which dimensions remain. */
static void check_parts(MPI_Comm grid, int ndims, const int *dims, const int *periods) {
  int all_coords[4], rank, part_rank;
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 4, all_coords);
  for (int which = 0; which < 1 << ndims; ++which) {
    int remain[4] = {0}, part_dims[4] = {0}, part_periods[4] = {0}, coords[4] = {0}, count = 0, size, wanted = 1;
    for (int i = 0; i < ndims; ++i) {
      remain[i] = which >> i & 1;
      if (!remain[i]) continue;
      part_dims[count] = dims[i];
      part_periods[count] = periods[i];
      coords[count++] = all_coords[i];
      wanted *= dims[i];
    }
    MPI_Comm part;
    MPI_Cart_sub(grid, remain, &part);
    MPI_Comm_size(part, &size);
    CHECK_EQ(size, wanted);
    MPI_Comm_rank(part, &part_rank);
    CHECK_EQ(part_rank, rank_at(count, part_dims, part_periods, coords));
    check_grid(part, count, part_dims, part_periods);
    MPI_Comm_free(&part);
  }
}

static void grids(void) {
  for (int ndims = 0; ndims <= 3; ++ndims) {
    for (int which = 0; which < 1 << ndims; ++which) {
      for (int less = 0; less < 2 && less < size_; ++less) {
        int dims[4] = {0}, periods[4] = {0}, rank, ranks = 1, mapped;
        for (int i = 0; i < ndims; ++i) periods[i] = which >> i & 1;
        if (ndims > 0) MPI_Dims_create(size_ - less, ndims, dims);
        for (int i = 0; i < ndims; ++i) ranks *= dims[i];
        MPI_Comm grid, copy, half;
        MPI_Cart_map(MPI_COMM_WORLD, ndims, dims, periods, &mapped);
        CHECK(mapped == MPI_UNDEFINED || (mapped >= 0 && mapped < ranks));
        MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &grid);
        CHECK_EQ(grid == MPI_COMM_NULL, rank_ >= ranks);
        if (grid == MPI_COMM_NULL) continue;
        MPI_Comm_rank(grid, &rank);
        CHECK_EQ(rank, rank_);
        check_grid(grid, ndims, dims, periods);
        check_parts(grid, ndims, dims, periods);
        MPI_Comm_dup(grid, &copy);
        MPI_Comm_split(grid, 0, 0, &half);
        MPI_Comm_free(&grid);
        check_grid(copy, ndims, dims, periods);
        CHECK_EQ(kind_of(half), MPI_UNDEFINED);
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
      }
    }
  }
}

static void dimensions(void) {
  static const struct {
    int ranks, ndims, given[4], wanted[4];
  } cases[] = {
      {1, 3, {0}, {1, 1, 1}},
      {6, 2, {0}, {3, 2}},
      {7, 3, {0}, {7, 1, 1}},
      {12, 2, {0}, {4, 3}},
      {16, 3, {0}, {4, 2, 2}},
      {5040, 3, {0}, {21, 16, 15}},
      {5616, 4, {0}, {13, 9, 8, 6}},
      {7488, 3, {0}, {26, 18, 16}},
      {36, 3, {0}, {4, 3, 3}},
      {60, 3, {0}, {5, 4, 3}},
      {6, 3, {0, 3, 0}, {2, 3, 1}},
      {24, 4, {0, 2, 0, 0}, {3, 2, 2, 2}},
      {64, 3, {0}, {4, 4, 4}},
      {2 * 3 * 5 * 7 * 11 * 13, 3, {0}, {35, 33, 26}},
      {1 << 30, 3, {0}, {1 << 10, 1 << 10, 1 << 10}},
      {2147483647, 2, {0}, {2147483647, 1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int dims[4];
    memcpy(dims, cases[i].given, sizeof dims);
    CHECK_EQ(MPI_Dims_create(cases[i].ranks, cases[i].ndims, dims), MPI_SUCCESS);
    for (int k = 0; k < cases[i].ndims; ++k) CHECK_EQ(dims[k], cases[i].wanted[k]);
  }
}

static void graphs(void) {
  /* A ring whose ranks are neighbours of themselves, too; the last rank is not in it if there are several. */
  int ends[most], edges[3 * most], had_ends[most], had_edges[3 * most], nodes = size_ > 1 ? size_ - 1 : 1, a, b, mapped;
  for (int i = 0; i < nodes; ++i) {
    ends[i] = 3 * i + 3;
    edges[3 * i] = (i + nodes - 1) % nodes;
    edges[3 * i + 1] = (i + 1) % nodes;
    edges[3 * i + 2] = i;
  }
  MPI_Comm graph, copy;
  MPI_Graph_map(MPI_COMM_WORLD, nodes, ends, edges, &mapped);
  CHECK(mapped == MPI_UNDEFINED || (mapped >= 0 && mapped < nodes));
  MPI_Graph_create(MPI_COMM_WORLD, nodes, ends, edges, 0, &graph);
  CHECK_EQ(graph == MPI_COMM_NULL, rank_ >= nodes);
  if (graph == MPI_COMM_NULL) return;
  MPI_Comm_dup(graph, &copy);
  MPI_Comm_free(&graph);
  CHECK_EQ(kind_of(copy), MPI_GRAPH);
  MPI_Graphdims_get(copy, &a, &b);
  CHECK_EQ(a, nodes);
  CHECK_EQ(b, 3 * nodes);
  MPI_Graph_get(copy, most, 3 * most, had_ends, had_edges);
  CHECK_EQ(memcmp(ends, had_ends, sizeof(int) * (size_t)nodes), 0);
  CHECK_EQ(memcmp(edges, had_edges, sizeof(int) * 3 * (size_t)nodes), 0);
  for (int i = 0; i < nodes; ++i) {
    MPI_Graph_neighbors_count(copy, i, &a);
    CHECK_EQ(a, 3);
    MPI_Graph_neighbors(copy, i, 3, had_edges);
    CHECK_EQ(memcmp(edges + 3 * i, had_edges, 3 * sizeof(int)), 0);
  }
  MPI_Comm_free(&copy);
}

static void adjacent_graphs(void) {
  const int up = (rank_ + 1) % size_, down = (rank_ + size_ - 1) % size_;
  const int in[2] = {down, rank_}, in_weights[2] = {down, 0}, out[2] = {rank_, up}, out_weights[2] = {0, rank_};
  MPI_Comm graph;
  int a, b, weighted, sources[3] = {-1, -1, -1}, ws[2] = {-1, -1}, dests[2] = {-1, -1}, wd[2] = {-1, -1};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, in, in_weights, 2, out, out_weights, MPI_INFO_NULL, 0, &graph);
  CHECK_EQ(kind_of(graph), MPI_DIST_GRAPH);
  MPI_Dist_graph_neighbors_count(graph, &a, &b, &weighted);
  CHECK(a == 2 && b == 2 && weighted);
  MPI_Dist_graph_neighbors(graph, 2, sources, ws, 2, dests, wd);
  CHECK(!memcmp(in, sources, sizeof in) && !memcmp(in_weights, ws, sizeof in));
  CHECK(!memcmp(out, dests, sizeof out) && !memcmp(out_weights, wd, sizeof out));
  memset(sources, 0xff, sizeof sources);
  MPI_Dist_graph_neighbors(graph, 1, sources, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED); /* only a part */
  CHECK(sources[0] == down && sources[1] == -1);
  MPI_Comm_free(&graph);

  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, in, MPI_UNWEIGHTED, 2, out, MPI_UNWEIGHTED, MPI_INFO_NULL, 1,
                                 &graph);
  MPI_Dist_graph_neighbors_count(graph, &a, &b, &weighted);
  CHECK(a == 2 && b == 2 && !weighted);
  ws[0] = wd[0] = 77;
  MPI_Dist_graph_neighbors(graph, 2, sources, ws, 2, dests, wd);
  CHECK(ws[0] == 77 && wd[0] == 77);
  MPI_Comm_free(&graph);

  /* No rank has edges: with weights, and without. */
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL,
                                 0, &graph);
  MPI_Dist_graph_neighbors_count(graph, &a, &b, &weighted);
  CHECK(a == 0 && b == 0 && weighted);
  MPI_Comm_free(&graph);
}

/* Each rank names the edges of its upper neighbour, and rank 0 also a star. */
static void named_graphs(void) {
  int sources[2] = {(rank_ + 1) % size_, 0}, degrees[2] = {1, size_}, destinations[most + 1], weights[most + 1];
  destinations[0] = (rank_ + 2) % size_;
  weights[0] = 1000 + sources[0];
  for (int i = 0; i < size_; ++i) {
    destinations[1 + i] = i;
    weights[1 + i] = i;
  }
  MPI_Comm graph;
  int a, b, weighted, in[most], win[most], out[most], wout[most], sum = 0;
  MPI_Dist_graph_create(MPI_COMM_WORLD, rank_ == 0 ? 2 : 1, sources, degrees, destinations, weights, MPI_INFO_NULL, 0,
                        &graph);
  MPI_Dist_graph_neighbors_count(graph, &a, &b, &weighted);
  CHECK_EQ(a, 2);
  CHECK_EQ(b, rank_ == 0 ? 1 + size_ : 1);
  CHECK(weighted);
  MPI_Dist_graph_neighbors(graph, a, in, win, b, out, wout);
  for (int i = 0; i < a; ++i) CHECK(win[i] >= 1000 ? in[i] == win[i] - 1000 : in[i] == 0 && win[i] == rank_);
  for (int i = 0; i < b; ++i) {
    CHECK(wout[i] >= 1000 ? wout[i] == 1000 + rank_ && out[i] == (rank_ + 1) % size_ : out[i] == wout[i]);
    sum += wout[i];
  }
  CHECK_EQ(sum, 1000 + rank_ + (rank_ == 0 ? size_ * (size_ - 1) / 2 : 0));
  MPI_Comm_free(&graph);
}

static void errors(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const MPI_Comm world = MPI_COMM_WORLD;
  const int dims[1] = {size_ + 1}, periods[1] = {0}, none[1] = {0}, ends[1] = {1}, outside[1] = {1}, own[1] = {0};
  const int far[1] = {size_};
  MPI_Comm made = MPI_COMM_NULL;
  int value, coords[2] = {0, 0}, open[2] = {0, 5}, negative[2] = {-1, 0};
  CHECK_EQ(kind_of(world), MPI_UNDEFINED);
  CHECK_EQ(class_of(MPI_Cart_create(world, 1, dims, periods, 0, &made)), MPI_ERR_DIMS);
  CHECK_EQ(class_of(MPI_Cart_create(world, 1, none, periods, 0, &made)), MPI_ERR_DIMS);
  CHECK_EQ(class_of(MPI_Cartdim_get(world, &value)), MPI_ERR_TOPOLOGY);
  CHECK_EQ(class_of(MPI_Cart_rank(world, coords, &value)), MPI_ERR_TOPOLOGY);
  CHECK_EQ(class_of(MPI_Graphdims_get(world, &value, &value)), MPI_ERR_TOPOLOGY);
  CHECK_EQ(class_of(MPI_Dist_graph_neighbors_count(world, &value, &value, &value)), MPI_ERR_TOPOLOGY);
  CHECK_EQ(class_of(MPI_Dims_create(12, 2, open)), MPI_ERR_DIMS);
  CHECK_EQ(class_of(MPI_Dims_create(12, 2, negative)), MPI_ERR_DIMS);
  CHECK_EQ(class_of(MPI_Graph_create(world, 1, ends, outside, 0, &made)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Dist_graph_create_adjacent(world, 1, far, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                                   MPI_INFO_NULL, 0, &made)),
           MPI_ERR_RANK);
  CHECK(made == MPI_COMM_NULL);
  const int one[2] = {1, 1}, flags[2] = {0, 1};
  MPI_Cart_create(MPI_COMM_SELF, 2, one, flags, 1, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  coords[0] = 1;
  CHECK_EQ(class_of(MPI_Cart_rank(made, coords, &value)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Cart_coords(made, 1, 2, coords)), MPI_ERR_RANK);
  CHECK_EQ(class_of(MPI_Cart_coords(made, 0, 1, coords)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Cart_shift(made, 2, 1, &value, &value)), MPI_ERR_DIMS);
  CHECK_EQ(class_of(MPI_Graph_neighbors_count(made, 0, &value)), MPI_ERR_TOPOLOGY);
  MPI_Comm_free(&made);
  MPI_Graph_create(MPI_COMM_SELF, 1, ends, own, 0, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Graph_neighbors(made, 0, 0, &value)), MPI_ERR_ARG);
  CHECK_EQ(class_of(MPI_Graph_neighbors_count(made, 1, &value)), MPI_ERR_RANK);
  MPI_Comm_free(&made);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  dimensions();
  grids();
  graphs();
  adjacent_graphs();
  named_graphs();
  errors();
  return finish();
}
