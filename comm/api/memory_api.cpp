// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that other ranks access, and its keys.
//
// Any thread. Objects are made and ended under the engine's lock.
#include <canele/one_sided.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "comm/api/device_use.hpp"
#include "comm/api/one_sided_objects.hpp"
#include "comm/protocol/one_sided_chunk.hpp"
#include "comm/protocol/one_sided_origin.hpp"
#include "comm/protocol/one_sided_permission.hpp"

namespace canele::comm::api {

int enable(Engine& engine, const char* call) {
  if (fork::in_child) return reject_in_child(call);
  if (const int code = check_memory(call); code != CANELE_OK) return code;
  const EngineGuard guard(engine);
  one_sided::State& state = engine.one_sided;
  if (state.session.load(std::memory_order_relaxed) != nullptr) return CANELE_OK;
  Session& session = engine.sessions.find_or_make(engine, one_sided::session_label);
  if (!engine.sessions.open(session)) {
    engine.sessions.release_if_unused(session);
    return error(CANELE_ENOMEM, call, "no more sessions can be opened");
  }
  state.default_lane = &state.lanes.emplace_back();
  state.default_lane->context = &engine;
  state.piece_limit = one_sided::piece_limit(engine);
  state.copies_answers = engine.lifecycle.checksums;
  state.session.store(&session, std::memory_order_release);  // acquire: post_access()
  return CANELE_OK;
}

namespace {

using one_sided::Region;
using one_sided::RemoteKey;
using one_sided::SharedHeader;

constexpr std::uint32_t all_access = CANELE_ACCESS_READ | CANELE_ACCESS_WRITE | CANELE_ACCESS_ATOMIC;

/// The bytes of a key.
struct PackedKey {
  static constexpr std::uint32_t format_1 = 0x31454b43;  ///< "CKE1"

