/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The NewMadeleine interface as StarPU uses it: monitored sends and receives, unbound receives with a header, iovecs,
 * conditions. Requests freed in their callbacks, and hooks that run before, during and after MPI_Finalize.
 */
#include <nm_launcher_interface.h>
#include <nm_mcast_interface.h>
#include <nm_mpi_nmad.h>
#include <nm_sendrecv_interface.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

struct operation {
  nm_sr_request_t request;
  piom_cond_t done;
  nm_session_t session;
  nm_gate_t gate;
  struct iovec pieces[2];
  int64_t header;
  int remaining; /* of a chain */
};

static struct operation *new_operation(MPI_Comm comm, int peer) {
  struct operation *operation = calloc(1, sizeof *operation);
  piom_cond_init(&operation->done, 0);
  nm_mpi_nmad_dest(&operation->session, &operation->gate, comm, peer);
  return operation;
}

static void signal_done(nm_sr_event_t event, const nm_sr_event_info_t *info, void *ref) {
  struct operation *operation = ref;
  CHECK(info->p_request == &operation->request);
  CHECK_EQ(event, NM_SR_EVENT_FINALIZED);
  piom_cond_signal(&operation->done, 1);
}

static void wait_done(struct operation *operation) {
  while (!piom_cond_test_locked(&operation->done, 1)) piom_cond_wait(&operation->done, 1);
  piom_cond_destroy(&operation->done);
  free(operation);
}

/* Posts as StarPU posts known types: the descriptor is a stack variable. */
static struct operation *post(int sending, MPI_Comm comm, int peer, void *memory, MPI_Datatype type, int64_t count,
                              nm_tag_t tag, int synchronous) {
  struct operation *operation = new_operation(comm, peer);
  struct nm_data_s data;
  nm_mpi_nmad_data_get(&data, memory, type, count);
  if (sending) {
    nm_sr_send_init(operation->session, &operation->request);
    nm_sr_send_pack_data(operation->session, &operation->request, &data);
    memset(&data, 0xee, sizeof data);
    nm_sr_send_set_priority(operation->session, &operation->request, (int)(tag % 7) - 3);
    CHECK_EQ((synchronous ? nm_sr_send_issend : nm_sr_send_isend)(operation->session, &operation->request,
                                                                  operation->gate, tag),
             NM_ESUCCESS);
  } else {
    nm_sr_recv_init(operation->session, &operation->request);
    nm_sr_recv_unpack_data(operation->session, &operation->request, &data);
    memset(&data, 0xee, sizeof data);
    nm_sr_recv_irecv(operation->session, &operation->request, operation->gate, tag, NM_TAG_MASK_FULL);
  }
  nm_sr_request_set_ref(&operation->request, operation);
  CHECK_EQ(nm_sr_request_monitor(operation->session, &operation->request, NM_SR_EVENT_FINALIZED, signal_done),
           NM_ESUCCESS);
  return operation;
}

static void exchange(MPI_Comm comm, size_t bytes, int synchronous) {
  int me, size;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &size);
  char *out = malloc(bytes + 1), **in = malloc(sizeof *in * (size_t)size);
  struct operation **operations = malloc(2 * sizeof *operations * (size_t)size);
  fill(out, bytes, me);
  /* Tags that differ in their high bits only. */
  for (int peer = 0; peer < size; ++peer) {
    in[peer] = malloc(bytes + 1);
    operations[2 * peer] = post(1, comm, peer, out, MPI_BYTE, (int64_t)bytes, ((nm_tag_t)peer << 40) | 5, synchronous);
    operations[2 * peer + 1] =
        post(0, comm, peer, in[peer], MPI_BYTE, (int64_t)bytes, ((nm_tag_t)me << 40) | 5, synchronous);
  }
  for (int i = 0; i < 2 * size; ++i) wait_done(operations[i]);
  for (int peer = 0; peer < size; ++peer) {
    CHECK(matches(in[peer], bytes, peer));
    free(in[peer]);
  }
  free(in);
  free(out);
  free(operations);
}

