#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds everything and runs every test. Ends with one line: N passed, N failed (and N skipped, if any were).
#
# Usage: tests/run.sh [options]
#     --quick          the fast part: release build, tidy, unit tests, tests with real processes; without simulator
#                      and network libraries
#     --soak           the long campaigns that people start by hand. 10,000 simulated jobs, and 200 under sanitizers.
#                      4,096 simulated engines. Launchers, networks and deaths under AddressSanitizer, MPI programs
#                      with more numbers of ranks under it and ThreadSanitizer. Every matcher beside the model,
#                      millions of operations and all short sequences. Ranks killed a hundred times per driver. Each
#                      fuzz target for 10 minutes of processor time. Every planted bug and its catchers. StarPU's suite
#                      three times per driver, with every strategy, unbound, with hooks, over ofi and psm2. Each source
#                      compiled on its own. All of MPICH's tests in C. The HPC Challenge benchmark.
#                      hypre, PETSc and FFTW with their own checks.
#     --only LIST      only these stages, e.g. --only release,unit (a stage needs what it builds on; see --stages)
#     --stages         list the stages
#     --minutes N      begin no stage after N minutes; those left out are named, and count as skipped
#     --jobs N         processes to build and test with (default: all cores)
#     --help
#
# With CI=true in the environment, as under .ci/run, warnings are errors. Logs are in build/logs/, StarPU's results in
# build/starpu-results/.
#
# A stage that fails does not stop the others, unless they build on it; those then count as failed, not as skipped. The
# builds for the sanitizers, the fuzzers and StarPU run in the background, while the tests before them run.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=tests/progress.sh
source "$here/progress.sh"
# shellcheck source=tests/soak.sh
source "$here/soak.sh"

logs=$root/build/logs
failures=$logs/failures.txt # what failed; a step that fails appends its end, see progress.sh
prefix=$root/build/prefix
mpich_soak_only='threads/(pt2pt|comm)|rma/(atomic_get_(long|double)|rma_contig)' # take long; soak-mpich runs all
jobs=$(nproc)
only=
minutes= # of the limit; empty: none
conformance=ON # build the kit, too.
simulation=ON  # the simulator, too, and exhaustive worlds.
fabrics=ON     # the drivers for network libraries, too.
more=()        # options of cmake, for one stage.
headers=()     # options of tidy: in quick runs headers are not compiled alone.
ahead=()       # what is built in the background, while tests run: presets, StarPU.
last_before_ahead=release
builder=       # the process that builds them
passed=0
failed=0
skipped=0
summary=()
broken=() # stages that failed: stages that build on them are not tried

quick_stages=(packages release tidy tests)
# With a time limit the last stages may be left out: those whose findings are rarest, and that others cover in part.
full_stages=(packages release install tidy unit process system simulation conformance package asan asan-tests
  starpu starpu-shm starpu-tcp demo flip mpich tsan tsan-tests fuzz examples-shm examples-tcp unbound launched start)
soak_stages=(packages release install starpu soak-mpich soak-hpcc soak-libraries soak-alone soak-matching
  soak-simulation soak-sanitized soak-system soak-counts soak-mutations soak-death soak-engines soak-stress soak-gpu
  soak-nemesis soak-misfortunes soak-fuzz soak-shm soak-tcp soak-strategies soak-unbound soak-hooks soak-fabrics
  soak-starpu14)
stages=("${full_stages[@]}")

usage() {
  sed -n '4,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

parse_arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --quick) stages=("${quick_stages[@]}") conformance=OFF simulation=OFF fabrics=OFF headers=(--without headers) ;;
      --soak) stages=("${soak_stages[@]}") ;;
      --only) only=${2:?--only wants a list of stages} && shift ;;
      --stages) printf '%s\n' "${full_stages[@]}" "${soak_stages[@]}" | awk '!seen[$0]++' && exit 0 ;;
      --build-ahead) IFS=, read -r -a ahead <<<"$2" && stages=() && shift ;; # internal: see build_ahead
      --minutes) minutes=${2:?--minutes wants a number} && shift ;;
      --jobs) jobs=${2:?--jobs wants a number} && shift ;;
      --help | -h) usage && exit 0 ;;
      *) fail "unknown argument '$1'; --help lists those there are" ;;
    esac
    shift
  done
  if [[ -n $only ]]; then
    IFS=, read -r -a stages <<<"$only"
  fi
  [[ $minutes =~ ^[0-9]*$ ]] || fail "--minutes wants a number of minutes; not '$minutes'"
  local stage
  for stage in "${stages[@]}"; do
    [[ " ${quick_stages[*]} ${full_stages[*]} ${soak_stages[*]} " == *" $stage "* ]] ||
      fail "there is no stage '$stage'; --stages lists them"
  done
  [[ " ${stages[*]} " != *" install "* ]] || last_before_ahead=install # StarPU is built on what is installed
}

