/* SPDX-License-Identifier: BSD-3-Clause
 *
 * External32: the bytes of each type as the standard names them, and data that returns as it was.
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <wchar.h>

#include "check.h"

/* Packs one element and compares its bytes, given in hexadecimal; then unpacks it and packs it again. */
static void check_bytes(const void *value, MPI_Datatype type, const char *expected) {
  char packed[64], memory[64] = {0};
  const size_t length = strlen(expected) / 2;
  MPI_Aint size, position = 0;
  MPI_Pack_external_size("external32", 1, type, &size);
  CHECK_EQ(size, length);
  for (int again = 0; again < 2; ++again) {
    position = 0;
    memset(packed, 0x55, sizeof packed);
    MPI_Pack_external("external32", again ? memory : value, 1, type, packed, sizeof packed, &position);
    CHECK_EQ(position, length);
    for (size_t i = 0; i < length; ++i) {
      char text[3];
      snprintf(text, sizeof text, "%02x", (unsigned)(unsigned char)packed[i]);
      CHECK(strncmp(text, expected + 2 * i, 2) == 0);
    }
    CHECK_EQ(packed[length], 0x55);
    position = 0;
    MPI_Unpack_external("external32", packed, sizeof packed, &position, memory, 1, type);
    CHECK_EQ(position, length);
  }
}

static void numbers(void) {
  const short small = -2;
  const int number = 0x01020304;
  const long minus = -5, positive = 0x01020304;
  const unsigned long large = 0xfffffffeul;
  const long long longest = 0x0102030405060708ll;
  const float quarter = 0.25f;
  const double third = -1.5;
  const MPI_Aint place = -1;
  const wchar_t letter = 0x263a;
  const char byte = 'x';
  check_bytes(&small, MPI_SHORT, "fffe");
  check_bytes(&number, MPI_INT, "01020304");
  check_bytes(&minus, MPI_LONG, "fffffffb");
  check_bytes(&positive, MPI_LONG, "01020304");
  check_bytes(&large, MPI_UNSIGNED_LONG, "fffffffe");
  check_bytes(&longest, MPI_LONG_LONG, "0102030405060708");
  check_bytes(&longest, MPI_INT64_T, "0102030405060708");
  check_bytes(&quarter, MPI_FLOAT, "3e800000");
  check_bytes(&third, MPI_DOUBLE, "bff8000000000000");
  check_bytes(&place, MPI_AINT, "ffffffffffffffff");
  check_bytes(&letter, MPI_WCHAR, "263a");
  check_bytes(&byte, MPI_CHAR, "78");
  check_bytes(&byte, MPI_BYTE, "78");
}

