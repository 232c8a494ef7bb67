#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds Debian's StarPU, unmodified, on an installed Canelé (or, as a yardstick, on Debian's Open MPI).
#
# Usage: tests/starpu/build-starpu.sh --canele PREFIX | --openmpi  [--suite NAME] [--cache DIR] [--jobs N] [--clean]
#
# Used by apps/demo.sh, tests/run.sh, and by hand. The result is DIR/canele/ (or DIR/openmpi/), a build tree in which
# mpi/tests and mpi/examples are built; DIR is build/starpu by default. --suite: the StarPU of another Debian release
# (1.4: forky), built on this one, in DIR/canele-NAME/. Exit code 77: that release's StarPU cannot be had here.
#
# Two keys decide what is rebuilt. When only Canelé's headers or wrappers change, StarPU's mpi directories are rebuilt
# (half a minute). When flags, prefix, compiler or StarPU's version change, everything is. A change inside libcanele
# needs no rebuild.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/progress.sh
source "$root/tests/progress.sh"

cache=$root/build/starpu
jobs=$(nproc)
prefix=
kind=
suite= # the release that StarPU is taken from; empty: this one
clean=0

usage() {
  sed -n '4,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

parse_arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --canele) kind=canele prefix=$(realpath -m "${2:?--canele wants the prefix of an installed Canelé}") && shift ;;
      --openmpi) kind=openmpi prefix=/usr ;;
      --suite) suite=${2:?--suite wants the name of a Debian release} && shift ;;
      --cache) cache=$(realpath -m "${2:?--cache wants a directory}") && shift ;;
      --jobs) jobs=${2:?--jobs wants a number} && shift ;;
      --clean) clean=1 ;;
      --help | -h) usage && exit 0 ;;
      *) fail "unknown argument '$1' (see --help)" ;;
    esac
    shift
  done
  [[ -n $kind ]] || fail "say what to build on: --canele PREFIX or --openmpi"
  logs=$cache/logs-$kind${suite:+-$suite}
  build=$cache/$kind${suite:+-$suite}
  source_parent=$cache/source${suite:+-$suite}
}

# --- fetching -------------------------------------------------------------------------------------------------------

# Prints the system's own Debian lines (both formats) for this release or that suite, as deb-src lines.
deb_src_lines() {
  /usr/bin/python3 "$here/deb_src_lines.py" ${suite:+"$suite"}
}

# Runs apt with a configuration of its own: sources, lists and cache below $cache/apt. Proxies and keys stay the
# system's.
private_apt() {
  local apt=$cache/apt${suite:+-$suite}
  apt-get -o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=-" -o "Dir::State::lists=$apt/lists" \
    -o "Dir::Cache=$apt/cache" -o "APT::Sandbox::User=$(id -un)" -o "Acquire::Retries=3" "$@"
}

fetch_source() {
  local apt=$cache/apt${suite:+-$suite}
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$source_parent" &&
    deb_src_lines >"$apt/sources.list" &&
    echo "deb-src lines used:" && cat "$apt/sources.list" &&
    private_apt update &&
    cd "$source_parent" &&
    private_apt source --download-only starpu
}

# dpkg-source applies Debian's patch series, and configure is generated again: that is how Debian builds StarPU, too.
unpack_source() {
  cd "$source_parent" &&
    rm -rf starpu-source &&
    dpkg-source --no-check -x "$(newest_dsc)" starpu-source &&
    cd starpu-source &&
    autoreconf -fi &&
    touch .ready
}

newest_dsc() {
  find "$source_parent" -maxdepth 1 -name 'starpu_*.dsc' -printf '%f\n' | sort -V | tail -n 1
}

