/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device.h - messages from and to the memory of GPUs.
 *
 * A send or receive takes an address of GPU memory like any other: canele_isend, canele_irecv, canele_isend_data,
 * canele_irecv_data, canele_receive_bind, canele_post_send, canele_post_receive, canele_imulticast, packs, persistent
 * operations. The library finds out what an address is. Between processes of one host the receiver's GPU copies large
 * data from the sender's memory; else the data goes through pinned host memory. The processor never touches GPU memory.
 * A message may have pieces in host memory and pieces in GPU memory.
 *
 * All other functions take host memory only, and answer CANELE_EINVAL with a sentence if they are given GPU memory.
 *
 * The setting CANELE_GPU says whether the library looks for GPUs. By default it does if the program has loaded the
 * driver's library when a session is opened, or when canele_device_support is called.
 *
 * The description below saves the library the question what an address is. It also has what an address does not tell:
 * rows with gaps, and events of the device.
 *
 *     canele_device_piece_t tile = {.base = device_pointer, .width = 960 * 8, .rows = 960, .pitch = 1920 * 8,
 *                                   .kind = CANELE_MEMORY_CUDA};
 *     canele_device_data_t all = {.struct_size = sizeof all, .pieces = &tile, .count = 1, .ready = event};
 *     canele_data_t data = canele_data_device(&all);
 *     canele_isend_data(session, rank, tag, &data, NULL, &request);
 *
 * The conventions of canele.h hold. In addition:
 * - GPU memory must have its data when a send is posted, or when `ready` happens. No call orders itself behind a stream
 *   of the program. When the request is finalized, the data is there for any stream.
 * - A failure of a device ends the request with CANELE_EDEVICE. The log names device, function and error. */
#ifndef CANELE_DEVICE_H
#define CANELE_DEVICE_H

#include <canele/canele.h>

#ifdef __cplusplus
extern "C" {
#endif

enum canele_memory_kind {
  CANELE_MEMORY_AUTO = 0, /**< the library finds out. */
  CANELE_MEMORY_HOST = 1, /**< host memory, pinned or not. */
  CANELE_MEMORY_CUDA = 2  /**< memory of a CUDA device, of any allocator; managed memory. */
};

/** `rows` rows of `width` bytes; their beginnings are `pitch` bytes apart. rows = 0 stands for 1; the pitch of one row
 * does not count. The pieces of a receive must not overlap. */
typedef struct canele_device_piece {
  void *base;
  size_t width;
  size_t rows;
  size_t pitch;
  int32_t kind;     /**< enum canele_memory_kind, of all rows */
  int32_t reserved; /**< 0 */
} canele_device_piece_t;

/** The data of a send or receive: `count` pieces, in order. Set struct_size = sizeof(canele_device_data_t); zero is the
 * default of every other field. */
typedef struct canele_device_data {
  size_t struct_size;
  const canele_device_piece_t *pieces;
  size_t count;
  /** An event of the device (CUevent, cudaEvent_t) that has been recorded; NULL: none. The library reads the data of a
   * send, or writes that of a receive, only after it has happened. It may be recorded again, or destroyed, once the
   * request is finalized. A message with events has at least one piece in GPU memory. */
  void *ready;
  /** An event that the library records when the data of a receive has been copied, before the request is finalized;
   * NULL: none. It belongs to the context of the data. For a send, NULL. */
  void *copied;
} canele_device_data_t;

/** Returns a description of these pieces. `all`, its pieces and its events must live until the request is finalized.
 * Does not block. An invalid description is rejected by the call that gets it (CANELE_EINVAL). It also describes data
 * in host memory, without events, for every function that takes a canele_data_t. */
CANELE_API canele_data_t canele_data_device(const canele_device_data_t *all);

/** Returns 1 if messages may lie in memory of this kind (enum canele_memory_kind), else 0, in which case
 * canele_error_detail() has the reason. Looks for the driver's library again. CANELE_EINVAL: no such kind. */
CANELE_API int canele_device_support(canele_engine_t *engine, int kind);

/** Finds out what kind of memory an address is: writes an enum canele_memory_kind to *kind, and the ordinal of its
 * device to *device (-1 for host memory). Either may be NULL. Any thread; does not block. CANELE_EINVAL. */
CANELE_API int canele_device_kind_of(canele_engine_t *engine, const void *address, int *kind, int *device);

/** Copies `from` to `to`, which have the same length; each may have pieces in host memory and in GPU memory. Blocks
 * until the device has copied, also in a callback; makes no progress. Not meant for long copies of a program that knows
 * its device. Any thread. CANELE_EINVAL, CANELE_ENOMEM, CANELE_EDEVICE. */
CANELE_API int canele_device_copy(canele_engine_t *engine, const canele_data_t *to, const canele_data_t *from);

#ifdef __cplusplus
}
#endif

#endif
