# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's sources: fetches Debian's source package and unpacks its tests. Nothing of them is part of this tree.

A private apt configuration below the cache is used, so that the system's lists stay as they are. apt checks the
signature of the release, and the checksums of the files.
"""
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
READY = ".ready-with-fortran"  # another name for each choice of files: what was unpacked before is unpacked anew


class SourcesError(Exception):
    """The sources cannot be had, and why."""


def private_apt(place: pathlib.Path, *arguments: str) -> list[str]:
    """Returns an apt-get command with sources, lists and cache below `place`. Proxies and keys stay the system's."""
    settings = {"Dir::Etc::sourcelist": place / "sources.list", "Dir::Etc::sourceparts": "-",
                "Dir::State::lists": place / "lists", "Dir::Cache": place / "cache",
                "APT::Sandbox::User": pwd.getpwuid(os.getuid()).pw_name, "Acquire::Retries": "3",
                "APT::Update::Error-Mode": "any"}
    return ["apt-get", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}")), *arguments]


def fetch(place: pathlib.Path, log: pathlib.Path, package: str = "mpich", name: str = "MPICH", *options: str) -> None:
    """Downloads a source package. `options` are those of apt-get source."""
    apt = place / "apt"
    for directory in (apt / "lists/partial", apt / "cache/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    lines = subprocess.run([sys.executable, str(ROOT / "tests/starpu/deb_src_lines.py")], capture_output=True,
                           text=True, check=False)
    if lines.returncode != 0:
        raise SourcesError(f"{name}'s source package cannot be fetched: {lines.stderr.strip()}")
    (apt / "sources.list").write_text(lines.stdout, encoding="utf-8")
    with open(log, "w", encoding="utf-8") as file:
        for arguments in (("update",), ("source", "--download-only", *options, package)):
            code = subprocess.run(private_apt(apt, *arguments), cwd=place, stdin=subprocess.DEVNULL, stdout=file,
                                  stderr=subprocess.STDOUT, check=False).returncode
            if code != 0:
                reasons = re.findall(r"^[EW]: (.*)$", log.read_text(encoding="utf-8"), re.MULTILINE)
                raise SourcesError(
                    f"{name}'s source package cannot be fetched from Debian: apt-get {arguments[0]} ended with exit "
                    f"code {code}. {reasons[0] if reasons else ''}\nAll that it says is in {log}")


def archives(place: pathlib.Path) -> list[pathlib.Path]:
    return sorted(place.glob("mpich_*.orig.tar.xz"))


def unpack(archive: pathlib.Path, sources: pathlib.Path) -> None:
    """Unpacks the tests in C and Fortran, and their library. Fills the templates of headers, as configure would."""
    shutil.rmtree(sources, ignore_errors=True)
    pattern = re.compile(r"[^/]+/test/mpi/((?!cxx/)(?:[\w-]+/)*(?:[^/]+\.(?:c|f|f90|h|am|in)|testlist))")
    with tarfile.open(archive) as tar:
        for member in tar:
            found = pattern.fullmatch(member.name)
            content = tar.extractfile(member) if found and member.isfile() else None
            if found and content:
                to = sources / found.group(1)
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(content.read())
                if to.name.endswith(".h.in"):
                    text = re.sub("@F77_MPI_(ADDRESS|OFFSET)@", "integer*8", to.read_text(encoding="utf-8"))
                    to.with_suffix("").write_text(text, encoding="utf-8")
    (sources / "include").mkdir(exist_ok=True)
    (sources / "include/mpitestconf.h").write_text("", encoding="utf-8")  # programs.CONFIGURATION has its content
    (sources / READY).touch()


def ensure(place: pathlib.Path) -> tuple[str, pathlib.Path]:
    """Returns MPICH's version and the folder of its tests."""
    place.mkdir(parents=True, exist_ok=True)
    if not archives(place):
        begin = time.monotonic()
        fetch(place, place / "fetch.log")
        print(f"fetching MPICH's source package: done in {time.monotonic() - begin:.0f} s", flush=True)
    archive = archives(place)[-1]
    version = archive.name.removeprefix("mpich_").removesuffix(".orig.tar.xz")
    sources = place / f"tests-{version}"
    if not (sources / READY).exists():
        unpack(archive, sources)
    return version, sources
