// SPDX-License-Identifier: BSD-3-Clause
//
// What a PMIx server reports: our identity, values of other ranks, deaths.
//
// The functions of libpmix that pmix_calls.cpp calls are defined here, so that the linker takes these and no server is
// asked. Values are still made and freed by libpmix's own functions.
#include <pmix.h>

#include "comm/bootstrap/limits.hpp"
#include "comm/bootstrap/pmix_calls.hpp"
#include "fuzz.hpp"

namespace canele::fuzz {
namespace {

using comm::Blob;
using comm::Shared;

Input* input = nullptr;
pmix_notification_fn_t handler = nullptr;
void* handlers_object = nullptr;
struct Get {
  pmix_value_cbfunc_t ended;
  void* context;
};
std::vector<Get> gets;

/// Returns a value of a type that the input chooses.
pmix_value_t* any_value() {
  pmix_value_t* value = nullptr;
  PMIX_VALUE_CREATE(value, 1);
  const std::uint8_t what = input->byte() % 8;
  if (what == 0) {
    const std::string text = input->text(input->byte());
    PMIx_Value_load(value, text.c_str(), PMIX_STRING);
  } else if (what < 4) {
    const Bytes bytes = copy_of(input->bytes(input->byte()));
    pmix_byte_object_t object = {const_cast<char*>(reinterpret_cast<const char*>(bytes.data())), bytes.size()};
    PMIx_Value_load(value, &object, PMIX_BYTE_OBJECT);
  } else if (what == 4) {
    const auto number = input->number<std::uint64_t>();
    PMIx_Value_load(value, &number, PMIX_UINT64);
  } else if (what == 5) {
    const auto number = input->number<std::int32_t>();
    PMIx_Value_load(value, &number, PMIX_INT);
  } else if (what == 6) {
    const std::uint32_t number = input->byte();
    PMIx_Value_load(value, &number, PMIX_UINT32);
  } else {
    value->type = PMIX_UNDEF;
  }
  return value;
}

pmix_proc_t any_process() {
  pmix_proc_t made;
  const std::string space = input->flag() ? "job" : input->text(input->below(20));
  PMIX_LOAD_PROCID(&made, space.c_str(), input->flag() ? input->byte() % 8 : input->number<std::uint32_t>());
  return made;
}

void end_a_get() {
  if (gets.empty()) return;
  const std::size_t which = input->byte() % gets.size();
  const Get get = gets[which];
  gets.erase(gets.begin() + static_cast<std::ptrdiff_t>(which));
  const bool well = input->flag();
  pmix_value_t* const value = well && input->byte() != 255 ? any_value() : nullptr;
  get.ended(well ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, value, get.context);
}

void tell_an_event() {
  constexpr pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_EXIT_NONZERO_TERM, PMIX_ERR_LOST_CONNECTION,
                                     PMIX_SUCCESS};
  pmix_proc_t source = any_process(), affected = any_process();
  pmix_info_t info[2];
  for (pmix_info_t& one : info) PMIX_INFO_CONSTRUCT(&one);
  PMIx_Info_load(&info[0], PMIX_EVENT_RETURN_OBJECT, handlers_object, PMIX_POINTER);
  PMIx_Info_load(&info[1], PMIX_EVENT_AFFECTED_PROC, &affected, PMIX_PROC);
  const std::size_t count = input->below(3);
  const pmix_status_t code = codes[input->below(std::size(codes))];
  handler(0, code, input->flag() ? &source : nullptr, info, count, nullptr, 0, nullptr, nullptr);
  for (pmix_info_t& one : info) PMIX_INFO_DESTRUCT(&one);
}

void questions(const std::shared_ptr<Shared>& shared, const comm::Membership& me) {
  int asked = 0, answered = 0;
  for (int i = 0; i < 100 && !input->empty(); ++i) {
    const std::uint8_t what = input->byte() % 4;
    if (what == 0) {
      const int rank = static_cast<int>(input->byte()) % me.size;
      const auto deliver = [&](bool ok, const Blob& blob, const std::string& why) {
        ++answered;
        FUZZ_CHECK(ok == why.empty() && (ok || blob.empty()));
      };
      ++asked;
      const std::uint64_t number = shared->ask({rank, "address", deliver}, 1'000'000'000'000);
      comm::start_get(shared, number, me, rank, "address", 1'000'000'000);
    } else if (what == 1) {
      end_a_get();
    } else if (what == 2) {
      tell_an_event();
    } else {
      comm::start_survey(shared, shared->fence, "at-fence", me);
    }
    for (const int rank : shared->dead) FUZZ_CHECK(rank >= 0 && rank < me.size);
    for (const int rank : shared->arrived) FUZZ_CHECK(rank >= 0 && rank < me.size);
  }
  shared->fail_all(-1, "the end of the input");
  FUZZ_CHECK(asked == answered);
}

}  // namespace
}  // namespace canele::fuzz

using namespace canele::fuzz;

extern "C" {
pmix_status_t PMIx_Init(pmix_proc_t* self, pmix_info_t[], size_t) {
  *self = any_process();
  return input->byte() == 255 ? PMIX_ERR_UNREACH : PMIX_SUCCESS;
}
pmix_status_t PMIx_Get(const pmix_proc_t*, const char*, const pmix_info_t[], size_t, pmix_value_t** value) {
  if (input->byte() == 255) return PMIX_ERR_NOT_FOUND;
  *value = any_value();
  return PMIX_SUCCESS;
}
pmix_status_t PMIx_Get_nb(const pmix_proc_t*, const char*, const pmix_info_t[], size_t, pmix_value_cbfunc_t ended,
                          void* context) {
  if (input->byte() == 255) return PMIX_ERR_BAD_PARAM;
  gets.push_back({ended, context});
  return PMIX_SUCCESS;
}
pmix_status_t PMIx_Register_event_handler(pmix_status_t[], size_t, pmix_info_t info[], size_t count,
                                          pmix_notification_fn_t notify, pmix_hdlr_reg_cbfunc_t, void*) {
  FUZZ_CHECK(count == 1);
  handler = notify;
  handlers_object = info[0].value.data.ptr;
  return 1;
}
pmix_status_t PMIx_Deregister_event_handler(size_t, pmix_op_cbfunc_t, void*) { return PMIX_SUCCESS; }
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  input = &in;
  FuzzPlatform platform;
  canele::comm::Joined joined;
  joined.shared = std::make_shared<canele::comm::Shared>(platform);
  const std::string wrong = canele::comm::join(&joined);
  const canele::comm::Membership& me = joined.membership;
  if (wrong.empty()) {
    FUZZ_CHECK(me.rank >= 0 && me.rank < me.size && !me.host.empty());
    FUZZ_CHECK(me.local_size >= 1 && me.local_rank >= 0 && me.local_rank < me.local_size);
    if (me.size <= 1000) questions(joined.shared, me);
  }
  while (!gets.empty()) {  // libpmix completes every one of them
    gets.back().ended(PMIX_ERR_TIMEOUT, nullptr, gets.back().context);
    gets.pop_back();
  }
  FUZZ_CHECK(joined.shared->calls.empty());
  return 0;
}
