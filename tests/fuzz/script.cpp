// SPDX-License-Identifier: BSD-3-Clause
//
// Steps of packet_fuzz.
#include "script.hpp"

#include "comm/state/rtr_table.hpp"

namespace canele::fuzz {
namespace {

namespace wire = comm::wire;
/// Returns a type for a byte; also 0, and a type that does not exist. Most bytes stand for the oldest types, so that
/// old inputs keep their meaning.
wire::Type type_of(std::uint8_t byte) {
  constexpr auto number = [](wire::Type type) { return static_cast<unsigned>(type); };
  constexpr unsigned first = number(wire::Type::blocked_reply) + 2, from = 240;
  constexpr unsigned later = number(wire::Type::attach) - number(wire::Type::multicast_rts);
  constexpr unsigned latest = number(wire::Type::transfer_failed) + 2 - number(wire::Type::attach);
  if (byte >= from) return static_cast<wire::Type>(number(wire::Type::multicast_rts) + (byte - from) % later);
  if (byte >= first_one_sided)
    return static_cast<wire::Type>(number(wire::Type::attach) + (byte - first_one_sided) % latest);
  return static_cast<wire::Type>(byte % first);
}

FuzzJob::Options options(std::uint8_t first) {
  static const char* const strategies[] = {"aggregate", "fifo", "priority"};
  FuzzJob::Options made;
  made.strategy = strategies[first / job_count % 3];
  made.short_of_memory = first / job_count / 3 % 2 != 0;
  switch (first % job_count) {
    case job_tcp:
      made.drivers = {Like::tcp};
      break;
    case job_ofi:
      made.drivers = {Like::ofi};
      break;
    case job_shm_and_tcp:
      made.drivers = {Like::shm, Like::tcp};
      made.joined = true;
      break;
    case job_tcp_and_ofi:
      made.drivers = {Like::tcp, Like::ofi};
      made.joined = true;
      break;
    default:
      break;
  }
  return made;
}

template <typename T>
void append(Bytes& to, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), from, from + sizeof value);
}

/// Checks that a packet that was parsed into chunks gives the same chunks when it is written again.
void check_round_trip(std::span<const std::byte> packet) {
  wire::Chunk chunk, again;
  while (!packet.empty() && wire::take_chunk(packet, chunk).is_ok()) {
    Bytes made(wire::chunk_size(chunk.payload.size()));
    std::byte* const end = wire::put_head(made.data(), chunk.head, chunk.payload.size());
    std::copy(chunk.payload.begin(), chunk.payload.end(), end);
    std::span<const std::byte> rest(made);
    FUZZ_CHECK(wire::take_chunk(rest, again).is_ok() && rest.empty());
    FUZZ_CHECK(std::ranges::equal(again.payload, chunk.payload));
    FUZZ_CHECK(again.head.tag == chunk.head.tag && again.head.seq == chunk.head.seq &&
               again.head.session == chunk.head.session && again.head.type == chunk.head.type);
  }
}

}  // namespace

Script::Script(Input& input) : input_(input), job_(options(input.byte())) {
  for (WireDriver* one : made()) one->connect_now(hostile);
  job_.settle();
  constexpr std::uint64_t hardly_any = 1000;
  if (job_.engine().credit.limit < comm::wire::first_credit * 4) job_.peer(hostile).credit = hardly_any;
}

void Script::run() {
  constexpr int most_steps = 200;
  for (int i = 0; i < most_steps && !input_.empty(); ++i) step();
}

/// Reads a small number, or a handle that the engine has given away.
std::uint64_t Script::name() {
  const std::uint8_t which = input_.byte();
  if (which == 255) return input_.number<std::uint64_t>();
  std::vector<std::uint64_t> all;
  for (const WireDriver* one : made()) all.insert(all.end(), one->handles.begin(), one->handles.end());
  if (which < first_handle || all.empty()) return which;
  return all[all.size() - 1 - (which - first_handle) % all.size()];
}

std::uint64_t Script::length() {
  const std::uint8_t which = input_.byte();
  return which < std::size(lengths) ? lengths[which] : which;
}

