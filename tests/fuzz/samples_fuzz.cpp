// SPDX-License-Identifier: BSD-3-Clause
//
// The file of measured costs, as it is found on disk.
//
// If the input says so, the first lines are made right: they name the host, which no input guesses.
#include "comm/config/samples.hpp"
#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace canele::fuzz;
  namespace comm = canele::comm;
  Input input(data, size);
  FuzzPlatform platform;
  const std::uint8_t how = input.byte();
  const bool right_head = (how & 1) != 0;
  if ((how & 2) != 0) platform.files["/proc/sys/kernel/hostname"] = input.text(input.below(40));
  if ((how & 4) != 0) platform.files["/proc/cpuinfo"] = "model name\t: " + input.text(input.below(40)) + "\n";
  const std::vector<std::string> options = {"CANELE_SAMPLES=/d"};
  const comm::Settings settings(platform, options);
  const comm::Samples none = comm::read_samples(platform, settings);
  FUZZ_CHECK(none.all.empty());
  std::string text;
  if (right_head) {
    text = "canele-samples 1\nhost " + none.host + "\nmachine " + none.machine + "\nlibrary " CANELE_VERSION "\n";
  }
  text += input.text(input.left());
  if ((how & 8) != 0) text += "\nend\n";
  platform.files[none.file] = text;
  const comm::Samples samples = comm::read_samples(platform, settings);
  const bool read = samples.state == comm::Samples::State::read;
  FUZZ_CHECK(is_printable(samples.problem));
  FUZZ_CHECK(read || (samples.all.empty() && !samples.problem.empty()));
  FUZZ_CHECK(samples.all.size() <= 64);
  for (const comm::Sample& one : samples.all) {
    FUZZ_CHECK(!one.driver.empty() && one.date.size() == 10 && one.costs.measured);
    FUZZ_CHECK(one.costs.latency_ns > 0 && one.costs.gap_ns > 0 && one.costs.bytes_per_second > 0);
    double before = 0;
    for (const auto& [bytes, ns] : one.costs.times) {
      FUZZ_CHECK(static_cast<double>(bytes) > before);
      FUZZ_CHECK(one.costs.time_ns(bytes) > 0);
      before = static_cast<double>(bytes);
    }
    FUZZ_CHECK(one.costs.time_ns(std::uint64_t{1} << 40) >= 0);
  }
  return 0;
}
