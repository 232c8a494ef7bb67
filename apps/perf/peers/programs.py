# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the comparisons: where ours are, how those of the other libraries are started and compiled.

Used by contenders.py, by the comparisons and by prebuild.py. A program is compiled once for each MPI, into
options.work. It is compiled again if it is older than its sources. Where no compiler is found, it is used as it is, so
that a directory that prebuild.py has filled serves on a machine without compilers.

    PROGRAMS (name: sources) x MPIS ─▶ build ─▶ <work>/<program>.<mpi>
"""

import os
import pathlib
import shutil
import subprocess
import typing

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]

# How each MPI selects the transport: launcher options, environment.
OPENMPI_DRIVER = {
    "shm": (["--mca", "pml", "ob1", "--mca", "btl", "self,vader"], {}),
    "tcp": (["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"], {}),
}
MPICH_DRIVER = {  # Debian's is ch4:ucx
    "shm": ([], {}),
    "tcp": ([], {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}),
}
UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
UCX_DRIVER = {  # Open MPI on UCX, which it uses by default for InfiniBand only
    "shm": (UCX, {"UCX_TLS": "shm,self"}),
    "tcp": (UCX, {"UCX_TLS": "tcp,self"}),
    None: (UCX, {}),
}
# With more ranks than cores, Open MPI yields by itself, which is then its best setting.
OPENMPI_LAUNCH = ["mpirun.openmpi", "--bind-to", "none", "--oversubscribe", "--allow-run-as-root"]
OPENMPI_YIELD = ["--mca", "mpi_yield_when_idle", "1"]
COMPILERS = {  # for C, for C++
    "canele-mpi": ("canele-mpicc", "canele-mpicxx"),
    "openmpi": ("mpicc.openmpi", "mpicxx.openmpi"),
    "mpich": ("mpicc.mpich", "mpicxx.mpich"),
}
NBC = ["options", "layout", "metrics", "operation", "work", "bare", "solo", "order", "overlap", "cresta", "run"]


class Library(typing.NamedTuple):
    """An MPI, and how it selects a transport. Several of them may be one MPI with other settings."""

    mpi: str  # of COMPILERS
    launch: list  # the launcher and its options
    how: dict  # {driver: (launcher options, environment)}


def sources():
    """Returns {program: its files}; the first one's suffix says which language it is."""
    perf = HERE.parent
    files = {path.stem: [path] for path in sorted(HERE.glob("mpi_*.c"))}
    files["mpi_progress"] = [HERE / "mpi_progress.cpp", *sorted((perf / "progress").glob("*.cpp"))]
    files["mpi_nbc"] = [HERE / "mpi_nbc.cpp", perf / "progress" / "report.cpp",
                        *(perf / "nbc" / f"{name}.cpp" for name in NBC)]
    return files


def find_tool(prefix, name):
    """Returns a program of ours: in --prefix, else in the newest build, else in PATH."""
    places = [pathlib.Path(prefix) / "bin"] if prefix else []
    places += [ROOT / "build" / "release" / "bin"]
    for place in places:
        if os.access(place / name, os.X_OK):
            return str(place / name)
    return shutil.which(name)


def find_libraries(options):
    """Returns {name: Library} of all that are known, installed or not."""
    run = find_tool(options.prefix, "canele-run") or "canele-run"
    ours = {driver: ([], {"CANELE_DRIVERS": driver}) for driver in ("shm", "tcp")}
    return {
        "canele-mpi": Library("canele-mpi", [run], ours),
        "openmpi": Library("openmpi", OPENMPI_LAUNCH, OPENMPI_DRIVER),
        "openmpi-ucx": Library("openmpi", OPENMPI_LAUNCH, UCX_DRIVER),
        "mpich": Library("mpich", ["mpiexec.mpich"], MPICH_DRIVER),
    }


def outdated(program, files):
    """Tells whether a program is older than its sources, or a header beside one of them."""
    headers = [header for folder in {file.parent for file in files} for header in folder.glob("*.h*")]
    return program.stat().st_mtime < max(file.stat().st_mtime for file in [*files, *headers])


def build(options, library, name):
    """Returns the program `name` of a library, and "". None and the reason if it is missing and cannot be compiled."""
    if shutil.which(library.launch[0]) is None:
        return None, "not installed"
    files, wrappers = sources()[name], COMPILERS[library.mpi]
    cpp = files[0].suffix == ".cpp"
    compiler = find_tool(options.prefix, wrappers[cpp])
    program = pathlib.Path(options.work) / f"{name}.{library.mpi}"
    if program.exists() and (compiler is None or not outdated(program, files)):
        return str(program), ""
    if compiler is None:
        return None, f"not installed: {wrappers[cpp]}, nor {program}, which prebuild makes"
    standard = ["-DCANELE_PERF_MPI", "-std=c++20"] if cpp else ["-std=c11"]
    built = subprocess.run([compiler, *standard, "-O2", "-pthread", *map(str, files), "-o", str(program)],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                           env={**os.environ, "LC_ALL": "C"})
    if built.returncode == 0:
        return str(program), ""
    if "mpi.h: No such file" in built.stdout:  # Debian's mpich has the compilers, and libmpich-dev the header
        return None, f"not installed: {compiler} does not find mpi.h"
    return None, f"{compiler} failed:\n{built.stdout}"