static void long_doubles(void) {
  const struct {
    long double value;
    const char *bytes;
  } known[] = {{0, "00000000000000000000000000000000"},
               {1, "3fff0000000000000000000000000000"},
               {-2.5L, "c0004000000000000000000000000000"},
               {HUGE_VALL, "7fff0000000000000000000000000000"},
               {1 + LDBL_EPSILON, LDBL_MANT_DIG == 64 ? "3fff0000000000000002000000000000" : NULL},
               {LDBL_MIN, "00010000000000000000000000000000"},
               {LDBL_MIN / 2, "00008000000000000000000000000000"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (known[i].bytes != NULL) check_bytes(&known[i].value, MPI_LONG_DOUBLE, known[i].bytes);
  }
  /* Numbers of more digits than this machine has: to the nearest, or the even one. */
  const struct {
    unsigned char tail[8]; /* the last 64 bits of the fraction of 1.000... */
    int ulps;
  } rounded[] = {{{0, 1, 0, 0, 0, 0, 0, 0}, 0},
                 {{0, 1, 0, 0, 0, 0, 0, 1}, 1},
                 {{0, 3, 0, 0, 0, 0, 0, 0}, 2},
                 {{0, 0, 255, 255, 255, 255, 255, 255}, 0}};
  for (size_t i = 0; LDBL_MANT_DIG == 64 && i < sizeof rounded / sizeof *rounded; ++i) {
    unsigned char packed[16] = {0x3f, 0xff};
    long double value = 0;
    MPI_Aint position = 0;
    memcpy(packed + 8, rounded[i].tail, 8);
    MPI_Unpack_external("external32", packed, 16, &position, &value, 1, MPI_LONG_DOUBLE);
    CHECK(value == 1 + rounded[i].ulps * LDBL_EPSILON);
  }
  const long double none = NAN;
  long double back = 0;
  char packed[16];
  MPI_Aint position = 0;
  MPI_Pack_external("external32", &none, 1, MPI_LONG_DOUBLE, packed, 16, &position);
  position = 0;
  MPI_Unpack_external("external32", packed, 16, &position, &back, 1, MPI_LONG_DOUBLE);
  CHECK(isnan(back));
}

static void pairs(void) {
  const struct {
    long value;
    int index;
  } one = {-1, 2};
  const struct {
    short value;
    int index;
  } small = {3, 4};
  const double complex_number[] = {1, -1};
  check_bytes(&one, MPI_LONG_INT, "ffffffff00000002");
  check_bytes(&small, MPI_SHORT_INT, "000300000004");
  check_bytes(complex_number, MPI_C_DOUBLE_COMPLEX, "3ff0000000000000bff0000000000000");
}

struct record {
  char letter;
  long wide[3];
  short tail;
  double last[2];
};

/* A structure with gaps, several of them, by both forms; and a type whose numbers do not lie in the order of memory. */
static void derived(void) {
  enum { kRecords = 300 };
  const int lengths[] = {2, 1, 3, 1}; /* last, letter, wide, tail */
  const MPI_Aint places[] = {offsetof(struct record, last), offsetof(struct record, letter),
                             offsetof(struct record, wide), offsetof(struct record, tail)};
  const MPI_Datatype types[] = {MPI_DOUBLE, MPI_CHAR, MPI_LONG, MPI_SHORT};
  static struct record out[kRecords], in[kRecords];
  static char packed[kRecords * 31 + 8];
  MPI_Datatype bare, type;
  MPI_Type_create_struct(4, lengths, places, types, &bare);
  MPI_Type_create_resized(bare, 0, sizeof(struct record), &type);
  MPI_Type_free(&bare);
  for (int i = 0; i < kRecords; ++i) out[i] = (struct record){(char)i, {i, -i, i * 1000}, (short)-i, {i / 4.0, -i}};
  MPI_Aint size, position = 8;
  MPI_Pack_external_size("external32", kRecords, type, &size);
  CHECK_EQ(size, kRecords * (16 + 1 + 12 + 2));
  MPI_Pack_external("external32", out, kRecords, type, packed, sizeof packed, &position);
  CHECK_EQ(position, sizeof packed);
  CHECK(memcmp(packed + 8 + 31, "\x3f\xd0\0\0\0\0\0\0\xbf\xf0\0\0\0\0\0\0\1\0\0\0\1\xff\xff\xff\xff\0\0\3\xe8\xff\xff",
               31) == 0);
  position = 8;
  MPI_Unpack_external("external32", packed, sizeof packed, &position, in, kRecords, type);
  CHECK_EQ(position, sizeof packed);
  for (int i = 0; i < kRecords; ++i) {
    CHECK(in[i].letter == (char)i && in[i].tail == (short)-i && in[i].last[0] == i / 4.0 && in[i].last[1] == -i);
    CHECK(in[i].wide[0] == i && in[i].wide[1] == -i && in[i].wide[2] == i * 1000);
  }
#ifdef CANELE_MPI
  MPI_Count count_size, count_position = 8;
  MPI_Pack_external_size_c("external32", kRecords, type, &count_size);
  CHECK_EQ(count_size, size);
  memset(in, 0, sizeof in);
  MPI_Unpack_external_c("external32", packed, sizeof packed, &count_position, in, kRecords, type);
  CHECK(count_position == sizeof packed && in[kRecords - 1].last[1] == 1 - kRecords);
  count_position = 8;
  MPI_Pack_external_c("external32", in, 1, type, packed, sizeof packed, &count_position);
  CHECK_EQ(count_position, 8 + 31);
#endif
  MPI_Type_free(&type);
}

#ifdef CANELE_MPI
static void wrong_arguments(void) {
  const long beyond = (long)INT_MAX + 1, below_it = (long)INT_MIN - 1;
  char packed[8];
  MPI_Aint position = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_EQ(class_of(MPI_Pack_external("native", &beyond, 1, MPI_INT, packed, 8, &position)),
           MPI_ERR_UNSUPPORTED_DATAREP);
  CHECK_EQ(class_of(MPI_Pack_external("external32", &beyond, 1, MPI_LONG, packed, 8, &position)),
           MPI_ERR_VALUE_TOO_LARGE);
  CHECK_EQ(class_of(MPI_Pack_external("external32", &below_it, 1, MPI_LONG, packed, 8, &position)),
           MPI_ERR_VALUE_TOO_LARGE);
  CHECK_EQ(class_of(MPI_Pack_external("external32", &below_it, 1, MPI_UNSIGNED_LONG, packed, 8, &position)),
           MPI_ERR_VALUE_TOO_LARGE);
  CHECK_EQ(class_of(MPI_Pack_external("external32", packed, 2, MPI_INT, packed, 7, &position)), MPI_ERR_TRUNCATE);
  position = 5;
  CHECK_EQ(class_of(MPI_Pack_external("external32", packed, 1, MPI_INT, packed, 8, &position)), MPI_ERR_TRUNCATE);
  position = -1;
  CHECK_EQ(class_of(MPI_Unpack_external("external32", packed, 8, &position, packed, 1, MPI_INT)), MPI_ERR_TRUNCATE);
  CHECK_EQ(position, -1);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  numbers();
  long_doubles();
  pairs();
  derived();
#ifdef CANELE_MPI
  wrong_arguments();
#endif
  return finish();
}
