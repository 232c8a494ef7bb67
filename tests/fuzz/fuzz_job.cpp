// SPDX-License-Identifier: BSD-3-Clause
//
// One real engine over drivers without a fabric.
#include "fuzz_job.hpp"

namespace canele::fuzz {
namespace {

namespace wire = comm::wire;
constexpr std::uint64_t honest_tag = 77;
constexpr std::size_t memory_size = 3000, length_of_key = 1 << 20;
constexpr auto untouched = std::byte{0x3c};
constexpr std::size_t own_session = 2;  // of the honest message: no receive of the input can take it

void put_chunk(Bytes& packet, wire::Type type, std::uint64_t tag, std::uint32_t seq, std::uint16_t session,
               std::string_view payload) {
  const std::size_t at = packet.size();
  packet.resize(at + wire::chunk_size(payload.size()));
  std::byte* to = wire::put_head(packet.data() + at, {tag, seq, session, type, 0}, payload.size());
  std::memcpy(to, payload.data(), payload.size());
}

}  // namespace

FuzzJob::FuzzJob(const Options& options) {
  FUZZ_CHECK(made().empty());
  comm::EngineParts parts;
  parts.platform = &platform_;
  std::vector<std::string> settings = {"CANELE_SAMPLES=off", "CANELE_VERBOSE=3"};
  if (options.short_of_memory) {
    settings.push_back("CANELE_UNEXPECTED_MEMORY=" + std::to_string(ranks * wire::first_credit));
  }
  parts.settings = std::make_unique<comm::Settings>(platform_, settings);
  parts.bootstrap = std::make_unique<FuzzBootstrap>(std::make_shared<Bytes>(options.address_of_others));
  for (const Like like : options.drivers) {
    comm::DriverChoice choice(&wire_factory(like));
    choice.with_previous = options.joined && !parts.drivers.empty();
    parts.drivers.push_back(choice);
  }
  parts.strategy = comm::find_strategy(options.strategy);
  std::string why;
  engine_ = comm::Engine::create(std::move(parts), &why);
  if (engine_ == nullptr) std::fprintf(stderr, "no engine: %s\n", why.c_str());
  FUZZ_CHECK(engine_ != nullptr);
  for (const auto& [label, flags] : {std::pair{"s", CANELE_ORDER_PER_TAG}, std::pair{"t", CANELE_ORDER_ACROSS_TAGS},
                                     std::pair{"honest", CANELE_ORDER_PER_TAG}}) {
    canele_session_t* session = nullptr;
    FUZZ_CHECK(canele_session_open(comm::api::public_of(*engine_), label, flags, &session) == CANELE_OK);
    sessions_.push_back(session);
  }
  open_memory();
}

FuzzJob::~FuzzJob() {
  for (WireDriver* one : made()) one->full = one->later = false;
  honest_message_arrives();
  end_all();
  FUZZ_CHECK(posts_.empty());
  close_memory();
  FUZZ_CHECK(engine_->one_sided.replies.used() == 0);
  FUZZ_CHECK(engine_->sends.used() == 0 && engine_->transfers.used() == 0 && engine_->large.active_copies == 0);
  for (canele_session_t* session : sessions_) FUZZ_CHECK(canele_session_close(session) == CANELE_OK);
  const bool none_left = engine_->counters.read(comm::Counter::unexpected_now) == 0;  // of sessions never opened here
  for (const auto& one : engine_->active_peers) FUZZ_CHECK(!none_left || one->receive_window.stored == 0);
  engine_.reset();
  FUZZ_CHECK(made().empty());
}

void FuzzJob::settle() {
  // The engine polls a driver without a connected peer every 64th turn only.
  constexpr int most_turns = 2000;
  int quiet = 0;
  for (int turn = 0; turn < most_turns && quiet < 2; ++turn) {
    const bool idle = std::all_of(made().begin(), made().end(), [](const WireDriver* one) { return one->idle(); });
    quiet = engine_->step() == 0 && idle ? quiet + 1 : 0;
  }
  FUZZ_CHECK(quiet == 2);
  FUZZ_CHECK(engine_->credit.reserved <= engine_->credit.limit);
  posts_.remove_if([](Post& post) { return post.state().finalized(); });
}

Post& FuzzJob::add(std::size_t length, bool receives) {
  Post& post = posts_.emplace_back();
  post.memory.reset(new std::byte[length]);  // not initialised: reading it before it is written is not an error of the
                                             // engine
  post.length = length;
  post.receives = receives;
  return post;
}

canele_data_t FuzzJob::describe(Post& post, bool in_two) {
  const std::size_t half = post.length / 2;
  post.halves[0] = {post.memory.get(), half};
  post.halves[1] = {post.memory.get() + half, post.length - half};
  return in_two ? canele_data_iov(&post.vector) : canele_data_contiguous(post.memory.get(), post.length);
}

void FuzzJob::send(std::size_t session_index, int to, std::uint64_t tag, std::size_t length,
                   const canele_send_options_t& options, bool in_two) {
  Post& post = add(length, false);
  const canele_data_t data = describe(post, in_two);
  FUZZ_CHECK(canele_isend_data(session(session_index), to, tag, &data, &options, &post.request) == CANELE_OK);
}

void FuzzJob::multicast(std::size_t session_index, std::uint64_t tag, std::size_t length, int shape) {
  constexpr int both[] = {hostile, honest};
  Post& post = add(length, false);
  const canele_data_t data = describe(post, false);
  canele_multicast_options_t options{};
  options.struct_size = sizeof options;
  options.shape = shape;
  FUZZ_CHECK(canele_imulticast(session(session_index), both, 2, tag, &data, &options, &post.request) == CANELE_OK);
}

void FuzzJob::honest_multicast(std::uint64_t tag, std::size_t length, std::uint32_t id, bool is_child, bool is_parent) {
  if (length == 0 || id == 0 || !honest_ids_.insert(id).second) return;
  for (WireDriver* one : made()) one->connect_now(honest);
  settle();
  if (peer(honest).disconnected()) return;
  const wire::Route route{id, 0, is_child ? hostile : -1, is_parent && !is_child ? 1u : 0u};
  wire::Rts rts{};
  rts.handle = comm::Handle{1000 + std::uint64_t{id}};
  rts.length = length;
  rts.needs_fin = 1;
  std::string payload(reinterpret_cast<const char*>(&route), sizeof route);
  if (route.children != 0) payload.append(reinterpret_cast<const char*>(&hostile), sizeof hostile);
  payload.append(reinterpret_cast<const char*>(&rts), sizeof rts);
  Bytes packet;
  put_chunk(packet, wire::Type::session, 0, 1, 0, "s");
  put_chunk(packet, wire::Type::multicast_rts, tag, peer(honest).next_in, 0, payload);
  driver(0).arrives(honest, packet);
}

void FuzzJob::receive(std::size_t session_index, int from, std::uint64_t tag, std::uint64_t mask, std::size_t length,
                      bool late, bool in_two) {
  Post& post = add(late ? 0 : length, true);
  canele_session_t* const where = session(session_index);
  const canele_data_t data = describe(post, in_two);
  const int error = late ? canele_irecv_late(where, from, tag, mask, &post.request)
                         : canele_irecv_data(where, from, tag, mask, &data, &post.request);
  FUZZ_CHECK(error == CANELE_OK);
}

void FuzzJob::probe(std::size_t session_index, int from, std::uint64_t tag, std::uint64_t mask, bool take) {
  int found = 0;
  canele_status_t status{};
  canele_session_t* const where = session(session_index);
  Post* const post = take ? &add(0, true) : nullptr;
  const int error = take ? canele_improbe(where, from, tag, mask, &found, &post->request, &status)
                         : canele_iprobe(where, from, tag, mask, &found, &status);
  if (error != CANELE_OK) {
    FUZZ_CHECK(found == 0 && from != CANELE_ANY_SOURCE);
    FUZZ_CHECK(peer(from).disconnected() && error == peer(from).error);
  }
  if (take && found == 0) posts_.pop_back();
}

void FuzzJob::bind(Post& post, std::size_t length) {
  canele_status_t status{};
  if (!post.receives || canele_receive_envelope(&post.request, &status) != CANELE_OK) return;
  post.memory.reset(new std::byte[length]);
  post.length = length;
  std::byte first[16];
  canele_receive_peek(&post.request, first, std::min<std::size_t>(sizeof first, status.length));
  const canele_data_t data = canele_data_contiguous(post.memory.get(), length);
  FUZZ_CHECK(canele_receive_bind(&post.request, &data) == CANELE_OK);
}

/// Registers memory, opens slots 1 and 2 for notifications, and forges a key of rank 1.
void FuzzJob::open_memory() {
  canele_engine_t* const engine = comm::api::public_of(*engine_);
  for (std::size_t which = 0; which < regions; ++which) {
    memories_[which].bytes.reset(new std::byte[memory_size]);
    std::fill_n(memories_[which].bytes.get(), memory_size, untouched);
    register_memory(which);
  }
  constexpr std::size_t rank_in_key = 8, length_in_key = 24;
  char key[CANELE_KEY_SIZE];
  FUZZ_CHECK(canele_memory_key(memories_[0].handle, key) == CANELE_OK);
  std::memcpy(key + rank_in_key, &hostile, sizeof hostile);
  std::memcpy(key + length_in_key, &length_of_key, sizeof length_of_key);
  FUZZ_CHECK(canele_key_open(engine, key, &key_) == CANELE_OK);
  FUZZ_CHECK(canele_key_rank(key_) == hostile && canele_key_length(key_) == length_of_key);
  FUZZ_CHECK(canele_lane_open(engine, &lane_) == CANELE_OK);
  const canele_completion_t ways[] = {{CANELE_COMPLETE_COUNTER, 0, &arrived_, nullptr, nullptr},
                                      {CANELE_COMPLETE_QUEUE, 0, &entries_, nullptr, nullptr}};
  for (const canele_completion_t& then : ways) {
    std::uint32_t slot = 0;
    FUZZ_CHECK(canele_notification_open(engine, &then, &slot) == CANELE_OK);
  }
}

void FuzzJob::register_memory(std::size_t which) {
  canele_memory_options_t options{};
  options.struct_size = sizeof options;
  options.access = which == 0 ? 0u : static_cast<unsigned>(CANELE_ACCESS_READ);
  FUZZ_CHECK(canele_memory_register(comm::api::public_of(*engine_), memories_[which].bytes.get(), memory_size, &options,
                                    &memories_[which].handle) == CANELE_OK);
}

void FuzzJob::revoke(std::size_t which) {
  which %= regions;
  if (region(which).uses != 0) return;  // would wait for what the fabric may never end
  FUZZ_CHECK(canele_memory_free(memories_[which].handle) == CANELE_OK);
  register_memory(which);
}

void FuzzJob::close_memory() {
  canele_entry_t entry{};
  while (canele_queue_take(comm::api::public_of(*engine_), &entries_, &entry, 1) > 0) {
    FUZZ_CHECK(entry.kind == CANELE_ENTRY_NOTIFICATION && entry.source == hostile && entry.slot == 2);
  }
  settle();
  FUZZ_CHECK(canele_lane_close(lane_) == CANELE_OK);
  FUZZ_CHECK(canele_key_close(key_) == CANELE_OK);
  for (const Memory& memory : memories_) FUZZ_CHECK(canele_memory_free(memory.handle) == CANELE_OK);
  const std::byte* const read_only = memories_[1].bytes.get();
  FUZZ_CHECK(std::all_of(read_only, read_only + memory_size, [](std::byte one) { return one == untouched; }));
}

void FuzzJob::access(comm::one_sided::AccessKind kind, std::size_t lane, std::uint64_t offset, std::size_t length,
                     std::uint8_t variant) {
  using comm::one_sided::AccessKind;
  canele_engine_t* const engine = comm::api::public_of(*engine_);
  canele_access_options_t options{};
  options.struct_size = sizeof options;
  options.lane = lane == 0 ? nullptr : lane_;
  const bool notifies = kind == AccessKind::notify || (kind == AccessKind::put && variant % 2 != 0);
  if (notifies) options.slot = 1 + variant / 2;
  Post& post = add(std::max(length, sizeof(std::uint64_t)), false);
  post.length = length;
  const canele_data_t data = describe(post, kind != AccessKind::atomic && (variant & 0x80) != 0);
  int code = CANELE_OK;
  switch (kind) {
    case AccessKind::put:
      code = canele_put(key_, offset, &data, &options, &post.request);
      break;
    case AccessKind::get:
      code = canele_get(key_, offset, &data, &options, &post.request);
      break;
    case AccessKind::atomic:
      code = canele_atomic(key_, offset, static_cast<canele_atomic_operation>(variant % 8), length, 1, 2,
                           variant < 0x80 ? post.memory.get() : nullptr, &options, &post.request);
      break;
    case AccessKind::accumulate:
      code = canele_accumulate(key_, offset, &data, variant % 16 == 15 ? CANELE_REPLACE : variant % 16,
                               static_cast<canele_element>(lane != 0 ? CANELE_DOUBLE_INT : CANELE_INT32),
                               variant < 0x40 ? post.memory.get() : nullptr, &options, &post.request);
      break;
    case AccessKind::notify:
      code = canele_notify(engine, hostile, &options, &post.request);
      break;
    default:
      code = canele_flush(engine, hostile, &options, &post.request);
      break;
  }
  const bool computes = kind == AccessKind::atomic || kind == AccessKind::accumulate;
  FUZZ_CHECK(code == CANELE_OK || code == CANELE_EACCESS || (code == CANELE_EINVAL && computes));
  if (code != CANELE_OK) posts_.pop_back();
}

/// Sends a message from rank 2 on every rail that it has, and checks that the message arrives.
void FuzzJob::honest_message_arrives() {
  for (WireDriver* one : made()) one->connect_now(honest);
  settle();
  if (peer(honest).disconnected()) return;  // a target may have given rank 2 a bad address
  constexpr std::string_view text = "nothing that rank 1 does stops this";
  Post& got = add(text.size(), true);
  FUZZ_CHECK(canele_irecv(sessions_[own_session], honest, honest_tag, CANELE_TAG_EXACT, got.memory.get(), text.size(),
                          &got.request) == CANELE_OK);
  Bytes packet;
  put_chunk(packet, wire::Type::session, 0, 1, 0, "honest");
  put_chunk(packet, wire::Type::eager, honest_tag, peer(honest).next_in, 0, text);
  driver(0).arrives(honest, packet);
  for (int turn = 0; turn < 200 && !got.state().finalized(); ++turn) engine_->step();
  FUZZ_CHECK(got.state().finalized() && got.state().status_error == CANELE_OK);
  FUZZ_CHECK(std::memcmp(got.memory.get(), text.data(), text.size()) == 0);
}

/// Fails both peers. Then no request may wait any longer, except receives from any rank and those that hold a message.
void FuzzJob::end_all() {
  for (WireDriver* one : made()) {
    one->fails(hostile);
    one->fails(honest);
  }
  settle();
  for (Post& post : posts_) {
    bind(post, 100);
    canele_cancel(&post.request);
  }
  settle();
  for (Post& post : posts_) FUZZ_CHECK(post.state().finalized());
}

}  // namespace canele::fuzz
