// SPDX-License-Identifier: BSD-3-Clause
//
// The attached memory as a list of segments in the order of their addresses. A message takes the first gap that it fits
// into. The event that ends a message marks its segment. Marked segments are removed when the next message needs room.
//
//     | packed data |   gap   | packed data | gap |
//
// A segment's head, with the engine's request, lies outside the attached memory: programs that reckon with the small
// overhead of another MPI have room for as many messages as there.
//
// A flush counts the messages that are not sent yet. Their events count down, and the last one ends its request.
//
// The lock is not held while the engine is called: a callback may send a buffered message, too.
#include "starpu_glue/mpi/messages/buffered.hpp"

#include <memory>
#include <mutex>
#include <new>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

/// The head of a message. Its data lies in the attached memory, or behind the head if the buffer is automatic.
struct Segment {
  Transfer transfer;
  Segment* next = nullptr;
  char* data = nullptr;
  std::size_t size = 0;          ///< of the data
  Communicator* comm = nullptr;  ///< holds a reference
  class Attached* owner = nullptr;
  std::uint64_t number = 0;  ///< segments of one owner are numbered
  bool is_sent = false;
};

/// Returns a head with `room` bytes behind it, or nullptr.
Segment* new_segment(std::size_t room) {
  void* const memory = ::operator new (sizeof(Segment) + room, std::align_val_t{alignof(Segment)}, std::nothrow);
  return memory == nullptr ? nullptr : new (memory) Segment;
}

void delete_segment(Segment* segment) {
  segment->~Segment();
  ::operator delete (segment, std::align_val_t{alignof(Segment)});
}

/// What a flush waits for.
class Flush final : public Work {
 public:
  Request* request = nullptr;
  std::uint64_t limit = 0;    ///< messages with lower numbers count
  std::size_t remaining = 0;  ///< how many of them are not sent
  Flush* next = nullptr;
};

class Attached final : public SendBuffer {
 public:
  ~Attached() override {
    while (first_ != nullptr) {
      Segment* const segment = first_;
      first_ = segment->next;
      delete_segment(segment);
    }
  }

