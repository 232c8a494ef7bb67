# SPDX-License-Identifier: BSD-3-Clause
"""The rule that Clang's thread-safety analysis decides: what the engine's lock guards is used under that lock only.

comm/state/under_lock.hpp has the marks. Each folder of comm/ that can see them is compiled as one unit, without code
generation. A folder that is clean is not compiled again before one of its files, or of those that they include, changes
(build/tidy/thread_safety.json). Without clang++ the rule passes and says so, except in CI.

starpu_glue and apps need no check: they use the public API, which has no marks.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import time

from rules_tools import common_flags, run

CACHE = "build/tidy/thread_safety.json"
ROLE = "comm/state/under_lock.hpp"
MACROS = "ltask/thread_safety.hpp"
OPTIONS = ["-std=c++20", "-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety", '-DCANELE_VERSION="0"']
LIMIT_S = 240  # for one folder, on a machine that does much other work, too
SLOW_S = 3  # from then on, progress is shown


def clang():
    return next((name for name in ("clang++", "clang++-14") if shutil.which(name)), None)


def folders(tree):
    """Returns the sources of each folder of comm/ that sees the role of the lock: {folder: [file]}."""
    found = {}
    for file in tree.select(lambda file: file.suffix == ".cpp" and file.path.count("/") >= 2):
        if file.path.startswith("comm/"):
            found.setdefault("/".join(file.path.split("/")[:2]), []).append(file)
    return {
        folder: files
        for folder, files in found.items()
        if any(member.path == ROLE for file in files for member in tree.with_included(file))
    }


def fingerprint(tree, files, command):
    """Returns a hash of the command, of the sources, and of all that they include from the repository."""
    digest = hashlib.sha256(" ".join(command).encode())
    members = {member.path: member for file in files for member in tree.with_included(file)}
    for path in sorted(members):
        digest.update(path.encode() + b"\0" + members[path].text.encode() + b"\0")
    return digest.hexdigest()


def findings(tree, files, command):
    """Compiles the sources as one unit. Returns the errors as (path, line, text)."""
    unit = "".join(f'#include "{file.path}"\n' for file in files)
    result = run([shutil.which("timeout"), str(LIMIT_S), *command, "-x", "c++", "-"], tree.root, unit)
    found = re.findall(r"^(\S+?):(\d+):\d+: (?:fatal )?error: (.*?)(?: \[-W.*\])?$", result.stderr, re.MULTILINE)
    found = [(os.path.normpath(path), int(line), text) for path, line, text in found]
    if result.returncode == 0 or found:
        return found
    return [(files[0].path, 1, f"clang++ ends with status {result.returncode}: {result.stderr[-200:]}")]


def check_thread_safety(tree):
    units = folders(tree)
    if not units:
        return
    if clang() is None:
        if os.environ.get("CI") == "true":
            yield ROLE, 1, "clang++ is missing: tests/install-packages.sh test"
        else:
            print("(thread-safety: not checked, clang++ is missing)")
        return
    flags = [flag for flag in common_flags(tree) if not flag.startswith("-W")]
    command = [clang(), *OPTIONS, *flags]
    cache_file = tree.root / CACHE
    try:
        cache = json.loads(cache_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        cache = {}
    prints = {folder: fingerprint(tree, files, command) for folder, files in units.items()}
    good = {folder: value for folder, value in prints.items() if cache.get(folder) == value}
    stale = [folder for folder in units if folder not in good]
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for folder, found in zip(stale, pool.map(lambda folder: findings(tree, units[folder], command), stale)):
            if time.monotonic() - begin > SLOW_S:
                print(f"(thread-safety: {folder}, {stale.index(folder) + 1} of {len(stale)})", flush=True)
            if not found:
                good[folder] = prints[folder]
            yield from found
    cache_file.parent.mkdir(parents=True, exist_ok=True)
    cache_file.write_text(json.dumps(good, indent=0), encoding="utf-8")


def snippet(body):
    """Returns a repository with the real macros, and one source that uses them."""
    root = pathlib.Path(__file__).resolve().parents[2]
    files = {path: (root / path).read_text(encoding="utf-8") for path in (ROLE, MACROS) if (root / path).is_file()}
    start = f'#include "{ROLE}"\nnamespace canele::comm {{\n'
    engine = (
        "struct E {\n  int x CANELE_LOCKED = 0;\n  bool try_lock() CANELE_TRIES_LOCK;\n"
        "  void unlock() CANELE_LEAVES_LOCK;\n  void f() CANELE_UNDER_LOCK;\n};\n"
    )
    files["comm/a/a.cpp"] = start + engine + body + "\n}\n"
    return files


CAUGHT = 1 if clang() else 0
RULES = [
    (
        "thread-safety",
        check_thread_safety,
        "what the engine's lock guards is used under it (clang++)",
        [
            (snippet("void g(E& e) { e.f(); }"), CAUGHT),
            (snippet("int g(E& e) { return e.x; }"), CAUGHT),
            (snippet("void g(E& e) { if (e.try_lock()) e.f(); }"), CAUGHT),
            (snippet("void g(E& e) { e.unlock(); }"), CAUGHT),
            (snippet("void g(E& e) CANELE_UNDER_LOCK { auto f = [&] { e.f(); }; f(); }"), CAUGHT),
            (snippet("void g(E& e) CANELE_UNDER_LOCK { auto f = [&]() CANELE_UNDER_LOCK { e.f(); }; f(); }"), 0),
            (snippet("void g(E& e) CANELE_UNDER_LOCK { e.f(); e.x = 1; }"), 0),
            (snippet("void g(E& e) { if (!e.try_lock()) return; e.f(); e.unlock(); }"), 0),
            (snippet("void g(E& e) { assume_lock(); e.f(); }"), 0),
        ],
    ),
]
