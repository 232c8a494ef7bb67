// SPDX-License-Identifier: BSD-3-Clause
//
// device.hpp - messages from and to the memory of GPUs, in C++. Over device.h, which has the reference.
//
// A span over GPU memory can be sent and received as it is. This header describes what a span cannot: rows with gaps,
// pieces of several kinds, events of the device.
//
// Threads: any thread may call any function at any time; but one object is used by one thread at a time.
//
//     canele::device_data tile;
//     tile.add(pointer, 960 * 8, 960, 1920 * 8, canele::memory_kind::cuda).ready(event);
//     canele::isend(session, 1, 7, tile).wait();
#pragma once

#include <canele/device.h>

#include <canele/post.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace canele {

enum class memory_kind : std::int32_t {
  automatic = CANELE_MEMORY_AUTO,  ///< the library finds out.
  host = CANELE_MEMORY_HOST,
  cuda = CANELE_MEMORY_CUDA
};

/// The data of a send or receive, in pieces.
class device_data {
 public:
  /// Adds `rows` rows of `width` bytes, whose beginnings are `pitch` bytes apart.
  device_data& add(void* base, std::size_t width, std::size_t rows = 1, std::size_t pitch = 0,
                   memory_kind kind = memory_kind::automatic) {
    pieces_.push_back({base, width, rows, pitch, static_cast<std::int32_t>(kind), 0});
    return *this;
  }
  /// Sets the event of the device after which the data may be read, or written. nullptr: none.
  device_data& ready(void* event) {
    native_.ready = event;
    return *this;
  }
  /// Sets the event that the library records when the data of a receive has been copied. nullptr: none.
  device_data& copied(void* event) {
    native_.copied = event;
    return *this;
  }

  /// Returns the description for functions of canele.h. This object must neither change nor end before the request has
  /// finished.
  canele_data_t native() {
    native_.pieces = pieces_.data();
    native_.count = pieces_.size();
    return canele_data_device(&native_);
  }

 private:
  std::vector<canele_device_piece_t> pieces_;
  canele_device_data_t native_{sizeof(canele_device_data_t), nullptr, 0, nullptr, nullptr};
};

/// Sends this data, which must neither change nor end before the request has finished. Throws if the post fails.
[[nodiscard]] inline request isend(session& in, int destination, std::uint64_t tag, device_data& from,
                                   const send_options& options = {}) {
  return detail::requests::make("canele_isend_data", [&](canele_request_t* use) {
    const canele_data_t data = from.native();
    const canele_send_options_t native = options.native();
    return canele_isend_data(in.native(), destination, tag, &data, &native, use);
  });
}
/// Receives into this memory; the description must neither change nor end before the request has finished.
[[nodiscard]] inline request irecv(session& in, int source, tag_match tag, device_data& into) {
  return detail::requests::make("canele_irecv_data", [&](canele_request_t* use) {
    const canele_data_t data = into.native();
    return canele_irecv_data(in.native(), source, tag.value, tag.mask, &data, use);
  });
}

/// Returns whether messages may lie in memory of this kind. If not, *why is set unless it is nullptr.
inline bool device_support(engine& owner, memory_kind kind = memory_kind::cuda, std::string* why = nullptr) {
  const int answer = canele_device_support(owner.native(), static_cast<int>(kind));
  if (answer < 0) detail::check(answer, "canele_device_support");
  if (answer == 0 && why != nullptr) *why = canele_error_detail();
  return answer == 1;
}

/// What is known of an address.
struct memory_place {
  memory_kind kind = memory_kind::host;
  int device = -1;  ///< ordinal; -1: host memory
};
inline memory_place place_of(engine& owner, const void* address) {
  int kind = CANELE_MEMORY_HOST;
  memory_place place;
  detail::check(canele_device_kind_of(owner.native(), address, &kind, &place.device), "canele_device_kind_of");
  place.kind = static_cast<memory_kind>(kind);
  return place;
}

/// Copies data of any kind within the process. Blocks until the device has copied.
inline void device_copy(engine& owner, const canele_data_t& to, const canele_data_t& from) {
  detail::check(canele_device_copy(owner.native(), &to, &from), "canele_device_copy");
}

}  // namespace canele
