# SPDX-License-Identifier: BSD-3-Clause
"""Rules about which code may use which: layers, include cycles, the internals target.

The table is that of the design. ltask uses the standard library and hwloc only. A driver uses its contract only, and so
does a strategy. comm uses the three contracts, and a concrete driver or strategy in its registry only. starpu_glue and
apps use the public API only. The rules check only what a file includes, not the functions that it calls: without the
include it cannot call them.
"""
import pathlib
import re

# The floors of comm and of the MPI layer, the lowest first. A file includes its own folder and lower floors only; the
# folders of one floor do not include each other. The README.md of each says what they are for.
FLOORS = [
    ["include", "wire", "config", "bootstrap"],
    ["observe", "matching", "operators", "registry"],
    ["state"],
    ["link"],
    ["protocol"],
    ["rendezvous"],
    ["multicast"],
    ["engine"],
    ["device"],
    ["post"],
    ["collectives"],
    ["diagnose"],
    ["api"],
]
MPI_FLOORS = [
    ["include", "functions"],
    ["core"],
    ["infos", "datatypes"],
    ["communicators"],
    ["messages"],
    ["collectives"],
    ["topologies"],
    ["windows"],
    ["tools"],
    ["environment"],
    ["fortran"],
]
FLOORS_OF_ROOM = {"comm": FLOORS, "starpu_glue/mpi": MPI_FLOORS}
FLOOR = {
    f"{room}/{folder}": level
    for room, floors in FLOORS_OF_ROOM.items()
    for level, folders in enumerate(floors)
    for folder in folders
}
# Includes that still point up, one "FILE INCLUDED" a line. The list may only shrink.
FOLDER_ROOMS = ("comm", "drivers", "ltask", "strategies", "starpu_glue", "apps")

PUBLIC = re.compile(r"comm/include/canele/[a-z_]+\.(h|hpp)$")
# Tools that may use the internals: through the target canele_internal, or by sources of the engine that they compile
# (apps/perf: the matcher; apps/model: two formulas).
INTERNALS = re.compile(r"^(apps/sim/|apps/perf/matcher|apps/model/(split_tree|placement)\.cpp$|tests/)")
# Files of ltask that touch the system: the platform, the epoll that a worker parks in, and one process id for hwloc.
LTASK_SYSTEM = re.compile(r"^ltask/(posix_\w+|sleeper|topology)\.cpp$")
STANDARD_C = {
    "assert.h",
    "ctype.h",
    "errno.h",
    "limits.h",
    "stdalign.h",
    "stdatomic.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "time.h",
    "inttypes.h",
}


def allowed_in_ltask(file, target):
    return target.startswith("ltask/")


# The contracts of drivers/: of drivers, and of memory kinds, which do not know each other.
MEMORY = "drivers/memory.hpp"
CONTRACTS = ("drivers/driver.hpp", MEMORY, "strategies/strategy.hpp")


def allowed_in_drivers(file, target):
    if file.path in CONTRACTS:
        return False
    if file.path.startswith("drivers/memory/"):
        return target == MEMORY or target.startswith("/".join(file.path.split("/")[:3]) + "/")
    if target == "drivers/driver.hpp":
        return True
    family = "/".join(file.path.split("/")[:2]) + "/"
    # Drivers share drivers/net (handshake, sockets), which knows none of them.
    return target.startswith((family, "drivers/net/"))


def allowed_in_strategies(file, target):
    return target.startswith("strategies/")


def allowed_in_comm(file, target):
    if file.path.startswith("comm/include/"):
        return target.startswith("comm/include/")
    if target.startswith(("comm/", "ltask/")) or target in CONTRACTS:
        return True
    return "registry" in file.path.rsplit("/", 1)[-1] and target.startswith(("drivers/", "strategies/"))


def allowed_with_public_api(file, target):
    return target.startswith(file.room + "/") or bool(PUBLIC.search(target)) or bool(INTERNALS.match(file.path))


TABLE = {
    "ltask": (allowed_in_ltask, "ltask uses the standard library and hwloc only"),
    "drivers": (
        allowed_in_drivers,
        "a driver uses its contract, drivers/net and its own files; a memory kind uses its contract and its own files",
    ),
    "strategies": (allowed_in_strategies, "a strategy uses strategies/strategy.hpp and its room only"),
    "comm": (
        allowed_in_comm,
        "comm uses ltask and the contracts of drivers, memory kinds and strategies; concrete ones in its registry",
    ),
    "starpu_glue": (allowed_with_public_api, "the glue uses the public API only: what it lacks, the API gets"),
    "apps": (allowed_with_public_api, "apps use the public API only: what they lack, the API gets"),
}


def is_standard_or_hwloc(name):
    return name.startswith("hwloc") or "." not in name or name in STANDARD_C


