// SPDX-License-Identifier: BSD-3-Clause
//
// Copies between the layouts of two messages, made by the processor in place of a device; exports of a peer.
#include "comm/device/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "comm/device/exported_data.hpp"

namespace canele::test {
namespace {

using namespace comm::device;

/// Pieces of memory that is large enough for all of them.
struct Tiles {
  explicit Tiles(const std::vector<Piece>& shapes) : memory(1 << 16, std::byte{0xee}) {
    std::size_t at = 0, offset = 0;
    for (Piece piece : shapes) {
      piece.base = memory.data() + at;
      piece.offset = offset;
      piece.place = 0;
      at += piece.rows * piece.pitch + 100;
      offset += piece.rows * piece.width;
      layout.pieces.push_back(piece);
    }
    layout.length = offset;
  }

  /// Returns the bytes of the message.
  std::vector<std::byte> read() const {
    std::vector<std::byte> all;
    for (const Piece& piece : layout.pieces) {
      for (std::size_t row = 0; row < piece.rows; ++row) {
        const std::byte* const from = piece.base + row * piece.pitch;
        all.insert(all.end(), from, from + piece.width);
      }
    }
    return all;
  }

  std::vector<std::byte> memory;
  Layout layout;
};

Piece shape(std::size_t width, std::size_t rows, std::size_t pitch) { return {nullptr, width, rows, pitch, 0, 0}; }

std::size_t draw(std::mt19937& dice, unsigned most) { return std::size_t{1} + dice() % most; }

/// Draws up to four pieces of rows with gaps.
std::vector<Piece> draw_shapes(std::mt19937& dice) {
  std::vector<Piece> shapes;
  for (std::size_t i = draw(dice, 4); i > 0; --i) {
    const std::size_t wide = draw(dice, 60);
    shapes.push_back(shape(wide, draw(dice, 20), wide + dice() % 30));
  }
  return shapes;
}

/// Copies the first `length` bytes of `from` to `to`. Returns the number of copies.
std::size_t copy(const Tiles& from, Tiles& to, std::size_t length) {
  const auto copies = to.layout.copies_from(from.layout.pieces[0], length);
  for (const drivers::MemoryCopy& one : copies) drivers::copy_by_processor(one);
  return copies.size();
}

Tiles filled(const Piece& piece) {
  Tiles made({piece});
  std::mt19937 dice(7);
  for (std::byte& one : made.memory) one = static_cast<std::byte>(dice() % 200);
  return made;
}

void expect_front(const Tiles& from, const Tiles& to, std::size_t length) {
  std::vector<std::byte> wanted(to.layout.length, std::byte{0xee});
  const std::vector<std::byte> data = from.read();
  std::copy_n(data.begin(), length, wanted.begin());
  EXPECT_EQ(to.read(), wanted) << length << " bytes";
}

TEST(LayoutCopies, AreOneWhereBothEndsAreRows) {
  const Tiles tile = filled(shape(24, 30, 100)), line = filled(shape(720, 1, 720));
  for (const Piece& target : {shape(24, 30, 77), shape(720, 1, 720)}) {
    for (const Tiles* const from : {&tile, &line}) {
      Tiles to({target});
      EXPECT_EQ(copy(*from, to, 720), 1u);
      expect_front(*from, to, 720);
    }
  }
}

TEST(LayoutCopies, BringTheBytesWhateverTheShapes) {
  std::mt19937 dice(11);
  for (int round = 0; round < 500; ++round) {
    const std::size_t width = draw(dice, 40), rows = draw(dice, 30);
    const Tiles from = filled(shape(width, rows, width + dice() % 50));
    Tiles to(draw_shapes(dice));
    const std::size_t length = dice() % (std::min(width * rows, to.layout.length) + 1);
    copy(from, to, length);
    expect_front(from, to, length);
  }
}

/// A message that is staged in parts is there as a whole, and so is one that comes back in other parts.
TEST(LayoutCopies, BringTheBytesInParts) {
  std::mt19937 dice(13);
  const auto in_parts = [&](const Layout& layout, std::byte* staging, drivers::CopyDirection direction) {
    for (Range part{0, 0}; part.begin < layout.length; part.begin = part.end) {
      part.end = std::min(part.begin + draw(dice, 90), layout.length);
      std::size_t bytes = 0;
      for (const drivers::MemoryCopy& one : layout.copies(0, staging, part, direction)) {
        drivers::copy_by_processor(one);
        bytes += one.width * one.rows;
      }
      ASSERT_EQ(bytes, part.end - part.begin);
    }
  };
  for (int round = 0; round < 300; ++round) {
    const std::vector<Piece> shapes = draw_shapes(dice);
    Tiles from(shapes), to(shapes);
    for (std::byte& one : from.memory) one = static_cast<std::byte>(dice() % 200);
    std::vector<std::byte> staging(from.layout.length);
    in_parts(from.layout, staging.data(), drivers::CopyDirection::to_host);
    EXPECT_EQ(staging, from.read());
    in_parts(to.layout, staging.data(), drivers::CopyDirection::to_device);
    EXPECT_EQ(to.read(), from.read());
  }
}

ExportedData example() {
  ExportedData made;
  made.memory.offset = 100;
  made.memory.size = 1000;
  made.width = 10;
  made.rows = 5;
  made.pitch = 20;
  return made;
}

TEST(ExportedMemory, IsReadAsItWasWritten) {
  const ExportedData written = example();
  ExportedData read;
  EXPECT_EQ(read_exported(written.bytes(), 50, &read), "");
  EXPECT_EQ(std::memcmp(&read, &written, sizeof read), 0);
}

/// What a peer sends may be anything.
TEST(ExportedMemory, OfAPeerIsChecked) {
  constexpr std::uint64_t most = ~std::uint64_t{0};
  ExportedData read;
  const auto fault_of = [&](void (*change)(ExportedData&), std::uint64_t length) {
    ExportedData changed = example();
    change(changed);
    return read_exported(changed.bytes(), length, &read);
  };
  const char *const beyond = "an export of device memory names bytes beyond its allocation",
                    *const shorter = "an export of device memory is shorter than its message";
  EXPECT_EQ(read_exported(example().bytes().first(127), 50, &read), "an export of device memory has a wrong length");
  EXPECT_EQ(fault_of([](ExportedData&) {}, 51), shorter);
  EXPECT_EQ(fault_of([](ExportedData& one) { one.memory.size = 190; }, 50), "");
  EXPECT_EQ(fault_of([](ExportedData& one) { one.memory.size = 189; }, 50), beyond);
  EXPECT_EQ(fault_of([](ExportedData& one) { one.memory.offset = most; }, 50), beyond);
  EXPECT_EQ(fault_of([](ExportedData& one) { one.rows = 0; }, 0), beyond);
  EXPECT_EQ(fault_of([](ExportedData& one) { one.rows = most; }, 50), beyond);
  EXPECT_EQ(fault_of([](ExportedData& one) { one.pitch = most; }, 50), beyond);
  EXPECT_EQ(fault_of([](ExportedData& one) { one.pitch = 9; }, 45), beyond);
  EXPECT_EQ(fault_of([](ExportedData& one) { one.width = most, one.pitch = most, one.rows = 1; }, 50), beyond);
}

}  // namespace
}  // namespace canele::test