  bool is_attached() {
    const std::lock_guard guard(mutex_);
    return memory_ != nullptr;
  }

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
    pack(payload, 0, payload.length, segment->data);
    const int code = segment->transfer.send(to.comm->messages(), to.world_rank, to.tag,
                                            bytes_buffer(segment->data, payload.length), false);
    if (code == MPI_SUCCESS) {
      canele_request_on_event(&segment->transfer.engine, CANELE_EVENT_FINALIZED, sent, segment);
    } else {
      ended(*segment);
    }
    return code;
  }

  /// Makes the flush end when all messages are sent that are here now. Its request is held.
  void await_messages(Flush& flush) {
    {
      const std::lock_guard guard(mutex_);
      flush.limit = next_number_;
      for (Segment* segment = first_; segment != nullptr; segment = segment->next) flush.remaining += !segment->is_sent;
      if (flush.remaining != 0) {
        flush.next = flushes_;
        flushes_ = &flush;
        return;
      }
    }
    release(*flush.request);
  }

  int flush() {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = begin_flush(&request);
    if (code == MPI_SUCCESS) code = wait_and_finish(&request, MPI_STATUS_IGNORE);
    const std::lock_guard guard(mutex_);
    remove_sent();
    return code;
  }
  void empty() override { flush(); }

  int begin_flush(MPI_Request* handle) {
    auto work = std::make_unique<Flush>();
    Flush& flush = *work;
    Communicator* any = nullptr;
    int code = get_any_communicator(&any);
    if (code == MPI_SUCCESS) code = new_special(*any, std::move(work), &flush.request);
    if (code != MPI_SUCCESS) return code;
    Request& request = *flush.request;
    code = hold(request);
    if (code == MPI_SUCCESS) await_messages(flush);
    return publish_request(request, code, handle);
  }

  int detach(void** memory, std::size_t* size) {
    if (!is_attached()) return fail(MPI_ERR_BUFFER, "no buffer is attached");
    if (const int code = flush(); code != MPI_SUCCESS) return code;
    const std::lock_guard guard(mutex_);
    *memory = memory_;
    *size = size_;
    memory_ = nullptr;
    size_ = 0;
    return MPI_SUCCESS;
  }

 private:
  static void sent(canele_request_t*, unsigned, void* segment) {
    auto& ended_one = *static_cast<Segment*>(segment);
    ended_one.owner->ended(ended_one);
  }

  /// Marks a segment. Another thread may remove it as soon as the lock is free.
  void ended(Segment& segment) {
    Flush* complete = nullptr;
    {
      const std::lock_guard guard(mutex_);
      segment.is_sent = true;
      for (Flush** link = &flushes_; *link != nullptr;) {
        Flush& flush = **link;
        if (segment.number >= flush.limit || --flush.remaining != 0) {
          link = &flush.next;
          continue;
        }
        *link = flush.next;
        flush.next = complete;
        complete = &flush;
      }
    }
    while (complete != nullptr) {
      Request& request = *complete->request;
      complete = complete->next;
      release(request);  // the flush may end with it
    }
  }

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
          made->size = length;
          made->comm = &comm;
          made->owner = this;
          made->number = next_number_++;
          comm.add_reference();
          return made;
        }
      }
      if (attempt > 0) break;
      canele_progress(engine());
    }
    fail(MPI_ERR_BUFFER, "there is no room for a message of %zu bytes: receives must free the attached buffer", length);
    return nullptr;
  }

  Segment* allocate(std::size_t length) {
    Segment* const made = new_segment(length);
    if (made == nullptr) return nullptr;
    made->data = reinterpret_cast<char*>(made + 1);
    made->next = first_;
    first_ = made;
    return made;
  }

  /// Finds the first gap.
  Segment* place(std::size_t length) {
    char* begin = memory_;
    Segment** link = &first_;
    for (; *link != nullptr; link = &(*link)->next) {
      if (static_cast<std::size_t>((*link)->data - begin) >= length) break;
      begin = (*link)->data + (*link)->size;
    }
    if (*link == nullptr && static_cast<std::size_t>(memory_ + size_ - begin) < length) return nullptr;
    Segment* const made = new_segment(0);
    if (made == nullptr) return nullptr;
    made->data = begin;
    made->next = *link;
    *link = made;
    return made;
  }

  /// Removes the messages that have been sent.
  void remove_sent() {
    for (Segment** link = &first_; *link != nullptr;) {
      Segment& segment = **link;
      if (!segment.is_sent) {
        link = &segment.next;
        continue;
      }
      *link = segment.next;
      segment.comm->drop_reference();
      delete_segment(&segment);
    }
  }

  std::mutex mutex_;
  char* memory_ = nullptr;
  std::size_t size_ = 0;
  Segment* first_ = nullptr;
  Flush* flushes_ = nullptr;
  std::uint64_t next_number_ = 0;
};

/// Returns the memory of a place; nullptr: of the process, which is never freed.
Attached& attached_at(SendBufferPlace* place) {
  static Attached& of_process = *new Attached;
  if (place == nullptr) return of_process;
  if (place->get() == nullptr) place->keep(std::make_unique<Attached>());
  return static_cast<Attached&>(*place->get());
}

/// Returns the memory for messages of a communicator.
Attached& attached_of(Communicator& comm) {
  if (comm.send_buffer().get() != nullptr) {
    Attached& own = attached_at(&comm.send_buffer());
    if (own.is_attached()) return own;
  }
  return attached_at(comm.own_ranks()->session().get());
}

}  // namespace

int send_buffered(const Endpoint& to, const Buffer& data) {
  return to.is_proc_null() ? MPI_SUCCESS : attached_of(*to.comm).send(to, data);
}

int attach_buffer(SendBufferPlace* place, void* memory, MPI_Count size) {
  if (size < 0) return fail(MPI_ERR_ARG, "size is %lld; expected: at least 0", static_cast<long long>(size));
  return attached_at(place).attach(memory, static_cast<std::size_t>(size));
}

int detach_buffer(SendBufferPlace* place, void* address, MPI_Count* size) {
  void* memory = nullptr;
  std::size_t bytes = 0;
  const int code = attached_at(place).detach(&memory, &bytes);
  if (code != MPI_SUCCESS) return code;
  *static_cast<void**>(address) = memory;
  *size = static_cast<MPI_Count>(bytes);
  return MPI_SUCCESS;
}

int flush_buffer(SendBufferPlace* place) { return attached_at(place).flush(); }

int start_flush(SendBufferPlace* place, MPI_Request* request) { return attached_at(place).begin_flush(request); }

}  // namespace canele::mpi
