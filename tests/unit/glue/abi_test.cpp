// SPDX-License-Identifier: BSD-3-Clause
//
// mpi.h against the standard ABI of MPI 5.0: each value, size and layout. The numbers are written from the standard's
// tables, not from mpi_constants.h.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>

#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/datatypes/operation.hpp"
#include "starpu_glue/mpi/datatypes/type.hpp"
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/windows/window.hpp"

namespace {

using canele::mpi::handle_bits;
using canele::mpi::to_handle;

template <class... Handles>
constexpr bool are_pointers = (... && (std::is_pointer_v<Handles> && sizeof(Handles) == 8));
static_assert(are_pointers<MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_File, MPI_Group, MPI_Info, MPI_Message, MPI_Op,
                           MPI_Request, MPI_Session, MPI_Win>);
static_assert(std::is_same_v<MPI_Aint, std::intptr_t> && std::is_same_v<MPI_Count, std::int64_t> &&
              std::is_same_v<MPI_Offset, std::int64_t> && sizeof(MPI_Fint) == 4);

static_assert(sizeof(MPI_Status) == 32 && alignof(MPI_Status) == alignof(int));
static_assert(offsetof(MPI_Status, MPI_SOURCE) == 0 && offsetof(MPI_Status, MPI_TAG) == 4 &&
              offsetof(MPI_Status, MPI_ERROR) == 8);
static_assert(offsetof(MPI_Status, cancelled) == 12 && offsetof(MPI_Status, size) == 16 &&
              sizeof(MPI_Status::size) == 8 && offsetof(MPI_Status, reserved) == 24);

static_assert(MPI_ANY_SOURCE == -1 && MPI_ANY_TAG == -2 && MPI_PROC_NULL == -3 && MPI_ROOT == -4 &&
              MPI_UNDEFINED == -32766);
static_assert(MPI_THREAD_SINGLE == 0 && MPI_THREAD_FUNNELED == 1024 && MPI_THREAD_SERIALIZED == 2048 &&
              MPI_THREAD_MULTIPLE == 4096);
static_assert(MPI_IDENT == 201 && MPI_CONGRUENT == 202 && MPI_SIMILAR == 203 && MPI_UNEQUAL == 204);
static_assert(MPI_CART == 211 && MPI_GRAPH == 212 && MPI_DIST_GRAPH == 213 && MPI_COMM_TYPE_SHARED == 221);
static_assert(MPI_COMM_TYPE_HW_UNGUIDED == 222 && MPI_COMM_TYPE_HW_GUIDED == 223 &&
              MPI_COMM_TYPE_RESOURCE_GUIDED == 224);
static_assert(MPI_COMBINER_NAMED == 101 && MPI_COMBINER_DUP == 102 && MPI_COMBINER_CONTIGUOUS == 103 &&
              MPI_COMBINER_VECTOR == 104 && MPI_COMBINER_HVECTOR == 105 && MPI_COMBINER_INDEXED == 106 &&
              MPI_COMBINER_HINDEXED == 107 && MPI_COMBINER_INDEXED_BLOCK == 108 && MPI_COMBINER_HINDEXED_BLOCK == 109 &&
              MPI_COMBINER_STRUCT == 110 && MPI_COMBINER_SUBARRAY == 111 && MPI_COMBINER_DARRAY == 112 &&
              MPI_COMBINER_F90_REAL == 113 && MPI_COMBINER_F90_COMPLEX == 114 && MPI_COMBINER_F90_INTEGER == 115 &&
              MPI_COMBINER_RESIZED == 116 && MPI_COMBINER_VALUE_INDEX == 117);
static_assert(MPI_ORDER_C == 12 && MPI_ORDER_FORTRAN == 15);
static_assert(MPI_DISTRIBUTE_NONE == 16 && MPI_DISTRIBUTE_BLOCK == 17 && MPI_DISTRIBUTE_CYCLIC == 18 &&
              MPI_DISTRIBUTE_DFLT_DARG == 19);
static_assert(MPI_TYPECLASS_INTEGER == 192 && MPI_TYPECLASS_REAL == 193 && MPI_TYPECLASS_COMPLEX == 194);
static_assert(MPI_LOCK_EXCLUSIVE == 301 && MPI_LOCK_SHARED == 302);
static_assert(MPI_WIN_FLAVOR_CREATE == 311 && MPI_WIN_FLAVOR_ALLOCATE == 312 && MPI_WIN_FLAVOR_DYNAMIC == 313 &&
              MPI_WIN_FLAVOR_SHARED == 314 && MPI_WIN_UNIFIED == 321 && MPI_WIN_SEPARATE == 322);
static_assert(MPI_MODE_NOCHECK == 1 << 10 && MPI_MODE_NOPRECEDE == 1 << 11 && MPI_MODE_NOPUT == 1 << 12 &&
              MPI_MODE_NOSTORE == 1 << 13 && MPI_MODE_NOSUCCEED == 1 << 14);
static_assert(MPI_KEYVAL_INVALID == 0 && MPI_TAG_UB == 501 && MPI_IO == 502 && MPI_HOST == 503 &&
              MPI_WTIME_IS_GLOBAL == 504 && MPI_APPNUM == 505 && MPI_LASTUSEDCODE == 506 && MPI_UNIVERSE_SIZE == 507);
static_assert(MPI_WIN_BASE == 601 && MPI_WIN_DISP_UNIT == 602 && MPI_WIN_SIZE == 603 && MPI_WIN_CREATE_FLAVOR == 604 &&
              MPI_WIN_MODEL == 605);
static_assert(MPI_MAX_DATAREP_STRING == 128 && MPI_MAX_ERROR_STRING == 512 && MPI_MAX_INFO_KEY == 256 &&
              MPI_MAX_INFO_VAL == 1024 && MPI_MAX_LIBRARY_VERSION_STRING == 8192 && MPI_MAX_OBJECT_NAME == 128 &&
              MPI_MAX_PORT_NAME == 1024 && MPI_MAX_PROCESSOR_NAME == 256 && MPI_MAX_STRINGTAG_LEN == 1024 &&
              MPI_MAX_PSET_NAME_LEN == 1024 && MPI_BSEND_OVERHEAD == 512);

#ifdef MPI_ABI_VERSION
#error "programs take MPI_ABI_VERSION as a promise of all functions of MPI 5"
#endif

struct Named {
  const char* name;
  int value;
  int number;
};
#define VALUE(name, number) \
  { "MPI_" #name, MPI_##name, number }

constexpr Named kErrors[] = {
    VALUE(SUCCESS, 0),
    VALUE(ERR_BUFFER, 1),
    VALUE(ERR_COUNT, 2),
    VALUE(ERR_TYPE, 3),
    VALUE(ERR_TAG, 4),
    VALUE(ERR_COMM, 5),
    VALUE(ERR_RANK, 6),
    VALUE(ERR_REQUEST, 7),
    VALUE(ERR_ROOT, 8),
    VALUE(ERR_GROUP, 9),
    VALUE(ERR_OP, 10),
    VALUE(ERR_TOPOLOGY, 11),
    VALUE(ERR_DIMS, 12),
    VALUE(ERR_ARG, 13),
    VALUE(ERR_UNKNOWN, 14),
    VALUE(ERR_TRUNCATE, 15),
    VALUE(ERR_OTHER, 16),
    VALUE(ERR_INTERN, 17),
    VALUE(ERR_PENDING, 18),
    VALUE(ERR_IN_STATUS, 19),
    VALUE(ERR_ACCESS, 20),
    VALUE(ERR_AMODE, 21),
    VALUE(ERR_ASSERT, 22),
    VALUE(ERR_BAD_FILE, 23),
    VALUE(ERR_BASE, 24),
    VALUE(ERR_CONVERSION, 25),
    VALUE(ERR_DISP, 26),
    VALUE(ERR_DUP_DATAREP, 27),
    VALUE(ERR_FILE_EXISTS, 28),
    VALUE(ERR_FILE_IN_USE, 29),
    VALUE(ERR_FILE, 30),
    VALUE(ERR_INFO_KEY, 31),
    VALUE(ERR_INFO_NOKEY, 32),
    VALUE(ERR_INFO_VALUE, 33),
    VALUE(ERR_INFO, 34),
    VALUE(ERR_IO, 35),
    VALUE(ERR_KEYVAL, 36),
    VALUE(ERR_LOCKTYPE, 37),
    VALUE(ERR_NAME, 38),
    VALUE(ERR_NO_MEM, 39),
    VALUE(ERR_NOT_SAME, 40),
    VALUE(ERR_NO_SPACE, 41),
    VALUE(ERR_NO_SUCH_FILE, 42),
    VALUE(ERR_PORT, 43),
    VALUE(ERR_QUOTA, 44),
    VALUE(ERR_READ_ONLY, 45),
    VALUE(ERR_RMA_ATTACH, 46),
    VALUE(ERR_RMA_CONFLICT, 47),
    VALUE(ERR_RMA_RANGE, 48),
    VALUE(ERR_RMA_SHARED, 49),
    VALUE(ERR_RMA_SYNC, 50),
    VALUE(ERR_SERVICE, 51),
    VALUE(ERR_SIZE, 52),
    VALUE(ERR_SPAWN, 53),
    VALUE(ERR_UNSUPPORTED_DATAREP, 54),
    VALUE(ERR_UNSUPPORTED_OPERATION, 55),
    VALUE(ERR_WIN, 56),
    VALUE(ERR_RMA_FLAVOR, 57),
    VALUE(ERR_PROC_ABORTED, 58),
    VALUE(ERR_VALUE_TOO_LARGE, 59),
    VALUE(ERR_SESSION, 60),
    VALUE(ERR_ERRHANDLER, 61),
    VALUE(ERR_ABI, 62),
};
static_assert(MPI_ERR_LASTCODE == 16383);

struct Address {
  const char* name;
  std::size_t value;
  std::size_t number;
};
#define HANDLE(name, number) \
  { "MPI_" #name, handle_bits(MPI_##name), number }

const Address kHandles[] = {
    HANDLE(COMM_NULL, 0x100),
    HANDLE(COMM_WORLD, 0x101),
    HANDLE(COMM_SELF, 0x102),
    HANDLE(GROUP_NULL, 0x108),
    HANDLE(GROUP_EMPTY, 0x109),
    HANDLE(WIN_NULL, 0x110),
    HANDLE(FILE_NULL, 0x118),
    HANDLE(SESSION_NULL, 0x120),
    HANDLE(MESSAGE_NULL, 0x128),
    HANDLE(INFO_NULL, 0x130),
    HANDLE(INFO_ENV, 0x131),
    HANDLE(ERRHANDLER_NULL, 0x140),
    HANDLE(ERRORS_ARE_FATAL, 0x141),
    HANDLE(ERRORS_ABORT, 0x142),
    HANDLE(ERRORS_RETURN, 0x143),
    HANDLE(REQUEST_NULL, 0x180),
    HANDLE(DATATYPE_NULL, 0x200),
    HANDLE(LONG_LONG_INT, 0x20b),
    HANDLE(C_COMPLEX, 0x212),
    HANDLE(OP_NULL, 0x20),
    HANDLE(SUM, 0x21),
    HANDLE(MIN, 0x22),
    HANDLE(MAX, 0x23),
    HANDLE(PROD, 0x24),
    HANDLE(BAND, 0x28),
    HANDLE(BOR, 0x29),
    HANDLE(BXOR, 0x2a),
    HANDLE(LAND, 0x30),
    HANDLE(LOR, 0x31),
    HANDLE(LXOR, 0x32),
    HANDLE(MINLOC, 0x38),
    HANDLE(MAXLOC, 0x39),
    HANDLE(REPLACE, 0x3c),
    HANDLE(NO_OP, 0x3d),
    HANDLE(BOTTOM, 0),
    HANDLE(IN_PLACE, 1),
    HANDLE(STATUS_IGNORE, 0),
    HANDLE(STATUSES_IGNORE, 0),
    HANDLE(COMM_NULL_COPY_FN, 0),
    HANDLE(COMM_DUP_FN, 1),
    HANDLE(COMM_NULL_DELETE_FN, 0),
    HANDLE(TYPE_NULL_COPY_FN, 0),
    HANDLE(TYPE_DUP_FN, 1),
    HANDLE(TYPE_NULL_DELETE_FN, 0),
    HANDLE(NULL_COPY_FN, 0),
    HANDLE(DUP_FN, 1),
    HANDLE(NULL_DELETE_FN, 0),
    HANDLE(WIN_NULL_COPY_FN, 0),
    HANDLE(WIN_DUP_FN, 1),
    HANDLE(WIN_NULL_DELETE_FN, 0),
};

struct Datatype {
  const char* name;
  std::size_t value;
  std::size_t number;
  std::size_t size;
};
#define TYPE(name, number, size) \
  { "MPI_" #name, handle_bits(MPI_##name), number, size }

const Datatype kTypes[] = {
    TYPE(AINT, 0x201, 8),
    TYPE(COUNT, 0x202, 8),
    TYPE(OFFSET, 0x203, 8),
    TYPE(PACKED, 0x207, 1),
    TYPE(SHORT, 0x208, 2),
    TYPE(INT, 0x209, 4),
    TYPE(LONG, 0x20a, sizeof(long)),
    TYPE(LONG_LONG, 0x20b, 8),
    TYPE(UNSIGNED_SHORT, 0x20c, 2),
    TYPE(UNSIGNED, 0x20d, 4),
    TYPE(UNSIGNED_LONG, 0x20e, sizeof(long)),
    TYPE(UNSIGNED_LONG_LONG, 0x20f, 8),
    TYPE(FLOAT, 0x210, 4),
    TYPE(C_FLOAT_COMPLEX, 0x212, 8),
    TYPE(CXX_FLOAT_COMPLEX, 0x213, 8),
    TYPE(DOUBLE, 0x214, 8),
    TYPE(C_DOUBLE_COMPLEX, 0x216, 16),
    TYPE(CXX_DOUBLE_COMPLEX, 0x217, 16),
    TYPE(LOGICAL, 0x218, 4),
    TYPE(INTEGER, 0x219, 4),
    TYPE(REAL, 0x21a, 4),
    TYPE(COMPLEX, 0x21b, 8),
    TYPE(DOUBLE_PRECISION, 0x21c, 8),
    TYPE(DOUBLE_COMPLEX, 0x21d, 16),
    TYPE(CHARACTER, 0x21e, 1),
    TYPE(LONG_DOUBLE, 0x220, sizeof(long double)),
    TYPE(C_LONG_DOUBLE_COMPLEX, 0x224, 2 * sizeof(long double)),
    TYPE(CXX_LONG_DOUBLE_COMPLEX, 0x225, 2 * sizeof(long double)),
    TYPE(FLOAT_INT, 0x228, 8),
    TYPE(DOUBLE_INT, 0x229, 12),
    TYPE(LONG_INT, 0x22a, sizeof(long) + 4),
    TYPE(2INT, 0x22b, 8),
    TYPE(SHORT_INT, 0x22c, 6),
    TYPE(LONG_DOUBLE_INT, 0x22d, sizeof(long double) + 4),
    TYPE(2REAL, 0x230, 8),
    TYPE(2DOUBLE_PRECISION, 0x231, 16),
    TYPE(2INTEGER, 0x232, 8),
    TYPE(C_BOOL, 0x238, 1),
    TYPE(CXX_BOOL, 0x239, 1),
    TYPE(WCHAR, 0x23c, 4),
    TYPE(INT8_T, 0x240, 1),
    TYPE(UINT8_T, 0x241, 1),
    TYPE(CHAR, 0x243, 1),
    TYPE(SIGNED_CHAR, 0x244, 1),
    TYPE(UNSIGNED_CHAR, 0x245, 1),
    TYPE(BYTE, 0x247, 1),
    TYPE(INT16_T, 0x248, 2),
    TYPE(UINT16_T, 0x249, 2),
    TYPE(INT32_T, 0x250, 4),
    TYPE(UINT32_T, 0x251, 4),
    TYPE(INT64_T, 0x258, 8),
    TYPE(UINT64_T, 0x259, 8),
    TYPE(LOGICAL1, 0x2c0, 1),
    TYPE(INTEGER1, 0x2c1, 1),
    TYPE(LOGICAL2, 0x2c8, 2),
    TYPE(INTEGER2, 0x2c9, 2),
    TYPE(REAL2, 0x2ca, 2),
    TYPE(LOGICAL4, 0x2d0, 4),
    TYPE(INTEGER4, 0x2d1, 4),
    TYPE(REAL4, 0x2d2, 4),
    TYPE(COMPLEX4, 0x2d3, 4),
    TYPE(LOGICAL8, 0x2d8, 8),
    TYPE(INTEGER8, 0x2d9, 8),
    TYPE(REAL8, 0x2da, 8),
    TYPE(COMPLEX8, 0x2db, 8),
    TYPE(LOGICAL16, 0x2e0, 16),
    TYPE(INTEGER16, 0x2e1, 16),
    TYPE(REAL16, 0x2e2, 16),
    TYPE(COMPLEX16, 0x2e3, 16),
    TYPE(COMPLEX32, 0x2eb, 32),
};

constexpr std::size_t kFirstUnreserved = 4096;  // the ABI keeps the addresses below for predefined handles

TEST(Abi, ErrorClassesHaveTheirNumbersAndTexts) {
  for (const Named& one : kErrors) {
    EXPECT_EQ(one.value, one.number) << one.name;
    const std::string text = canele::mpi::error_text(one.value);
    EXPECT_EQ(text.substr(0, text.find(':')), one.name);
  }
  EXPECT_STREQ(canele::mpi::error_text(MPI_ERR_ABI + 1), "not an MPI error code");
}

TEST(Abi, PredefinedHandlesHaveTheirNumbers) {
  for (const Address& one : kHandles) EXPECT_EQ(one.value, one.number) << one.name;
}

TEST(Abi, DatatypesHaveTheirNumbersSizesAndNames) {
  std::set<std::size_t> known;
  for (const Datatype& one : kTypes) {
    EXPECT_EQ(one.value, one.number) << one.name;
    known.insert(one.number);
    const canele::mpi::Type* const type = canele::mpi::find_type(to_handle<MPI_Datatype>(static_cast<int>(one.number)));
    ASSERT_NE(type, nullptr) << one.name;
    EXPECT_EQ(type->size, one.size) << one.name;
    EXPECT_EQ(handle_bits(type->handle), one.number) << one.name;
    EXPECT_STREQ(type->fixed_name, one.number == 0x20b ? "MPI_LONG_LONG_INT" : one.name);
  }
  for (std::size_t number = 0; number < kFirstUnreserved; ++number) {
    const bool is_found = canele::mpi::find_type(to_handle<MPI_Datatype>(static_cast<int>(number))) != nullptr;
    EXPECT_EQ(is_found, known.count(number) != 0) << number;
  }
}

TEST(Abi, OperatorsOfTheirNumbersCompute) {
  const struct {
    std::size_t number;
    int result;  // of 12 and 10
  } kResults[] = {{0x21, 22}, {0x22, 10}, {0x23, 12}, {0x24, 120}, {0x28, 8},
                  {0x29, 14}, {0x2a, 6},  {0x30, 1},  {0x31, 1},   {0x32, 0}};
  std::set<std::size_t> known;
  for (const auto& one : kResults) {
    const MPI_Op handle = to_handle<MPI_Op>(static_cast<int>(one.number));
    canele::mpi::Operator found;
    ASSERT_EQ(canele::mpi::get_operator(handle, *canele::mpi::find_type(MPI_INT), &found), MPI_SUCCESS);
    const int in = 12;
    int inout = 10;
    found.apply(&in, &inout, 1, *canele::mpi::find_type(MPI_INT));
    EXPECT_EQ(inout, one.result) << one.number;
    known.insert(one.number);
  }
  for (std::size_t number = 0; number < kFirstUnreserved; ++number) {
    const MPI_Op handle = to_handle<MPI_Op>(static_cast<int>(number));
    const bool is_known = canele::mpi::predefined_operator(handle, canele::mpi::Basic::i32) != nullptr;
    EXPECT_EQ(is_known, known.count(number) != 0) << number;
  }
  for (const MPI_Op handle : {MPI_MINLOC, MPI_MAXLOC})
    EXPECT_NE(canele::mpi::predefined_operator(handle, canele::mpi::Basic::int_int), nullptr);
}

TEST(Abi, FortranTypesThatCHasCanBeReduced) {
  const auto has_sum = [](MPI_Datatype type) {
    return canele::mpi::predefined_operator(MPI_SUM, canele::mpi::find_type(type)->basic) != nullptr;
  };
  for (const MPI_Datatype type : {MPI_INTEGER, MPI_INTEGER8, MPI_REAL, MPI_REAL8, MPI_COMPLEX, MPI_COMPLEX16})
    EXPECT_TRUE(has_sum(type)) << canele::mpi::find_type(type)->fixed_name;
  for (const MPI_Datatype type : {MPI_INTEGER16, MPI_REAL2, MPI_REAL16, MPI_COMPLEX4, MPI_2REAL})
    EXPECT_FALSE(has_sum(type)) << canele::mpi::find_type(type)->fixed_name;
}

TEST(Abi, HandlesOfTheProgramAreAboveTheReservedOnes) {
  canele::mpi::Type* made = nullptr;
  ASSERT_EQ(canele::mpi::make_contiguous(3, *canele::mpi::find_type(MPI_INT), &made), MPI_SUCCESS);
  const std::size_t bits = handle_bits(made->handle);
  EXPECT_GE(bits, std::size_t{1} << 27);
  EXPECT_LT(bits, std::size_t{1} << 31);  // an INTEGER of Fortran holds it
  EXPECT_EQ(canele::mpi::find_type(made->handle), made);
  canele::mpi::drop_reference(*made);
}

TEST(Abi, AHandleWithAnUpperHalfIsNone) {
  constexpr std::uintptr_t upper = std::uintptr_t{1} << 32;
  const auto wrong = [](auto handle) { return reinterpret_cast<decltype(handle)>(handle_bits(handle) | upper); };
  EXPECT_NE(canele::mpi::find_type(MPI_INT), nullptr);
  EXPECT_EQ(canele::mpi::find_type(wrong(MPI_INT)), nullptr);
  EXPECT_EQ(canele::mpi::predefined_operator(wrong(MPI_SUM), canele::mpi::Basic::i32), nullptr);
}

TEST(Abi, FortranHandlesAreTheNumbers) {
  EXPECT_EQ(MPI_Comm_c2f(MPI_COMM_WORLD), 0x101);
  EXPECT_EQ(MPI_Comm_f2c(0x102), MPI_COMM_SELF);
  EXPECT_EQ(MPI_Win_c2f(MPI_WIN_NULL), 0x110);
  EXPECT_EQ(MPI_Win_f2c(0x110), MPI_WIN_NULL);
}

TEST(Abi, AStatusWithoutAMessageHasTheValuesOfTheStandard) {
  MPI_Status status;
  std::memset(&status, 0xff, sizeof status);
  canele::mpi::fill_empty_status(&status);
  EXPECT_EQ(status.MPI_SOURCE, -1);
  EXPECT_EQ(status.MPI_TAG, -2);
  EXPECT_EQ(status.MPI_ERROR, -1);  // only calls that return several statuses set it
  EXPECT_EQ(status.cancelled, 0);
  EXPECT_EQ(std::int64_t{status.size}, 0);
  canele::mpi::fill_proc_null_status(&status);
  EXPECT_EQ(status.MPI_SOURCE, -3);
  EXPECT_EQ(status.MPI_TAG, -2);
}

}  // namespace