/* A tile of a matrix, its type freed right after posting, as StarPU does in the callback. */
static void tiles(void) {
  enum { ROWS = 300, COLUMNS = 200, LINE = 512 };
  double *out = calloc(ROWS * LINE, sizeof *out), *in = calloc(ROWS * LINE, sizeof *in);
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  for (int i = 0; i < ROWS * LINE; ++i) out[i] = rank_ + i;
  MPI_Datatype type;
  MPI_Type_vector(ROWS, COLUMNS * sizeof(double), LINE * sizeof(double), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Datatype sent = type;
  struct operation *receive = post(0, MPI_COMM_WORLD, before, in, type, 1, 77, 0);
  struct operation *send = post(1, MPI_COMM_WORLD, next, out, type, 1, 77, 0);
  MPI_Type_free(&type);
  wait_done(send);
  wait_done(receive);
  nm_mpi_nmad_data_release(sent);
  nm_mpi_nmad_data_release(sent);
  for (int row = 0; row < ROWS; ++row) {
    for (int column = 0; column < LINE; ++column) {
      const double expected = column < COLUMNS ? before + row * LINE + column : 0;
      CHECK(in[row * LINE + column] == expected);
    }
  }
  free(in);
  free(out);
}

/* 1.3.10's unknown types: a size and the data with the same tag, in order. Both callbacks count down the same plain
 * integer, and the last one frees the block with both requests. That is right only if callbacks of sends never
 * overlap. */
struct pair {
  nm_sr_request_t size, data;
  int waited;
  int64_t length;
  char bytes[1000];
};
static int freed;

static void count_down(nm_sr_event_t event, const nm_sr_event_info_t *info, void *ref) {
  struct pair *pair = ref;
  (void)info;
  CHECK_EQ(event, NM_SR_EVENT_FINALIZED);
  if (--pair->waited > 0) return;
  free(pair);
  __atomic_fetch_add(&freed, 1, __ATOMIC_SEQ_CST);
}

static void send_pair(int peer, int64_t length) {
  struct pair *pair = calloc(1, sizeof *pair);
  nm_session_t session;
  nm_gate_t gate;
  struct nm_data_s data;
  nm_mpi_nmad_dest(&session, &gate, MPI_COMM_WORLD, peer);
  pair->waited = 2;
  pair->length = length;
  fill(pair->bytes, (size_t)length, (int)length);
  CHECK_EQ(nm_sr_isend(session, gate, 1234, &pair->length, sizeof pair->length, &pair->size), NM_ESUCCESS);
  nm_mpi_nmad_data_get(&data, pair->bytes, MPI_BYTE, length);
  nm_sr_send_init(session, &pair->data);
  nm_sr_send_pack_data(session, &pair->data, &data);
  CHECK_EQ(nm_sr_send_isend(session, &pair->data, gate, 1234), NM_ESUCCESS);
  nm_sr_request_set_ref(&pair->size, pair);
  CHECK_EQ(nm_sr_request_monitor(session, &pair->size, NM_SR_EVENT_FINALIZED, count_down), NM_ESUCCESS);
  nm_sr_request_set_ref(&pair->data, pair);
  CHECK_EQ(nm_sr_request_monitor(session, &pair->data, NM_SR_EVENT_FINALIZED, count_down), NM_ESUCCESS);
}

static void pairs(void) {
  enum { MANY = 300 };
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  for (int i = 0; i < MANY; ++i) send_pair(next, i * 3);
  for (int i = 0; i < MANY; ++i) {
    int64_t length = -1;
    char bytes[1000];
    wait_done(post(0, MPI_COMM_WORLD, before, &length, MPI_BYTE, sizeof length, 1234, 0));
    CHECK_EQ(length, i * 3);
    wait_done(post(0, MPI_COMM_WORLD, before, bytes, MPI_BYTE, length, 1234, 0));
    CHECK(matches(bytes, (size_t)length, i * 3));
  }
  while (__atomic_load_n(&freed, __ATOMIC_SEQ_CST) < MANY) piom_ltask_schedule(PIOM_POLL_POINT_FORCED);
}

/* 1.4's unknown types: an eager header of 8 bytes holds the length; the buffer is given in the event. */
static void header_here(nm_sr_event_t event, const nm_sr_event_info_t *info, void *ref) {
  struct operation *operation = ref;
  (void)info;
  if (event & NM_SR_EVENT_RECV_DATA) {
    struct nm_data_s data;
    CHECK(!(event & NM_SR_EVENT_FINALIZED));
    nm_data_contiguous_build(&data, &operation->header, sizeof operation->header);
    CHECK_EQ(nm_sr_recv_peek(operation->session, &operation->request, &data), NM_ESUCCESS);
    operation->pieces[0].iov_base = &operation->header;
    operation->pieces[0].iov_len = sizeof operation->header;
    operation->pieces[1].iov_base = malloc((size_t)operation->header + 1);
    operation->pieces[1].iov_len = (size_t)operation->header;
    nm_data_iov_build(&data, operation->pieces, 2);
    nm_sr_recv_offset(operation->session, &operation->request, sizeof operation->header);
    nm_sr_recv_unpack_data(operation->session, &operation->request, &data);
  } else if (event & NM_SR_EVENT_FINALIZED) {
    piom_cond_signal(&operation->done, 1);
  }
}

static struct operation *post_late(int peer, nm_tag_t tag) {
  struct operation *operation = new_operation(MPI_COMM_WORLD, peer);
  nm_sr_recv_init(operation->session, &operation->request);
  nm_sr_request_set_ref(&operation->request, operation);
  CHECK_EQ(
      nm_sr_request_monitor(operation->session, &operation->request,
                            NM_SR_EVENT_FINALIZED | NM_SR_EVENT_RECV_DATA | NM_SR_EVENT_RECV_COMPLETED, header_here),
      NM_ESUCCESS);
  nm_sr_recv_irecv(operation->session, &operation->request, operation->gate, tag, NM_TAG_MASK_FULL);
  return operation;
}

static struct operation *send_with_header(int peer, nm_tag_t tag, void *bytes, int64_t length) {
  struct operation *operation = new_operation(MPI_COMM_WORLD, peer);
  struct nm_data_s data;
  operation->header = length;
  operation->pieces[0].iov_base = &operation->header;
  operation->pieces[0].iov_len = sizeof operation->header;
  operation->pieces[1].iov_base = bytes;
  operation->pieces[1].iov_len = (size_t)length;
  nm_data_iov_build(&data, operation->pieces, 2);
  operation->request = NM_SR_REQUEST_NULL;
  nm_sr_send_init(operation->session, &operation->request);
  nm_sr_send_pack_data(operation->session, &operation->request, &data);
  nm_sr_send_header(operation->session, &operation->request, sizeof operation->header);
  CHECK_EQ(nm_sr_send_isend(operation->session, &operation->request, operation->gate, tag), NM_ESUCCESS);
  nm_sr_request_set_ref(&operation->request, operation);
  CHECK_EQ(nm_sr_request_monitor(operation->session, &operation->request, NM_SR_EVENT_FINALIZED, signal_done),
           NM_ESUCCESS);
  return operation;
}

static void late(size_t length, int receive_first) {
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  char *bytes = malloc(length + 1);
  struct operation *receive = NULL;
  fill(bytes, length, rank_);
  if (receive_first) receive = post_late(before, 55);
  MPI_Barrier(MPI_COMM_WORLD);
  struct operation *send = send_with_header(next, 55, bytes, (int64_t)length);
  if (!receive_first) {
    MPI_Barrier(MPI_COMM_WORLD);
    receive = post_late(before, 55);
  }
  while (!piom_cond_test_locked(&receive->done, 1)) piom_cond_wait(&receive->done, 1);
  CHECK_EQ(receive->header, length);
  CHECK(matches(receive->pieces[1].iov_base, length, before));
  free(receive->pieces[1].iov_base);
  free(receive);
  wait_done(send);
  free(bytes);
}

/* A callback submits the next send to its own rank, which completes at once: the stack must not grow with the chain. */
static size_t depth, deepest;
static piom_cond_t chain_done;

static void next_in_chain(nm_sr_event_t event, const nm_sr_event_info_t *info, void *ref) {
  struct operation *operation = ref;
  (void)event;
  (void)info;
  if (++depth > deepest) deepest = depth;
  const int remaining = operation->remaining;
  free(operation);
  if (remaining == 0) {
    --depth;
    piom_cond_signal(&chain_done, 1);
    return;
  }
  operation = new_operation(MPI_COMM_WORLD, rank_);
  operation->remaining = remaining - 1;
  CHECK_EQ(nm_sr_isend(operation->session, operation->gate, 99, "x", 1, &operation->request), NM_ESUCCESS);
  nm_sr_request_set_ref(&operation->request, operation);
  nm_sr_request_monitor(operation->session, &operation->request, NM_SR_EVENT_FINALIZED, next_in_chain);
  --depth;
}

static void chain(void) {
  enum { LENGTH = 20000 };
  struct operation *first = new_operation(MPI_COMM_WORLD, rank_);
  first->remaining = LENGTH - 1;
  piom_cond_init(&chain_done, 0);
  CHECK_EQ(nm_sr_isend(first->session, first->gate, 99, "x", 1, &first->request), NM_ESUCCESS);
  nm_sr_request_set_ref(&first->request, first);
  nm_sr_request_monitor(first->session, &first->request, NM_SR_EVENT_FINALIZED, next_in_chain);
  for (int i = 0; i < LENGTH; ++i) {
    char byte = 0;
    wait_done(post(0, MPI_COMM_WORLD, rank_, &byte, MPI_BYTE, 1, 99, 0));
    CHECK_EQ(byte, 'x');
  }
  while (!piom_cond_test_locked(&chain_done, 1)) piom_cond_wait(&chain_done, 1);
  CHECK_EQ(deepest, 1); /* one at a time and never nested; plain integers, as StarPU's */
}

/* Communicators have sessions of their own; a session leads back to its communicator. */
struct multicast {
  nm_mcast_t mcast;
  struct nm_data_s data;
  piom_cond_t done;
};

/* As in StarPU, the thread that is told of the end destroys the multicast and frees its memory. */
static void multicast_over(void *ref) {
  struct multicast *multicast = ref;
  nm_mcast_send_destroy(&multicast->mcast);
  piom_cond_signal(&multicast->done, 1);
}

/* Each rank in turn sends to all others, which post before or after; a plain message of the same tag follows. */
static void multicasts(MPI_Comm comm, size_t bytes, int before, nm_coll_tree_kind_t tree) {
  int me, size, count = 0;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &size);
  char *buffer = malloc(bytes + 1), *behind = malloc(4);
  int *ranks = malloc(sizeof *ranks * (size_t)size), *priorities = malloc(sizeof *priorities * (size_t)size);
  nm_mcast_service_t service = nm_mcast_init(nm_mpi_comm(comm));
  for (int root = 0; root < size; ++root) {
    if (root != me) {
      if (!before) MPI_Barrier(comm);
      struct operation *first = post(0, comm, root, buffer, MPI_BYTE, (int64_t)bytes, 77, 0);
      struct operation *second = post(0, comm, root, behind, MPI_BYTE, 4, 77, 0);
      if (before) MPI_Barrier(comm);
      wait_done(first);
      CHECK(matches(buffer, bytes, root));
      wait_done(second);
      CHECK(matches(behind, 4, root + 50));
      continue;
    }
    struct multicast *multicast = calloc(1, sizeof *multicast);
    nm_session_t session;
    nm_gate_t gate;
    count = 0;
    for (int rank = 0; rank < size; ++rank) {
      if (rank == me) continue;
      priorities[count] = rank % 3;
      ranks[count++] = rank;
    }
    fill(buffer, bytes, me);
    fill(behind, 4, me + 50);
    if (before) MPI_Barrier(comm);
    nm_mpi_nmad_dest(&session, &gate, comm, me);
    piom_cond_init(&multicast->done, 0);
    nm_mpi_nmad_data_get(&multicast->data, buffer, MPI_BYTE, (int64_t)bytes);
    nm_mcast_send_init(service, &multicast->mcast);
    nm_mcast_send_set_notifier(&multicast->mcast, multicast_over, multicast);
    nm_mcast_isend(&multicast->mcast, nm_comm_get_by_session(session), ranks, root % 2 == 0 ? priorities : NULL, count,
                   77, &multicast->data, 0, tree);
    for (int i = 0; i < count; ++i) wait_done(post(1, comm, ranks[i], behind, MPI_BYTE, 4, 77, 0));
    if (!before) MPI_Barrier(comm);
    while (!piom_cond_test_locked(&multicast->done, 1)) piom_cond_wait(&multicast->done, 1);
    piom_cond_destroy(&multicast->done);
    free(multicast);
  }
  nm_mcast_finalize(service);
  free(buffer), free(behind), free(ranks), free(priorities);
}

