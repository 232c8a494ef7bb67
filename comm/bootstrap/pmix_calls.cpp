// SPDX-License-Identifier: BSD-3-Clause
//
// The calls into libpmix.
#include "comm/bootstrap/pmix_calls.hpp"

#ifdef CANELE_HAVE_PMIX

#include <pmix.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "comm/bootstrap/limits.hpp"

namespace canele::comm {
namespace {

pmix_proc_t process(const std::string& job, pmix_rank_t rank) {
  pmix_proc_t name;
  PMIX_LOAD_PROCID(&name, job.c_str(), rank);
  return name;
}

std::string full_key(std::string_view key) { return std::string(key_prefix) + std::string(key); }

/// One directive for a call; its destructor frees it.
class Directive {
 public:
  Directive(const char* key, const void* value, pmix_data_type_t type) {
    PMIX_INFO_CONSTRUCT(&info_);
    PMIx_Info_load(&info_, key, value, type);
  }
  ~Directive() { PMIX_INFO_DESTRUCT(&info_); }
  Directive(const Directive&) = delete;
  Directive& operator=(const Directive&) = delete;
  pmix_info_t* get() { return &info_; }

 private:
  pmix_info_t info_;
};

/// Returns what the server sent at PMIx_Init; never asks the server. nullptr: not sent.
pmix_value_t* known_value(const pmix_proc_t& whose, const char* key) {
  Directive optional(PMIX_OPTIONAL, nullptr, PMIX_BOOL);
  pmix_value_t* value = nullptr;
  return PMIx_Get(&whose, key, optional.get(), 1, &value) == PMIX_SUCCESS ? value : nullptr;
}

bool known_number(const pmix_proc_t& whose, const char* key, int* number) {
  pmix_value_t* value = known_value(whose, key);
  if (value == nullptr) return false;
  pmix_status_t status = PMIX_SUCCESS;
  int read = 0;
  PMIX_VALUE_GET_NUMBER(status, value, read, int);
  PMIX_VALUE_RELEASE(value);
  if (status != PMIX_SUCCESS) return false;
  *number = read;
  return true;
}

std::string known_text(const pmix_proc_t& whose, const char* key) {
  pmix_value_t* value = known_value(whose, key);
  if (value == nullptr) return {};
  std::string text = value->type == PMIX_STRING && value->data.string != nullptr ? value->data.string : "";
  PMIX_VALUE_RELEASE(value);
  return text;
}

// The callbacks, on libpmix's thread.

void fence_ended(pmix_status_t status, void* context) {
  const Shared::Call call = Shared::finish(context);
  {
    const std::lock_guard lock(call.shared->mutex);
    call.shared->fence_ended = call.number;
    call.shared->fence_status = status;
  }
  call.shared->changed.change();
}

/// Ends a get. The value must be freed here, and is valid only if the status is success.
void get_ended(pmix_status_t status, pmix_value_t* value, void* context) {
  const Shared::Call call = Shared::finish(context);
  if (status != PMIX_SUCCESS || value == nullptr) return call.shared->try_later(call.number);
  const bool is_blob = value->type == PMIX_BYTE_OBJECT;
  Blob blob;
  if (is_blob && value->data.bo.size > 0) {
    const auto* bytes = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
    blob.assign(bytes, bytes + value->data.bo.size);
  }
  PMIX_VALUE_RELEASE(value);
  call.shared->answer(call.number, is_blob, std::move(blob), is_blob ? "" : "the published value is not one of Canelé");
}

void survey_answer(pmix_status_t status, pmix_value_t* value, void* context) {
  const Shared::Call call = Shared::finish(context);
  if (status == PMIX_SUCCESS && value != nullptr) PMIX_VALUE_RELEASE(value);
  {
    const std::lock_guard lock(call.shared->mutex);
    if (call.shared->fence != call.number) return;
    if (status == PMIX_SUCCESS) call.shared->arrived.insert(call.rank);
    --call.shared->survey_left;
  }
  call.shared->changed.change();
}

/// The arguments that PMIx_Get_nb keeps pointers to.
struct GetArguments {
  GetArguments(const std::string& k, int seconds) : key(k), timeout(PMIX_TIMEOUT, &seconds, PMIX_INT) {}
  std::string key;
  Directive timeout;
};

/// Asks for a value. Returns true if libpmix will call back; otherwise the context is freed here.
bool ask_for(const pmix_proc_t& whose, const std::string& key, std::uint64_t timeout_ns, pmix_value_cbfunc_t ended,
             Shared::Call* call) {
  // Without our time limit, the server gives up on a missing key after 2 s of its own.
  const int seconds = static_cast<int>(std::min<std::uint64_t>(timeout_ns / ns_per_second + 1, 1'000'000));
  const auto arguments = std::make_shared<GetArguments>(key, seconds);
  call->arguments = arguments;
  if (PMIx_Get_nb(&whose, arguments->key.c_str(), arguments->timeout.get(), 1, ended, call) == PMIX_SUCCESS)
    return true;
  Shared::finish(call);
  return false;
}

// Deaths.

constexpr std::array<pmix_status_t, 5> deaths = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_ABORTED_BY_SIG,
                                                 PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_PROC_REQUESTED_ABORT,
                                                 PMIX_ERR_EXIT_NONZERO_TERM};
constexpr std::array<pmix_status_t, 2> losses = {PMIX_ERR_LOST_CONNECTION, PMIX_ERR_LOST_CONNECTION_TO_SERVER};

void report(const Watch::Context& context, const pmix_proc_t& process_name) {
  if (context.job != process_name.nspace || process_name.rank >= static_cast<pmix_rank_t>(context.size)) return;
  context.shared->report_death(static_cast<int>(process_name.rank));
}

void on_event(size_t, pmix_status_t status, const pmix_proc_t* source, pmix_info_t info[], size_t count, pmix_info_t*,
              size_t, pmix_event_notification_cbfunc_fn_t next, void* next_context) {
  const Watch::Context* context = nullptr;
  const pmix_proc_t* affected = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_RETURN_OBJECT))
      context = static_cast<const Watch::Context*>(info[i].value.data.ptr);
    else if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC))
      affected = info[i].value.data.proc;
  }
  if (context != nullptr && std::find(losses.begin(), losses.end(), status) != losses.end())
    context->shared->report_lost_launcher();
  else if (context != nullptr && affected != nullptr)
    report(*context, *affected);
  else if (context != nullptr && source != nullptr)
    report(*context, *source);
  // Other libraries in this process (Open MPI) may want this event, too.
  if (next != nullptr) next(PMIX_EVENT_NO_ACTION_TAKEN, nullptr, 0, nullptr, nullptr, next_context);
}

}  // namespace

