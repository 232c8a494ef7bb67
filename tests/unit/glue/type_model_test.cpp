// SPDX-License-Identifier: BSD-3-Clause
//
// Random type trees against a model that lists every byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "starpu_glue/mpi/datatypes/type.hpp"

namespace {

using canele::mpi::drop_reference;
using canele::mpi::find_type;
using canele::mpi::Payload;
using canele::mpi::Type;

/// A type and what it should be: the address of every packed byte, and the bounds.
struct Modelled {
  Type* type = nullptr;
  std::vector<std::ptrdiff_t> bytes;
  std::ptrdiff_t lower = 0;
  std::ptrdiff_t upper = 0;
  bool marked = false;  ///< it, or a part of it, was resized: only such parts count for the bounds

  std::ptrdiff_t extent() const { return upper - lower; }
};

/// Places copies of elements and keeps the bounds that MPI defines.
class Placer {
 public:
  void place(const Modelled& element, std::ptrdiff_t at) {
    for (std::ptrdiff_t byte : element.bytes) out.bytes.push_back(at + byte);
    if (out.marked && !element.marked) return;
    if (element.marked && !out.marked) any_ = false;
    out.marked = element.marked;
    out.lower = any_ ? std::min(out.lower, at + element.lower) : at + element.lower;
    out.upper = any_ ? std::max(out.upper, at + element.upper) : at + element.upper;
    any_ = true;
  }
  Modelled out;

 private:
  bool any_ = false;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {
    // Alignment 1 only: the padding of structures is tested in type_test.cpp.
    for (MPI_Datatype handle : {MPI_BYTE, MPI_CHAR, MPI_C_BOOL}) {
      Modelled named;
      named.type = find_type(handle);
      named.bytes = {0};
      named.upper = 1;
      known_.push_back(named);
    }
  }
  ~Generator() {
    for (const Modelled& model : known_) drop_reference(*model.type);
  }

  const Modelled& next() {
    Modelled made;
    do {
      made = build(number(0, 5));
    } while (made.bytes.size() > 3000 || std::abs(made.extent()) > 60000);
    known_.push_back(made);
    return known_.back();
  }

  /// Returns 1 to high, rarely 0: empty types make empty types.
  int some(int high) { return number(0, 19) == 0 ? 0 : number(1, high); }

  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

 private:
  Modelled build(int how) {
    const Modelled element = known_[static_cast<std::size_t>(number(0, static_cast<int>(known_.size()) - 1))];
    Placer placer;
    int code = MPI_SUCCESS;
    Type* type = nullptr;
    const int count = some(4);
    const int block = some(3);
    const int stride = number(-4, 6);
    if (how == 0) {
      for (int i = 0; i < count; ++i) placer.place(element, i * element.extent());
      code = canele::mpi::make_contiguous(count, *element.type, &type);
    } else if (how == 1 || how == 2) {
      const std::ptrdiff_t step = how == 1 ? stride * element.extent() : stride * 7;
      for (int i = 0; i < count; ++i) {
        for (int j = 0; j < block; ++j) placer.place(element, i * step + j * element.extent());
      }
      code = canele::mpi::make_vector(count, block, how == 1 ? stride : step, how == 2, *element.type, &type);
    } else if (how == 3) {
      code = structure(count, placer, &type);
    } else if (how == 4) {
      placer.place(element, 0);
      placer.out.marked = true;
      placer.out.lower = number(-8, 8);
      placer.out.upper = placer.out.lower + number(0, 40);
      code = canele::mpi::make_resized(*element.type, placer.out.lower, placer.out.extent(), &type);
    } else {
      std::vector<int> blocks, places;
      for (int i = 0; i < count; ++i) {
        blocks.push_back(some(3));
        places.push_back(number(-9, 9));
        for (int j = 0; j < blocks.back(); ++j) placer.place(element, (places.back() + j) * element.extent());
      }
      code = canele::mpi::make_indexed(blocks, places, *element.type, &type);
    }
    EXPECT_EQ(code, MPI_SUCCESS);
    placer.out.type = type;
    if (placer.out.bytes.size() > 3000 || std::abs(placer.out.extent()) > 60000) drop_reference(*type);
    return placer.out;
  }

  int structure(int count, Placer& placer, Type** type) {
    std::vector<int> blocks;
    std::vector<MPI_Aint> places;
    std::vector<Type*> elements;
    for (int i = 0; i < count; ++i) {
      const Modelled& element = known_[static_cast<std::size_t>(number(0, static_cast<int>(known_.size()) - 1))];
      blocks.push_back(some(2));
      places.push_back(number(-50, 50));
      elements.push_back(element.type);
      for (int j = 0; j < blocks.back(); ++j) placer.place(element, places.back() + j * element.extent());
    }
    return canele::mpi::make_struct(blocks, places, elements, type);
  }