  std::uint32_t format = format_1;
  std::uint32_t access = 0;
  std::int32_t rank = 0;
  std::uint32_t reserved = 0;
  std::uint64_t region = 0, length = 0, nonce = 0, job = 0;
  std::uint64_t host = 0;  ///< of allocated memory, as the two numbers: see SharedMemoryName
  std::int32_t process = 0, descriptor = -1;
};
static_assert(sizeof(PackedKey) == CANELE_KEY_SIZE);

/// Reads the options of a registration.
int read_access(const canele_memory_options_t* options, const char* call, std::uint32_t* access) {
  *access = all_access;
  if (options == nullptr) return CANELE_OK;
  const int code = check_size(options, options->struct_size, sizeof *options, call, "canele_memory_options_t");
  if (code != CANELE_OK) return code;
  if ((options->access & ~all_access) != 0 || options->reserved != 0)
    return error(CANELE_EINVAL, std::string(call) + ": access is " + std::to_string(options->access) +
                                    "; expected: bits of enum canele_access, and reserved = 0");
  if (options->access != 0) *access = options->access;
  return CANELE_OK;
}

int too_long(std::size_t length, const char* call) {
  return error(CANELE_EINVAL, std::string(call) + ": " + std::to_string(length) +
                                  " bytes exceed the address space; expected: at most PTRDIFF_MAX");
}

/// Makes a region of `length` bytes, without memory. Sets *region, or returns the error to answer.
int make_region(Engine& engine, std::size_t length, const canele_memory_options_t* options, const char* call,
                std::unique_ptr<Region>* region) {
  std::uint32_t access = 0;
  int code = read_access(options, call, &access);
  if (code == CANELE_OK) code = enable(engine, call);
  if (code != CANELE_OK) return code;
  *region = std::make_unique<Region>();
  (*region)->length = length;
  (*region)->nonce = engine.platform.random();
  (*region)->access = access;
  return CANELE_OK;
}

canele_memory_t* add_region(Engine& engine, std::unique_ptr<Region> region) {
  region->context = &engine;
  {
    const EngineGuard guard(engine);
    region->handle = engine.one_sided.regions.add(*region);
  }
  make_accessible(engine);
  return reinterpret_cast<canele_memory_t*>(region.release());
}

SharedHeader& header_of(const SharedMemory& memory) { return *reinterpret_cast<SharedHeader*>(memory.base()); }

/// Begins to connect to a rank that the program will access, unless that has begun already. The on-demand thread goes
/// on with it while the program computes.
void begin_contact(Engine& engine, int rank) {
  {
    const EngineGuard guard(engine);
    if (engine.peers[rank] != nullptr) return;
    engine.peer(rank);
  }
  engine.after_submit();
  engine.progress.on_demand.expedite(ltask::OnDemandProgress::Because::there_is_work);
}

/// Maps the memory of the key, if it can be mapped. Then its header has the nonce of the key.
void map_memory(Engine& engine, RemoteKey& key, const PackedKey& packed) {
  if (packed.host == 0 || key.length > PTRDIFF_MAX - SharedHeader::bytes) return;
  auto shared = engine.platform.map_memory({packed.host, packed.process, packed.descriptor},
                                           SharedHeader::bytes + static_cast<std::size_t>(key.length));
  if (shared == nullptr) return;
  const SharedHeader& header = header_of(*shared);
  if (header.region != word_of(key.region) || header.nonce != key.nonce || header.access != key.access) return;
  key.shared = std::move(shared);
  const EngineGuard guard(engine);
  engine.one_sided.mapped.push_back(&key);
  key.mapped.store(key.shared->base() + SharedHeader::bytes, std::memory_order_relaxed);
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;

int canele_memory_register(canele_engine_t* engine, void* base, size_t length, const canele_memory_options_t* options,
                           canele_memory_t** memory) try {
  constexpr const char* call = "canele_memory_register";
  if (engine == nullptr || memory == nullptr || (base == nullptr && length != 0))
    return missing(call, "engine, base and memory");
  if (length > PTRDIFF_MAX) return too_long(length, call);
  Engine& e = engine_of(engine);
  if (const int code = check_host_memory(e, base, call); code != CANELE_OK) return code;
  std::unique_ptr<Region> region;
  if (const int code = make_region(e, length, options, call, &region); code != CANELE_OK) return code;
  region->base = static_cast<std::byte*>(base);
  *memory = add_region(e, std::move(region));
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_memory_allocate(canele_engine_t* engine, size_t length, const canele_memory_options_t* options, void** base,
                           canele_memory_t** memory) try {
  constexpr const char* call = "canele_memory_allocate";
  if (engine == nullptr || memory == nullptr || base == nullptr) return missing(call, "engine, base and memory");
  if (length > PTRDIFF_MAX - SharedHeader::bytes) return too_long(length, call);
  Engine& e = engine_of(engine);
  std::unique_ptr<Region> region;
  if (const int code = make_region(e, length, options, call, &region); code != CANELE_OK) return code;
  std::string why;
  region->shared = e.platform.share_memory(SharedHeader::bytes + length, &why);
  if (region->shared == nullptr)
    return error(CANELE_ENOMEM, std::string(call) + ": " + std::to_string(length) + " bytes: " + why);
  region->base = region->shared->base() + SharedHeader::bytes;
  auto& header = *new (region->shared->base()) SharedHeader;
  header.nonce = region->nonce;
  header.access = region->access;
  *base = region->base;
  *memory = add_region(e, std::move(region));
  header.region = word_of(region_of(*memory).handle);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_memory_free(canele_memory_t* memory) try {
  if (memory == nullptr) return missing("canele_memory_free", "memory");
  if (fork::in_child) return reject_in_child("canele_memory_free");
  Region& region = region_of(memory);
  Engine& engine = engine_of(*region.context);
  const auto is_used = [&] {
    const EngineGuard guard(engine);
    return region.uses != 0 || one_sided::is_accessed(engine, region);
  };
  if (callback_depth() != 0 && is_used())
    return error(CANELE_EDEADLK, "canele_memory_free: accesses are being served, and a callback cannot wait for them");
  if (region.shared != nullptr) header_of(*region.shared).revoked.store(1, std::memory_order_relaxed);
  {
    const EngineGuard guard(engine);
    engine.one_sided.regions.remove(region.handle);
    one_sided::close_permissions(region);
  }
  engine.accessible.fetch_sub(1, std::memory_order_relaxed);
  while (is_used()) {
    if (engine.step() == 0) engine.platform.yield();
  }
  {
    const EngineGuard guard(engine);
    one_sided::end_permissions(region);
  }
  delete &region;
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_memory_key(const canele_memory_t* memory, void* key) try {
  if (memory == nullptr || key == nullptr) return missing("canele_memory_key", "memory and key");
  if (fork::in_child) return reject_in_child("canele_memory_key");
  const Region& region = region_of(memory);
  const Engine& engine = engine_of(*region.context);
  PackedKey packed;
  packed.access = region.access;
  packed.rank = engine.rank;
  packed.region = word_of(region.handle);
  packed.length = region.length;
  packed.nonce = region.nonce;
  packed.job = engine.lifecycle.bootstrap->job();
  if (region.shared != nullptr) {
    packed.host = region.shared->name().host;
    packed.process = region.shared->name().process;
    packed.descriptor = region.shared->name().descriptor;
  }
  std::memcpy(key, &packed, sizeof packed);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_key_open(canele_engine_t* engine, const void* bytes, canele_key_t** key) try {
  constexpr const char* call = "canele_key_open";
  if (engine == nullptr || bytes == nullptr || key == nullptr) return missing(call, "engine, bytes and key");
  Engine& e = engine_of(engine);
  if (const int code = enable(e, call); code != CANELE_OK) return code;
  PackedKey packed;
  std::memcpy(&packed, bytes, sizeof packed);
  constexpr std::uint32_t any_version = 0x00ffffff;
  if ((packed.format & any_version) != (PackedKey::format_1 & any_version) ||
      packed.job != e.lifecycle.bootstrap->job() || packed.rank < 0 || packed.rank >= e.size ||
      (packed.access & ~all_access) != 0) {
    return error(CANELE_EINVAL, std::string(call) +
                                    ": the bytes are no key of this job; expected: what "
                                    "canele_memory_key has written on one of its ranks");
  }
  if (packed.format != PackedKey::format_1)
    return error(CANELE_EVERSION, call, "the key was written by another version of the library");
  auto opened = std::make_unique<RemoteKey>();
  opened->context = &e;
  opened->rank = packed.rank;
  opened->region = Handle{packed.region};
  opened->nonce = packed.nonce;
  opened->length = packed.length;
  opened->access = packed.access;
  map_memory(e, *opened, packed);
  begin_contact(e, packed.rank);
  *key = reinterpret_cast<canele_key_t*>(opened.release());
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_key_close(canele_key_t* key) try {
  if (key == nullptr) return missing("canele_key_close", "key");
  if (fork::in_child) return reject_in_child("canele_key_close");
  RemoteKey& k = key_of(key);
  {
    const EngineGuard guard(engine_of(*k.context));
    if (k.operations != 0)
      return error(CANELE_EBUSY, "canele_key_close: " + std::to_string(k.operations) + " operations are pending");
    one_sided::detach(*k.context, k);
  }
  delete &k;
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_key_rank(const canele_key_t* key) try {
  if (key == nullptr) return missing("canele_key_rank", "key");
  return fork::in_child ? reject_in_child("canele_key_rank") : key_of(key).rank;
} catch (...) {
  return caught();
}

size_t canele_key_length(const canele_key_t* key) { return key != nullptr ? key_of(key).length : 0; }

int canele_key_map(canele_key_t* key, void** address) try {
  constexpr const char* call = "canele_key_map";
  if (key == nullptr || address == nullptr) return missing(call, "key and address");
  if (fork::in_child) return reject_in_child(call);
  std::byte* const base = key_of(key).mapped.load(std::memory_order_relaxed);
  if (base == nullptr)
    return error(CANELE_EDRIVER, std::string(call) +
                                     ": this process cannot map the memory; expected: memory of this "
                                     "host that canele_memory_allocate has made");
  *address = base;
  return CANELE_OK;
} catch (...) {
  return caught();
}