# --- counting -------------------------------------------------------------------------------------------------------

# count PASSED FAILED SKIPPED
count() {
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# count_closing_line LOG STATUS: adds "N passed, N failed[, N skipped]", the last line of a suite's output.
count_closing_line() {
  local numbers
  numbers=$(sed -nE 's/^([a-z]+: )?([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\2 \3 0\5/p' "$1" | tail -n 1)
  read -r -a numbers <<<"${numbers:-0 1 0}"
  # An exit code of failure where no test was counted as failed (or the reverse) is itself a failure.
  [[ $2 -eq 0 || ${numbers[1]} -gt 0 ]] || numbers[1]=1
  count "${numbers[0]}" "${numbers[1]}" "$((10#${numbers[2]}))"
  [[ $2 -eq 0 && ${numbers[1]} -eq 0 ]]
}

# one_check COMMAND...: a command that is one test. (Builds and installs are no tests: only their failure is counted.)
one_check() {
  if "$@"; then
    count 1 0 0
  else
    count 0 1 0
    return 1
  fi
}

# streamed LOG COMMAND...: runs the command with its output to the log and to the terminal.
streamed() {
  local log=$1 status=0
  shift
  "$@" 2>&1 </dev/null | tee "$log" || status=$?
  [[ $status -eq 0 || $status -eq 77 ]] || failures_in "$log" >>"$failures"
  return "$status"
}

# failures_in LOG: prints the failures of a run, without its successes; the end of the log if none is marked. They are
# repeated when all stages have run: many logs keep only the end.
failures_in() {
  local begins='(: Failure|^(FAIL|ERROR): .*|.*Sanitizer.*|.*time limit of.*|.*Assertion.*)$'
  local marked="$begins|\*\*\*(Failed|Timeout|Exception)|^ *[0-9]+/[0-9]+ (FAIL|XPASS) |: does not hold: "
  echo "    the failures in $1:"
  (grep -n -A 10 -E "$marked" "$1" || tail -n 20 "$1") | head -n 150 | sed 's/^/    | /'
}

# --- building -------------------------------------------------------------------------------------------------------

configure_and_build() {
  local preset=$1 werror=OFF
  local -a generator=() release_only=(-DCANELE_CONFORMANCE=OFF) # what sanitizers do not run need not be built
  [[ ${CI:-} != true ]] || werror=ON
  [[ -e $root/build/$preset/CMakeCache.txt ]] || ! command -v ninja >/dev/null || generator=(-G Ninja)
  [[ $preset != release ]] ||
    release_only=("-DCANELE_CONFORMANCE=$conformance" "-DCANELE_SIMULATION=$simulation" "-DCANELE_FABRICS=$fabrics")
  cd "$root" &&
    cmake --preset "$preset" "${generator[@]}" -DCANELE_TESTS=ON -DCANELE_APPS=ON -DCANELE_WERROR=$werror \
      "${release_only[@]}" "${more[@]}" &&
    cmake --build --preset "$preset" --parallel "$jobs"
}

# build_it NAME: builds a preset, or StarPU.
build_it() {
  case $1 in
    fuzz) build_alone fuzz ;;
    starpu) "$here/starpu/build-starpu.sh" --canele "$prefix" --jobs "$jobs" ;;
    starpu14) "$here/starpu/build-starpu.sh" --canele "$prefix" --suite forky --jobs "$jobs" ;;
    *) configure_and_build "$1" ;;
  esac
}

# build NAME [WHAT]: builds it, or waits for it if it is built in the background.
build() {
  local name=$1 what=${2:-the $1 preset} command=build_it
  [[ " ${ahead[*]} " != *" $name "* ]] || command=await_build
  step "building $what" "$logs/build-$name.log" "$command" "$name"
}

