// SPDX-License-Identifier: BSD-3-Clause
//
// CopyCosts: what the two ways of a large message of this host cost on this machine, measured by the messages
// themselves: one copy by the kernel, or two copies through shared buffers (a stream).
//
// Which is quicker differs between machines: by how the kernel looks pages up, how lines move between cores, and how
// many ranks copy at once. A measurement at the start could not see the last two.
//
//   receive of a large message ─▶ kernel_pays() ─▶ get │ stream
//   end of a get      ─▶ kernel_copied() ─┐
//   piece of a stream ─▶ piece_copied()  ─┴▶ rates
//
// Part of a DriverInstance. Any thread may call it, under the engine's lock. Nothing blocks or allocates.
#pragma once

#include <array>
#include <cstdint>

namespace canele::comm {

class CopyCosts {
 public:
  /// A length up to which a stream is tried where the kernel is known to be quicker, in bytes. A longer one would cost
  /// more than it tells.
  static constexpr std::uint64_t longest_tried = 128 * 1024;
  /// Measurements after which a rate is known.
  static constexpr std::uint32_t enough = 4;
  /// Of so many messages of a size, the last ones go the other way: its cost may have changed.
  static constexpr std::uint32_t period = 2048, tried = 8;
  /// The other way is tried sooner at first, because the first costs are those of cold memory: when so many messages of
  /// a size have gone, and four and sixteen times as many.
  static constexpr std::uint32_t first_trial = 32;

  /// Returns true if the kernel's copy of a message takes at most `ratio` times as long as a stream, as far as is
  /// known, or if it should be tried. Counts the message. alone: no other large message is under way, whose copies
  /// would hide the start of a stream.
  bool kernel_pays(std::uint64_t length, float ratio, bool alone);

  /// Notes the duration of a copy by the kernel: of `bytes` of a message of `length` bytes.
  void kernel_copied(std::uint64_t length, std::uint64_t bytes, std::uint64_t ns);
  /// Returns whether the copy of the next piece is to be timed: all of a trial, else a few, since the clock costs time.
  bool times_piece();
  /// Notes the duration of the copy of a piece out of a shared buffer.
  void piece_copied(std::uint64_t bytes, std::uint64_t ns);

 private:
  /// Time per byte, over the last copies.
  class Rate {
   public:
    void add(std::uint64_t bytes, std::uint64_t ns);
    bool known() const { return samples_ >= enough; }
    float time_of(std::uint64_t bytes) const { return ns_per_byte_ * static_cast<float>(bytes); }

   private:
    float ns_per_byte_ = 0;
    std::uint32_t samples_ = 0;
  };
  /// Messages of similar lengths: a call of the kernel has a price of its own.
  struct SizeClass {
    Rate kernel;
    std::uint32_t messages = 0;
  };
  static constexpr int first_class_bits = 15, class_count = 7;  ///< up to 32 KiB, 64 KiB … 1 MiB, longer

  SizeClass& class_of(std::uint64_t length);
  static bool is_trial(std::uint32_t messages);

  std::array<SizeClass, class_count> classes_;
  Rate stream_;
  std::uint32_t pieces_ = 0;
  std::uint32_t timed_pieces_ = 0;  ///< number of next pieces that are timed
};

}  // namespace canele::comm
