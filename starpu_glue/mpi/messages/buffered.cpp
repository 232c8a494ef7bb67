// SPDX-License-Identifier: BSD-3-Clause
//
// The attached memory as a list of segments in the order of their addresses. A message takes the first gap that it fits
// into. Segments whose message was sent are removed when the next message needs room.
//
//     | head, packed data |   gap   | head, packed data | gap |       the head has the engine's request
//
// The lock is not held while the engine is called: a callback may send a buffered message, too.
#include "starpu_glue/mpi/messages/buffered.hpp"

#include <sched.h>

#include <mutex>
#include <new>

#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

/// The head of a message in the attached memory; its data follows.
struct Segment {
  Transfer transfer;
  Segment* next = nullptr;
  std::size_t size = 0;     ///< with the head
  Communicator* comm;       ///< holds a reference
  bool is_posted = false;   ///< the engine has the message
  bool is_awaited = false;  ///< a thread waits for it, outside the lock

  char* data() { return reinterpret_cast<char*>(this + 1); }
  char* end() { return reinterpret_cast<char*>(this) + size; }
};
static_assert(sizeof(Segment) + alignof(Segment) <= MPI_BSEND_OVERHEAD);

std::size_t rounded(std::size_t size) { return (size + alignof(Segment) - 1) / alignof(Segment) * alignof(Segment); }

class Attached {
 public:
  int attach(void* memory, std::size_t size) {
    const std::lock_guard guard(mutex_);
    if (memory_ != nullptr) return fail(MPI_ERR_BUFFER, "a buffer is attached already: detach it first");
    if (memory == nullptr) return fail(MPI_ERR_ARG, "buffer is NULL");
    memory_ = static_cast<char*>(memory);
    size_ = size;
    return MPI_SUCCESS;
  }

  int send(const Endpoint& to, const Buffer& data) {
    Segment* const segment = take(data.size(), *to.comm);
    if (segment == nullptr) return MPI_ERR_BUFFER;
    const Payload payload(data.memory, static_cast<std::size_t>(data.count), *data.type);
    pack(payload, 0, payload.length, segment->data());
    const int code = segment->transfer.send(to.comm->messages(), to.world_rank, to.tag,
                                            bytes_buffer(segment->data(), payload.length), false);
    const std::lock_guard guard(mutex_);
    segment->is_posted = true;  // a message that the engine rejected has a null request, which is done
    return code;
  }

  /// Waits until all messages are sent.
  void flush() {
    std::unique_lock guard(mutex_);
    for (;;) {
      remove_sent();
      Segment* const first = first_;
      if (first == nullptr) return;
      const bool wait = first->is_posted && !first->is_awaited;
      first->is_awaited = first->is_awaited || wait;
      guard.unlock();
      if (wait) {
        canele_wait(&first->transfer.engine, nullptr);
      } else {
        sched_yield();  // another thread posts it, or waits for it
      }
      guard.lock();
      if (wait) first->is_awaited = false;
    }
  }

  int detach(void** memory, std::size_t* size) {
    flush();
    const std::lock_guard guard(mutex_);
    if (memory_ == nullptr) return fail(MPI_ERR_BUFFER, "no buffer is attached");
    *memory = memory_;
    *size = size_;
    memory_ = nullptr;
    size_ = 0;
    return MPI_SUCCESS;
  }

 private:
  bool is_automatic() const { return memory_ == MPI_BUFFER_AUTOMATIC; }

  Segment* take(std::size_t length, Communicator& comm) {
    for (int attempt = 0;; ++attempt) {
      {
        const std::lock_guard guard(mutex_);
        if (memory_ == nullptr) {
          fail(MPI_ERR_BUFFER, "no buffer is attached");
          return nullptr;
        }
        remove_sent();
        if (Segment* made = is_automatic() ? allocate(length) : place(length)) {
          made->comm = &comm;
          comm.add_reference();
          return made;
        }
      }
      if (attempt > 0) break;
      canele_progress(engine());
    }
    fail(MPI_ERR_BUFFER, "the attached buffer has no room for %zu bytes and MPI_BSEND_OVERHEAD", length);
    return nullptr;
  }

  Segment* allocate(std::size_t length) {
    void* const memory = ::operator new (sizeof(Segment) + length, std::align_val_t{alignof(Segment)}, std::nothrow);
    if (memory == nullptr) return nullptr;
    Segment* const made = new (memory) Segment;
    made->size = sizeof(Segment) + length;
    made->next = first_;
    first_ = made;
    return made;
  }

  /// Finds the first gap.
  Segment* place(std::size_t length) {
    char* begin =
        memory_ + (rounded(reinterpret_cast<std::uintptr_t>(memory_)) - reinterpret_cast<std::uintptr_t>(memory_));
    char* const end = memory_ + size_;
    Segment** link = &first_;
    for (;; link = &(*link)->next) {
      char* const limit = *link == nullptr ? end : reinterpret_cast<char*>(*link);
      if (limit >= begin && static_cast<std::size_t>(limit - begin) >= sizeof(Segment) &&
          static_cast<std::size_t>(limit - begin) - sizeof(Segment) >= length) {
        Segment* const made = new (begin) Segment;
        made->size = rounded(sizeof(Segment) + length);
        made->next = *link;
        *link = made;
        return made;
      }
      if (*link == nullptr) return nullptr;
      begin = (*link)->end();
    }
  }

  /// Removes the messages that have been sent.
  void remove_sent() {
    for (Segment** link = &first_; *link != nullptr;) {
      Segment& segment = **link;
      canele_request_t* const one = &segment.transfer.engine;
      if (!segment.is_posted || segment.is_awaited || canele_find_done(1, &one, 0) != 0) {
        link = &segment.next;
        continue;
      }
      *link = segment.next;
      segment.comm->drop_reference();
      if (is_automatic()) ::operator delete (&segment, std::align_val_t{alignof(Segment)});
    }
  }

  std::mutex mutex_;
  char* memory_ = nullptr;
  std::size_t size_ = 0;
  Segment* first_ = nullptr;
};

constinit Attached attached;

}  // namespace

int send_buffered(const Endpoint& to, const Buffer& data) {
  return to.is_proc_null() ? MPI_SUCCESS : attached.send(to, data);
}

int attach_buffer(void* memory, std::size_t size) { return attached.attach(memory, size); }

int detach_buffer(void** memory, std::size_t* size) { return attached.detach(memory, size); }

int flush_buffer() {
  attached.flush();
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
