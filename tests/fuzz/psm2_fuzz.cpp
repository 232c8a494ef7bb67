// SPDX-License-Identifier: BSD-3-Clause
//
// What the psm2 driver reads: tags, heads of bulk data, published addresses, the terms of its handshake.
//
// libpsm2 is not called; its header alone is needed.
#include "drivers/psm2/wire.hpp"
#include "fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace canele::drivers::psm2;
  canele::fuzz::Input input(data, size);
  psm2_mq_tag_t tag = {};
  tag.tag0 = input.flag() ? tag_magic | input.byte() : input.number<std::uint32_t>();
  tag.tag1 = input.number<std::uint32_t>();
  Kind kind;
  if (read_tag(tag, &kind)) {
    FUZZ_CHECK(kind >= Kind::handshake && kind <= Kind::last);
    FUZZ_CHECK(make_tag(kind, tag.tag1, 0).tag0 == tag.tag0);
  }
  const canele::fuzz::Bytes bytes = canele::fuzz::copy_of(input.rest());
  Whereabouts where, where_again;
  if (unpack(bytes, &where)) {
    FUZZ_CHECK(where.pid > 0);
    const auto made = pack(where);
    FUZZ_CHECK(unpack(made, &where_again) && pack(where_again) == made);
  }
  Terms terms, terms_again;
  if (unpack(bytes, &terms)) {
    FUZZ_CHECK(terms.unacked_limit > 0);
    const auto made = pack(terms);
    FUZZ_CHECK(unpack(made, &terms_again) && pack(terms_again) == made);
  }
  if (bytes.size() == bulk_head_size) {
    std::byte again[bulk_head_size];
    pack(unpack_head(bytes.data()), again);
    FUZZ_CHECK(std::equal(bytes.begin(), bytes.end(), again));
  }
  return 0;
}
