// SPDX-License-Identifier: BSD-3-Clause
//
// Alternatives by name. The names are also in comm/config/names.hpp; a test compares them.
#include "comm/matching/alternatives/factory.hpp"

#include "comm/matching/alternatives/structures.hpp"

namespace canele::comm::matching {

std::unique_ptr<Alternative> make_alternative(std::string_view name, std::uint64_t seed, Isa isa, Regions* regions) {
  if (name == "list") return make_plain_list();
  if (name == "bins") return make_hash_bins(seed);
  if (name == "peers") return make_peer_lists();
  if (name == "arrays") return make_array_list(regions);
  if (name == "vector") return make_vector_list(isa, regions);
  if (name == "fuzzy") return make_fuzzy_list(isa, regions);
  return nullptr;
}

}  // namespace canele::comm::matching
