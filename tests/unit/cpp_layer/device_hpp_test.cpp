// SPDX-License-Identifier: BSD-3-Clause
//
// device.hpp, without a device. tests/gpu has messages of device memory.
#include <gtest/gtest.h>

#include <array>
#include <canele/device.hpp>
#include <string>

#include "tests/unit/cpp_layer/one_rank.hpp"

namespace canele::test::cpp_layer {
namespace {

class DeviceLayer : public OneRank {};

TEST_F(DeviceLayer, DescribesRowsOfHostMemory) {
  std::array<char, 12> from = {'a', 'b', '.', '.', 'c', 'd', '.', '.', 'e', 'f', '.', '.'};
  std::string to(8, '-');
  device_data rows, parts;
  rows.add(from.data(), 2, 3, 4, memory_kind::host);
  parts.add(to.data(), 1).add(to.data() + 2, 5);
  request received = irecv(session, 0, 7, parts);
  isend(session, 0, 7, rows).wait();
  EXPECT_EQ(received.wait().length, 6u);
  EXPECT_EQ(to, "a-bcdef-");
}

TEST_F(DeviceLayer, SendsWithOptions) {
  std::string from = "header and data", to(15, '-');
  send_options options;
  options.header = 6;
  device_data data;
  data.add(from.data(), from.size());
  request received = session.irecv(0, 8, to);
  request sent = isend(session, 0, 8, data, options);
  sent.wait();
  received.wait();
  EXPECT_EQ(to, from);
}

TEST_F(DeviceLayer, RejectsWhatIsNotThere) {
  int value = 0;
  device_data one;
  one.add(&value, sizeof value).ready(&value);
  EXPECT_EQ(code_of([&] { isend(session, 0, 7, one).wait(); }), CANELE_EINVAL);
  EXPECT_EQ(code_of([&] { device_support(engine, static_cast<memory_kind>(77)); }), CANELE_EINVAL);
  const canele_data_t data = canele_data_contiguous(&value, sizeof value);
  EXPECT_EQ(code_of([&] { device_copy(engine, data, data); }), device_support(engine) ? CANELE_OK : CANELE_EINVAL);
}

TEST_F(DeviceLayer, TellsWhatAnAddressIs) {
  int value = 0;
  const memory_place place = place_of(engine, &value);
  EXPECT_EQ(place.kind, memory_kind::host);
  EXPECT_EQ(place.device, -1);
  std::string why;
  const bool supported = device_support(engine, memory_kind::cuda, &why);
  EXPECT_EQ(why.empty(), supported);
}

}  // namespace
}  // namespace canele::test::cpp_layer