ensure_source() {
  if [[ -z $(newest_dsc 2>/dev/null) ]]; then
    if ! step "fetching StarPU's source package${suite:+ of $suite}" "$logs/fetch.log" fetch_source; then
      [[ -n $suite ]] || exit 1
      note "StarPU's source package of $suite cannot be had here; see $logs/fetch.log"
      exit 77
    fi
  fi
  if [[ ! -e $source_parent/starpu-source/.ready ]]; then
    step "unpacking StarPU, applying Debian's patch, autoreconf" "$logs/unpack.log" unpack_source
  fi
  version=$(basename "$(newest_dsc)" .dsc)
  version=${version#starpu_}
}

# --- building -------------------------------------------------------------------------------------------------------

# Prints the flags, one a line. Only what the MPI tests and examples need: no accelerators, no Fortran, small
# compile-time limits. The BLAS is found as the system's libblas, which libopenblas-dev provides:
# --enable-blas-lib=openblas needs a blas-openblas.pc, which Debian does not have.
configure_flags() {
  printf '%s\n' --prefix="$build-install" --enable-mpi --enable-mpi-check --enable-quick-check --disable-cuda \
    --disable-opencl --disable-fortran --disable-build-doc --disable-static --disable-socl --disable-starpufft \
    --disable-icc --disable-starpupy --disable-mlr --without-fxt --enable-maxcpus=16 --enable-maxnodes=2
  if [[ $kind == canele ]]; then
    local bin=$prefix/lib/canele/bin
    printf '%s\n' --enable-nmad --with-mpicc="$bin/mpicc" --with-mpicxx="$bin/mpicxx" --with-mpiexec="$bin/mpiexec"
  else
    printf '%s\n' --with-mpicc=/usr/bin/mpicc.openmpi --with-mpicxx=/usr/bin/mpicxx.openmpi \
      --with-mpiexec=/usr/bin/mpiexec.openmpi --with-mpiexec-args="--oversubscribe --allow-run-as-root"
  fi
}

# Prints everything that decides how StarPU's core is built.
core_key() {
  printf '%s\n' "$version" "$(configure_flags)" "$(gcc -dumpfullversion)" "$prefix"
}

# Prints everything that decides how StarPU's mpi directories are built: our headers, nmad.pc and the output of mpicc.
mpi_key() {
  core_key
  if [[ $kind == canele ]]; then
    (cd "$prefix" && find include lib*/pkgconfig lib*/canele/bin -type f -print0 2>/dev/null | sort -z |
      xargs -0 sha256sum)
  fi
}

configure_starpu() {
  local -a flags
  mapfile -t flags < <(configure_flags)
  rm -rf "$build" &&
    mkdir -p "$build" &&
    cd "$build" &&
    PKG_CONFIG_PATH="$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" \
      "$source_parent/starpu-source/configure" "${flags[@]}"
}

build_core() {
  make -j "$jobs" -C "$build/src" && make -j "$jobs" -C "$build/tools"
}

# `check TESTS=` builds the programs that only `make check` would build, and runs none.
build_mpi() {
  local directory
  make -j "$jobs" -C "$build/mpi/src" || return
  for directory in mpi/tests mpi/examples; do
    make -j "$jobs" -C "$build/$directory" all && make -j "$jobs" -C "$build/$directory" check TESTS= || return
  done
}

clean_mpi() {
  local directory
  for directory in mpi/src mpi/tests mpi/examples; do
    make -C "$build/$directory" clean || return
  done
}

check_configuration() {
  if [[ $kind == canele ]]; then
    grep -q 'define STARPU_USE_MPI_NMAD 1' "$build/include/starpu_config.h" ||
      fail "StarPU's configure did not take the nmad backend; see $build/config.log"
  fi
  grep -q 'define STARPU_HAVE_BLAS 1' "$build/src/common/config.h" ||
    fail "StarPU's configure found no BLAS (Debian package libopenblas-dev); see $build/config.log"
}

# libstarpumpi must be linked with our library and with no other MPI: an empty nmad.pc would satisfy configure, too.
check_linkage() {
  [[ $kind == canele ]] || return 0
  local library libraries
  library=$(find "$build/mpi/src/.libs" -name 'libstarpumpi-*.so' | head -n 1)
  libraries=$(ldd "$library")
  grep -q "libcanele_mpi.*$prefix" <<<"$libraries" ||
    fail "$library is not linked with $prefix's libcanele_mpi:"$'\n'"$libraries"
  ! grep -E 'libmpi|libmpich|libopen-' <<<"$libraries" ||
    fail "$library is linked with another MPI:"$'\n'"$libraries"
}

check_prefix() {
  [[ $kind == canele ]] || return 0
  local wanted
  for wanted in lib/canele/bin/mpicc lib/pkgconfig/nmad.pc; do
    [[ -e $prefix/$wanted ]] || fail "$prefix has no $wanted: it is no installed Canelé with the StarPU backend"
  done
}

main() {
  parse_arguments "$@"
  [[ $clean -eq 0 ]] || rm -rf "$build" "$source_parent" "$cache/apt${suite:+-$suite}"
  check_prefix
  mkdir -p "$logs"
  exec {lock}>"$cache/lock"
  flock "$lock"
  ensure_source
  if [[ $(core_key) != "$(cat "$build/.core-key" 2>/dev/null)" ]]; then
    step "configuring StarPU $version on $kind" "$logs/configure.log" configure_starpu
    check_configuration
    step "building StarPU" "$logs/build.log" build_core
    core_key >"$build/.core-key"
  fi
  if [[ $(mpi_key) != "$(cat "$build/.mpi-key" 2>/dev/null)" ]]; then
    clean_mpi >"$logs/clean.log" 2>&1
    step "building StarPU's MPI part, its tests and examples" "$logs/build-mpi.log" build_mpi
    check_linkage
    mpi_key >"$build/.mpi-key"
  fi
  note "StarPU $version on $kind is in $build"
}

main "$@"
