#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the deb-src lines that belong to this system's own Debian lines, for a private apt configuration.

Usage: deb_src_lines.py [SUITE]     SUITE: of that release instead, from the same mirrors

Used by tests/starpu/build-starpu.sh and tests/mpi/mpich/sources.py. Reads /etc/apt/sources.list and
/etc/apt/sources.list.d/*.{list,sources}; writes nothing. It takes the entries of this release's own suites only
(bookworm, bookworm-updates ...), in component main. A third party's repository has no StarPU, and often no sources at
all, which would make `apt-get update` fail.
"""
import glob
import re
import sys


def release_name():
    """Returns the code name of this Debian release, from /etc/os-release."""
    with open("/etc/os-release", encoding="utf-8") as file:
        values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', file.read(), re.MULTILINE))
    name = values.get("VERSION_CODENAME")
    if not name:
        sys.exit("error: /etc/os-release has no VERSION_CODENAME: is this a Debian release?")
    return name


def one_line_entries(text):
    """Yields (options, uri, suite, components) of the one-line format: deb [options] uri suite component..."""
    for line in text.splitlines():
        match = re.match(r"^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]*)", line)
        if match:
            yield match.group(1) or "", match.group(2), match.group(3), match.group(4).split()


def stanza_fields(stanza):
    """Returns the fields of one deb822 stanza; continuation lines are joined, comments dropped."""
    fields, name = {}, None
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1].isspace() and name:
            fields[name] += "\n" + line.strip()
        elif ":" in line:
            name, value = line.split(":", 1)
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def deb822_entries(text):
    """Yields (options, uri, suite, components) of the deb822 format."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = stanza_fields(stanza)
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() == "no":
            continue
        key = fields.get("signed-by", "")
        # A key written into the stanza itself cannot be named in a one-line entry; the system's trusted keys then
        # serve.
        options = f"signed-by={key}" if key.startswith("/") else ""
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield options, uri, suite, fields.get("components", "").split()


def system_entries():
    """Returns all deb entries of the system."""
    names = ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*"))]
    for name in names:
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            continue
        if name.endswith(".list"):
            yield from one_line_entries(text)
        elif name.endswith(".sources"):
            yield from deb822_entries(text)


def main():
    release = release_name()
    other = sys.argv[1] if len(sys.argv) > 1 else None
    suites = release if other else rf"{release}(-updates|-security|-proposed-updates)?"
    lines = []
    for options, uri, suite, components in system_entries():
        if re.fullmatch(suites, suite) and "main" in components:
            line = f"deb-src {f'[{options}] ' if options else ''}{uri} {other or suite} main"
            if line not in lines:
                lines.append(line)
    if not lines:
        sys.exit(
            f"error: the system's apt sources have no entry for {release} main, so StarPU's source cannot be found"
        )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