Watch::Watch(const std::shared_ptr<Shared>& shared, const Membership& me)
    : context_(new Context{shared, me.job, me.size}) {
  std::array<pmix_status_t, deaths.size() + losses.size()> codes;
  std::copy(losses.begin(), losses.end(), std::copy(deaths.begin(), deaths.end(), codes.begin()));
  Directive object(PMIX_EVENT_RETURN_OBJECT, context_.get(), PMIX_POINTER);
  // Without a callback this call waits, and returns the handler's number or an error.
  const pmix_status_t number =
      PMIx_Register_event_handler(codes.data(), codes.size(), object.get(), 1, on_event, nullptr, nullptr);
  registered_ = number >= 0;
  if (registered_) handler_ = static_cast<std::size_t>(number);
}

Watch::~Watch() {
  if (!registered_) return;
  const pmix_status_t status = PMIx_Deregister_event_handler(handler_, nullptr, nullptr);
  // If still registered, the handler may run at any time, so its context must stay.
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) static_cast<void>(context_.release());
}

std::string join(Joined* joined) {
  pmix_proc_t self;
  const pmix_status_t status = PMIx_Init(&self, nullptr, 0);
  if (status != PMIX_SUCCESS) return PMIx_Error_string(status);
  Membership& me = joined->membership;
  me.job = self.nspace;
  me.rank = static_cast<int>(self.rank);
  const pmix_proc_t everyone = process(me.job, PMIX_RANK_WILDCARD);
  if (!known_number(everyone, PMIX_JOB_SIZE, &me.size) || me.size < 1) return "it does not give the number of ranks";
  if (me.rank < 0 || me.rank >= me.size)
    return "it says that this is rank " + std::to_string(me.rank) + " of " + std::to_string(me.size);
  known_number(self, PMIX_LOCAL_RANK, &me.local_rank);
  known_number(everyone, PMIX_LOCAL_SIZE, &me.local_size);
  if (me.local_size < 1 || me.local_rank < 0 || me.local_rank >= me.local_size) me.local_rank = 0, me.local_size = 1;
  me.host = known_text(self, PMIX_HOSTNAME);
  if (me.host.empty()) me.host = host_name();
  joined->watch = std::make_shared<Watch>(joined->shared, me);
  return {};
}

