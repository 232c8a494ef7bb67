# SPDX-License-Identifier: BSD-3-Clause
"""Rules that other programs decide: headers compile alone, clang-format, shellcheck.

A header x.hpp that is the first include of its x.cpp is not compiled here: the build proves that it compiles alone. The
others are cached in build/tidy/headers.json by the content of all that they include from the repository. Where many are
compiled, the standard library's headers are compiled once for all .hpp (rules_standard.py finds those that do not
include them).
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

CACHE = "build/tidy/headers.json"
STANDARD = "build/tidy/standard.hpp"
GENERATOR = "starpu_glue/mpi/functions/generate.py"
GENERATED = "build/tidy/generated"  # what the generator makes, apart from every build
STANDARD_HEADERS = (
    "algorithm array atomic chrono cstdint cstring deque functional map memory mutex optional span string thread "
    "unordered_map utility vector"
)
MANY = 12  # precompiling pays from this number on
FORMAT_VERSION = "14"


def run(command, root, text=None):
    return subprocess.run(command, cwd=root, input=text, capture_output=True, text=True, check=False)


def pkg_config_flags():
    flags = []
    for module in ("hwloc", "pmix"):
        if shutil.which("pkg-config"):
            result = run(["pkg-config", "--cflags", module], None)
            flags += result.stdout.split() if result.returncode == 0 else []
    return flags


def glue_include_flags(tree):
    directories = {
        path.rsplit("/", 1)[0] for path in tree.files if path.startswith("starpu_glue/") and "/include/" in path
    }
    return [f"-I{directory}" for directory in sorted(directories)]


def generate_headers(tree):
    """Makes the headers that the build generates, and returns a hash of them. Without the generator there are none."""
    digest = hashlib.sha256()
    if (tree.root / GENERATOR).exists():
        subprocess.run([sys.executable, "-B", GENERATOR, GENERATED], cwd=tree.root, check=True)
        for path in sorted((tree.root / GENERATED).rglob("*.h*")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest


def common_flags(tree):
    generated = [f"-I{GENERATED}", f"-I{GENERATED}/include"]
    own = ["-I.", "-Icomm/include", *glue_include_flags(tree), *generated]
    return ["-Wall", "-Wextra", "-Werror", *own, *pkg_config_flags()]


def cxx(*options):
    return [os.environ.get("CXX", "g++"), "-std=c++20", *options]


def precompile_standard(tree):
    """Returns options that bring in the standard headers, compiled once."""
    header = tree.root / STANDARD
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text("".join(f"#include <{name}>\n" for name in STANDARD_HEADERS.split()), encoding="utf-8")
    run(cxx("-x", "c++-header", *common_flags(tree), "-o", STANDARD + ".gch", STANDARD), tree.root)
    return ["-include", STANDARD]


def header_commands(file, flags, standard):
    """Returns the compilations that a header must pass: .hpp as C++; .h as C and as C++."""
    if file.suffix == ".h":
        c = [os.environ.get("CC", "gcc"), "-std=gnu11", "-x", "c"]
        return [[*command, "-fsyntax-only", *flags] for command in (cxx("-x", "c++"), c)]
    return [cxx("-x", "c++", "-fsyntax-only", *flags, *standard)]


def fingerprint(tree, file, generated):
    """Returns a hash of the generated headers, of this header and of all that it includes from the repository."""
    digest = generated.copy()
    for member in sorted(tree.with_included(file), key=lambda member: member.path):
        digest.update(member.path.encode() + b"\0" + member.text.encode() + b"\0")
    return digest.hexdigest()


def compile_header(tree, file, flags, standard):
    """Returns the first error of compiling the header by itself, or None."""
    for command in header_commands(file, flags, standard):
        # The header is included, not compiled itself: a lone header draws warnings about #pragma once.
        text = f'#include "{file.path}"\n'
        result = run([*command, "-"], tree.root, text)
        if result.returncode != 0:
            errors = [line for line in result.stderr.splitlines() if "error" in line] or ["does not compile"]
            return f"is not self-contained ({command[0]}): {errors[0].strip()}"
    return None


def proven_by_build(tree, file):
    """Returns whether the header's own source, which the build compiles, includes it before anything else."""
    source = tree.files.get(file.path.removesuffix(".hpp") + ".cpp")
    return source is not None and source.includes and tree.resolve(source, source.includes[0][1]) == file.path


def check_guards(tree):
    """Headers that may be included twice."""
    for file in tree.select(lambda file: file.suffix in (".h", ".hpp")):
        if not re.search(r"^#pragma once$|^#ifndef (\w+)\n#define \1\b", file.text, re.MULTILINE):
            yield file.path, 1, "has no #pragma once (or #ifndef guard)"