int Script::source() {
  const std::uint8_t which = input_.byte();
  return which % 4 == 3 ? CANELE_ANY_SOURCE : which % 4 == 2 ? honest : hostile;
}

std::uint64_t Script::mask() {
  const std::uint8_t which = input_.byte();
  return which % 4 == 2 ? CANELE_TAG_ANY : which % 4 == 3 ? 3 : CANELE_TAG_EXACT;
}

void Script::deliver(WireDriver& driver, Bytes packet) {
  check_round_trip(packet);
  driver.arrives(hostile, std::move(packet));
}

void Script::raw_packet() {
  WireDriver& to = rail();
  const std::size_t size = input_.byte();
  deliver(to, copy_of(input_.bytes(size)));
}

void Script::built_packet() {
  WireDriver& to = rail();
  Bytes packet;
  coming_ = 0;
  for (std::size_t left = 1 + input_.below(4), i = 0; i < left; ++i) put_chunk(packet, i == 0);
  for (std::size_t changes = input_.below(4); changes > 0; --changes) {
    const std::size_t at = input_.number<std::uint16_t>() % packet.size();
    packet[at] = static_cast<std::byte>(input_.byte());
  }
  deliver(to, std::move(packet));
}

Bytes Script::rts(wire::Head& head) {
  wire::Rts made{};
  made.handle = comm::Handle{name()};
  made.length = length();
  made.header = input_.byte();
  made.rkey = input_.byte() % 64;
  const std::uint8_t flags = input_.byte();
  made.synchronous = flags & 1;
  made.needs_fin = flags >> 1 & 1;
  const comm::DriverInstance* instance = job_.peer(hostile).rail->instance;
  made.rkey_driver = (flags & 4) != 0 && instance != nullptr ? instance->driver_tag() : flags >> 3;
  if ((flags & 0x80) != 0 && !job_.driver(0).rtrs.empty()) {  // for the receive with the last RTR, which it takes
    const wire::Rtr& rtr = job_.driver(0).rtrs.back();
    made.receive = rtr.key;
    comm::ChunkClaims(job_.driver(0).line(true, rtr.line), rtr.generation).acquire();
    head.tag = input_.byte();
  }
  Bytes payload;
  append(payload, made);
  payload.resize(payload.size() + made.header + made.rkey, std::byte{7});
  return payload;
}

/// Writes a multicast of rank 1, which names any parent and any children.
Bytes Script::multicast_rts(wire::Head& head) {
  const std::uint8_t id = input_.byte(), flags = input_.byte();
  const std::uint32_t children = flags >> 5;
  Bytes payload;
  append(payload, wire::Route{id, static_cast<std::uint32_t>(flags & 3), static_cast<std::int32_t>(flags >> 2 & 7) - 1,
                              children});
  for (std::uint32_t i = 0; i < children; ++i) append(payload, std::uint32_t{input_.byte()} % 8);
  const Bytes announced = rts(head);
  payload.insert(payload.end(), announced.begin(), announced.end());
  return payload;
}

/// Writes an RTR. `shared`: of a matched receive.
Bytes Script::rtr(bool shared) {
  wire::Rtr made{};
  made.key = comm::Handle{name()};
  made.length = length();
  made.seen = job_.peer(hostile).next_out - input_.byte() % 20;
  made.generation = input_.byte();
  made.line = input_.byte() % (WireDriver::lines + 1);
  made.rkey = input_.byte() % 48;
  comm::ChunkClaims claims(job_.driver(0).line(false, made.line), made.generation);
  claims.open();
  if (shared) claims.acquire();
  Bytes payload;
  append(payload, made);
  payload.resize(payload.size() + made.rkey, std::byte{9});
  return payload;
}

wire::Notification Script::notification(std::uint64_t offset) { return {1, length(), offset, input_.byte() % 4u, 0}; }
wire::Strides Script::strides() {
  const std::uint32_t block = input_.byte();
  return {block, block + input_.byte() - 1u};
}

