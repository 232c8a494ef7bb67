/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers stat() for the two names by which libpsm2 looks for Omni-Path hardware, so that it starts without any.
 *
 * Linked into the test programs of the psm2 driver, or preloaded into others by tests. Any thread. libpsm2 asks for the
 * first name before main() runs, so this must not need anything that main() sets up.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int psm2_shim_hides_units; /* set by tests: 1 answers the truth */

__attribute__((visibility("default"))) int stat(const char* restrict path, struct stat* restrict result) {
  const int is_class = strcmp(path, "/sys/class/infiniband/hfi1_0") == 0;
  const int is_device = strcmp(path, "/dev/hfi1_0") == 0;
  if (psm2_shim_hides_units || (!is_class && !is_device)) return fstatat(AT_FDCWD, path, result, 0);
  memset(result, 0, sizeof *result);
  result->st_mode = is_class ? S_IFDIR | 0755 : S_IFCHR | 0666;
  return 0;
}