def check_layers(tree):
    """Includes that cross the layers."""
    for file in tree.cpp:
        allowed, why = TABLE.get(file.room, (None, ""))
        for line, name, angle in file.includes if allowed else []:
            target = tree.resolve(file, name)
            if target is not None:
                if not allowed(file, target):
                    yield file.path, line, f"includes {name}: {why}"
            elif angle and file.room == "ltask" and not LTASK_SYSTEM.match(file.path):
                if not is_standard_or_hwloc(name):
                    yield file.path, line, f"includes <{name}>: {why}; the system is for {LTASK_SYSTEM.pattern}"
            elif not angle and file.room in ("ltask", "strategies", "comm", "drivers"):
                yield file.path, line, f'"{name}" is not in the repository'


def check_pure_strategies(tree):
    """Strategies use nothing of the system: standard library only."""
    for file in tree.select(lambda file: file.is_cpp and file.room == "strategies"):
        for line, name, angle in file.includes:
            if angle and tree.resolve(file, name) is None and "." in name and name not in STANDARD_C:
                yield file.path, line, f"includes <{name}>: a strategy uses the standard library only"


def folder_with_floor(path):
    """The folder of a file in a room with floors, such as comm/state; else None."""
    folder = str(pathlib.PurePosixPath(path).parent)
    return folder if any(folder.startswith(room + "/") for room in FLOORS_OF_ROOM) else None


def base_folder(folder):
    """comm/include for comm/include/canele: floors are those of the first level."""
    room = next(room for room in FLOORS_OF_ROOM if folder.startswith(room + "/"))
    return room + "/" + folder[len(room) + 1 :].split("/")[0]


def arrows_up(tree):
    """[(file, line, target)] of the includes inside a room with floors that do not go down."""
    for file in tree.cpp:
        folder = folder_with_floor(file.path)
        for line, name, _ in file.includes if folder else []:
            target = tree.resolve(file, name)
            into = folder_with_floor(target) if target else None
            if into is None or base_folder(into) == base_folder(folder) or PUBLIC.search(target):
                continue
            if FLOOR.get(base_folder(into), 0) >= FLOOR.get(base_folder(folder), 0):
                yield file.path, line, target


def check_floors(tree):
    """Includes that go up inside comm and inside the MPI layer."""
    folders = {base_folder(folder) for folder in map(folder_with_floor, tree.files) if folder}
    for folder in folders - set(FLOOR):
        yield folder, 1, "the folder has no floor: see FLOORS in tests/tidy/rules_layers.py"
    for path, line, target in arrows_up(tree):
        room = "comm" if path.startswith("comm/") else "starpu_glue/mpi"
        yield path, line, f"includes {target}, which does not stand below it (the floors: {room}/README.md)"


def include_graph(tree):
    graph = {}
    for file in tree.cpp:
        targets = (tree.resolve(file, name) for _, name, _ in file.includes)
        graph[file.path] = [target for target in targets if target and target != file.path]
    return graph


def cycles_of(graph):
    """One cycle, as a list of nodes whose last is its first, for each edge that closes one."""
    state, path = {}, []

    def visit(node):
        state[node] = "open"
        path.append(node)
        for target in graph.get(node, []):
            if state.get(target) == "open":
                yield [*path[path.index(target) :], target]
            elif target not in state:
                yield from visit(target)
        path.pop()
        state[node] = "done"

    for node in sorted(graph):
        if node not in state:
            yield from visit(node)


def check_cycles(tree):
    """Files that include each other."""
    for cycle in cycles_of(include_graph(tree)):
        yield cycle[0], 1, "include cycle: " + " -> ".join(cycle)


def check_folder_cycles(tree):
    """Folders whose files include each other."""
    graph = {}
    for path, targets in include_graph(tree).items():
        folder = str(pathlib.PurePosixPath(path).parent)
        if path.split("/")[0] in FOLDER_ROOMS:
            into = graph.setdefault(folder, {})
            into.update({str(pathlib.PurePosixPath(target).parent): None for target in targets})
            into.pop(folder, None)
    for cycle in cycles_of(graph):
        yield cycle[0], 1, "the folders include each other: " + " -> ".join(cycle)


def check_internals_target(tree):
    """Only tests, apps/sim and the matcher benchmark may link the engine's internals."""
    for file in tree.select(lambda file: file.is_cmake):
        if file.path.startswith("cmake/") or INTERNALS.match(file.path) or file.path == "CMakeLists.txt":
            continue
        for number, line in enumerate(file.lines, 1):
            inside = re.search(r"\bcanele_(internal|comm|ltask|drivers|strategies)\b", line.split("#")[0])
            if inside and file.room in ("apps", "starpu_glue") and "apps/perf" not in file.path:
                yield file.path, number, f"{inside.group(0)} is for tests, apps/sim and apps/perf/matcher*: link canele"