void Script::append_accumulate(Bytes& payload) {
  const comm::Handle answer{name()};
  const std::uint8_t operation = input_.byte(), element = input_.byte();
  const auto bytes = static_cast<std::uint32_t>(length());
  append(payload, wire::Accumulate{answer, bytes, operation, element, {}});
  if (operation != CANELE_NO_OP) payload.resize(payload.size() + std::min<std::size_t>(bytes, 1000), std::byte{6});
}

/// Appends what the flags of a put announce.
void Script::append_put(Bytes& payload, std::uint64_t offset) {
  const auto flags = std::to_integer<unsigned>(payload[0]);
  if ((flags & wire::access_notifies) != 0) append(payload, notification(offset));
  if ((flags & wire::access_by_message) != 0) append(payload, std::uint64_t{length()});
  if ((flags & wire::access_strided) != 0) append(payload, strides());
}

/// Returns the payload of a chunk of a one-sided operation: what rank 1 asks of us, or answers.
Bytes Script::one_sided(wire::Type type, wire::Head& head) {
  static const std::int32_t errors[] = {CANELE_EACCESS, CANELE_EREVOKED, CANELE_ENOMEM, CANELE_OK, 7};
  const comm::one_sided::PeerAccess* const access = job_.peer(hostile).one_sided.get();
  const bool known = access != nullptr && head.session < access->streams.size();
  const std::uint64_t begun = known ? access->streams[head.session].begun : 0;
  Bytes payload;
  if ((type >= wire::Type::put && type <= wire::Type::flush && type != wire::Type::got && type != wire::Type::result) ||
      type == wire::Type::accumulate)
    append(payload, std::uint32_t{input_.byte()});  // the flags
  switch (type) {
    case wire::Type::attach:
      if (const std::uint8_t which = input_.byte(); which < FuzzJob::regions) {
        head.tag = word_of(job_.region(which).handle);
        append(payload, job_.region(which).nonce);
      } else {
        append(payload, std::uint64_t{which});
      }
      break;
    case wire::Type::put:
      head.tag = length();
      append_put(payload, head.tag);
      break;
    case wire::Type::notify:
      append(payload, notification(head.tag));
      break;
    case wire::Type::get:
      head.tag = length();
      append(payload, wire::GetRange{comm::Handle{name()}, length()});
      if ((std::to_integer<unsigned>(payload[0]) & wire::access_strided) != 0) append(payload, strides());
      break;
    case wire::Type::atomic: {
      head.tag = length();
      const comm::Handle answer{name()};
      const std::uint8_t operation = input_.byte(), size = input_.byte();
      append(payload, wire::AtomicWord{3, 0, answer, operation, size, {}});
      break;
    }
    case wire::Type::accumulate:
      head.tag = length();
      append_accumulate(payload);
      break;
    case wire::Type::result:
      append(payload, std::uint64_t{5});
      break;
    case wire::Type::access_failed:
      append(payload, errors[input_.byte() % std::size(errors)]);
      [[fallthrough]];
    case wire::Type::executed:
      head.tag = begun - input_.byte();
      break;
    case wire::Type::attached: {
      head.tag = (access != nullptr ? access->attaches : 0) - input_.byte();
      const std::uint8_t word = input_.byte(), generation = input_.byte(), get = input_.byte(), put = input_.byte();
      append(payload, wire::Attached{word, generation, get, put, 0});
      payload.resize(payload.size() + get + put, std::byte{7});
      break;
    }
    case wire::Type::notified:
      head.tag = (access != nullptr ? access->notifications : 0) - input_.byte();
      break;
    default:
      break;
  }
  if (type == wire::Type::put || type == wire::Type::got)
    payload.resize(payload.size() + std::min<std::uint64_t>(length(), 1000), std::byte{6});
  return payload;
}

