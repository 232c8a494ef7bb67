// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_Session_ functions, and those that make communicators from groups, called by their entry points. Any thread.
#include <cstdio>
#include <string_view>

#include "calls/sessions.hpp"
#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/communicators/creation.hpp"
#include "starpu_glue/mpi/communicators/intercommunicator.hpp"
#include "starpu_glue/mpi/environment/start.hpp"

namespace canele::mpi {
namespace {

constexpr std::string_view kLevels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                        "MPI_THREAD_MULTIPLE"};

/// Returns what MPI_Session_get_info says: the level of threads that was asked for, else the highest one.
int hints_of(MPI_Info info, InfoPairs* kept) {
  InfoPairs given;
  if (const int code = hint_pairs(info, &given); code != MPI_SUCCESS) return code;
  std::string_view level = kLevels[3];
  const std::string* const asked = find_value(given, "thread_level");
  for (const std::string_view one : kLevels) {
    if (asked != nullptr && *asked == one) level = one;
  }
  set_value(*kept, "thread_level", level);
  return MPI_SUCCESS;
}

}  // namespace

namespace calls {

int session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  InfoPairs hints;
  ErrorHandlerUse use;
  int code = use.set(ObjectKind::session, errhandler);
  if (code == MPI_SUCCESS) code = hints_of(info, &hints);
  if (code == MPI_SUCCESS) code = hold_engine();
  if (code != MPI_SUCCESS) return code;
  code = new_session(std::move(hints), errhandler, session);
  if (code != MPI_SUCCESS) drop_engine(false);
  return code;
}

int session_finalize(MPI_Session* session) {
  Session* found = nullptr;
  if (const int code = get_session(*session, &found); code != MPI_SUCCESS) return code;
  if (SendBuffer* const buffer = found->send_buffer()->get()) buffer->empty();
  free_session(*session);
  *session = MPI_SESSION_NULL;
  return drop_engine(false);
}

int session_get_info(Session& session, MPI_Info* info_used) { return new_object_info(session.info(), info_used); }

int session_get_num_psets(Session&, MPI_Info info, int* npset_names) {
  *npset_names = process_sets();
  return check_hints(info);
}

int session_get_nth_pset(Session&, MPI_Info info, int n, int* pset_len, char* pset_name) {
  if (const int code = check_hints(info); code != MPI_SUCCESS) return code;
  if (n < 0 || n >= process_sets())
    return fail(MPI_ERR_ARG, "n is %d; the session has the sets 0 to %d", n, process_sets() - 1);
  const std::string_view name = process_set(n);
  if (*pset_len > 0) {
    if (const int code = given({{"pset_name", pset_name}}); code != MPI_SUCCESS) return code;
    std::snprintf(pset_name, static_cast<std::size_t>(*pset_len), "%s", name.data());
  }
  *pset_len = static_cast<int>(name.size()) + 1;
  return MPI_SUCCESS;
}

int session_get_pset_info(Session& session, const char* pset_name, MPI_Info* info) {
  RanksPointer ranks;
  if (const int code = ranks_of_process_set(pset_name, session, &ranks); code != MPI_SUCCESS) return code;
  return new_info({{"mpi_size", std::to_string(ranks->size())}}, info);
}

int group_from_session_pset(Session& session, const char* pset_name, MPI_Group* newgroup) {
  RanksPointer ranks;
  if (const int code = ranks_of_process_set(pset_name, session, &ranks); code != MPI_SUCCESS) return code;
  return new_group(std::move(ranks), newgroup);
}

int comm_create_from_group(const RanksPointer& group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                           MPI_Comm* newcomm) {
  const int code = check_hints(info);
  return code == MPI_SUCCESS ? create_from_ranks(group, stringtag, errhandler, newcomm) : code;
}

int intercomm_create_from_groups(const RanksPointer& local_group, int local_leader, MPI_Group remote_group,
                                 int remote_leader, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                 MPI_Comm* newintercomm) {
  const int code = check_hints(info);
  if (code != MPI_SUCCESS) return code;
  return create_inter_from_groups(local_group, local_leader, remote_group, remote_leader, stringtag, errhandler,
                                  newintercomm);
}

int session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn, MPI_Errhandler* errhandler) {
  return new_error_handler<MPI_Session>(session_errhandler_fn, errhandler);
}

int session_set_errhandler(Session& session, MPI_Errhandler errhandler) {
  return session.error_handler().set(ObjectKind::session, errhandler);
}

int session_get_errhandler(Session& session, MPI_Errhandler* errhandler) {
  *errhandler = session.error_handler().share();
  return MPI_SUCCESS;
}

int session_call_errhandler(Session& session, int errorcode) {
  report_error("MPI_Session_call_errhandler", errorcode, session.error_target());
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
