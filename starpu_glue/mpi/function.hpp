// SPDX-License-Identifier: BSD-3-Clause
//
// Names of the functions, and the class of each in Reynier's model of progression: blocking, init, test, wait, other.
//
// Used by Call, profile.cpp and tests; constants, so any thread may read them. The compiler makes a Function from its
// name, so that the entry points say Call("MPI_Send") and the profile still has an index. A name that is missing below
// does not compile.
//
// F. Reynier: A study on progression of MPI communications using dedicated resources, 2022, section 6.1.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace canele::mpi {

enum class CallClass : std::uint8_t { blocking, init, test, wait, other };
inline constexpr std::size_t kCallClasses = 5;
inline constexpr std::string_view kCallClassNames[kCallClasses] = {"blocking", "init", "test", "wait", "other"};

/// The functions of each class. Only the compiler looks a class up.
inline constexpr std::string_view kFunctionsOfClass[kCallClasses] = {
    " MPI_Send MPI_Ssend MPI_Recv MPI_Sendrecv MPI_Probe"
    " MPI_Barrier MPI_Bcast MPI_Gather MPI_Gatherv MPI_Scatter MPI_Scatterv MPI_Allgather MPI_Allgatherv MPI_Alltoall"
    " MPI_Alltoallv MPI_Alltoallw MPI_Reduce MPI_Allreduce MPI_Reduce_scatter MPI_Reduce_scatter_block MPI_Scan"
    " MPI_Exscan MPI_Win_create MPI_Win_allocate MPI_Win_allocate_shared MPI_Win_create_dynamic MPI_Win_free"
    " MPI_Win_fence MPI_Win_lock MPI_Win_unlock MPI_Win_lock_all MPI_Win_unlock_all MPI_Win_flush MPI_Win_flush_local "
    "MPI_Win_flush_all"
    " MPI_Win_flush_local_all MPI_Win_post MPI_Win_start MPI_Win_complete MPI_Win_wait ",
    " MPI_Isend MPI_Issend MPI_Irecv"
    " MPI_Ibarrier MPI_Ibcast MPI_Igather MPI_Igatherv MPI_Iscatter MPI_Iscatterv MPI_Iallgather MPI_Iallgatherv"
    " MPI_Ialltoall MPI_Ialltoallv MPI_Ialltoallw MPI_Ireduce MPI_Iallreduce MPI_Ireduce_scatter"
    " MPI_Ireduce_scatter_block MPI_Iscan MPI_Iexscan"
    " MPI_Put MPI_Rput MPI_Get MPI_Rget MPI_Fetch_and_op MPI_Compare_and_swap"
    " MPI_Accumulate MPI_Raccumulate MPI_Get_accumulate MPI_Rget_accumulate ",
    " MPI_Test MPI_Testall MPI_Testany MPI_Testsome MPI_Iprobe MPI_Win_test ",
    " MPI_Wait MPI_Waitall MPI_Waitany MPI_Waitsome ",
    " MPI_Init MPI_Init_thread MPI_Initialized MPI_Query_thread MPI_Is_thread_main MPI_Abort MPI_Finalize MPI_Finalized"
    " MPI_Get_address MPI_Get_processor_name MPI_Get_version MPI_Get_library_version MPI_Error_string MPI_Error_class"
    " MPI_Cancel MPI_Test_cancelled MPI_Request_free MPI_Get_count MPI_Reduce_local"
    " MPI_Comm_compare MPI_Comm_create MPI_Comm_create_group MPI_Comm_dup MPI_Comm_free MPI_Comm_get_attr"
    " MPI_Comm_get_errhandler MPI_Comm_get_name MPI_Comm_group MPI_Comm_rank MPI_Comm_set_errhandler"
    " MPI_Comm_set_name MPI_Comm_size MPI_Comm_split MPI_Comm_split_type MPI_Group_compare MPI_Group_excl"
    " MPI_Group_free MPI_Group_incl MPI_Group_range_excl MPI_Group_range_incl MPI_Group_rank MPI_Group_size"
    " MPI_Group_translate_ranks"
    " MPI_Op_commutative MPI_Op_create MPI_Op_free MPI_Pack MPI_Pack_size MPI_Unpack"
    " MPI_Type_commit MPI_Type_contiguous MPI_Type_create_hindexed MPI_Type_create_hindexed_block"
    " MPI_Type_create_hvector MPI_Type_create_indexed_block MPI_Type_create_resized MPI_Type_create_struct"
    " MPI_Type_create_subarray MPI_Type_dup MPI_Type_free MPI_Type_get_contents MPI_Type_get_envelope"
    " MPI_Type_get_extent MPI_Type_get_name MPI_Type_get_true_extent MPI_Type_indexed MPI_Type_set_name MPI_Type_size"
    " MPI_Type_vector"
    " MPI_Info_create MPI_Info_dup MPI_Info_free MPI_Info_set MPI_Info_delete MPI_Info_get MPI_Info_get_valuelen"
    " MPI_Info_get_nkeys MPI_Info_get_nthkey MPI_Alloc_mem MPI_Free_mem MPI_Win_get_group MPI_Win_set_name"
    " MPI_Win_get_name MPI_Win_get_attr MPI_Win_set_info MPI_Win_get_info MPI_Win_set_errhandler"
    " MPI_Win_get_errhandler MPI_Win_sync MPI_Win_shared_query MPI_Win_attach MPI_Win_detach"
    " MPI_Win_create_keyval MPI_Win_free_keyval MPI_Win_set_attr MPI_Win_delete_attr MPI_Win_create_errhandler"
    " MPI_Win_call_errhandler MPI_Errhandler_free"
    " nm_mpi_comm nm_mpi_nmad_dest canele_mpi_comm_rank canele_mpi_data_get canele_mpi_data_release"
    " canele_mpi_engine canele_mpi_job_rank canele_mpi_session "};

/// One of the functions above.
class Function {
 public:
  consteval Function(const char* name) : name_(name) {  // implicit: Call("MPI_Send") makes one
    const std::string_view wanted(name);
    for (const std::string_view functions : kFunctionsOfClass) {
      for (std::size_t from = 1; from < functions.size(); ++index_) {
        const std::size_t end = functions.find(' ', from);
        if (functions.substr(from, end - from) == wanted) return;
        from = end + 1;
      }
      ++class_;
    }
    missing_above();
  }

  const char* name() const { return name_; }
  std::size_t index() const { return index_; }
  CallClass call_class() const { return static_cast<CallClass>(class_); }

 private:
  static void missing_above() {}  // not constexpr, so a call to it does not compile

  const char* name_;
  std::uint16_t index_ = 0;  ///< index among all functions
  std::uint8_t class_ = 0;
};

constexpr std::size_t count_functions() {
  std::size_t count = 0;
  for (const std::string_view functions : kFunctionsOfClass) {
    for (std::size_t at = 1; at < functions.size(); ++at) count += functions[at] == ' ' ? 1 : 0;
  }
  return count;
}
inline constexpr std::size_t kFunctionCount = count_functions();

}  // namespace canele::mpi
