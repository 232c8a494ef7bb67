// SPDX-License-Identifier: BSD-3-Clause
//
// The failure of a group, and its cache of schedules. A notice is received by an ordinary receive, which is posted once
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

namespace canele::comm::collectives {
namespace {

constexpr int code_shift = 32;

std::uint64_t packed(Ending ending) {
  return std::uint64_t{static_cast<std::uint32_t>(ending.code)} << code_shift | static_cast<std::uint32_t>(ending.rank);
}

int position_of(const std::vector<int>& ranks, int rank) {
  if (ranks.empty()) return rank;
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

/// Calls visit(std::shared_ptr<Group>) for each group of the engine that has not been closed. Under the engine's lock.
template <typename Visit>
void each_group(Engine& engine, Visit visit) CANELE_UNDER_LOCK {
  for (std::uint32_t i = 0; i < engine.sessions.size(); ++i) {
    if (auto group = std::static_pointer_cast<Group>(engine.sessions.at(i).collectives)) visit(std::move(group));
  }
}

bool names_memory(const Blocks& blocks) {
  return blocks.lengths != nullptr || blocks.offsets != nullptr || blocks.sums != nullptr;
}

}  // namespace

const std::shared_ptr<const Schedule>& ScheduleCache::search_or_build(const Call& call, const Choice& asked,
                                                                      const Network& network) {
  for (Entry& one : entries_) {
    if (!one.is_for(call, asked)) continue;
    last_ = &one;
    return one.schedule;
  }
  ++built_;
  const bool keep = !names_memory(call.input) && !names_memory(call.output);
  auto schedule = std::make_shared<const Schedule>(schedule_of(call, choose(call, asked, network)));
  if (!keep) return not_kept_ = std::move(schedule);
  Entry& oldest = entries_[next_];
  next_ = (next_ + 1) % entries;
  oldest = {call, asked, std::move(schedule)};
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

Ending Group::ending() const {
  const std::uint64_t word = ending_.load(std::memory_order_seq_cst);
  return {static_cast<std::int32_t>(word >> code_shift), static_cast<std::int32_t>(word)};
}

bool Group::note(Ending ending) {
  assert(ending.code != CANELE_OK);
  std::uint64_t going_on = 0;
  engine.groups_ended.fetch_add(1, std::memory_order_seq_cst);  // first: fails_with_another() reads it first, too
  if (ending_.compare_exchange_strong(going_on, packed(ending), std::memory_order_seq_cst)) return true;
  engine.groups_ended.fetch_sub(1, std::memory_order_seq_cst);
  return false;
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

// ---- the end

/// Ends no request before all ranks that may wait for this one have been notified, or will be: its program may leave at
/// once.
void Group::propagate() {
  if (ending().code == CANELE_ECANCELED)
    return end_executors();  // the engine is being finalized: no rank listens any more
  std::vector<std::shared_ptr<Group>> all = other_failed_groups();
  all.push_back(shared_from_this());
  for (const auto& group : all) {
    group->notify_neighbours();
    group->discard_receiver_.start(group->session);
  }
  for (const auto& group : all) group->end_executors();
}

/// Returns the other groups that have lost the same rank, after note() in each.
std::vector<std::shared_ptr<Group>> Group::other_failed_groups() {
  std::vector<std::shared_ptr<Group>> all;
  const Ending why = ending();
  if (why.code != CANELE_EPEER) return all;
  engine.lock_for_callback();
  each_group(engine, [&](std::shared_ptr<Group> group) {
    if (group->has(why.rank) && group->note(why)) all.push_back(std::move(group));
  });
  engine.unlock();
  return all;
}

bool Group::has(int rank) const { return position_of(ranks_, rank) < size_; }

/// An executor that is not in the list yet checks failed() after each receive that it posts.
void Group::end_executors() {
  const std::uint64_t before = ended.fetch_or(ended_bit, std::memory_order_acq_rel);
  if (ltask::Parker* const waiter = RequestWord::parker(before); waiter != nullptr) waiter->signal(engine.platform);
  std::vector<AsyncExecutor*> in_progress;
  engine.lock_for_callback();
  for (AsyncExecutor* executor = executors_; executor != nullptr; executor = executor->next) {
    if (executor->hold()) in_progress.push_back(executor);
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
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Notifies the rank that is reported as lost as well: it may be alive, and only some ranks may have lost it.
void Group::notify_neighbours() { notices_.send(session, ending(), neighbours()); }

void Group::NoticeSends::send(Session& session, Ending why, const std::vector<int>& whom) {
  notice = {why.code, why.rank};
  sends = std::make_unique<canele_request_t[]>(whom.size());
  for (std::size_t i = 0; i < whom.size(); ++i) {
    canele_isend(public_of(session), whom[i], notice_tag, &notice, sizeof notice, &sends[i]);
  }
}

void Group::notify_before_disconnect(Engine& engine) {
  std::vector<std::shared_ptr<Group>> failed;
  std::vector<int> connected;
  engine.lock_for_callback();
  each_group(engine, [&](std::shared_ptr<Group> group) {
    if (group->failed() && group->ending().code != CANELE_ECANCELED) failed.push_back(std::move(group));
  });
  for (const auto& peer : engine.active_peers) {
    if (peer->state == Peer::State::up && peer->rank != engine.rank) connected.push_back(peer->rank);
  }
  engine.unlock();
  for (const auto& group : failed) {
    std::vector<int> whom;
    std::copy_if(connected.begin(), connected.end(), std::back_inserter(whom), [&](int r) { return group->has(r); });
    group->last_notices_.send(group->session, group->ending(), whom);
  }
}

// ---- receiving notices

void Group::listen() {
  engine.lock_for_callback();
  session.unmatched = unmatched;
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

/// Checks for a notice that came before, or while another one was read.
void Group::check_for_notice() {
  engine.lock_for_callback();
  const bool open = session.unmatched != nullptr;  // close() has not been called meanwhile
  if (open && has_notice()) submit_notice_task();
  engine.unlock();
  engine.after_submit();
}

/// The session's hook for a message without a receive. Under the engine's lock.
void Group::unmatched(Session& session, const comm::Message& message) {
  auto& group = *static_cast<Group*>(session.collectives.get());
  if (message.tag == notice_tag) group.submit_notice_task();
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
  const bool well_formed = group.is_well_formed(status);
  if (well_formed && group.note({group.notice_in_.code, group.notice_in_.rank})) group.propagate();
  group.engine.lock_for_callback();
  group.notice_pending_ = false;
  group.engine.unlock();
  if (!group.failed()) group.check_for_notice();
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
    if (why.code == CANELE_EPEER && has(why.rank) && note(why)) return true;
  }
  return false;
}

bool Group::close() {
  std::shared_ptr<void> owned;
  engine.lock_for_callback();
  const bool none = executors_ == nullptr;
  const bool must_notify = none && !failed() && fails_with_another();
  if (none && !failed() && !notice_pending_) {
    assert(session.pending == 0);
    session.unmatched = nullptr;
    rejection::drop_all(engine, session);
    owned = std::move(session.collectives);
    engine.sessions.close(session);
  }
  engine.unlock();
  if (must_notify) propagate();
  return none;
}

}  // namespace canele::comm::collectives