/// Returns the payload that a chunk of this type has; some types also need a head of their own.
Bytes Script::payload_of(wire::Type type, wire::Head& head) {
  if (type >= wire::Type::attach && type <= wire::Type::accumulate) return one_sided(type, head);
  Bytes payload;
  switch (type) {
    case wire::Type::eager_sync:
      append(payload, name());
      [[fallthrough]];
    case wire::Type::eager:
      payload.resize(payload.size() + std::min<std::uint64_t>(length(), 1000), std::byte{5});
      break;
    case wire::Type::rts:
      return rts(head);
    case wire::Type::blocked_envelope: {
      const std::uint8_t index = input_.byte(), count = input_.byte();
      append(payload, wire::BlockedEnvelope{input_.byte(), index, count, input_.flag(), {}});
      const Bytes announced = rts(head);
      payload.insert(payload.end(), announced.begin(), announced.end());
      break;
    }
    case wire::Type::multicast_rts:
      return multicast_rts(head);
    case wire::Type::multicast_cts: {
      const wire::MulticastCts made{comm::Handle{name()}, length(), length(),
                                    static_cast<std::int32_t>(input_.byte() % 4), 0};
      append(payload, made);
      break;
    }
    case wire::Type::multicast_done:
    case wire::Type::multicast_redirect:
      append(payload, static_cast<std::int32_t>(input_.byte() % 4));
      break;
    case wire::Type::credit:
      head.tag = job_.peer(hostile).credit_granted + 100 * std::uint64_t{input_.byte()};
      break;
    case wire::Type::blocked:
    case wire::Type::solicit_done:
      if (job_.peer(hostile).asking != nullptr) head.seq += job_.peer(hostile).asking->episode;
      break;
    case wire::Type::solicit:
      if (const comm::BlockedSends* list = job_.peer(hostile).blocked_sends.get()) head.seq += list->episode;
      if (const std::uint8_t kind = input_.byte(); kind % 4 != 0) {  // 0: everything
        const std::uint64_t bits = kind % 4 == 1 ? ~std::uint64_t{0} : kind % 4 == 2 ? 0 : 3;
        append(payload, wire::Solicit{input_.byte() & (kind < 250 ? bits : ~bits), bits, kind >> 2 & 1u, 0});
      }
      break;
    case wire::Type::blocked_reply:
      if (const comm::BlockedSends* list = job_.peer(hostile).blocked_sends.get()) head.seq += list->batch_number;
      break;
    case wire::Type::rtr:
    case wire::Type::shared_copy:
      return rtr(type == wire::Type::shared_copy);
    case wire::Type::cts: {
      const wire::Cts made{comm::Handle{name()}, length(), length()};
      append(payload, made);
      break;
    }
    case wire::Type::fin:
      append(payload, static_cast<std::uint32_t>(input_.byte() & 7));
      break;
    case wire::Type::session:
      return bytes_of(input_.flag() ? "t" : input_.flag() ? "s" : input_.text(input_.below(80)));
    case wire::Type::cumulative_ack:
      if (const comm::RailGroup* group = job_.peer(hostile).rail_group.get())
        head.tag = group->next_out - input_.byte();
      break;
    default:
      break;
  }
  return payload;
}

void Script::put_chunk(Bytes& packet, bool first) {
  const comm::Peer& peer = job_.peer(hostile);
  const wire::Type type = type_of(input_.byte());
  wire::Head head{name(), 0, 0, type, 0};
  const bool envelope = type == wire::Type::eager || type == wire::Type::eager_sync || type == wire::Type::rts ||
                        type == wire::Type::multicast_rts;
  head.seq = input_.byte();  // 0: the valid number
  if (envelope) head.seq += peer.next_in + coming_++;
  head.session = input_.byte();
  if (type == wire::Type::sequenced && first) {
    head.tag = (peer.rail_group != nullptr ? peer.rail_group->next_in : 1) + head.session;
    head.session = 0;
    head.seq = (peer.rail_group != nullptr ? static_cast<std::uint32_t>(peer.rail_group->next_out) : 1) - 1 - head.seq;
  }
  const Bytes payload = payload_of(type, head);
  const std::size_t at = packet.size();
  packet.resize(at + wire::chunk_size(payload.size()));
  std::byte* const to = wire::put_head(packet.data() + at, head, payload.size());
  std::copy(payload.begin(), payload.end(), to);
}

/// Lets rank 1 write anything into the lines that it shares with us.
void Script::write_line() {
  const bool ours = input_.flag();
  const std::uint8_t which = input_.byte();
  drivers::SharedLine& line = job_.driver(0).line(ours, which);
  std::atomic<std::uint64_t>& word = line.words[input_.below(2)];
  const std::uint64_t generation = input_.byte(), low = input_.number<std::uint32_t>();
  constexpr std::uint64_t open_permit = std::uint64_t{1} << 63;
  word.store((which >= 128 ? open_permit : 0) | generation << 32 | low);
}

