// SPDX-License-Identifier: BSD-3-Clause
//
// Which mappings of other processes' memory are kept, and for how long.
#include "comm/device/imports.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace canele::test {
namespace {

using comm::device::Imports;
using drivers::MemoryExport;

/// Counts what is mapped. Each mapping has an address of its own.
class Driver final : public drivers::Memory {
 public:
  std::map<std::byte*, MemoryExport> mapped;
  int opens = 0;
  std::size_t room = 1000;  ///< mappings that fit

  std::string open(const MemoryExport& exported, int, std::byte** address) override {
    ++opens;
    if (mapped.size() >= room) return "no room";
    EXPECT_EQ(exported.offset, 0u) << "the whole allocation is mapped";
    *address = next_ += 4096;
    mapped[*address] = exported;
    return "";
  }
  void close(std::byte* address) override { EXPECT_EQ(mapped.erase(address), 1u); }

  drivers::MemoryKind kind() const override { return drivers::MemoryKind::cuda; }
  std::string_view name() const override { return "test"; }
  int devices() const override { return 1; }
  bool locate(const void*, drivers::MemoryPlace*) override { return false; }
  drivers::PendingCopy* begin_copy(const drivers::MemoryPlace&, drivers::CopyDirection,
                                   std::span<const drivers::MemoryCopy>, void*) override {
    return nullptr;
  }
  drivers::CopyState poll(drivers::PendingCopy*, std::string*) override { return drivers::CopyState::done; }
  drivers::CopyState poll_event(const drivers::MemoryPlace&, void*, std::string*) override {
    return drivers::CopyState::done;
  }
  std::byte* allocate_pinned(std::size_t, std::string*) override { return nullptr; }
  void free_pinned(std::byte*) override {}
  std::string pin(void*, std::size_t) override { return ""; }
  std::string unpin(void*) override { return ""; }
  std::string export_memory(const void*, MemoryExport*) override { return "no"; }

 private:
  std::byte* next_ = nullptr;
};

/// An export of allocation `number`, whose handle is made of `handle`.
MemoryExport export_of(unsigned number, unsigned handle) {
  MemoryExport made;
  made.handle[0] = static_cast<std::byte>(handle);
  made.handle[1] = static_cast<std::byte>(handle >> 8);
  made.size = 1000;
  made.offset = 10;
  made.allocation = number;
  return made;
}

class ImportsTest : public testing::Test {
 protected:
  std::byte* take_and_give_back(int rank, unsigned number, unsigned handle) {
    std::string why;
    Imports::Mapping* const mapping = imports_.take(rank, export_of(number, handle), 0, &why);
    if (mapping == nullptr) return nullptr;
    std::byte* const base = mapping->base;
    imports_.give_back(mapping);
    return base;
  }

  Driver driver_;
  Imports imports_{driver_};
  std::string why_;
};

TEST_F(ImportsTest, AreKeptForTheNextMessage) {
  std::byte* const first = take_and_give_back(1, 5, 5);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(take_and_give_back(1, 5, 5), first);
  EXPECT_NE(take_and_give_back(2, 5, 5), first) << "another rank may have the same numbers";
  EXPECT_EQ(driver_.opens, 2);
}

TEST_F(ImportsTest, BelongToOneAllocationAlsoAtAReusedAddress) {
  std::byte* const before = take_and_give_back(1, 5, 9);
  std::byte* const after = take_and_give_back(1, 6, 9);
  EXPECT_NE(after, before);
  EXPECT_EQ(driver_.mapped.size(), 1u) << "the memory of the older one is gone";
}

TEST_F(ImportsTest, AreLimitedAndTheOldestIsUnmappedFirst) {
  for (unsigned i = 0; i < Imports::most; ++i) take_and_give_back(1, i, i);
  take_and_give_back(1, 0, 0);
  take_and_give_back(1, 500, 500);
  EXPECT_EQ(driver_.mapped.size(), Imports::most);
  const int before = driver_.opens;
  take_and_give_back(1, 0, 0);
  EXPECT_EQ(driver_.opens, before) << "taken lately";
  take_and_give_back(1, 1, 1);
  EXPECT_EQ(driver_.opens, before + 1);
}

TEST_F(ImportsTest, StayWhileTheyAreUsed) {
  std::vector<Imports::Mapping*> used;
  for (unsigned i = 0; i < Imports::most + 10; ++i) used.push_back(imports_.take(1, export_of(i, i), 0, &why_));
  for (unsigned i = 1000; i < 1010; ++i) take_and_give_back(1, i, i);
  take_and_give_back(1, 2000, 0);  // the first one's handle, for a new allocation
  for (const Imports::Mapping* const one : used) EXPECT_TRUE(driver_.mapped.contains(one->base));
  for (Imports::Mapping* const one : used) imports_.give_back(one);
  EXPECT_LE(driver_.mapped.size(), Imports::most);
}

TEST_F(ImportsTest, MakeRoomForOthersOfTheSameRank) {
  driver_.room = 2;
  take_and_give_back(1, 1, 1);
  Imports::Mapping* const used = imports_.take(1, export_of(2, 2), 0, &why_);
  EXPECT_NE(take_and_give_back(1, 3, 3), nullptr);
  EXPECT_TRUE(driver_.mapped.contains(used->base));
  Imports::Mapping* const also = imports_.take(1, export_of(3, 3), 0, &why_);
  EXPECT_EQ(take_and_give_back(1, 4, 4), nullptr) << "all are used";
  imports_.give_back(used);
  imports_.give_back(also);
}

TEST(Imports, EndWithTheirOwner) {
  Driver driver;
  {
    Imports imports(driver);
    std::string why;
    imports.give_back(imports.take(1, export_of(1, 1), 0, &why));
    EXPECT_EQ(driver.mapped.size(), 1u);
  }
  EXPECT_TRUE(driver.mapped.empty());
}

}  // namespace
}  // namespace canele::test
