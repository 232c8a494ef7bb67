#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs the Debian packages that Canelé needs and this machine lacks. This is the only list of packages.
#
# Usage: tests/install-packages.sh [GROUP...]     groups: build (if none is named) test starpu; --list prints the names
# Used by tests/run.sh, apps/demo.sh, and by hand. Calls apt only if a package is missing: on a machine that has
# everything it costs nothing, and works without being root.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=tests/progress.sh
source "$here/progress.sh"

packages_of() {
  case $1 in
    # The library and its tools.
    build) echo g++ cmake ninja-build make pkg-config python3 libhwloc-dev libpmix-dev libcli11-dev libfmt-dev \
      nlohmann-json3-dev libfabric-dev libpsm2-dev ;;
    # The tests. Open MPI is the other MPI in one process, and a second launcher; mpich and Slurm are launchers only
    # (mpich and openmpi can be installed side by side: mpiexec.hydra, mpirun.openmpi). Then come packages for ranks in
    # network name spaces, BLAS and LAPACKE for canele-cholesky, and clang and the rest for the fuzz targets.
    test) echo python3 libgtest-dev libbenchmark-dev gdb clang-format-14 shellcheck libopenmpi-dev openmpi-bin \
      gfortran procps binutils mpich slurm-wlm munge valgrind strace \
      iproute2 iptables libopenblas-dev liblapacke-dev \
      clang libclang-rt-dev llvm ;;
    # StarPU from Debian's source package: fetching, unpacking, generating configure; a BLAS for its examples.
    starpu) echo python3 dpkg-dev xz-utils patch autoconf automake libtool libtool-bin libopenblas-dev \
      ca-certificates gdb ;;
    *) fail "no package group called '$1'; there are: build test starpu" ;;
  esac
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -o DPkg::Lock::Timeout=120 update &&
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

main() {
  local list=0 group name
  local -a wanted=() missing=()
  for group in "$@"; do
    if [[ $group == --list ]]; then
      list=1
      continue
    fi
    # shellcheck disable=SC2207  # package names have no spaces
    wanted+=($(packages_of "$group"))
  done
  # shellcheck disable=SC2207
  [[ ${#wanted[@]} -gt 0 ]] || wanted=($(packages_of build))
  if [[ $list -eq 1 ]]; then
    printf '%s\n' "${wanted[@]}" | sort -u
    return 0
  fi
  command -v dpkg-query >/dev/null || fail "this is no Debian system; install what matches: ${wanted[*]}"
  for name in $(printf '%s\n' "${wanted[@]}" | sort -u); do
    is_installed "$name" || missing+=("$name")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $(id -u) -ne 0 ]]; then
    fail "Debian packages are missing; as root: apt-get install ${missing[*]}"
  fi
  note "installing ${#missing[@]} Debian packages: ${missing[*]}"
  step "apt-get install" "$root/build/logs/apt.log" apt_install "${missing[@]}"
}

main "$@"
