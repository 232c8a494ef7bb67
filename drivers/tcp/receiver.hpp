// SPDX-License-Identifier: BSD-3-Clause
//
// Receiver: the incoming half of one connection. Splits bytes into packets, and puts bulk data into the memory that the
// engine names.
//
// Used by the tcp driver, from poll(), by one thread at a time.
//
//   buffer_:  [ read and done | frames not parsed | free ]
//             0            begin_                 end_     receive_buffer
//
// Bulk data bypasses the buffer once its header is read. One readv puts it straight into the user's memory, and what
// follows it into the buffer. The engine is asked again before every read, so it may deregister memory between two
// polls.
//
// Rejected: a ring. A frame would come in two parts; here the incomplete frame at the end is moved to the front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "drivers/driver.hpp"
#include "drivers/tcp/frame.hpp"

namespace canele::drivers::tcp {

class Receiver {
 public:
  explicit Receiver(Rank from) : from_(from), buffer_(new std::byte[receive_buffer]) {}

  enum class Outcome : std::uint8_t {
    dry,       ///< everything that was there is delivered.
    more,      ///< there may be more; the budget or the fair share is used up.
    stalled,   ///< packet() answered later: present it again.
    rejected,  ///< packet() answered rejected: close without a report.
    ended      ///< no more will come: reason() says why.
  };

  /// Reads and delivers up to *budget packets (counted down); adds the number of its reports to *reported.
  /// `to_the_end`: the stream is known to end soon, so look for the end even after a short read.
  Outcome drain(int fd, DriverEvents& events, bool to_the_end, int* budget, int* reported);

  /// Returns true if data or a part of a frame has arrived that is not delivered.
  bool mid_frame() const { return begin_ != end_ || bulk_left_ > 0; }
  const std::string& reason() const { return reason_; }

 private:
  Outcome parse(DriverEvents& events, int* budget, int* reported);
  bool read_header(bool* complete);
  void copy_bulk(DriverEvents& events, int* reported);
  ssize_t fill(int fd, DriverEvents& events, std::size_t* asked, int* reported);
  ssize_t read_bulk(int fd, DriverEvents& events, std::size_t* asked, int* reported);
  Outcome end(ssize_t n);
  std::size_t buffered() const { return end_ - begin_; }

  Rank from_;
  bool dropping_ = false;  ///< no receive wants the rest of this bulk frame
  std::size_t begin_ = 0, end_ = 0;
  std::size_t packet_size_ = 0;  ///< of the packet at begin_, without its header; 0: not read yet
  std::uint64_t bulk_left_ = 0, transfer_id_ = 0, bulk_offset_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
  std::string reason_;
};

}  // namespace canele::drivers::tcp
