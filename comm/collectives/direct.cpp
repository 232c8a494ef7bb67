// SPDX-License-Identifier: BSD-3-Clause
//
// Carrying out a schedule on the thread that waits for it. See direct.hpp (who, threads, picture). Read from the bottom
// up.
//
// Surprise: steps of a schedule come after what they need, so that what a step lets go is done at once, within its end:
//     the recursion is as deep as there are local steps in a row.
#include "comm/collectives/direct.hpp"

#include <cassert>
#include <new>

#include "comm/api/api.hpp"
#include "comm/collectives/run.hpp"

namespace canele::comm::collectives {

Direct::Direct(Group& group) : group_(group) {
  for (; free_count_ < most_messages; ++free_count_) free_[free_count_] = static_cast<std::uint8_t>(free_count_);
}

void Direct::Freeing::operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }

bool Direct::suits(const Schedule& schedule) { return schedule.messages() <= most_messages; }

bool Direct::make_room(const Schedule& schedule) {
  if (schedule.scratch_bytes() > scratch_bytes_) {
    scratch_.reset(
        static_cast<std::byte*>(::operator new (schedule.scratch_bytes(), std::align_val_t{64}, std::nothrow)));
    scratch_bytes_ = scratch_ != nullptr ? schedule.scratch_bytes() : 0;
    if (scratch_ == nullptr) return false;
  }
  pending_.resize(schedule.steps().size());
  return true;
}

void Direct::cancel_receives() {
  cancelled_ = true;
  for (std::uint32_t i = 0; i < under_way_count_; ++i) {
    Transfer& transfer = transfers_[under_way_[i]];
    if (schedule_->steps()[transfer.step].action == Action::receive) canele_cancel(&transfer.request);
  }
}

void Direct::failed(Ending ending) {
  ends_the_group_ = group_.note(ending) || ends_the_group_;
  failed_ = true;
}

/// A send that the window keeps back begins when another has ended.
void Direct::begin_message(StepId id) {
  const Step& step = schedule_->steps()[id];
  if (step.action == Action::send && schedule_->window() != 0) {
    if (sends_ == schedule_->window()) return waiting_.push_back(id);
    ++sends_;
  }
  const std::uint8_t which = free_[--free_count_];
  Transfer& transfer = transfers_[which];
  transfer.step = id;
  const int code = post_message(group_, {*work_, scratch_.get()}, step, number_, &transfer.request);
  if (code == CANELE_OK && !request_of(&transfer.request).finalized()) {
    under_way_[under_way_count_++] = which;
    return;
  }
  free_[free_count_++] = which;
  message_ended(id, code == CANELE_OK ? ending_of(group_, step, request_of(&transfer.request))
                                      : Ending{code, group_.world(step.peer)});
}

/// It needs nothing any more.
void Direct::begin(StepId id) {
  const Step& step = schedule_->steps()[id];
  if (group_.over()) {
    failed_ = true;  // it is not done
    return ended(id);
  }
  if (is_message(step)) return begin_message(id);
  do_here({*work_, scratch_.get()}, step);
  ended(id);
}

void Direct::send_ended() {
  --sends_;
  if (waiting_.empty()) return;
  const StepId next = waiting_.front();
  waiting_.erase(waiting_.begin());
  begin(next);
}

void Direct::ended(StepId id) {
  --left_;
  for (const StepId after : schedule_->after(schedule_->steps()[id])) {
    if (--pending_[after] == 0) begin(after);
  }
}

void Direct::message_ended(StepId id, Ending ending) {
  if (ending.code != CANELE_OK) failed(ending);
  ended(id);
  if (schedule_->window() != 0 && schedule_->steps()[id].action == Action::send) send_ended();
}

/// True: some message had ended.
bool Direct::look() {
  bool any = false;
  for (std::uint32_t i = 0; i < under_way_count_;) {
    const std::uint8_t which = under_way_[i];
    const Transfer& transfer = transfers_[which];
    if (!request_of(&transfer.request).finalized()) {
      ++i;
      continue;
    }
    under_way_[i] = under_way_[--under_way_count_];
    free_[free_count_++] = which;
    any = true;
    message_ended(transfer.step, ending_of(group_, schedule_->steps()[transfer.step], request_of(&transfer.request)));
  }
  return any;
}

/// Or the end of the group, if its receives have not been cancelled for that.
void Direct::await_one() {
  std::array<Target, most_messages + 1> targets;
  std::size_t count = 0;
  for (; count < under_way_count_; ++count) {
    targets[count] = api::end_of(request_of(&transfers_[under_way_[count]].request));
  }
  if (!cancelled_) targets[count++] = {&group_.ended, Group::ended_bit, nullptr};
  [[maybe_unused]] const int code = api::wait_for_one(&group_.engine, targets.data(), count, 0);
  assert(code == CANELE_OK && "no deadline, and the call has refused to block in a callback");
}

/// In the order in which a Run posts: receives first.
void Direct::begin_all() {
  const std::span<const Step> steps = schedule_->steps();
  for (StepId id = 0; id < steps.size(); ++id) pending_[id] = steps[id].needs;
  for (const StepId id : schedule_->first()) begin(id);
}

Ending Direct::carry_out(const Schedule& schedule, const Work& work) {
  assert(suits(schedule));
  if (!make_room(schedule)) return {CANELE_ENOMEM, -1};
  schedule_ = &schedule;
  work_ = &work;
  number_ = group_.started++;
  assert(under_way_count_ == 0 && free_count_ == most_messages);
  left_ = static_cast<std::uint32_t>(schedule.steps().size());
  failed_ = cancelled_ = ends_the_group_ = false;
  begin_all();
  while (left_ > 0) {
    if (look()) continue;
    if (ends_the_group_) {
      ends_the_group_ = false;
      group_.spread();
    }
    if (group_.over() && !cancelled_) {
      cancel_receives();
    } else {
      await_one();
    }
  }
  if (ends_the_group_) group_.spread();
  if (scratch_bytes_ > kept_scratch) scratch_.reset(), scratch_bytes_ = 0;
  return failed_ ? group_.ending() : Ending{};
}

}  // namespace canele::comm::collectives
