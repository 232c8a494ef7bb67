# SPDX-License-Identifier: BSD-3-Clause
"""The commands of Canelé and of the other MPIs of this machine, on which programs of others are built and run."""
import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Mpi:
    """The compilers and the launcher of an MPI. -n RANKS PROGRAM follows the launcher."""

    compiler: str
    cxx: str
    fortran: str
    launcher: tuple[str, ...]


PEERS = {
    "mpich": Mpi("mpicc.mpich", "mpicxx.mpich", "mpifort.mpich", ("mpiexec.hydra",)),
    "openmpi": Mpi("mpicc.openmpi", "mpicxx.openmpi", "mpifort.openmpi",
                   ("mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-x", "PATH")),
}


def canele(place: pathlib.Path) -> Mpi:
    """Returns the commands of Canelé in a folder bin."""
    return Mpi(str(place / "canele-mpicc"), str(place / "canele-mpicxx"), str(place / "canele-mpifort"),
               (str(place / "canele-run"),))