void Script::post_multicast(std::uint8_t which) {
  const std::uint64_t tag = input_.byte();
  const std::size_t size = std::min<std::uint64_t>(length(), 200000);
  if (which % 2 == 0) return job_.multicast(which % 3, tag, size, 1 + input_.byte() % 3);
  const std::uint8_t flags = input_.byte();
  job_.honest_multicast(tag, size, flags % 16, (flags & 16) != 0, (flags & 32) != 0);
}

void Script::post_send() {
  constexpr std::uint8_t multicasts = 250;  // old inputs have smaller numbers of sessions
  const std::uint8_t session = input_.byte();
  if (session >= multicasts) return post_multicast(session);
  const int to = source() == honest ? honest : hostile;
  const std::uint64_t tag = input_.byte();
  const std::size_t size = std::min<std::uint64_t>(length(), 200000);
  canele_send_options_t options{};
  options.struct_size = sizeof options;
  const std::uint8_t flags = input_.byte();
  options.flags = flags & 1;
  options.priority = flags >> 1 & 3;
  options.header = std::min<std::size_t>(size, flags >> 4);
  job_.send(session, to, tag, size, options, (flags & 8) != 0);
}

void Script::post_access() {
  const std::uint8_t what = input_.byte(), lane = input_.byte();
  const std::uint64_t offset = length(), size = std::min<std::uint64_t>(length(), 200000);
  job_.access(static_cast<comm::one_sided::AccessKind>(what % 6), lane % 2, offset, size, input_.byte());
}

void Script::post_receive() {
  const std::size_t session = input_.byte();
  const int from = source();
  const std::uint64_t tag = input_.byte(), bits = mask();
  const std::size_t size = std::min<std::uint64_t>(length(), 200000);
  const std::uint8_t flags = input_.byte();
  job_.receive(session, from, tag, bits, size, (flags & 1) != 0, (flags & 2) != 0);
}

void Script::step() {
  switch (static_cast<Step>(input_.below(static_cast<std::size_t>(Step::count)))) {
    case Step::raw:
      raw_packet();
      break;
    case Step::built:
      built_packet();
      break;
    case Step::bulk: {
      WireDriver& to = rail();
      const std::uint64_t key = name(), offset = length(), size = length();
      to.bulk_arrives(hostile, key, offset, size, input_.flag());
      break;
    }
    case Step::hold_ends:
      rail().hold_ends(input_.byte());
      break;
    case Step::operation_ends: {
      WireDriver& by = rail();
      const std::uint8_t which = input_.byte();
      by.operation_ends(which / 2, which % 2 == 0);
      break;
    }
    case Step::room:
      rail().room(hostile);
      break;
    case Step::answers: {
      WireDriver& by = rail();
      const std::uint8_t how = input_.byte();
      by.full = (how & 1) != 0, by.later = (how & 2) != 0, by.copies_fail = (how & 4) != 0;
      return;
    }
    case Step::line:
      write_line();
      return;
    case Step::send:
      post_send();
      break;
    case Step::receive:
      post_receive();
      break;
    case Step::probe: {
      const std::size_t session = input_.byte();
      const int from = source();
      const std::uint64_t tag = input_.byte(), bits = mask();
      job_.probe(session, from, tag, bits, input_.flag());
      break;
    }
    case Step::cancel:
      if (job_.posts() > 0) canele_cancel(&job_.post(input_.byte() % job_.posts()).request);
      break;
    case Step::bind:
      if (job_.posts() > 0)
        job_.bind(job_.post(input_.byte() % job_.posts()), std::min<std::uint64_t>(length(), 200000));
      break;
    case Step::fails:
      rail().fails(hostile);
      break;
    case Step::access:
      post_access();
      break;
    case Step::revoke:
      job_.revoke(input_.byte());
      break;
    default:
      break;
  }
  job_.settle();
}

}  // namespace canele::fuzz