def check_headers(tree):
    headers = tree.select(lambda file: file.suffix in (".h", ".hpp") and not proven_by_build(tree, file))
    cache_file = tree.root / CACHE
    try:
        cache = json.loads(cache_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        cache = {}
    generated = generate_headers(tree)
    prints = {file.path: fingerprint(tree, file, generated) for file in headers}
    stale = [file for file in headers if cache.get(file.path) != prints[file.path]]
    flags = common_flags(tree)
    standard = precompile_standard(tree) if len(stale) > MANY else []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda file: compile_header(tree, file, flags, standard), stale)
        problems = dict(zip([file.path for file in stale], found))
    good = {path: value for path, value in prints.items() if not problems.get(path)}
    cache_file.parent.mkdir(parents=True, exist_ok=True)
    cache_file.write_text(json.dumps(good, indent=0), encoding="utf-8")
    for path, problem in problems.items():
        if problem:
            yield path, 1, problem


def clang_format():
    """Returns a clang-format of the version that formats the sources; another version formats differently."""
    for name in (f"clang-format-{FORMAT_VERSION}", "clang-format"):
        if shutil.which(name):
            if f"version {FORMAT_VERSION}." in run([name, "--version"], None).stdout:
                return name
    return None


def check_format(tree):
    program = clang_format()
    files = [file.path for file in tree.cpp]
    if program is None or not files:
        return
    result = run([program, "--dry-run", "--ferror-limit=1", "--style=file", *files], tree.root)
    for path, line in dict(re.findall(r"^(\S+?):(\d+):\d+: (?:warning|error):", result.stderr, re.MULTILINE)).items():
        yield path, int(line), f"is not formatted: {program} -i {path}"


def check_shell(tree):
    files = [file.path for file in tree.code if file.is_shell]
    if shutil.which("shellcheck") is None or not files:
        return
    result = run(["shellcheck", "--external-sources", "--format=gcc", *files], tree.root)
    for path, line, text in re.findall(r"^(\S+?):(\d+):\d+: (.*)$", result.stdout, re.MULTILINE):
        yield path, int(line), text


def check_python(tree):
    for file in tree.select(lambda file: file.is_python):
        try:
            compile(file.text, file.path, "exec", dont_inherit=True)
        except SyntaxError as error:
            yield file.path, error.lineno or 1, f"is no Python: {error.msg}"


GOOGLE = "BasedOnStyle: Google\nColumnLimit: 120\n"
RULES = [
    (
        "headers",
        check_headers,
        "every header compiles alone",
        [
            ({"comm/a.hpp": "#pragma once\nstd::string f();\n"}, 1),
            ({"comm/a.hpp": "#pragma once\n#include <string>\nstd::string f();\n"}, 0),
            ({"comm/a.hpp": "#pragma once\nstd::string f();\n", "comm/a.cpp": "#include <string>\n"}, 1),
            ({"comm/a.hpp": "#pragma once\nstd::string f();\n", "comm/a.cpp": '#include "comm/a.hpp"\n'}, 0),
            ({"comm/include/canele/a.h": "#pragma once\nclass A {};\n"}, 1),
        ],
    ),
    (
        "guards",
        check_guards,
        "every header may be included twice",
        [
            ({"comm/a.hpp": "struct A {};\n"}, 1),
            ({"comm/a.hpp": "#pragma once\n", "comm/b.h": "/* */\n#ifndef B_H\n#define B_H\n#endif\n"}, 0),
            ({"comm/b.h": "#ifndef B_H\n#define C_H\n#endif\n"}, 1),
        ],
    ),
    (
        "format",
        check_format,
        f"clang-format {FORMAT_VERSION} would change nothing",
        [
            ({".clang-format": GOOGLE, "a.cpp": "int  f( );\n"}, 1 if clang_format() else 0),
            ({".clang-format": GOOGLE, "a.cpp": "int f();\n"}, 0),
        ],
    ),
    (
        "shell",
        check_shell,
        "shellcheck finds nothing",
        [
            ({"a.sh": "#!/bin/bash\nrm $1\n"}, 1 if shutil.which("shellcheck") else 0),
            ({"a.sh": '#!/bin/bash\nrm "$1"\n'}, 0),
        ],
    ),
    ("python", check_python, "scripts are Python", [({"a.py": "def f(:\n"}, 1), ({"a.py": "x = 1\n"}, 0)]),
]
