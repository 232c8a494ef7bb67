// SPDX-License-Identifier: BSD-3-Clause
//
// Where an operation on a window goes: the checked target, and its data as blocks of the target's memory.
//
// Used by window_access and window_accumulate. Any thread; a Place belongs to one call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "starpu_glue/mpi/datatypes/transfer.hpp"
#include "starpu_glue/mpi/windows/access.hpp"
#include "starpu_glue/mpi/windows/dynamic.hpp"

namespace canele::mpi {

/// Where the data of an operation may be cut into several operations.
enum class Cut : std::uint8_t { bytes, elements };

/// The data of a target, in offsets of the memory of its key.
///
/// Data of a dynamic window may lie in several pieces of attached memory. It is cut where they meet. An element that is
/// not to be cut belongs to the piece in which it begins: the memory of a key is a little longer than the piece.
class Place {
 public:
  /// Checks the target of an operation, and makes it ready. After success without a target() there is nothing to do:
  /// the rank is MPI_PROC_NULL. Returns an MPI code.
  int find(Window& window, const TargetData& data, Cut cut);

  WindowTarget* target() const { return target_; }
  int rank() const { return rank_; }
  /// Returns the key of the first byte.
  canele_key_t* key() const { return key_; }
  const Type& type() const { return *type_; }
  std::size_t length() const { return type_->size * static_cast<std::size_t>(count_); }
  bool is_one_block() const { return ranges_.empty() && (type_->dense || layout().contiguous()); }
  /// Returns the data in this process if the target's memory is mapped here; else the memory is nullptr.
  Buffer in_process() const {
    char* const memory = target_->address;
    return {memory == nullptr ? nullptr : memory + begin_, count_, type_};
  }
  /// Sets the strides of an operation on the first `length` bytes, if they are whole blocks at equal distances in the
  /// memory of one key, in the order of their addresses. Else returns false, and changes nothing.
  bool describe_strides(std::size_t length, canele_access_options_t* options) const;
  /// Returns the offset of the first byte of data that is one block, or has strides.
  std::uint64_t offset() const {
    if (type_->dense) return begin_ + static_cast<std::uint64_t>(type_->single.first);
    const Payload data = layout();
    return offset_of(data.base + data.layout.first);
  }

  /// Calls visit(key, offset, from, length) for each block of the first `length` bytes: `from` is its position in the
  /// packed data. Stops at the first result that is not MPI_SUCCESS, and returns it.
  template <class Visit>
  int each_block(std::size_t length, Visit visit) const {
    if (is_one_block()) return visit(key_, offset(), std::size_t{0}, length);
    constexpr int kBatch = 32;
    struct iovec pieces[kBatch];
    const Payload data = layout();
    for (std::size_t done = 0; done < length;) {
      const int count = data.pieces(done, pieces, kBatch);
      for (int i = 0; i < count && done < length; ++i) {
        const std::size_t bytes = std::min(pieces[i].iov_len, length - done);
        const std::uint64_t begin = offset_of(static_cast<char*>(pieces[i].iov_base));
        const int code =
            ranges_.empty() ? visit(key_, begin, done, bytes) : each_part(begin, done, bytes, unit_, visit);
        if (code != MPI_SUCCESS) return code;
        done += bytes;
      }
    }
    return MPI_SUCCESS;
  }

  /// Calls visit(key, offset, from) for each element of the first `length` bytes. The elements are of one predefined
  /// type, also one with gaps.
  template <class Visit>
  int each_element(std::size_t length, Visit visit) const {
    const Payload data = layout();
    for (std::size_t from = 0; from < length; from += type_->element->size) {
      struct iovec piece;
      data.pieces(from, &piece, 1);
      const std::uint64_t begin = offset_of(static_cast<char*>(piece.iov_base));
      const AttachedRange* const range = ranges_.empty() ? nullptr : range_at(begin);
      const int code = range == nullptr ? visit(key_, begin, from) : visit(range->key, begin - range->start, from);
      if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
  }

 private:
  /// A layout has addresses. Those of this one are offsets, moved away from the null address.
  static constexpr std::uintptr_t kFirstAddress = 1 << 20;
  static std::uint64_t offset_of(const char* address) {
    return reinterpret_cast<std::uintptr_t>(address) - kFirstAddress;
  }
  int find_part(const WindowCard& card, const TargetData& data);
  int find_attached(Window& window, const TargetData& data, Cut cut);
  int join_ranges(std::uint64_t low, Cut cut);
  /// Returns the attached memory that has the byte at an address; nullptr if there is none.
  const AttachedRange* range_at(std::uint64_t address) const;
  /// Calls visit as each_block does, for the parts of a block at an address that lie in different attached memory.
  template <class Visit>
  int each_part(std::uint64_t address, std::size_t from, std::size_t length, std::size_t unit, Visit& visit) const {
    for (std::size_t done = 0; done < length;) {
      const AttachedRange* const range = range_at(address + done);
      if (range == nullptr) return not_attached(rank_, address + done, length - done);
      const std::uint64_t room = (range->high - (address + done) + unit - 1) / unit * unit;
      const std::size_t bytes = std::min<std::uint64_t>(room, length - done);
      const int code = visit(range->key, address + done - range->start, from + done, bytes);
      if (code != MPI_SUCCESS) return code;
      done += bytes;
    }
    return MPI_SUCCESS;
  }
  Payload layout() const {
    return {reinterpret_cast<const void*>(kFirstAddress + static_cast<std::uintptr_t>(begin_)),
            static_cast<std::size_t>(count_), *type_};
  }

  WindowTarget* target_ = nullptr;
  canele_key_t* key_ = nullptr;
  std::uint64_t begin_ = 0;  ///< offset of the first element
  MPI_Count count_ = 0;
  int rank_ = MPI_PROC_NULL;
  std::vector<AttachedRange> ranges_;  ///< if the data lies in several; `begin_` is an address then
  std::size_t unit_ = 1;               ///< bytes that are not to be cut; of `ranges_`
  const Type* type_ = nullptr;
};

/// Returns the request that the operations of a call are posted with. nullptr: no request is wanted, or the call does
/// not post one operation only (`is_only`).
inline canele_request_t* request_of_operation(bool is_only, const AccessRequest* request) {
  return request != nullptr && is_only ? request->request : nullptr;
}
/// Completes the request of a call whose operations are posted, with result `code`. If it is not that of the only
/// operation, it becomes that of a flush behind all of them. Without a request (nullptr), waits if very many operations
/// are pending. Returns an MPI code.
int finish_request(Window& window, const Place& place, bool is_only, AccessRequest* request, int code);

/// The data of an origin, cut into parts as the target's blocks need them.
class Source {
 public:
  /// The program's data must live until the operation is over; data with gaps is described by `window.kept`.
  Source(Window& window, int rank, const Buffer& buffer);

  std::size_t length() const { return payload_.length; }
  /// Returns the bytes [from, from + length) of the packed data.
  canele_data_t part(std::size_t from, std::size_t length);
  /// Tells that all operations are posted: the next flush ends the use of the description.
  void posted(Window& window);

 private:
  Payload payload_;
  KeptData* kept_ = nullptr;  ///< of data with gaps
};

}  // namespace canele::mpi
