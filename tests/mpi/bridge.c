/* SPDX-License-Identifier: BSD-3-Clause
 *
 * canele_mpi.h: communicators, ranks and datatypes in the native API, beside MPI's own messages.
 *
 * Run with 1 to 4 ranks. Every rank sends the columns of a matrix to its neighbour by the native API, and the same by
 * MPI at the same time. One thread.
 */
#include <canele/post.h>
#include <canele_mpi.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { rows = 50, columns = 8, tag = 3 };

static void exchange(MPI_Comm comm, int rank, int size) {
  static double out[rows][columns], in[rows][columns], by_mpi[rows][columns];
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int to = -1, from = -1;
  canele_session_t *session = NULL, *again = NULL;
  CHECK(canele_mpi_session(comm, &session) == MPI_SUCCESS);
  CHECK(canele_mpi_session(comm, &again) == MPI_SUCCESS && again == session);
  CHECK(canele_mpi_job_rank(comm, right, &to) == MPI_SUCCESS);
  CHECK(canele_mpi_job_rank(comm, left, &from) == MPI_SUCCESS);
  for (int i = 0; i < rows; i++)
    for (int k = 0; k < columns; k++) out[i][k] = 1000 * rank + 10 * i + k;
  memset(in, 0, sizeof in);
  memset(by_mpi, 0, sizeof by_mpi);

  MPI_Datatype column, both;
  MPI_Type_vector(rows, 1, columns, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, sizeof(double), &both);
  MPI_Type_commit(&both);
  canele_mpi_elements_t sent, received;
  canele_data_t send_data, receive_data;
  CHECK(canele_mpi_data_get(&sent, out, 2, both, &send_data) == MPI_SUCCESS);
  CHECK(canele_mpi_data_get(&received, in, 2, both, &receive_data) == MPI_SUCCESS);
  CHECK(send_data.length == 2 * rows * sizeof(double));
  canele_request_t send, receive;
  memset(&send, 0, sizeof send);
  memset(&receive, 0, sizeof receive);
  MPI_Request requests[2];
  MPI_Irecv(by_mpi, 2, both, left, tag, comm, &requests[0]);
  CHECK(canele_post_receive(session, from, tag, CANELE_TAG_EXACT, &receive_data, NULL, &receive) == CANELE_OK);
  CHECK(canele_post_send(session, to, tag, &send_data, NULL, &send) == CANELE_OK);
  MPI_Isend(out, 2, both, right, tag, comm, &requests[1]);
  MPI_Type_free(&both); /* the operations go on */
  MPI_Type_free(&column);
  CHECK(canele_wait(&send, NULL) == CANELE_OK);
  CHECK(canele_wait(&receive, NULL) == CANELE_OK);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(canele_mpi_data_release(&sent) == MPI_SUCCESS);
  CHECK(canele_mpi_data_release(&received) == MPI_SUCCESS);
  for (int i = 0; i < rows; i++) {
    for (int k = 0; k < columns; k++) {
      const double expected = k < 2 ? 1000 * left + 10 * i + k : 0;
      CHECK(in[i][k] == expected && by_mpi[i][k] == expected);
    }
  }
}

static void wrong(MPI_Comm comm, int size) {
  canele_mpi_elements_t elements;
  canele_data_t data;
  canele_session_t *session = NULL;
  int rank = 0, byte = 0;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(canele_mpi_job_rank(comm, size, &rank) == MPI_ERR_RANK);
  CHECK(canele_mpi_job_rank(comm, -1, &rank) == MPI_ERR_RANK);
  CHECK(canele_mpi_comm_rank(comm, 1 << 20, &rank) == MPI_ERR_RANK);
  CHECK(canele_mpi_session(MPI_COMM_NULL, &session) == MPI_ERR_COMM);
  CHECK(canele_mpi_data_get(&elements, &byte, 1, MPI_DATATYPE_NULL, &data) == MPI_ERR_TYPE);
  CHECK(canele_mpi_data_get(&elements, &byte, -1, MPI_INT, &data) == MPI_ERR_COUNT);
  CHECK(canele_mpi_data_get(&elements, NULL, 1, MPI_INT, &data) == MPI_ERR_BUFFER);
  CHECK(canele_mpi_data_get(&elements, &byte, 1, MPI_INT, &data) == MPI_SUCCESS);
  CHECK(data.segments == NULL && data.base == &byte && data.length == sizeof(int));
  CHECK(canele_mpi_data_release(&elements) == MPI_SUCCESS);
  CHECK(canele_mpi_data_release(&elements) == MPI_ERR_ARG);
  CHECK(canele_mpi_engine(NULL) == MPI_ERR_ARG);
}

int main(int argc, char **argv) {
  int found = -1;
  start(&argc, &argv);
  const int rank = rank_, size = size_;
  canele_engine_t *engine = NULL;
  CHECK(canele_mpi_engine(&engine) == MPI_SUCCESS);
  CHECK(canele_rank(engine) == rank && canele_size(engine) == size);
  exchange(MPI_COMM_WORLD, rank, size);

  MPI_Comm half; /* every second rank, in reverse order */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  int half_rank, half_size;
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  CHECK(canele_mpi_job_rank(half, half_rank, &found) == MPI_SUCCESS && found == rank);
  CHECK(canele_mpi_comm_rank(half, rank, &found) == MPI_SUCCESS && found == half_rank);
  if (size > 1)
    CHECK(canele_mpi_comm_rank(half, rank > 0 ? rank - 1 : 1, &found) == MPI_SUCCESS && found == MPI_UNDEFINED);
  exchange(half, half_rank, half_size);
  wrong(half, half_size);
  MPI_Comm_free(&half);
  return finish();
}
