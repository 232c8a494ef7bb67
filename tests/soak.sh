# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# The campaigns that people start by hand: the stages soak-* of tests/run.sh.
#
# Sourced by tests/run.sh. Its functions use those of run.sh (suite, one_check, run_seeds, ...) and its variables.

# shellcheck disable=SC2154 # here, root, logs, prefix, jobs are run.sh's

soak_simulation() {
  local status=0
  run_seeds soak-simulation 10000 --rare-coverage || status=1
  run_others 1000 5000 5000 10000 || status=1
  run_scale 1024 4096 || status=1
  CANELE_TEST_DEEP=1 one_check streamed "$logs/soak-multicasts.log" "$here/with-timeout" 3600 \
    "$root/build/release/bin/exhaustive_multicasts" || status=1
  return "$status"
}

# soak_both OPTIONS...: the suite over each driver.
soak_both() {
  local driver status=0
  for driver in shm tcp; do
    suite "soak-$driver$(printf '%s' "$@")" --driver "$driver" "$@" || status=1
  done
  return "$status"
}

soak_strategies() {
  local strategy status=0
  for strategy in fifo aggregate priority; do
    soak_both --strategy "$strategy" || status=1
  done
  return "$status"
}

# Runs the tests of StarPU 1.4; those named coop* must use multicasts, which is their purpose. This release has no
# source package of StarPU 1.4. Where that of the next release cannot be had either, it is skipped.
soak_starpu14() {
  local status=0 driver tree=$root/build/starpu/canele-forky
  local results=(--results "$root/build/starpu14-results")
  build starpu14 "StarPU 1.4" || status=$?
  if [[ $status -eq 77 ]]; then
    count 0 0 1
    return 0
  fi
  [[ $status -eq 0 ]] || return "$status"
  one_check streamed "$logs/symbols14.log" "$here/starpu/symbols.py" --library "$prefix"/lib/libcanele_mpi.so \
    --starpu "$tree" --list "$here/starpu/symbols-1.4.10.txt" || status=1
  for driver in shm tcp; do
    suite "starpu14-$driver" --driver "$driver" --starpu "$tree" --runs 3 --multicasts '^coop' "${results[@]}" \
      || status=1
  done
  for driver in shm tcp; do
    suite "examples14-$driver" --driver "$driver" --examples --starpu "$tree" "${results[@]}" || status=1
  done
  return "$status"
}

# libraries STAGE LIBRARIES...: the own checks of libraries on MPI. Those whose sources cannot be had are skipped.
libraries() {
  local log=$logs/$1.log status=0
  shift
  streamed "$log" "$here/mpi/libraries/libraries.py" "$@" --bin "$prefix/bin" --jobs "$jobs" || status=$?
  count_closing_line "$log" "$status"
}

# What needs no hardware: libfabric's tcp;ofi_rxm; libpsm2's shared memory, behind the shim of its tests.
soak_fabrics() {
  local status=0 shim=$root/build/release/lib/psm2-shim.so
  suite soak-ofi --driver ofi --env 'CANELE_OFI_PROVIDER=tcp;ofi_rxm' || status=1
  suite soak-psm2 --driver psm2 --env "LD_PRELOAD=$shim" --env PSM2_DEVICES=self,shm || status=1
  return "$status"
}

# Every matcher beside the model: three million random operations each, and all sequences of six, probes among them.
soak_matching() {
  local bin=$root/build/release/bin status=0 seed
  seed=$(seed_of_commit)
  CANELE_TEST_OPERATIONS=3000000 CANELE_TEST_SEED=$seed one_check streamed "$logs/soak-matching.log" \
    "$here/with-timeout" 1200 "$bin/unit_matching" || status=1
  CANELE_TEST_DEEP=1 one_check streamed "$logs/soak-matching-worlds.log" \
    "$here/with-timeout" 7200 "$bin/exhaustive_worlds" '--gtest_filter=*Match*' || status=1
  return "$status"
}

# Simulated jobs under AddressSanitizer and UndefinedBehaviorSanitizer. What a killed process owned leaks, as it should.
soak_sanitized() {
  local first
  step "building the asan-sim preset" "$logs/build-asan-sim.log" build_alone asan-sim || return 1
  first=$(seed_of_commit)
  note "simulation under sanitizers: 200 seeds from $first on"
  ASAN_OPTIONS=detect_leaks=0:handle_segv=2:handle_sigbus=2 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    one_check streamed "$logs/soak-sanitized.log" "$here/with-timeout" 3600 "$root/build/asan-sim/bin/canele-sim" \
    --seed "$first" --runs 200
}

# MPI programs with other numbers of ranks than in CI, under AddressSanitizer and ThreadSanitizer.
soak_counts() {
  local preset status=0
  for preset in asan tsan; do
    { build "$preset" && run_ctest "$preset" counts $((jobs + 1)); } || status=1
  done
  return "$status"
}

# The debug preset, the only one that compiles each source on its own: so each is sure to include what it uses.
soak_alone() {
  step "building the debug preset" "$logs/build-debug.log" build_alone debug
}

