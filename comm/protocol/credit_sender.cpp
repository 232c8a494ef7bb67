// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control, the sender's half.
//
// A send that was offered once goes by rendezvous for good: the receiver may know its handle.
#include "comm/protocol/credit_sender.hpp"

#include <algorithm>
#include <utility>

#include "comm/link/queue.hpp"
#include "comm/protocol/send.hpp"
#include "ltask/mark.hpp"

namespace canele::comm::flow_out {
namespace {

std::uint64_t charge_of(const Request& request) {
  return request.rendezvous ? wire::charge_of_rts(request.header) : wire::charge_of_eager(request.data.length);
}

/// Takes the price of the envelope off `credit`, and returns true. A message that is too expensive goes by rendezvous
/// if there is credit for that. Returns false if there is not.
bool pay(std::uint64_t& credit, Request& request) {
  if (charge_of(request) > credit) {
    if (request.rendezvous || wire::charge_of_rts(request.header) > credit) return false;
    CANELE_MARK(credit_too_short_for_eager);
    request.rendezvous = true;
  }
  credit -= charge_of(request);
  return true;
}

void unlink(Context& context, Withheld& list, Request& request) {
  list.unlink(request);
  context.counters.sub(Counter::credit_blocked_now);
}

void tell(Context& context, Peer& peer, bool withholds) {
  link::control(context, peer, wire::Type::withheld, withholds ? 1 : 0, peer.withheld->episode, 0, nullptr, 0);
}

/// Ends an episode, when nothing is withheld any more: new messages use the credit that is left.
void reopen(Context& context, Peer& peer) {
  CANELE_MARK(nothing_withheld_any_more);
  Withheld& list = *peer.withheld;
  peer.credit = std::exchange(list.credit, 0);
  list.stamp = list.answered = 0;
  list.question_count = 0;
  list.cursors_turn = false;
  context.counters.add(Counter::credit_stalled_ns, context.platform.now_ns() - list.since_ns);
  tell(context, peer, false);
  ++list.episode;
}

void offer(Withheld& list, Request& request, bool probe) {
  list.batch[list.batch_size++] = {&request, probe};
  request.rendezvous = request.offering = true;
}

/// Adds the oldest sends that fit a question to the batch, as many as are likely to be taken. Returns false if none
/// fit.
bool answer(Withheld& list, WithheldQuestion& question) {
  std::uint32_t left = question.width;
  Request* request = list.first_match(question);
  const bool any = request != nullptr;
  for (; request != nullptr && left > 0 && list.batch_size < Withheld::most_offered; --left) {
    question.offered |= std::uint64_t{1} << list.batch_size;
    offer(list, *request, question.probe);
    request = list.next_match(question, *request);
  }
  return any;
}

/// Fills a batch with the answers to as many questions as may share one, the oldest first. No message may fit two of
/// them: it could go to a receive that has to have an older one. The batch has the stamp of the last question. Returns
/// how many of the oldest questions are over.
int answer_questions(Withheld& list) {
  int over = 0;
  for (int i = 0; i < list.question_count && list.batch_size < Withheld::most_offered; ++i) {
    WithheldQuestion& question = list.questions[i];
    const auto overlaps = [&](const WithheldQuestion& one) { return one.offered != 0 && one.overlaps(question); };
    if (std::any_of(list.questions, list.questions + i, overlaps)) break;
    if (question.everything() && over < i) break;  // the cursor goes back when all older ones are over
    if (question.everything()) list.cursor = list.first;
    const bool fits = !question.done && !question.everything() && answer(list, question);
    if (!fits && over == i) ++over;
    list.batch_stamp = question.stamp;
  }
  return over;
}

/// Ends the oldest `ended` questions. What their receives wait for has not been sent yet, and will be offered from the
/// cursor.
void end_questions(Context& context, Peer& peer, int ended) {
  if (ended == 0) return;
  CANELE_MARK(questions_answered);
  Withheld& list = *peer.withheld;
  for (int i = 0; i < ended; ++i) {
    if (!list.questions[i].probe) list.stamp = list.questions[i].stamp;
  }
  list.question_count -= ended;
  std::move(list.questions + ended, list.questions + ended + list.question_count, list.questions);
  list.answered += static_cast<std::uint64_t>(ended);
  link::control(context, peer, wire::Type::resumed, list.answered, list.episode, 0, nullptr, 0);
}

/// Adds the sends from the cursor on to the batch. They are offered once, to receives that are older than the newest
/// question that is over. Receives of later questions are left out.
void offer_from_cursor(Withheld& list) {
  list.batch_stamp = list.stamp;
  while (list.cursor != nullptr && list.batch_size < Withheld::most_offered) {
    Request& request = *list.cursor;
    list.cursor = request.withheld_next;
    offer(list, request, false);
  }
}

/// Offers the next batch, if anything is asked for and nothing is offered. Questions and the cursor take turns.
void offer_batch(Context& context, Peer& peer) {
  Withheld& list = *peer.withheld;
  list.batch_size = 0;
  const bool has_cursor = list.cursor != nullptr && list.stamp != 0;
  if (!has_cursor || !std::exchange(list.cursors_turn, false)) {
    end_questions(context, peer, answer_questions(list));
    list.cursors_turn = list.batch_size != 0;
  }
  if (list.batch_size == 0 && list.stamp != 0) offer_from_cursor(list);
  if (list.batch_size == 0) return;
  ++list.batch_number;
  list.offers += static_cast<std::uint64_t>(list.batch_size);
  list.batch_out = true;
  CANELE_MARK(withheld_offered);
  for (int i = 0; i < list.batch_size; ++i) send_path::join_backlog(context, peer, *list.batch[i].request);
}

/// Lets as many sends leave as credit allows. Then offers the others, if the receiver has asked.
void advance(Context& context, Peer& peer) {
  Withheld& list = *peer.withheld;
  if (list.batch_out || list.first == nullptr) return;
  while (list.first != nullptr && pay(list.credit, *list.first)) {
    Request& request = *list.first;
    unlink(context, list, request);
    CANELE_MARK(withheld_left_by_credit);
    send_path::join_backlog(context, peer, request);
  }
  if (list.first == nullptr) return reopen(context, peer);
  if (list.question_count != 0 || list.cursor != nullptr) offer_batch(context, peer);
}

/// Decides what each question wants of the next batch, by which offers of the last one were taken.
void judge_questions(Withheld& list, std::uint64_t taken) {
  for (int i = 0; i < list.question_count; ++i) {
    WithheldQuestion& question = list.questions[i];
    const std::uint64_t offered = std::exchange(question.offered, 0);
    if (offered == 0) continue;
    question.done = question.probe || (offered & ~taken) != 0;  // refused: its receives have what they want
    question.width = std::min<std::uint32_t>(2 * question.width, Withheld::most_offered);
  }
}

}  // namespace

bool admit(Context& context, Peer& peer, Request& request) {
  if (pay(peer.credit, request)) return true;
  if (peer.withheld == nullptr) peer.withheld = std::make_unique<Withheld>();
  Withheld& list = *peer.withheld;
  CANELE_MARK(send_withheld);
  context.counters.add(Counter::credit_stalls);
  context.counters.add(Counter::credit_blocked_now);
  context.counters.raise_to(Counter::credit_blocked_most, Counter::credit_blocked_now);
  const bool was_empty = list.first == nullptr;
  list.append(request);
  context.credit.just_withheld = true;
  if (was_empty) {
    list.credit = std::exchange(peer.credit, 0);
    list.since_ns = context.platform.now_ns();
    tell(context, peer, true);
  }
  if (list.stamp != 0 && list.cursor == nullptr) list.cursor = &request;
  advance(context, peer);
  return false;
}

const char* on_credit(Context& context, Peer& peer, std::uint64_t total) {
  if (total < peer.credit_heard) return "it grants less than before";
  const std::uint64_t more = total - std::exchange(peer.credit_heard, total);
  if (peer.withheld == nullptr || peer.withheld->first == nullptr) {
    peer.credit += more;
  } else {
    CANELE_MARK(credit_for_withheld);
    peer.withheld->credit += more;
    advance(context, peer);
  }
  return nullptr;
}

const char* on_resume(Context& context, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  if (head.tag == 0) return "it asks for what is withheld without a stamp";
  WithheldQuestion question;
  question.stamp = head.tag;
  if (!payload.empty()) {
    wire::Resume wanted;
    Session* const session = peer.names.find(head.session);
    if (!wire::take(payload, wanted)) return "a question for what is withheld is too short";
    if (session == nullptr) return "it asks for messages of a session that was not announced";
    if ((wanted.tag & ~wanted.mask) != 0) return "it asks for a tag with bits outside of the mask";
    question.session = session;
    question.number = session->number;
    question.tag = wanted.tag;
    question.mask = wanted.mask;
    question.probe = wanted.probe != 0;
  }
  Withheld* const list = peer.withheld.get();
  if (list == nullptr || list->first == nullptr || list->episode != head.seq) return nullptr;  // all have left
  const int asked = list->question_count;
  if (asked == Withheld::most_questions) return "it asks more before it has its answers";
  if (question.stamp < std::max(list->stamp, asked != 0 ? list->questions[asked - 1].stamp : 0))
    return "it asks with an older stamp than before";
  list->questions[list->question_count++] = question;
  advance(context, peer);
  return nullptr;
}

const char* on_answer(Context& context, Peer& peer, std::uint64_t mask, std::uint32_t batch) {
  Withheld* const list = peer.withheld.get();
  if (list == nullptr || !list->batch_out || list->batch_number != batch) return "it answers what was not offered";
  if (list->batch_size < 64 && mask >> list->batch_size != 0) return "it takes more than was offered";
  for (int i = 0; i < list->batch_size; ++i) {
    Request* const request = list->batch[i].request;
    if (request == nullptr) mask |= std::uint64_t{1} << i;
    if (request == nullptr) continue;  // its cts or fin was faster
    if (request->offering) return "it answers what it has not got";
    if ((mask >> i & 1) == 0) continue;
    CANELE_MARK(offer_was_taken);
    taken(context, peer, *request);
  }
  list->batch_out = false;
  list->batch_size = 0;
  judge_questions(*list, mask);
  advance(context, peer);
  return nullptr;
}

wire::Offer describe(const Peer& peer, const Request& request) {
  const Withheld& list = *peer.withheld;
  const int place = list.place_in_batch(request);
  wire::Offer offer{};
  offer.stamp = list.batch_stamp;
  offer.probe = list.batch[place].probe;
  offer.index = static_cast<std::uint8_t>(place);
  offer.count = static_cast<std::uint8_t>(list.batch_size);
  return offer;
}

void taken(Context& context, Peer& peer, Request& request) {
  Withheld& list = *peer.withheld;
  if (const int place = list.place_in_batch(request); place < list.batch_size) list.batch[place].request = nullptr;
  unlink(context, list, request);
  request.stage = Request::Stage::moving;
  send_path::count_message(context, peer, request);
  if (list.first == nullptr) reopen(context, peer);
}

void drop(Context& context, Peer& peer) {
  if (peer.withheld == nullptr) return;
  Withheld& list = *peer.withheld;
  list.batch_out = false;
  list.batch_size = list.question_count = 0;
  while (list.first != nullptr) {
    Request& request = *list.first;
    unlink(context, list, request);
    if (request.offering) continue;  // the backlog, or its packet, ends it
    if (request.handle != 0) context.sends.remove(request.handle);
    CANELE_MARK(withheld_ended);
    context.finish(request, peer.error);
  }
}

}  // namespace canele::comm::flow_out