RULES = [
    (
        "layers",
        check_layers,
        "which room may include which",
        [
            ({"ltask/a.hpp": '#include "comm/b.hpp"\n', "comm/b.hpp": ""}, 1),
            ({"ltask/a.hpp": "#include <sys/epoll.h>\n#include <atomic>\n#include <hwloc.h>\n"}, 1),
            ({"ltask/posix_a.cpp": "#include <sys/epoll.h>\n"}, 0),
            (
                {
                    "drivers/tcp/a.cpp": (
                        '#include "comm/b.hpp"\n#include "drivers/shm/c.hpp"\n#include "drivers/net/d.hpp"\n'
                    ),
                    "comm/b.hpp": "",
                    "drivers/shm/c.hpp": "",
                    "drivers/net/d.hpp": "",
                },
                2,
            ),
            (
                {
                    "drivers/memory/cuda/a.cpp": '#include "drivers/memory.hpp"\n#include "drivers/driver.hpp"\n',
                    "drivers/memory.hpp": "",
                    "drivers/driver.hpp": "",
                },
                1,
            ),
            ({"drivers/tcp/a.cpp": '#include "drivers/memory.hpp"\n', "drivers/memory.hpp": ""}, 1),
            ({"strategies/a.cpp": '#include "drivers/driver.hpp"\n', "drivers/driver.hpp": ""}, 1),
            ({"comm/engine/a.cpp": '#include "drivers/tcp/t.hpp"\n', "drivers/tcp/t.hpp": ""}, 1),
            ({"comm/registry/registry.cpp": '#include "drivers/tcp/t.hpp"\n', "drivers/tcp/t.hpp": ""}, 0),
            ({"apps/x/a.cpp": '#include "comm/engine/e.hpp"\n', "comm/engine/e.hpp": ""}, 1),
            ({"apps/model/placement.cpp": '#include "comm/engine/e.hpp"\n', "comm/engine/e.hpp": ""}, 0),
            ({"apps/model/main.cpp": '#include "comm/engine/e.hpp"\n', "comm/engine/e.hpp": ""}, 1),
            ({"apps/x/a.cpp": "#include <canele/canele.h>\n", "comm/include/canele/canele.h": ""}, 0),
            ({"starpu_glue/a.cpp": "#include <ltask/t.hpp>\n", "ltask/t.hpp": ""}, 1),
            ({"starpu_glue/a.cpp": "#include <canele/collectives.h>\n", "comm/include/canele/collectives.h": ""}, 0),
            ({"starpu_glue/a.cpp": '#include "comm/collectives/g.hpp"\n', "comm/collectives/g.hpp": ""}, 1),
            ({"comm/include/canele/canele.h": '#include "comm/engine/e.hpp"\n', "comm/engine/e.hpp": ""}, 1),
        ],
    ),
    (
        "floors",
        check_floors,
        "inside comm and the MPI layer a file includes what stands below it",
        [
            ({"comm/state/a.hpp": '#include "comm/engine/b.hpp"\n', "comm/engine/b.hpp": ""}, 1),
            ({"comm/observe/a.hpp": '#include "comm/matching/b.hpp"\n', "comm/matching/b.hpp": ""}, 1),
            ({"comm/engine/a.hpp": '#include "comm/state/b.hpp"\n', "comm/state/b.hpp": ""}, 0),
            ({"comm/state/a.hpp": '#include "comm/state/b.hpp"\n', "comm/state/b.hpp": ""}, 0),
            ({"comm/attic/a.hpp": ""}, 1),
            (
                {
                    "starpu_glue/mpi/core/a.hpp": '#include "starpu_glue/mpi/windows/b.hpp"\n',
                    "starpu_glue/mpi/windows/b.hpp": '#include "starpu_glue/mpi/datatypes/c.hpp"\n',
                    "starpu_glue/mpi/datatypes/c.hpp": "",
                },
                1,
            ),
        ],
    ),
    (
        "pure-strategies",
        check_pure_strategies,
        "strategies include the standard library only",
        [
            ({"strategies/a.cpp": "#include <sys/uio.h>\n#include <vector>\n"}, 1),
        ],
    ),
    (
        "include-cycles",
        check_cycles,
        "headers do not include each other",
        [
            (
                {
                    "comm/a.hpp": '#include "comm/b.hpp"\n',
                    "comm/b.hpp": '#include "b2.hpp"\n',
                    "comm/b2.hpp": '#include "comm/a.hpp"\n',
                },
                1,
            ),
            ({"comm/a.hpp": '#include "comm/b.hpp"\n', "comm/b.hpp": ""}, 0),
        ],
    ),
    (
        "folder-cycles",
        check_folder_cycles,
        "folders do not include each other",
        [
            (
                {
                    "ltask/a/a.hpp": '#include "ltask/b/b.hpp"\n',
                    "ltask/b/b.hpp": "",
                    "ltask/b/c.hpp": '#include "ltask/a/d.hpp"\n',
                    "ltask/a/d.hpp": "",
                },
                1,
            ),
            ({"apps/a/a.cpp": '#include "apps/b/b.hpp"\n', "apps/b/b.hpp": "", "apps/a/c.hpp": ""}, 0),
        ],
    ),
    (
        "internals-target",
        check_internals_target,
        "apps and glue link the public library",
        [
            ({"apps/info/CMakeLists.txt": "target_link_libraries(info PRIVATE canele_internal)\n"}, 1),
            ({"apps/sim/CMakeLists.txt": "target_link_libraries(sim PRIVATE canele_internal)\n"}, 0),
        ],
    ),
]