  std::mt19937 random_;
  std::vector<Modelled> known_;
};

/// Returns the addresses of the bytes from packed position `offset` on, as the payload's pieces give them.
std::vector<std::ptrdiff_t> listed(const Payload& payload, std::size_t offset, char* base, int max) {
  std::vector<std::ptrdiff_t> bytes;
  std::vector<struct iovec> pieces(static_cast<std::size_t>(max));
  while (offset < payload.length) {
    const int count = payload.pieces(offset, pieces.data(), max);
    EXPECT_GE(count, 1);
    EXPECT_LE(count, max);
    if (count < 1) return bytes;
    for (int i = 0; i < count; ++i) {
      const struct iovec& piece = pieces[static_cast<std::size_t>(i)];
      EXPECT_GT(piece.iov_len, 0u);
      for (std::size_t j = 0; j < piece.iov_len; ++j) {
        bytes.push_back(static_cast<char*>(piece.iov_base) - base + static_cast<std::ptrdiff_t>(j));
      }
      offset += piece.iov_len;
    }
  }
  return bytes;
}

void compare(Generator& random, const Modelled& model) {
  EXPECT_EQ(model.type->size, model.bytes.size());
  EXPECT_EQ(model.type->lower, model.lower);
  EXPECT_EQ(model.type->upper, model.upper);
  if (!model.bytes.empty()) {
    EXPECT_EQ(model.type->true_lower, *std::min_element(model.bytes.begin(), model.bytes.end()));
    EXPECT_EQ(model.type->true_upper, *std::max_element(model.bytes.begin(), model.bytes.end()) + 1);
  }
  const int count = random.number(0, 3);
  std::vector<std::ptrdiff_t> expected;
  for (int i = 0; i < count; ++i) {
    for (std::ptrdiff_t byte : model.bytes) expected.push_back(byte + i * model.extent());
  }
  static char memory[1];  // only addresses are compared
  const Payload payload(memory, static_cast<std::size_t>(count), *model.type);
  ASSERT_EQ(payload.length, expected.size());
  for (int round = 0; round < 3 && !expected.empty(); ++round) {
    const int offset = round == 0 ? 0 : random.number(0, static_cast<int>(expected.size()) - 1);
    const auto bytes = listed(payload, static_cast<std::size_t>(offset), memory, random.number(1, 5));
    ASSERT_EQ(bytes, std::vector<std::ptrdiff_t>(expected.begin() + offset, expected.end()));
  }
}

TEST(TypeModel, RandomTreesMatchAListOfBytes) {
  int deepest = 0;
  std::size_t bytes = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Generator random(seed);
    for (int i = 0; i < 60 && !HasFailure(); ++i) {
      const Modelled model = random.next();
      deepest = std::max(deepest, static_cast<int>(model.type->nesting));
      bytes += model.bytes.size();
      compare(random, model);
    }
  }
  EXPECT_GT(deepest, 5);  // the trees are worth the name
  EXPECT_GT(bytes, 40u * 60u * 20u);
}

TEST(TypeModel, UnpackIsTheInverseOfPack) {
  Generator random(7);
  for (int i = 0; i < 60; ++i) {
    const Modelled model = random.next();
    std::vector<std::ptrdiff_t> sorted = model.bytes;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) continue;  // overlaps: not for receiving
    std::vector<char> from(130000), to(130000);
    for (char& byte : from) byte = static_cast<char>(random.number(0, 255));
    const std::size_t length = model.bytes.size();
    std::vector<char> packed(length);
    const Payload source(from.data() + 65000, 1, *model.type);
    const Payload target(to.data() + 65000, 1, *model.type);
    const std::size_t cut = length / 3;
    canele::mpi::pack(source, 0, cut, packed.data());
    canele::mpi::pack(source, cut, length - cut, packed.data() + cut);
    canele::mpi::unpack(target, 0, length, packed.data());
    std::vector<char> expected(130000);
    for (std::size_t k = 0; k < length; ++k) {
      const auto at = static_cast<std::size_t>(65000 + model.bytes[k]);
      EXPECT_EQ(packed[k], from[at]);
      expected[at] = from[at];
    }
    ASSERT_EQ(to, expected);
  }
}

}  // namespace