static void communicators(void) {
  MPI_Comm half;
  nm_session_t world, part;
  nm_gate_t gate, same;
  int me;
  MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, -rank_, &half);
  MPI_Comm_rank(half, &me);
  nm_mpi_nmad_dest(&world, &gate, MPI_COMM_WORLD, rank_);
  nm_mpi_nmad_dest(&part, &same, half, me);
  CHECK(world != part && gate == same);
  CHECK(nm_comm_get_by_session(part) == nm_mpi_comm(half));
  CHECK(nm_comm_get_by_session(world) == nm_mpi_comm(MPI_COMM_WORLD));
  exchange(half, 1000, 0);
  exchange(half, 200000, 0);
  MPI_Comm_free(&half);
}

/* Blocking calls are refused in callbacks, where they could never end; all other calls work there. */
static void call_in_callback(nm_sr_event_t event, const nm_sr_event_info_t *info, void *ref) {
  struct operation *operation = ref;
  MPI_Datatype type;
  (void)event;
  (void)info;
  CHECK_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_ERR_OTHER);
  CHECK_EQ(MPI_Recv(&operation->header, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
  CHECK_EQ(MPI_Type_contiguous(3, MPI_INT, &type), MPI_SUCCESS);
  CHECK_EQ(MPI_Type_free(&type), MPI_SUCCESS);
  piom_cond_signal(&operation->done, 1);
}

static void callbacks(void) {
  char byte = 0;
  struct operation *operation = new_operation(MPI_COMM_WORLD, rank_);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(nm_sr_isend(operation->session, operation->gate, 3, "y", 1, &operation->request), NM_ESUCCESS);
  nm_sr_request_set_ref(&operation->request, operation);
  nm_sr_request_monitor(operation->session, &operation->request, NM_SR_EVENT_FINALIZED, call_in_callback);
  wait_done(post(0, MPI_COMM_WORLD, rank_, &byte, MPI_BYTE, 1, 3, 0));
  CHECK_EQ(byte, 'y');
  wait_done(operation);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* StarPU does not check outcomes: a message longer than its receive must end the job. */
static void truncated(void) {
  char bytes[100] = {0};
  struct operation *receive = post(0, MPI_COMM_WORLD, rank_, bytes, MPI_BYTE, 10, 8, 0);
  post(1, MPI_COMM_WORLD, rank_, bytes, MPI_BYTE, 100, 8, 0);
  wait_done(receive);
}

/* Idle hooks of StarPU's workers know nothing of MPI_Init and MPI_Finalize. */
static int hooks_run = 1;

static void *hook(void *argument) {
  (void)argument;
  while (__atomic_load_n(&hooks_run, __ATOMIC_ACQUIRE)) {
    piom_ltask_schedule((int)(size_t)&argument);
    sched_yield();
  }
  return NULL;
}

static void *finalizer(void *argument) {
  (void)argument;
  MPI_Finalize();
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t hooks[2], last;
  for (int i = 0; i < 2; ++i) pthread_create(&hooks[i], NULL, hook, NULL);
  nm_abi_config_check();
  start(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "truncated") == 0) truncated();
  if (argc > 1) { /* bind to logical processing unit 0, as StarPU does; then to one that does not exist */
    const int indexes[] = {0, 123456};
    piom_ltask_set_bound_thread_indexes(0, &indexes[0], 1);
    piom_ltask_set_bound_thread_os_indexes(0, &indexes[1], 1);
  }
  for (int synchronous = 0; synchronous < 2; ++synchronous) {
    exchange(MPI_COMM_WORLD, 0, synchronous);
    exchange(MPI_COMM_WORLD, 8, synchronous);
    exchange(MPI_COMM_WORLD, 5000, synchronous);
    exchange(MPI_COMM_WORLD, 2000000, synchronous);
  }
  tiles();
  pairs();
  for (int receive_first = 0; receive_first < 2; ++receive_first) {
    late(0, receive_first);
    late(1000, receive_first);
    late(3000000, receive_first);
  }
  chain();
  for (int tree = NM_COLL_TREE_DEFAULT; tree <= NM_COLL_TREE_BINOMIAL; ++tree) {
    multicasts(MPI_COMM_WORLD, 8, tree % 2, (nm_coll_tree_kind_t)tree);
    multicasts(MPI_COMM_WORLD, 500000, tree % 2, (nm_coll_tree_kind_t)tree);
  }
  communicators();
  callbacks();
  MPI_Barrier(MPI_COMM_WORLD);
  pthread_create(&last, NULL, finalizer, NULL); /* StarPU's own thread calls MPI_Finalize */
  pthread_join(last, NULL);
  __atomic_store_n(&hooks_run, 0, __ATOMIC_RELEASE);
  for (int i = 0; i < 2; ++i) pthread_join(hooks[i], NULL);
  CHECK(piom_ltask_schedule(0) != 0);
  return 0;
}
