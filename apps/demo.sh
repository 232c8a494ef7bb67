#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The demonstration: Debian's StarPU, unmodified, factorises a matrix (Cholesky) over Canelé on several processes. The
# result is checked. The script needs nothing but this tree. It installs packages, builds Canelé, fetches and builds
# StarPU, runs the job, and shows the traffic of each rank.
#
# Usage: apps/demo.sh [options]
#     --processes LIST   numbers of processes, e.g. 2,4 (default: 2,4)
#     --driver LIST      drivers, e.g. shm,tcp (default: shm,tcp); each is used alone
#     --size N           order of the matrix (default: 3200; a multiple of the number of blocks)
#     --blocks N         blocks per dimension (default: 10)
#     --flip-byte        inverts one bit of a received message on purpose: the demonstration must then fail
#     --clean            deletes what earlier runs built
#     --help             shows this text
#
# Called by people and by tests/run.sh. Logs are in build/demo/. Canelé is installed in build/prefix, and StarPU is
# built in build/starpu.
# Surprise: a right result is not enough. The job would have computed something else than claimed with a wrong world
# size, with two ranks that exchanged nothing, or over another driver. Each of these is a failure, too.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=tests/progress.sh
source "$root/tests/progress.sh"

prefix=$root/build/prefix
starpu=$root/build/starpu/canele
logs=$root/build/demo
processes=2,4
drivers=shm,tcp
size=3200
blocks=10
flip=0
clean=0
layout=() # how blocks are given to processes; empty: the program's default
results=()

usage() {
  sed -n '4,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

parse_arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --processes) processes=${2:?--processes wants a list, e.g. 2,4} && shift ;;
      --driver | --drivers) drivers=${2:?--driver wants a list, e.g. shm,tcp} && shift ;;
      --size) size=${2:?--size wants a number} && shift ;;
      --blocks) blocks=${2:?--blocks wants a number} && shift ;;
      --flip-byte) flip=1 ;;
      --clean) clean=1 ;;
      --help | -h) usage && exit 0 ;;
      *) fail "unknown argument '$1'; --help lists those there are" ;;
    esac
    shift
  done
  [[ $processes =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || fail "--processes wants numbers, e.g. 2,4; not '$processes'"
  [[ $size =~ ^[1-9][0-9]*$ && $blocks =~ ^[1-9][0-9]*$ ]] || fail "--size and --blocks want numbers"
  [[ $((size % blocks)) -eq 0 ]] || fail "--size $size is no multiple of --blocks $blocks"
}

configure_canele() {
  local -a options=(--preset release)
  # A build tree that a developer has configured keeps its options. A new one needs no tests.
  [[ -e $root/build/release/CMakeCache.txt ]] || options+=(-DCANELE_TESTS=OFF -G Ninja)
  cd "$root" && cmake "${options[@]}"
}

build_canele() {
  cd "$root" && cmake --build --preset release
}

install_canele() {
  cd "$root" && cmake --install build/release --prefix "$prefix"
}

# run_cholesky PROCESSES DRIVER LOG: runs the program under a time limit that shows stacks.
run_cholesky() {
  local count=$1 driver=$2 counters=$3 cores workers
  cores=$(nproc)
  workers=$((cores / count > 0 ? cores / count : 1))
  local -a settings=(CANELE_DRIVERS="$driver" CANELE_COUNTERS="$counters/%r.json" STARPU_NCPU="$workers"
    STARPU_WORKERS_NOBIND=1 STARPU_HOME="$starpu/home" OPENBLAS_NUM_THREADS=1)
  [[ $flip -eq 0 ]] || settings+=(CANELE_EXPERT_FAULT=flip-byte:1)
  rm -rf "$counters" && mkdir -p "$counters" &&
    env "${settings[@]}" "$root/tests/with-timeout" 300 "$prefix/bin/canele-run" -n "$count" \
      "$starpu/mpi/examples/matrix_decomposition/mpi_cholesky" -size "$size" -nblocks "$blocks" -check "${layout[@]}"
}

# value_of LOG TEXT: prints the number after TEXT in the program's output.
value_of() {
  sed -n "s/.*$2 *\([0-9.]*\).*/\1/p" "$1" | tail -n 1
}

# demonstrate PROCESSES DRIVER: does one run and shows its result and its traffic. Returns 1 if anything is not as
# claimed.
demonstrate() {
  local count=$1 driver=$2 name="$2, $1 processes" log=$logs/cholesky-$2-$1.log begin=$SECONDS status=0
  local counters=$logs/counters-$driver-$count gflops milliseconds
  step "Cholesky over $name" "$log" run_cholesky "$count" "$driver" "$counters" || status=$?
  if grep -q 'Error\[' "$log"; then
    note "Cholesky over $name: the check of the result FAILED"
    status=1
  elif [[ $status -eq 0 ]] && ! grep -q 'comparing results' "$log"; then
    note "Cholesky over $name: the result was not checked; see $log"
    status=1
  fi
  if [[ $status -ne 0 ]]; then
    results+=("FAILED  $name")
    return 1
  fi
  milliseconds=$(value_of "$log" 'Computation time (in ms):')
  gflops=$(value_of "$log" 'Synthetic GFlops :')
  if ! /usr/bin/python3 -B "$root/tests/starpu/traffic.py" "$counters" --ranks "$count" --driver "$driver"; then
    note "Cholesky over $name: the traffic is not as asked"
    results+=("FAILED  $name (traffic)")
    return 1
  fi
  results+=("right   $name: $gflops GFlop/s, $milliseconds ms of $((SECONDS - begin)) s")
}

demonstrate_all() {
  local count driver failures=0
  for count in ${processes//,/ }; do
    for driver in ${drivers//,/ }; do
      demonstrate "$count" "$driver" || failures=$((failures + 1))
    done
  done
  return "$failures"
}

main() {
  parse_arguments "$@"
  if [[ $clean -eq 1 ]]; then
    rm -rf "$root/build/demo" "$root/build/prefix" "$root/build/starpu" "$root/build/release"
  fi
  mkdir -p "$logs"
  note "logs are in $logs"
  "$root/tests/install-packages.sh" build starpu
  step "configuring Canelé" "$logs/configure.log" configure_canele || exit 1
  step "building Canelé" "$logs/build.log" build_canele || exit 1
  step "installing Canelé in $prefix" "$logs/install.log" install_canele || exit 1
  "$root/tests/starpu/build-starpu.sh" --canele "$prefix"
  local failures=0
  if [[ $flip -eq 1 ]]; then
    # Two block rows, one for each process. The first large message of rank 0 is then a tile of the result below the
    # diagonal, where a wrong bit must show. A wrong bit in a tile that is only input of later steps is below the
    # check's tolerance.
    note "one bit of a received message will be inverted on purpose: this run must fail"
    size=1280 blocks=2 processes=2
    layout=(-dblockx 1 -dblocky 2)
  fi
  demonstrate_all || failures=$?
  note "summary: Cholesky of order $size in $blocks x $blocks blocks, single precision, StarPU on Canelé"
  printf '    %s\n' "${results[@]}"
  [[ $failures -eq 0 ]] || fail "$failures of ${#results[@]} runs failed; logs are in $logs"
  note "all ${#results[@]} runs gave the right result"
}

main "$@"
