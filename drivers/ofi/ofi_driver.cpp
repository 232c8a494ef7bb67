// SPDX-License-Identifier: BSD-3-Clause
//
// OfiDriver: opening, connecting, copies, closing. See ofi_driver.hpp.
//
// close() waits a little for what was sent. Some providers (shm, above 4 KiB) let the receiver fetch it from this
// process's memory. tcp;ofi_rxm drops what it has queued when the endpoint closes.
#include "drivers/ofi/ofi_driver.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "drivers/net/bytes.hpp"
#include "drivers/net/settings.hpp"
#include "drivers/ofi/address.hpp"
#include "drivers/ofi/deferred_close.hpp"
#include "drivers/ofi/ofi.hpp"

namespace canele::drivers {
namespace ofi {
namespace {

constexpr std::size_t stack_limit = 1024;  // longer messages are not composed on the stack
constexpr std::size_t least_inline = 48;
constexpr int most_close_passes = 100'000;  // unauthenticated peers may send for ever
constexpr int close_patience_ms = 200;      // in all, until the provider has sent everything
constexpr int answer_patience_ms = 50;      // part of close_patience_ms: until the peers have acknowledged

}  // namespace

Status OfiDriver::open_impl(DriverContext& context, Address* address, std::string* reason) {
  context_ = &context;
  std::copy_n(context.secret.begin(), std::min(context.secret.size(), secret_.size()), secret_.begin());
  if (context.size > most_ranks) {
    *reason = "ofi: at most " + std::to_string(most_ranks) + " ranks";
    return Status::failed;
  }
  Wanted wanted;
  wanted.provider = context.setting("OFI_PROVIDER", "");
  wanted.domain = context.setting("OFI_DOMAIN", "");
  if (!read_argument(context.argument, &wanted, reason)) return Status::failed;
  Info info = choose_provider(wanted, reason);
  if (!info) return Status::failed;
  if (wanted.provider.empty() && provider_name(*info).rfind("tcp", 0) == 0 && has_verbs_adapter()) {
    if (const std::string hidden = why_verbs_is_hidden(own_host_name()); !hidden.empty())
      context.log(1, "the provider is " + provider_name(*info) + ", although there is an adapter for verbs: " + hidden);
  }
  shares_memory_ = provider_name(*info) == "shm";
  longest_ = std::min(longest_message, info->ep_attr->max_msg_size);
  // shm completes what it does not inject in the order of sending, for all receivers together: one dead peer would
  // block all.
  if (shares_memory_) longest_ = std::min(longest_, info->tx_attr->inject_size);
  if (longest_ < 2048) {
    *reason = "libfabric's provider " + provider_name(*info) + " sends messages of " + std::to_string(longest_) +
              " bytes only; expected: at least 2048";
    return Status::failed;
  }
  if (is_host_only(*info)) host_id_ = host_id();
  probes_ = can_probe(*info);
  endpoint_ = std::make_unique<Endpoint>(context);
  if (!endpoint_->open(std::move(info), longest_message, reason)) return Status::failed;
  pool_ = std::make_unique<SendPool>(*endpoint_);
  receive_ = std::make_unique<ReceiveBuffers>(*endpoint_);
  copies_ = std::make_unique<Copies>(*endpoint_);
  const std::string many = context.setting("EXPERT_OFI_MULTI_RECV", "auto");
  const bool multi = many == "on" || (many == "auto" && has_sound_multi_receive(endpoint_->info()));
  if (!receive_->open(multi, reason)) return Status::failed;
  if (listens(endpoint_->info()) && !open_keepalives(reason)) return Status::failed;
  if (shares_memory_) note_opened();
  links_.resize(static_cast<std::size_t>(context.size));
  const auto name = endpoint_->name();
  *address = pack_address({provider_name(endpoint_->info()),
                           endpoint_->info().addr_format,
                           context.incarnation,
                           host_id_,
                           {name.begin(), name.end()},
                           own_port()});
  fill_capabilities();
  context.log(3, "ofi: provider " + provider_name(endpoint_->info()) + ", domain " +
                     endpoint_->info().domain_attr->name + (receive_->multi() ? ", multi-receive" : ""));
  return Status::ok;
}

bool OfiDriver::open_keepalives(std::string* reason) {
  if (!net::read_number(*context_, "OFI_PEER_TIMEOUT", "30", 3, "seconds, at least 3", &silence_s_, reason))
    return false;
  keepalives_ = std::make_unique<Keepalives>(*context_, silence_s_);
  if (keepalives_->open(endpoint_->name(), endpoint_->descriptor())) return true;
  *reason = "no descriptor left for an epoll set";
  return false;
}

void OfiDriver::fill_capabilities() {
  const fi_info& info = endpoint_->info();
  inject_limit_ = std::min(info.tx_attr->inject_size, stack_limit);
  capabilities_.name = "ofi";
  capabilities_.max_inline = std::max(inject_limit_, least_inline + head_size) - head_size;
  capabilities_.max_packet = longest_ - head_size;
  capabilities_.bulk_stream = true;
  capabilities_.max_bulk = longest_ - bulk_head_size;
  capabilities_.get = endpoint_->offers(FI_RMA | FI_READ | FI_REMOTE_READ);
  capabilities_.put = endpoint_->offers(FI_RMA | FI_WRITE | FI_REMOTE_WRITE);
  capabilities_.rma_by_hardware = reads_by_hardware(info);
  capabilities_.max_rma = std::min<std::size_t>(capabilities_.max_rma, info.ep_attr->max_msg_size);
  if (capabilities_.get || capabilities_.put) capabilities_.rkey_size = Copies::rkey_size;
  capabilities_.wake_up = endpoint_->descriptor() >= 0 ? WakeUp::descriptor : WakeUp::none;
  capabilities_.reaches_local = true;
  capabilities_.reaches_remote = !is_host_only(info);
  // No provider reports the death of a peer to which nothing is being sent.
  capabilities_.detects_failure = keepalives_ != nullptr;
  capabilities_.max_instances = max_endpoints(info);
  capabilities_.latency_ns = latency_guess(info);
  capabilities_.gap_ns = capabilities_.latency_ns / 4;
  capabilities_.bandwidth = bandwidth_guess(info);
}

Link& OfiDriver::link_to(Rank peer) {
  auto& slot = links_[static_cast<std::size_t>(peer)];
  if (!slot) slot = std::make_unique<Link>(peer);
  return *slot;
}

Link* OfiDriver::link_of(Rank peer) const {
  return peer >= 0 && static_cast<std::size_t>(peer) < links_.size() ? links_[static_cast<std::size_t>(peer)].get()
                                                                     : nullptr;
}

Status OfiDriver::connect_impl(Rank peer, std::span<const std::byte> address) {
  PublishedName where;
  if (peer < 0 || peer >= context_->size || peer == context_->rank || !unpack_address(address, &where)) {
    return Status::failed;
  }
  const fi_info& info = endpoint_->info();
  if (where.provider != provider_name(info) || where.format != info.addr_format || where.host != host_id_ ||
      !is_sane_name(where.name, where.format, endpoint_->name())) {
    return Status::failed;
  }
  Link& link = link_to(peer);
  if (link.is_closed()) return Status::failed;
  if (link.state != Link::State::unknown) return Status::pending;  // the peer was first
  link.to = endpoint_->add(where.name);
  if (link.to == FI_ADDR_UNSPEC) return Status::failed;
  link.name = where.name;
  link.port = where.port;
  link.incarnation = where.incarnation;
  net::write_le(link.nonce.data(), context_->random(), 8);
  net::write_le(link.nonce.data() + 8, context_->random(), 8);
  const auto own = endpoint_->name();
  link.hello = make_hello(
      {context_->rank, peer, context_->job, context_->incarnation, link.nonce, {own.begin(), own.end()}, own_port()},
      secret_);
  link.handshake = link.hello;
  link.state = Link::State::hello_sent;
  send_handshake(link);
  suspect(link);
  if (keepalives_) keepalives_->connect(peer, link.name, link.port, false);
  return Status::pending;
}

Status OfiDriver::register_memory_impl(Rank, RmaOp op, const iovec* pieces, int count, MemoryKey* rkey) {
  return copies_->register_memory(op, pieces, count, rkey);
}
void OfiDriver::deregister_impl(std::uint64_t handle) { copies_->deregister(handle); }

Status OfiDriver::rma_impl(Rank peer, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset,
                           const iovec* pieces, int count, std::size_t size, Token token) {
  Link* const link = link_of(peer);
  if (link == nullptr || link->is_closed()) return Status::failed;
  if (link->state != Link::State::up) {
    link->wants_copy = true;
    return full(*link);
  }
  const Status status = copies_->start(peer, link->to, op, rkey, offset, pieces, count, size, token);
  if (status != Status::full) return status;
  link->wants_copy = true;
  return full(*link);
}

/// Asks the launcher for deaths: no provider reports the death of a peer to which nothing is sent.
void OfiDriver::ask_launcher() {
  for (Rank peer = context_->next_failed_rank(); peer >= 0; peer = context_->next_failed_rank()) {
    Link* const link = link_of(peer);
    if (link != nullptr) fail(*link, true, "the launcher says that it died", false);
  }
}

/// Ends a link. failed() follows from poll().
void OfiDriver::fail(Link& link, bool lost, const std::string& why, bool tell_peer) {
  if (link.is_closed()) return;
  if (tell_peer && link.state == Link::State::up) send_control(link, Kind::broken);
  if (link.is_closed()) return;  // that send failed, and failed the link
  link.state = Link::State::failing;
  link.lost = lost;
  link.why = "ofi: rank " + std::to_string(link.rank) + ": " + why;
  link.deferred.reset();
  if (keepalives_) keepalives_->drop(link.rank);
  copies_->abandon(link.rank);
  failing_.push_back(&link);
}

void OfiDriver::forget_waiting(Link& link) {
  while (link.first_waiting != nullptr) pool_->give_back(std::exchange(link.first_waiting, link.first_waiting->next));
  link.last_waiting = nullptr;
}

int OfiDriver::descriptor_impl() const {
  return keepalives_ && endpoint_->descriptor() >= 0 ? keepalives_->descriptor() : endpoint_->descriptor();
}

bool OfiDriver::arm_impl(bool on) {
  if (!on) return true;
  polls_since_peer_check_ = polls_per_check;  // a keepalive connection may be what wakes the engine
  if (!stuck_.empty() || !stalled_.empty() || !crediting_.empty() || !handshaking_.empty() || !rejections_.empty() ||
      !doomed_.empty()) {
    return false;
  }
  if (copies_->restless() || !receive_->all_posted()) return false;
  const auto due = [&](const Link* link) { return copies_->idle(link->rank); };
  if (std::any_of(failing_.begin(), failing_.end(), due)) return false;
  return endpoint_->descriptor() < 0 || endpoint_->may_sleep();
}

void OfiDriver::close_impl() {
  if (!endpoint_) return;
  closing_ = true;
  int first = 1024;
  read_completions(&first);  // a peer that has already sent a bye gets none
  for (const auto& link : links_) {
    if (link && link->state == Link::State::up) send_control(*link, Kind::bye);
  }
  const auto unanswered = [](const auto& link) {
    return link && link->state == Link::State::up && link->acked != link->next_out;
  };
  for (int slept = 0, passes = 0; slept < close_patience_ms && passes < most_close_passes; ++passes) {
    const std::size_t before = pool_->in_use();
    int budget = 1024;
    read_completions(&budget);
    push_stuck();
    give_credit();
    const bool waits = std::any_of(links_.begin(), links_.end(), unanswered) && slept < answer_patience_ms;
    if (pool_->in_use() == 0 && !waits) break;
    if (budget < 1024 || pool_->in_use() < before) continue;
    pollfd one = {endpoint_->descriptor(), POLLIN, 0};
    const bool sleeps = endpoint_->descriptor() >= 0 && endpoint_->may_sleep();
    ::poll(&one, sleeps ? 1 : 0, 1);
    ++slept;
  }
  copies_.reset();
  keepalives_.reset();
  links_.clear();
  DeferredClose parts{std::move(endpoint_), std::move(pool_), std::move(receive_)};
  if (shares_memory_) return close_or_defer(std::move(parts));
  close_parts(parts);
}

}  // namespace ofi

const DriverFactory ofi_factory = {contract_version, "ofi", "libfabric: InfiniBand, Slingshot, EFA, Omni-Path, TCP",
                                   []() -> std::unique_ptr<Driver> { return std::make_unique<ofi::OfiDriver>(); },
                                   []() {
                                     std::string reason;
                                     return ofi::choose_provider({}, &reason) ? std::string() : reason;
                                   }};

}  // namespace canele::drivers

CANELE_DRIVER_MODULE(canele::drivers::ofi_factory)