# Builds for later stages in the background, at the lowest priority: most tests wait most of the time.
build_ahead() {
  local name
  for name in asan starpu tsan fuzz; do
    [[ " ${stages[*]} " != *" $name "* || ($name == fuzz && -n $(fuzzer_missing)) ]] || ahead+=("$name")
    rm -f "$logs/ahead-$name.log" "$logs/ahead-$name.status"
  done
  [[ ${#ahead[@]} -gt 0 ]] || return 0
  setsid nice -n 19 "${BASH_SOURCE[0]}" --jobs "$jobs" --build-ahead "$(IFS=, && echo "${ahead[*]}")" \
    >"$logs/ahead.log" 2>&1 </dev/null &
  builder=$!
  at_exit "kill -- -$builder 2>/dev/null || true"
}

# prioritize_builder PID NICENESS: of the background process and all that it starts. Only root may lower a niceness.
prioritize_builder() {
  { echo "$2" >"/proc/$1/autogroup"; } 2>/dev/null || [[ ! -e /proc/$1/autogroup ]] || return 1
  renice -n "$2" -g "$1" >/dev/null 2>&1
}

# The work of the background process. Its session is a scheduling group of its own, in which nice alone means nothing
# to the tests of this session: the group is given the lowest priority, too (sched(7), autogroup).
build_all_ahead() {
  local name status
  prioritize_builder "$BASHPID" 19 || true
  for name in "${ahead[@]}"; do
    status=0
    (build_it "$name") >"$logs/ahead-$name.log" 2>&1 </dev/null || status=$?
    echo "$status" >"$logs/ahead-$name.new" && mv "$logs/ahead-$name.new" "$logs/ahead-$name.status"
  done
}

# await_build NAME: shows the progress or the log of its build, which has the usual priority from now on: beside other
# work, the lowest one would get next to no time. If the background process has ended without a result, or must stay at
# the lowest priority, the missing part is built here.
await_build() {
  if [[ ! -e $logs/ahead-$1.status ]] && ! prioritize_builder "$builder" 0; then
    kill -- "-$builder" 2>/dev/null || true
  fi
  tail -n +1 --pid="$builder" -F "$logs/ahead-$1.log" 2>/dev/null &
  while [[ ! -e $logs/ahead-$1.status ]] && kill -0 "$builder" 2>/dev/null; do
    sleep 0.5
  done
  kill $! 2>/dev/null || true
  prioritize_builder "$builder" 19 || true
  [[ -e $logs/ahead-$1.status ]] && return "$(<"$logs/ahead-$1.status")"
  echo "the background process has ended before it had built $1; building it here"
  build_it "$1"
}

# run_ctest PRESET LABELS [AT ONCE [EXCEPT]]: runs the ctest entries with one of the labels (a regular expression),
# without those that have the label EXCEPT.
run_ctest() {
  local preset=$1 labels=$2 at_once=${3:-$jobs} except=${4:-none} directory=$root/build/$1 status=0 numbers
  local log=$logs/ctest-$1-${labels//[^a-z]/-}.log junit=$root/build/$1/results/junit-${labels//[^a-z]/-}.xml
  mkdir -p "$directory/results"
  find "$directory/results" -name '*.xml' -delete
  step "tests ($labels) of the $preset preset" "$log" ctest --test-dir "$directory" -L "^($labels)\$" -LE "^$except\$" \
    -j "$at_once" --output-on-failure --no-tests=error --output-junit "$junit" || status=$?
  [[ $status -eq 0 ]] || failures_in "$log" | tee -a "$failures"
  numbers=$("$here/count_results.py" "$junit" "$directory/results" 2>/dev/null || echo 0 1 0)
  read -r -a numbers <<<"$numbers"
  [[ $status -eq 0 || ${numbers[1]} -gt 0 ]] || numbers[1]=1
  count "${numbers[@]}"
  [[ $status -eq 0 && ${numbers[1]} -eq 0 ]]
}

# --- the stages -----------------------------------------------------------------------------------------------------

# Runs the kit that every driver must pass; its table shows how long each test took, and why one was skipped.
run_conformance() {
  local status=0
  run_ctest release conformance || status=$?
  cat "$root/build/release/results/conformance/conformance.txt" 2>/dev/null || true
  return "$status"
}

install_packages() {
  "$here/install-packages.sh" build test starpu
}

# Not through ctest: a tree that does not compile is checked, too.
check_tidy() {
  local log=$logs/tidy.log argument status=0
  for argument in --self-test --all; do
    step "house rules ($argument)" "$log" "$here/with-timeout" 300 "$here/tidy/tidy.py" "$argument" "${headers[@]}" ||
      status=1
    count_closing_line "$log" "$status" || status=1
  done
  one_check step "commit messages" "$logs/commits.log" "$here/tidy/commit_message.py" --new || status=1
  return "$status"
}

install_release() {
  rm -rf "$prefix"
  step "installing in $prefix" "$logs/install.log" cmake --install "$root/build/release" --prefix "$prefix"
}

# Builds Debian's StarPU on the install. StarPU needs the symbols that the unit stage has checked, and no others.
build_starpu() {
  build starpu "Debian's StarPU" &&
    one_check streamed "$logs/symbols.log" "$here/starpu/symbols.py" --library "$prefix"/lib/libcanele_mpi.so \
      --starpu "$root/build/starpu/canele" --list "$here/starpu/symbols-1.3.10.txt"
}

# suite NAME OPTIONS...: runs StarPU's own tests or examples; prints every program and its time.
suite() {
  local log=$logs/$1.log status=0
  shift
  streamed "$log" "$here/starpu/run_suite.py" "$@" || status=$?
  count_closing_line "$log" "$status"
}

# run_mpich STAGE ONLY [OPTIONS...]: runs MPICH's own tests in C, from Debian's source package, on the install.
run_mpich() {
  local log=$logs/$1.log only=$2 status=0
  shift 2
  streamed "$log" "$here/mpi/mpich/suite.py" --bin "$prefix/bin" --jobs "$jobs" --only "$only" "$@" || status=$?
  count_closing_line "$log" "$status"
}

# Some lines of each kind as programs of the standard ABI, which differ from others in header and library only.
run_mpich_abi() {
  local lines='attr/attr(?!ic)|group/|init/(exitst|finalized|attrself)|pt2pt/(sendrecv[123]|anyall) |coll/scantst '
  run_mpich mpich-abi "^($lines)" --mpi-abi
}

# Prints a number that differs for every commit, so that a finding can be repeated, and a commit be tried beforehand.
seed_of_commit() {
  local commit
  commit=$(git -C "$root" rev-parse HEAD 2>/dev/null) || commit=1
  echo $((16#${commit:0:7}))
}

# run_seeds NAME RUNS OPTIONS...: runs fresh seeds, which are printed; then those that once failed.
run_seeds() {
  local first status=0 sim=$root/build/release/bin/canele-sim line
  local -a options
  local name=$1 runs=$2
  shift 2
  first=$(seed_of_commit)
  note "simulation: $runs seeds from $first on"
  one_check streamed "$logs/$name.log" "$here/with-timeout" $((300 + runs * 2)) "$sim" --workload mixed \
    --seed "$first" --runs "$runs" --all-coverage "$@" || status=1
  while read -r line; do
    [[ -n $line && $line != \#* ]] || continue
    read -r -a options <<<"${line%%#*}"
    one_check step "simulation: ${line%%#*}" "$logs/$name-regression.log" "$here/with-timeout" 120 "$sim" \
      "${options[@]}" || status=1
  done <"$here/simulation/regression.txt"
  return "$status"
}

# run_others FLOODS STARTUPS COLLECTIVES ONE-SIDED: runs so many fresh seeds of the other workloads with faults.
run_others() {
  local first status=0 workload
  local -A runs=([flood]=$1 [startup]=$2 [collectives]=$3 [one-sided]=$4) coverage=([one-sided]=--all-coverage)
  first=$(seed_of_commit)
  for workload in flood startup collectives one-sided; do
    one_check streamed "$logs/simulation-$workload.log" "$here/with-timeout" $((120 + runs[$workload] * 2)) \
      "$root/build/release/bin/canele-sim" --workload "$workload" --seed "$first" --runs "${runs[$workload]}" \
      ${coverage[$workload]:+"${coverage[$workload]}"} || status=1
  done
  return "$status"
}

# run_scale RANKS...: runs so many engines in one process; checks the memory that a peer may cost.
run_scale() {
  local ranks status=0
  for ranks in "$@"; do
    one_check streamed "$logs/scale-$ranks.log" "$here/with-timeout" $((120 + ranks)) \
      "$root/build/release/bin/canele-sim" --workload scale --ranks "$ranks" || status=1
  done
  return "$status"
}

run_simulation() {
  local status=0
  run_seeds simulation 240 || status=1
  run_others 20 80 100 100 || status=1
  run_scale 256 || status=1
  return "$status"
}

# Follows docs/start.md and README.md in a fresh clone, the compilation of the tree included: some three minutes on two
# cores. The last lines say how long the first message took.
run_start() {
  one_check streamed "$logs/start.log" env CANELE_TEST_LITERALLY=1 "$here/with-timeout" 1200 \
    /usr/bin/python3 -B "$here/package/package_test.py" PagesTest
}

# Runs StarPU's Cholesky under other launchers than ours. A launcher that cannot run here is skipped, with its reason.
run_launched() {
  local launcher status failures=0 log
  for launcher in Hydra Slurm; do
    status=0 log=$logs/launched-${launcher,}.log
    streamed "$log" "$here/with-timeout" 150 /usr/bin/python3 -B "$here/process/launchers/launchers_test.py" \
      "${launcher}Cholesky" || status=$?
    case $status in
      0) count 1 0 0 ;;
      77) count 0 0 1 ;;
      *) count 0 1 0 && failures=1 ;;
    esac
  done
  return "$failures"
}

run_demo() {
  one_check streamed "$logs/demo.log" "$root/apps/demo.sh"
}

# With one byte inverted the demonstration must fail, because the check of the result reports it and for no other
# reason.
demo_fails_on_flipped_byte() {
  local status=0
  "$root/apps/demo.sh" --flip-byte --driver "$1" >"$logs/flip-$1.log" 2>&1 || status=$?
  if [[ $status -ne 0 ]] && grep -q 'the check of the result FAILED' "$logs/flip-$1.log"; then
    note "demo with one byte flipped, over $1: fails, as it must"
  else
    note "demo with one byte flipped, over $1: exit code $status, but the check of the result did not fail"
    return 1
  fi
}

run_flip() {
  local driver status=0
  for driver in shm tcp; do
    one_check demo_fails_on_flipped_byte "$driver" || status=1
  done
  return "$status"
}

# Prints why the fuzz targets cannot be built; nothing if they can.
fuzzer_missing() {
  local program=$root/build/fuzz-check
  mkdir -p "$root/build"
  if ! command -v clang++ >/dev/null; then
    echo "clang++ is missing (Debian package: clang)"
  elif ! clang++ -fsanitize=fuzzer,address -x c++ - -o "$program" 2>/dev/null \
    <<<'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'; then
    echo "clang++ cannot link libFuzzer (Debian package: libclang-rt-dev)"
  fi
  rm -f "$program"
}

# build_alone PRESET: builds a preset whose own output shows what is built.
build_alone() {
  local preset=$1 werror=OFF
  local -a generator=()
  [[ ${CI:-} != true ]] || werror=ON
  [[ -e $root/build/$preset/CMakeCache.txt ]] || ! command -v ninja >/dev/null || generator=(-G Ninja)
  cd "$root" && cmake --preset "$preset" "${generator[@]}" -DCANELE_WERROR=$werror &&
    cmake --build --preset "$preset" --parallel "$jobs"
}

# run_fuzz [OPTIONS...]: runs every fuzz target; prints what it did, and its seed.
run_fuzz() {
  local status=0 reason
  reason=$(fuzzer_missing)
  if [[ -n $reason ]]; then
    note "the fuzz targets are skipped: $reason"
    count 0 0 1
    return 0
  fi
  build fuzz || return 1
  streamed "$logs/fuzz.log" "$here/fuzz/run_fuzz.py" --jobs "$jobs" "$@" || status=$?
  count_closing_line "$logs/fuzz.log" "$status"
}

run_stage() {
  case $1 in
    packages) install_packages ;;
    release) build release ;;
    tidy) check_tidy ;;
    tests) run_ctest release 'unit|tools|process|mpi' $((2 * jobs)) ;; # the next two stages at once
    unit) run_ctest release 'unit|tools' ;;
    process) run_ctest release 'process|mpi' $((2 * jobs)) ;; # most of the time they wait
    system) run_ctest release system ;;
    simulation) run_simulation ;;
    conformance) run_conformance ;;
    package) run_ctest release package ;;
    start) run_start ;;
    asan | tsan) build "$1" ;;
    asan-tests | tsan-tests) run_ctest "${1%-tests}" 'unit|process|mpi' $((jobs + 1)) counts ;; # see soak-counts
    fuzz) run_fuzz --seed "$(seed_of_commit)" --runs-factor 0.5 ;;
    install) install_release ;;
    mpich) run_mpich mpich "^(?!$mpich_soak_only)" && run_mpich_abi ;;
    soak-mpich) run_mpich soak-mpich '' ;;
    soak-hpcc) libraries soak-hpcc hpcc ;;
    soak-libraries) libraries soak-libraries hypre fftw petsc ;;
    starpu) build_starpu ;;
    starpu-shm | starpu-tcp) suite "$1" --driver "${1#starpu-}" ;;
    examples-shm | examples-tcp) suite "$1" --examples --driver "${1#examples-}" ;;
    unbound) suite unbound --driver shm --nobind --hooks ;;
    launched) run_launched ;;
    demo) run_demo ;;
    flip) run_flip ;;
    soak-alone) soak_alone ;;
    soak-sanitized) soak_sanitized ;;
    soak-system) more=(-DCANELE_PERF=ON) && build asan && run_ctest asan system ;;
    soak-counts) soak_counts ;;
    soak-death) soak_death ;;
    soak-engines) soak_engines ;;
    soak-stress) soak_stress ;;
    soak-gpu) soak_gpu ;;
    soak-nemesis) soak_nemesis ;;
    soak-misfortunes) soak_misfortunes ;;
    soak-matching) soak_matching ;;
    soak-simulation) soak_simulation ;;
    soak-fuzz) soak_fuzz ;;
    soak-mutations) soak_mutations ;;
    soak-shm | soak-tcp) suite "$1" --driver "${1#soak-}" --runs 3 ;;
    soak-strategies) soak_strategies ;;
    soak-unbound) soak_both --nobind ;;
    soak-hooks) soak_both --hooks ;;
    soak-fabrics) soak_fabrics ;;
    soak-starpu14) soak_starpu14 ;;
    *) fail "there is no stage '$1'; --stages lists them" ;;
  esac
}

