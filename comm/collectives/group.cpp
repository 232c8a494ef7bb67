// SPDX-License-Identifier: BSD-3-Clause
//
// Failures in a group, and its cache of schedules. A notice is received by an ordinary receive, which is posted once
// the notice has arrived; no code here reads a packet.
#include "comm/collectives/group.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "comm/collectives/async_executor.hpp"
#include "comm/collectives/blocking_executor.hpp"
#include "comm/engine/engine.hpp"
#include "comm/engine/rejection.hpp"
#include "comm/protocol/credit_receiver.hpp"

namespace canele::comm::collectives {
namespace {

/// The mask of the number in a tag. The notices have a number that no collective has.
constexpr std::uint64_t any_step = ~((std::uint64_t{1} << slot_bits) - 1);

/// Returns true if later collectives of the group may succeed.
bool concerns_one_collective(const Ending& ending) {
  return ending.code == CANELE_EPROTOCOL || ending.code == CANELE_ENOMEM;
}

int position_of(const std::vector<int>& ranks, int rank) {
  if (ranks.empty()) return rank;
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

std::vector<int> each_once(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// Calls visit(std::shared_ptr<Group>) for each group of the engine that has not been closed. Under the engine's lock.
template <typename Visit>
void each_group(Engine& engine, Visit visit) CANELE_UNDER_LOCK {
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) {
    if (auto group = std::static_pointer_cast<Group>(engine.sessions.at(i).collectives)) visit(std::move(group));
  }
}

}  // namespace

std::shared_ptr<const Schedule> ScheduleCache::build(const Call& call, const Choice& asked, const Network& network) {
  ++built_;
  return std::make_shared<const Schedule>(schedule_of(call, choose(call, asked, network)));
}

const std::shared_ptr<const Schedule>& ScheduleCache::search_or_build(const Call& call, const Choice& asked,
                                                                      const Network& network) {
  if (BlocksCache::is_for(call)) {
    const auto* const kept = of_blocks_.find(call, asked);
    return kept != nullptr ? *kept : of_blocks_.keep(call, asked, build(call, asked, network));
  }
  for (Entry& one : entries_) {
    if (!one.is_for(call, asked)) continue;
    last_ = &one;
    return one.schedule;
  }
  Entry& oldest = entries_[next_];
  oldest = {call, asked, build(call, asked, network)};
  next_ = (next_ + 1) % entries;
  last_ = &oldest;
  return oldest.schedule;
}

Group::Group(Engine& owner, Session& opened, std::vector<int> members)
    : engine(owner),
      session(opened),
      ranks_(std::move(members)),
      size_(ranks_.empty() ? owner.size : static_cast<int>(ranks_.size())),
      rank_(position_of(ranks_, owner.rank)) {}

Group::~Group() = default;

BlockingExecutor& Group::make_blocking_executor() {
  blocking_executor_ = std::make_unique<BlockingExecutor>(*this);
  return *blocking_executor_;
}

std::uint64_t Group::number_of(std::uint64_t tag) { return tag >> slot_bits; }

Group::News Group::note(std::uint64_t number, Ending ending) {
  if (failed(number)) return {};  // its receives end as cancelled, for example
  if (!concerns_one_collective(ending)) return note_end(ending);
  try {
    return {failures_.note(number, ending), false};
  } catch (const std::bad_alloc&) {
    return note_end({CANELE_ENOMEM, engine.rank});
  }
}

Group::News Group::note_end(Ending ending) {
  engine.groups_ended.fetch_add(1, std::memory_order_seq_cst);  // first: fails_with_another() reads it first, too
  if (failures_.note(Failures::all, ending)) return {false, true};
  engine.groups_ended.fetch_sub(1, std::memory_order_seq_cst);
  return {};
}

bool Group::is_idle(const Session& session) {
  const auto* const group = static_cast<const Group*>(session.collectives.get());
  if (group == nullptr || !group->failures_.has_any()) return session.pending == 0;
  return group->executors_ == nullptr && !group->notice_pending_ && !group->has_ended();  // notices may be pending
}

void Group::link(AsyncExecutor& executor) {
  executor.next = executors_;
  if (executors_ != nullptr) executors_->prev = &executor;
  executors_ = &executor;
}

void Group::unlink(AsyncExecutor& executor) {
  (executor.prev != nullptr ? executor.prev->next : executors_) = executor.next;
  if (executor.next != nullptr) executor.next->prev = executor.prev;
}

std::uint64_t Group::describe(const std::vector<const void*>& waited, std::vector<const void*>& also) const {
  std::uint64_t count = 0;
  for (const AsyncExecutor* executor = executors_; executor != nullptr; executor = executor->next, ++count) {
    if (!std::binary_search(waited.begin(), waited.end(), static_cast<const void*>(&executor->user.word))) continue;
    for (std::uint32_t i = 0; i < executor->transfer_count; ++i) {
      also.push_back(&request_of(&executor->transfers[i].request).word);
    }
  }
  return count;
}

// ---- failures

void Group::propagate(std::uint64_t number, News news, Notified notified) {
  if (news.collective) propagate_failure(number, notified);
  if (news.group) propagate_end(notified);
}

/// Ends no request before all ranks that may wait for this one have been notified, or will be: its program may leave at
/// once.
void Group::propagate_failure(std::uint64_t number, Notified notified) {
  notify(number, notified == Notified::all ? others() : neighbours());
  discard_messages(number);
  end_executors(number);
}

/// Keeps the same order, over all groups that end.
void Group::propagate_end(Notified notified) {
  if (ending().code == CANELE_ECANCELED)
    return end_executors(Failures::all);  // the engine is being finalized: no rank listens any more
  std::vector<std::shared_ptr<Group>> all = other_ended_groups();
  all.push_back(shared_from_this());
  for (const auto& group : all) {
    group->notify(Failures::all, notified == Notified::all ? group->others() : group->neighbours());
    group->discard_receiver_.start(group->session);
  }
  for (const auto& group : all) group->end_executors(Failures::all);
}

/// Returns the other groups that have lost the same rank, after note_end() in each.
std::vector<std::shared_ptr<Group>> Group::other_ended_groups() {
  std::vector<std::shared_ptr<Group>> all;
  const Ending why = ending();
  if (why.code != CANELE_EPEER) return all;
  engine.lock_for_callback();
  each_group(engine, [&](std::shared_ptr<Group> group) {
    if (group->has(why.rank) && group->note_end(why)) all.push_back(std::move(group));
  });
  engine.unlock();
  return all;
}

/// Discards the messages of a failed collective that no receive has taken. Later ones are discarded as they come; those
/// without credit are asked for. A receive that another thread posts meanwhile may take some of them.
void Group::discard_messages(std::uint64_t number) {
  engine.lock_for_callback();
  for (;;) {
    UnexpectedNode* const node = engine.matcher.find(session.match, CANELE_ANY_SOURCE, number << slot_bits, any_step);
    if (node == nullptr) break;
    rejection::discard_one(engine, session, static_cast<comm::Message&>(*node));
  }
  ask_for_blocked(number);
  engine.unlock();
  engine.after_submit();
}

/// Asks senders without credit for the messages of this number, because no receive does. Under the engine's lock.
void Group::ask_for_blocked(std::uint64_t number) {
  credit_receiver::ask(engine, session, {CANELE_ANY_SOURCE, number << slot_bits, any_step});
}

bool Group::has(int rank) const { return position_of(ranks_, rank) < size_; }

/// Ends the executor of a collective; for Failures::all, those of all. An executor that is not in the list yet asks
/// failed() after each receive that it posts.
void Group::end_executors(std::uint64_t number) {
  const std::uint64_t before = ended.fetch_or(ended_bit, std::memory_order_acq_rel);
  if (ltask::Parker* const waiter = RequestWord::parker(before); waiter != nullptr) waiter->signal(engine.platform);
  std::vector<AsyncExecutor*> in_progress;
  engine.lock_for_callback();
  for (AsyncExecutor* executor = executors_; executor != nullptr; executor = executor->next) {
    if ((number == Failures::all || number == executor->number) && executor->hold()) in_progress.push_back(executor);
  }
  engine.unlock();
  for (AsyncExecutor* const executor : in_progress) executor->give_up_and_release();
}

/// Returns the ranks (of the job) that notify this one, and are notified by it.
std::vector<int> Group::neighbours() const {
  std::vector<int> all;
  for (int distance = 1; distance < size_; distance *= 2) {
    for (const int position : {(rank_ + distance) % size_, (rank_ + size_ - distance) % size_}) {
      all.push_back(world(position));
    }
  }
  return each_once(std::move(all));
}

std::vector<int> Group::others() const {
  std::vector<int> all;
  for (int position = 0; position < size_; ++position) {
    if (position != rank_) all.push_back(world(position));
  }
  return all;
}

/// Not needed for a revoked group, whose members have all been notified. Nor for an engine that is being finalized.
void Group::notify_receivers(std::uint64_t number, const Schedule& schedule) {
  const Ending why = ending(number);
  if (why.code == CANELE_ESTATE || why.code == CANELE_ECANCELED) return;
  std::vector<int> receivers;
  for (const Step& step : schedule.steps()) {
    if (step.action == Action::send) receivers.push_back(world(step.peer));
  }
  notify(has_ended() ? Failures::all : number, each_once(std::move(receivers)));
}

/// Notifies the rank that is reported as lost as well: it may be alive, and only some ranks may have lost it.
void Group::notify(std::uint64_t number, const std::vector<int>& ranks) {
  const Ending why = ending(number);
  auto sends = std::make_unique<NoticeSends>();
  sends->send(session, {number, why.code, why.rank}, ranks);
  engine.lock_for_callback();
  notices_.erase(std::remove_if(notices_.begin(), notices_.end(), [](const auto& one) { return one->have_ended(); }),
                 notices_.end());
  notices_.push_back(std::move(sends));
  engine.unlock();
}

void Group::NoticeSends::send(Session& session, const Notice& what, const std::vector<int>& whom) {
  notice = what;
  count = whom.size();
  sends = std::make_unique<canele_request_t[]>(count);
  for (std::size_t i = 0; i < count; ++i) {
    canele_isend(public_of(session), whom[i], notice_tag, &notice, sizeof notice, &sends[i]);
  }
}

bool Group::NoticeSends::have_ended() const {
  return std::all_of(sends.get(), sends.get() + count, [](const canele_request_t& one) {
    const Request& request = request_of(&one);
    return request.finalized() || request.stage == Request::Stage::idle;  // idle: it was not accepted
  });
}

void Group::notify_before_disconnect(Engine& engine) {
  std::vector<std::shared_ptr<Group>> over;
  std::vector<int> connected;
  engine.lock_for_callback();
  each_group(engine, [&](std::shared_ptr<Group> group) {
    if (group->has_ended() && group->ending().code != CANELE_ECANCELED) over.push_back(std::move(group));
  });
  for (const auto& peer : engine.active_peers) {
    if (peer->state == Peer::State::up && peer->rank != engine.rank) connected.push_back(peer->rank);
  }
  engine.unlock();
  for (const auto& group : over) {
    std::vector<int> whom;
    std::copy_if(connected.begin(), connected.end(), std::back_inserter(whom), [&](int r) { return group->has(r); });
    const Ending why = group->ending();
    group->last_notices_.send(group->session, {Failures::all, why.code, why.rank}, whom);
  }
}

// ---- receiving notices

void Group::listen() {
  engine.lock_for_callback();
  session.unmatched = unmatched;
  session.takes_blocked = takes_blocked;
  engine.unlock();
  check_for_notice();
}

/// Returns true if a notice has arrived. Under the engine's lock. Asks for each possible source, not for any source:
/// from the first such question on, the matcher would index all messages of the session by tag as well.
bool Group::has_notice() {
  if (session.match.unexpected == 0) return false;
  const std::vector<int> all = neighbours();
  return std::any_of(all.begin(), all.end(), [this](int rank) CANELE_UNDER_LOCK {
    return engine.matcher.find(session.match, rank, notice_tag, CANELE_TAG_EXACT) != nullptr;
  });
}

/// Checks for a notice that came before, or while another one was read. Asks for those that have no credit.
void Group::check_for_notice() {
  engine.lock_for_callback();
  const bool open = session.unmatched != nullptr;  // close() has not been called meanwhile
  if (open && has_notice()) submit_notice_task();
  if (open) ask_for_blocked(number_of(notice_tag));
  engine.unlock();
  engine.after_submit();
}

/// The session's hook for a message without a receive. Under the engine's lock. Discards the late messages of a failed
/// collective. Once the group has ended, a receive waits for every message.
void Group::unmatched(Session& session, comm::Message& message) {
  auto& group = *static_cast<Group*>(session.collectives.get());
  if (message.tag == notice_tag) return group.submit_notice_task();
  if (group.failed(number_of(message.tag)) && !group.has_ended())
    rejection::discard_one(group.engine, session, message);
}

/// The session's hook for a message whose sender has no credit. Under the engine's lock. Of the notices of a rank, one
/// at a time is kept; check_for_notice() asks for the next one.
bool Group::takes_blocked(Session& session, std::int32_t source, std::uint64_t tag) {
  const auto& group = *static_cast<const Group*>(session.collectives.get());
  if (tag == notice_tag)
    return group.engine.matcher.find(session.match, source, notice_tag, CANELE_TAG_EXACT) == nullptr;
  return group.failed(number_of(tag)) && !group.has_ended();
}

/// Submits the task that reads the notice. Under the engine's lock.
void Group::submit_notice_task() {
  if (notice_pending_) return;
  notice_pending_ = true;
  notice_task_.group = this;
  notice_task_.prepare(read_notice);
  engine.tasks.submit(notice_task_);
}

void Group::read_notice(ltask::Task& task) {
  Group& group = *static_cast<NoticeTask&>(task).group;
  ++callbacks_on_this_thread;
  const int code = canele_irecv(public_of(group.session), CANELE_ANY_SOURCE, notice_tag, CANELE_TAG_EXACT,
                                &group.notice_in_, sizeof group.notice_in_, &group.notice_request_);
  if (code == CANELE_OK && request_of(&group.notice_request_).finalized()) {
    on_notice(&group.notice_request_, CANELE_EVENT_FINALIZED, &group);  // before the consequences of the sender's exit
  } else if (code == CANELE_OK) {
    canele_request_on_event(&group.notice_request_, CANELE_EVENT_FINALIZED, on_notice, &group);
  }
  --callbacks_on_this_thread;
}

void Group::on_notice(canele_request_t* request, unsigned, void* argument) {
  auto& group = *static_cast<Group*>(argument);
  const std::shared_ptr<Group> self = group.shared_from_this();
  canele_status_t status{};
  canele_request_status(request, &status);
  if (group.is_well_formed(status)) {
    const Notice& notice = group.notice_in_;
    const bool is_end = notice.number == Failures::all;
    const News news = is_end ? group.note_end(notice.ending()) : group.note(notice.number, notice.ending());
    group.propagate(notice.number, news);
  }
  group.engine.lock_for_callback();
  group.notice_pending_ = false;
  group.engine.unlock();
  if (!group.has_ended()) group.check_for_notice();
}

/// Validates a notice: it may come from an earlier group with this label, or from another program.
bool Group::is_well_formed(const canele_status_t& status) const {
  if (status.error != CANELE_OK || status.length != sizeof(Notice) || notice_in_.code >= CANELE_OK) return false;
  return notice_in_.rank >= 0 && notice_in_.rank < engine.size && has(notice_in_.rank);
}

/// Returns true if another group has lost a rank that this one contains, and the thread that noticed has not reached
/// this group yet. Under the engine's lock.
bool Group::fails_with_another() {
  if (engine.groups_ended.load(std::memory_order_seq_cst) == 0) return false;
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) {
    const auto* const other = static_cast<const Group*>(engine.sessions.at(i).collectives.get());
    if (other == nullptr) continue;
    const Ending why = other->ending();
    if (why.code == CANELE_EPEER && has(why.rank) && note_end(why)) return true;
  }
  return false;
}

bool Group::close() {
  std::shared_ptr<void> owned;
  engine.lock_for_callback();
  const bool none = executors_ == nullptr;
  const bool must_notify = none && !has_ended() && fails_with_another();
  if (none && !failures_.has_any() && !notice_pending_) {
    assert(session.pending == 0);
    session.unmatched = nullptr;
    session.takes_blocked = nullptr;
    rejection::drop_all(engine, session);
    owned = std::move(session.collectives);
    engine.sessions.close(session);
  }
  engine.unlock();
  if (must_notify) propagate_end(Notified::neighbours);
  return none;
}

}  // namespace canele::comm::collectives
