// SPDX-License-Identifier: BSD-3-Clause
//
// The values that ranks have published, as another rank may send them.
//
// What is accepted must be found, and its hosts must be numbered from 0 in the order of their lowest ranks.
#include <algorithm>

#include "comm/bootstrap/published.hpp"
#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace canele::fuzz;
  namespace comm = canele::comm;
  Input input(data, size);
  const std::size_t ranks = 1 + input.below(8);
  std::vector<std::size_t> lengths;
  for (std::size_t rank = 0; rank + 1 < ranks; ++rank) lengths.push_back(input.byte());
  std::string key = input.text(input.below(4));
  std::size_t sum = 0;
  for (std::size_t& length : lengths) {
    length = std::min(length, input.left() - sum);
    sum += length;
  }
  lengths.push_back(input.left() - sum);
  comm::ExchangedValues values(lengths);
  const auto rest = input.rest();
  FUZZ_CHECK(values.size() == rest.size());
  std::copy(rest.begin(), rest.end(), values.bytes().begin());
  const int malformed = values.read();
  FUZZ_CHECK(malformed >= -1 && malformed < static_cast<int>(ranks));
  if (malformed >= 0) return 0;
  int hosts = 0;
  std::size_t placed = 0;
  for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
    FUZZ_CHECK(values.host_of(rank) >= 0 && values.host_of(rank) <= hosts);
    hosts = std::max(hosts, values.host_of(rank) + 1);
    FUZZ_CHECK(values.find(rank, comm::Place::key).has_value());
    if (const auto found = values.find(rank, key)) FUZZ_CHECK(found->size() <= lengths[static_cast<std::size_t>(rank)]);
  }
  for (int host = 0; host < hosts; ++host) {
    FUZZ_CHECK(!values.host_name(host).empty() && values.host_name(host).size() <= comm::longest_host_name);
    placed += values.ranks_of(host).size();
  }
  FUZZ_CHECK(placed == ranks);
  return 0;
}