# Prints the stages that a stage needs.
needs() {
  case $1 in
    packages) ;;
    release | asan | tsan | tidy | start | fuzz | soak-alone | soak-fuzz | soak-mutations | soak-sanitized | \
      soak-system | soak-counts) echo packages ;;
    tests | unit | process | system | simulation | conformance | package | install) echo release ;;
    asan-tests) echo asan ;;
    tsan-tests) echo tsan ;;
    mpich | soak-mpich | soak-hpcc | soak-libraries | starpu) echo install ;;
    soak-death | soak-engines | soak-stress | soak-gpu | soak-nemesis | soak-misfortunes | \
      soak-matching | soak-simulation) echo release ;;
    soak-starpu14) echo install ;;
    *) echo starpu ;;
  esac
}

# Whether the time for new stages is over.
is_late() {
  [[ -n $minutes && $SECONDS -ge $((minutes * 60)) ]]
}

is_broken() {
  local one
  for one in "${broken[@]}"; do
    [[ $one != "$1" ]] || return 0
  done
  return 1
}

do_stage() {
  local stage=$1 begin=$SECONDS status=0 need before=$failed
  if is_late; then
    note "stage $stage: left out, because $minutes minutes are over"
    count 0 0 1
    summary+=("$(printf '%-16s left out' "$stage")")
    return 0
  fi
  need=$(needs "$stage")
  if [[ -n $need ]] && is_broken "$need"; then
    note "stage $stage: not tried, because stage $need failed"
    count 0 1 0
    status=1
  else
    note "stage $stage"
    run_stage "$stage" || status=$?
    # Whatever the reason, a stage that failed is counted.
    [[ $status -eq 0 || $failed -gt $before ]] || count 0 1 0
  fi
  [[ $status -eq 0 ]] || broken+=("$stage")
  [[ $stage != "$last_before_ahead" || $status -ne 0 ]] || build_ahead
  [[ $status -eq 0 ]] && status=ok || status=FAILED
  summary+=("$(printf '%-16s %-6s %5d s' "$stage" "$status" $((SECONDS - begin)))")
}

main() {
  local stage
  parse_arguments "$@"
  mkdir -p "$logs"
  if [[ ${#stages[@]} -eq 0 ]]; then
    build_all_ahead
    exit
  fi
  : >"$failures"
  for stage in "${stages[@]}"; do
    do_stage "$stage"
  done
  cat "$failures"
  note "stages:"
  printf '    %s\n' "${summary[@]}"
  if [[ $skipped -gt 0 ]]; then
    echo "$passed passed, $failed failed, $skipped skipped"
  else
    echo "$passed passed, $failed failed"
  fi
  [[ $failed -eq 0 ]]
}

main "$@"