# One rank of four is killed in mid-traffic, a hundred times per driver.
soak_death() {
  local driver worker status=0
  for driver in shm tcp shm+tcp ofi psm2+tcp; do
    CANELE_TEST_BIN=$root/build/release/bin one_check streamed "$logs/soak-death-$driver.log" \
      "$here/process/death/death_test.py" --driver "$driver" --times 100 || status=1
  done
  return "$status"
}

# A thousand engines of a process, one after the other, by each launcher: memory does not grow.
soak_engines() {
  local launcher status=0
  for launcher in Run Pmix OpenMpi Alone; do
    CANELE_TEST_BIN=$root/build/release/bin CANELE_TEST_CYCLES=1000 \
      one_check streamed "$logs/soak-engines-$launcher.log" "$here/with-timeout" 3600 /usr/bin/env python3 -B \
      "$here/process/engines/engines_test.py" "$launcher" -k loop || status=1
  done
  return "$status"
}

# Messages and multicasts at random in eight processes; 100,000 operations and more for each seed.
soak_stress() {
  local driver status=0
  for driver in shm tcp shm+tcp; do
    CANELE_TEST_BIN=$root/build/release/bin one_check streamed "$logs/soak-stress-$driver.log" \
      "$here/process/stress/stress_test.py" --driver "$driver" --seeds 10 --first-seed 1000 || status=1
    CANELE_TEST_BIN=$root/build/release/bin one_check streamed "$logs/soak-stress-$driver-disturbed.log" \
      "$here/process/stress/stress_test.py" --driver "$driver" --seeds 3 --first-seed 2000 --disturb || status=1
  done
  for driver in shm tcp; do
    CANELE_TEST_BIN=$root/build/release/bin one_check streamed "$logs/soak-collectives-$driver.log" \
      "$here/process/collectives/collectives_test.py" --driver "$driver" --first-seed 3000 --times 24 --rounds 20 \
      --longest 16777216 || status=1
  done
  for worker in none auto bound bound+idle; do
    CANELE_TEST_BIN=$root/build/release/bin one_check streamed "$logs/soak-parking-$worker.log" \
      "$here/process/parking/parking_test.py" --driver shm --worker "$worker" --rounds 100000 --seed 1000 \
      --parks 10000000 --preload "$root/build/release/lib/libendless_sleeps.so" || status=1
  done
  return "$status"
}

# Messages of device memory at random, 100,000 for each seed, on the fake GPU; and ranks that are killed among them.
soak_gpu() {
  local driver seed status=0 bin=$root/build/release/bin library=$root/build/release/lib/fake_cuda/libcuda.so.1
  for driver in shm tcp shm+tcp; do
    for seed in 1 2 3; do
      one_check streamed "$logs/soak-gpu-$driver-$seed.log" "$here/with-timeout" 900 "$bin/canele-run" -n 2 \
        -x CANELE_DRIVERS="$driver" -x CANELE_GPU=cuda -x CANELE_EXPERT_GPU_LIBRARY="$library" \
        -x FAKE_CUDA_NO_PAGEABLE=1 -x FAKE_CUDA_SEED="$seed" "$bin/gpu_messages" 340 || status=1
    done
    CANELE_TEST_BIN=$bin one_check streamed "$logs/soak-gpu-death-$driver.log" "$here/gpu/death_test.py" \
      --driver "$driver" --library "$library" --times 100 --seed 100 || status=1
  done
  return "$status"
}

# An hour of everything that may befall a job; which kinds, and how often each was done, is printed.
soak_nemesis() {
  CANELE_TEST_BIN=$root/build/release/bin one_check streamed "$logs/soak-nemesis.log" \
    "$here/process/nemesis/nemesis_test.py" --seconds 3600 --seed "$(seed_of_commit)" \
    --preload "$root/build/release/lib/libfail_allocations.so"
}

# Each allocation of a small job fails once, and each system call with each of its errors.
soak_misfortunes() {
  local driver status=0
  export CANELE_TEST_BIN=$root/build/release/bin
  for driver in shm tcp; do
    one_check streamed "$logs/soak-memory-$driver.log" "$here/process/memory/memory_test.py" --driver "$driver" \
      --preload "$root/build/release/lib/libfail_allocations.so" || status=1
    one_check streamed "$logs/soak-syscalls-$driver.log" "$here/process/strangers/syscall_sweep.py" "$driver" ||
      status=1
    one_check streamed "$logs/soak-syscalls-$driver-on.log" "$here/process/strangers/syscall_sweep.py" "$driver" --on ||
      status=1
  done
  return "$status"
}

# Ten minutes of processor time each, then the lines that were reached.
soak_fuzz() {
  local status=0
  run_fuzz --seconds 600 || status=1
  [[ -z $(fuzzer_missing) ]] || return "$status"
  step "building the fuzz-coverage preset" "$logs/build-fuzz-coverage.log" build_alone fuzz-coverage &&
    "$here/fuzz/run_fuzz.py" --coverage "$root/build/fuzz-coverage" || status=1
  return "$status"
}

# Every planted bug must be found by the test, simulator or fuzzer that its patch names.
soak_mutations() {
  local status=0
  streamed "$logs/soak-mutations.log" "$here/mutations/run_mutations.py" --jobs "$jobs" || status=$?
  count_closing_line "$logs/soak-mutations.log" "$status"
}