bool put_blob(std::string_view key, const Blob& blob, std::string* why) {
  pmix_value_t value;
  PMIX_VALUE_CONSTRUCT(&value);
  value.type = PMIX_BYTE_OBJECT;
  // libpmix copies the blob and does not write to it.
  value.data.bo.bytes = const_cast<char*>(reinterpret_cast<const char*>(blob.data()));
  value.data.bo.size = blob.size();
  const pmix_status_t status = PMIx_Put(PMIX_GLOBAL, full_key(key).c_str(), &value);
  if (status == PMIX_SUCCESS) return true;
  *why = "publishing '" + std::string(key) + "' failed: " + PMIx_Error_string(status);
  return false;
}

int start_fence(const std::shared_ptr<Shared>& shared, std::uint64_t number, std::uint64_t until) {
  const std::uint64_t now = shared->platform.now_ns();
  const auto committed = std::make_shared<pmix_status_t>(PMIX_SUCCESS);
  const Bounded how = run_bounded(shared->platform, "canele-commit", until > now ? until - now : 0,
                                  [committed] { *committed = PMIx_Commit(); });
  if (how == Bounded::no_thread) return PMIX_ERR_OUT_OF_RESOURCE;
  if (how == Bounded::late) return PMIX_ERR_TIMEOUT;
  if (*committed != PMIX_SUCCESS) return *committed;
  Shared::Call* call = Shared::start_call(shared, number, -1);
  const pmix_status_t status = PMIx_Fence_nb(nullptr, 0, nullptr, 0, fence_ended, call);
  if (status != PMIX_SUCCESS) Shared::finish(call);
  return status;
}

void start_survey(const std::shared_ptr<Shared>& shared, std::uint64_t number, std::string_view key,
                  const Membership& me) {
  {
    const std::lock_guard lock(shared->mutex);
    shared->arrived.clear();
    shared->survey_left = me.size - 1;
  }
  int failed = 0;
  for (int rank = 0; rank < me.size; ++rank) {
    if (rank == me.rank) continue;
    const bool asked = ask_for(process(me.job, static_cast<pmix_rank_t>(rank)), full_key(key), ns_per_second,
                               survey_answer, Shared::start_call(shared, number, rank));
    if (!asked) ++failed;
  }
  const std::lock_guard lock(shared->mutex);
  shared->survey_left -= failed;
}

void start_get(const std::shared_ptr<Shared>& shared, std::uint64_t number, const Membership& me, int rank,
               std::string_view key, std::uint64_t timeout_ns) {
  const bool asked = ask_for(process(me.job, static_cast<pmix_rank_t>(rank)), full_key(key), timeout_ns, get_ended,
                             Shared::start_call(shared, number, rank));
  if (!asked) shared->try_later(number);
}

}  // namespace canele::comm

#endif
