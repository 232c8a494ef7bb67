# SPDX-License-Identifier: BSD-3-Clause
"""Rules about what is written for people: the form of pages, maps of directories, the settings pages, links."""
import pathlib
import re

README_LINES = 120
PAGE_LINES = 300
PAGE_COLUMNS = 100
READERS = re.compile(r"\b[Ff]or (?:\S+ ){0,5}?(?:administrators|authors|developers|newcomers|readers|users)\b")
PARAGRAPH_WORDS = 8  # fewer words cannot name the readers and the content
SETTINGS_TABLE = "comm/config/settings_table.cpp"
SETTINGS_PAGE = "docs/settings.md"
EXPERT_PAGE = "docs/settings-expert.md"
DRIVER_NAMES = "comm/config/names.hpp"
WALKS_PAGE = "docs/walks.md"
WALKS = ("Small send", "Receive", "Large message")  # the beginnings of their headings
WALK_HEAD = "| file in `comm/` | function | what it does |"
WALK_STEP = re.compile(r"\| `([^`]+)` \| `(\w+)` \| (.+) \|$")
STEP_WORDS = 15


def code_directories(tree):
    """Returns the directories that hold code of their own, without the root."""
    directories = {}
    for file in tree.code:
        directory = str(pathlib.PurePosixPath(file.path).parent)
        directories.setdefault(directory, file.path)
    return {directory: example for directory, example in directories.items() if not directory.startswith(".")}


def map_of(directory):
    """Yields where the map of a directory may be: there; for tests/unit/x in tests/unit; for a/include/x in a."""
    yield f"{directory}/README.md"
    if directory.startswith("tests/"):
        yield "/".join(directory.split("/")[:2]) + "/README.md"
    if "/include" in directory:
        yield directory[: directory.index("/include")] + "/README.md"


def check_maps(tree):
    for directory, example in sorted(code_directories(tree).items()):
        maps = [path for path in map_of(directory) if path in tree.files]
        if not maps:
            yield example, 1, f"{directory}/ has code and no README.md (its one-page map)"
        elif len(tree.files[maps[0]].lines) > README_LINES:
            yield maps[0], 1, f"{len(tree.files[maps[0]].lines)} lines; a map has one page ({README_LINES} lines)"


def first_paragraph(lines):
    """Returns (line number, text) of the first paragraph below the title; the text is empty if it is no prose."""
    size = len(lines)
    begin = next((number for number, line in enumerate(lines) if line.strip() and not line.startswith("# ")), size)
    end = next((number for number in range(begin, size) if not lines[number].strip()), size)
    prose = begin < end and not re.match(r"    |[|#<!>`~*+-]|\d+[.)] ", lines[begin])
    return begin + 1, " ".join(lines[begin:end]) if prose else ""


def check_pages(tree):
    """Notes have tables of all kinds, and are never read from the top: their columns are free. So are those of tables.
    """
    for file in tree.select(lambda file: file.suffix == ".md"):
        if len(file.lines) > PAGE_LINES:
            yield file.path, PAGE_LINES, f"page has {len(file.lines)} lines; at most {PAGE_LINES}"
        for number, line in enumerate(file.lines, 1):
            if len(line) > PAGE_COLUMNS and not line.startswith("|") and not file.path.startswith("docs/notes/"):
                yield file.path, number, f"line has {len(line)} columns; at most {PAGE_COLUMNS}, except in a table"
        number, text = first_paragraph(file.lines)
        if not READERS.search(text) or len(text.split()) < PARAGRAPH_WORDS:
            yield (file.path, number, "the first paragraph does not name the readers of the page and its content; "
                   "expected: such as \"For users: which drivers there are, and how to choose\"")


def setting_names(file):
    """Returns CANELE_<NAME> of every row of the table of settings."""
    return [f"CANELE_{name}" for name in re.findall(r'\.name = "(\w+)"', file.text)]


def described_settings(page):
    """Yields (line, CANELE_<NAME>) of a page's tables and headings."""
    for number, line in enumerate(page.lines, 1):
        match = re.match(r"\s*\|\s*`(CANELE_\w+)`", line) or re.match(r"#+\s*`?(CANELE_[A-Z0-9_]+)`?\s*$", line)
        if match:
            yield number, match.group(1)


def check_settings_page(tree, path, names):
    page = tree.files.get(path)
    if page is None:
        yield SETTINGS_TABLE, 1, f"{path} does not exist"
        return
    described = list(described_settings(page))
    for name in names:
        if name not in [one for _, one in described]:
            yield path, 1, f"{name} is not described"
    for number, name in described:
        if name not in names:
            yield path, number, f"{name} is described, and is no setting of this page"


def check_settings(tree):
    table = tree.files.get(SETTINGS_TABLE)
    if table is None:
        return
    names = setting_names(table)
    if not names:
        yield SETTINGS_TABLE, 1, "found no row `.name = \"...\"`: this rule needs mending"
    expert = [name for name in names if name.startswith("CANELE_EXPERT_")]
    yield from check_settings_page(tree, SETTINGS_PAGE, [name for name in names if name not in expert])
    if expert:
        yield from check_settings_page(tree, EXPERT_PAGE, expert)
    page = tree.files.get(SETTINGS_PAGE)
    if expert and page is not None and f"({pathlib.PurePosixPath(EXPERT_PAGE).name})" not in page.text:
        yield SETTINGS_PAGE, 1, f"no link to {EXPERT_PAGE}"


def check_driver_settings(tree):
    """A literal "TCP_..." or "EXPERT_TCP_..." in drivers/tcp is a setting that it asks the context for, itself or
    through a helper.

    A driver that is a module may have settings of its own, which no table knows: psm2 has.
    """
    if SETTINGS_TABLE not in tree.files or DRIVER_NAMES not in tree.files:
        return
    names = setting_names(tree.files[SETTINGS_TABLE])
    built_in = re.search(r'built_in_drivers = "([^"]*)"', tree.files[DRIVER_NAMES].text)
    if built_in is None:
        yield DRIVER_NAMES, 1, "found no `built_in_drivers`: this rule needs mending"
        return
    for file in tree.select(lambda file: file.is_cpp and re.match(r"drivers/\w+/", file.path)):
        family = file.path.split("/")[1]
        in_table = any(re.match(rf"CANELE_(EXPERT_)?{family.upper()}_", name) for name in names)
        if family not in built_in.group(1).split() and not in_table:
            continue
        for number, line in enumerate(file.lines, 1):
            for name in re.findall(rf'"((?:EXPERT_)?{family.upper()}_[A-Z0-9_]+)"', line):
                if f"CANELE_{name}" not in names:
                    yield file.path, number, f"{name} is not in the table of {SETTINGS_TABLE}: no user can set it"


def without_code_blocks(text):
    return re.sub(
        r"^(```|~~~).*?^\1", lambda match: re.sub(r"[^\n]", " ", match.group(0)), text, flags=re.DOTALL | re.MULTILINE
    )


def anchors(text):
    """Returns the anchors of a page, as GitHub makes them of headings."""
    found = set()
    for heading in re.findall(r"^#+\s+(.*)$", without_code_blocks(text), re.MULTILINE):
        found.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower())))
    return found


def link_problem(tree, file, target):
    """Returns what is wrong with a link, or None."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    place = file.path
    if path:
        resolved = (tree.root / file.path).parent.joinpath(path).resolve()
        if tree.root.resolve() not in (resolved, *resolved.parents):
            return f"link {target} leaves the repository"
        if not resolved.exists():
            return f"link {target} leads nowhere"
        place = resolved.relative_to(tree.root.resolve()).as_posix()
    if anchor and place in tree.files and place.endswith(".md") and anchor not in anchors(tree.files[place].text):
        return f"link {target}: no such heading"
    return None


def check_links(tree):
    for file in tree.select(lambda file: file.suffix == ".md"):
        text = re.sub(r"`[^`\n]*`", "", without_code_blocks(file.text))
        for number, line in enumerate(text.splitlines(), 1):
            for target in re.findall(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)", line):
                problem = link_problem(tree, file, target)
                if problem:
                    yield file.path, number, problem


def walks_of(lines):
    """Yields the walks of a page: the heading above a table, and the [(line number, line)] of its rows."""
    for head in [number for number, line in enumerate(lines) if line == WALK_HEAD]:
        heading = next((line for line in reversed(lines[:head]) if line.startswith("#")), "")
        end = next((number for number in range(head, len(lines)) if not lines[number].startswith("|")), len(lines))
        yield heading, [(number + 1, lines[number]) for number in range(head + 2, end)]


def step_problem(tree, done, path, function):
    """Returns what is wrong with a step, or None. `done` has the places of the walk so far, [(path, line)]: the step is
    added."""
    file = tree.files.get(path)
    if file is None or not file.is_cpp:
        return f"{path} does not exist"
    if path in [before for before, _ in done] and done[-1][0] != path:
        return f"the walk returns to {path}, which it has left"
    places = [one[1] for one in file.functions if one is not None and one[0].split("::")[-1] == function]
    if not places:
        return f"{path} does not define {function}()"
    behind = done[-1][1] if done and done[-1][0] == path else 0
    later = [place for place in places if place > behind]
    done.append((path, later[0] if later else behind))
    return None if later else f"{function}() stands above the step before it in {path}"


def check_walks(tree):
    """The walks of a message are read beside the sources, from the top of each file to its end."""
    page = tree.files.get(WALKS_PAGE)
    if page is None:
        return
    walked = set()
    for heading, walk in walks_of(page.lines):
        walked.update(name for name in WALKS if heading.startswith(f"## {name}"))
        done = []
        for number, line in walk:
            step = WALK_STEP.match(line)
            if step is None:
                yield WALKS_PAGE, number, "a step is `file`, `function` and what it does"
                continue
            problem = step_problem(tree, done, f"comm/{step.group(1)}", step.group(2))
            if problem:
                yield WALKS_PAGE, number, problem
            if len(step.group(3).split()) > STEP_WORDS:
                yield WALKS_PAGE, number, f"a step has at most {STEP_WORDS} words"
    for name in WALKS:
        if name not in walked:
            yield WALKS_PAGE, 1, f"has no walk below a heading \"## {name}\""


NAMES = 'inline constexpr std::string_view built_in_drivers = "self tcp";\n'
TABLE = '{.info = {.name = "DRIVERS",\n{.info = {.name = "SPIN",\n'
EXPERT = TABLE + '{.info = {.name = "EXPERT_FAULT",\n'
PAGE = "| `CANELE_DRIVERS` | x |\n| `CANELE_SPIN` | x |\n"
WALK_TABLE = f"{WALK_HEAD}\n|---|---|---|\n"
WALKED = {
    "comm/a.cpp": "namespace {\nint two(int);\n}\nint E::one() try {\n  return two(1);\n} catch (...) {\n}\n"
    "namespace {\nint two(int a) { return helper(a); }\n}\n",
    "comm/b.hpp": "struct B {\n  void three() { four(); }\n  void four() {}\n  void five();\n};\n",
}


def walk(*steps):
    """Returns a tree with the sources above, and a walk of these steps, "file function"."""
    return walks_page("".join("| `{}` | `{}` | runs |\n".format(*step.split()) for step in steps))


def walks_page(rows, names=WALKS):
    """Returns a tree with the sources above, and a page with a walk of these rows, the last of walks by these names."""
    tables = [f"## {name}\n\n{WALK_TABLE}" for name in names]
    return {**WALKED, WALKS_PAGE: "\n".join(tables) + rows}


OPENING = "# A page\n\nFor users of the library. This page says how to test.\n"
RULES = [
    (
        "pages",
        check_pages,
        f"pages have at most {PAGE_LINES} lines of {PAGE_COLUMNS} columns, and first name their readers and their "
        "content",
        [
            ({"docs/a.md": OPENING}, 0),
            ({"a/README.md": "# A\n\nThis page is for newcomers: what it is, and how it is built.\n"}, 0),
            ({"docs/a.md": "# A\n\nFor StarPU and MPI users. This page says how to test.\n"}, 0),
            ({"docs/a.md": OPENING + "x\n" * (PAGE_LINES - 3)}, 0),
            ({"docs/a.md": OPENING + "x\n" * (PAGE_LINES - 2)}, 1),
            ({"docs/a.md": f"{OPENING}\n{'é' * 100}\n| {'x' * 100} |\n"}, 0),
            ({"docs/a.md": f"{OPENING}\n{'é' * 101}\n```sh\n{'x' * 101}\n```\n"}, 2),
            ({"docs/notes/a.md": f"{OPENING}\n{'x' * 101}\n"}, 0),
            ({"docs/a.md": "# A page\n\nThis page says how to build and to test.\n"}, 1),
            ({"docs/a.md": "# A page\n\nFor users.\n"}, 1),
            ({"docs/a.md": "# A page\n\n| for users | of the library |\n|---|---|\n| how | to test |\n"}, 1),
            ({"docs/a.md": "# A page\n\n    users ──▶ for users of the library, how to test\n"}, 1),
            ({"docs/a.md": "# A page\n\n## For users of the library, how to build and test\n"}, 1),
            ({"docs/a.md": "# A page\n"}, 1),
        ],
    ),
    (
        "maps",
        check_maps,
        "every directory with code has a one-page README.md",
        [
            ({"comm/engine/a.cpp": ""}, 1),
            ({"comm/engine/a.cpp": "", "comm/engine/README.md": "x\n"}, 0),
            ({"tests/unit/x/a.cpp": "", "tests/unit/README.md": ""}, 0),
            ({"comm/a.cpp": "", "comm/README.md": "x\n" * 200}, 1),
        ],
    ),
    (
        "settings-page",
        check_settings,
        f"{SETTINGS_PAGE} and {EXPERT_PAGE} describe every setting and no other",
        [
            ({SETTINGS_TABLE: TABLE}, 1),
            ({SETTINGS_TABLE: "{", SETTINGS_PAGE: ""}, 1),
            ({SETTINGS_TABLE: TABLE, SETTINGS_PAGE: PAGE.replace("SPIN", "SPINN")}, 2),
            ({SETTINGS_TABLE: TABLE, SETTINGS_PAGE: PAGE}, 0),
            ({SETTINGS_TABLE: EXPERT, SETTINGS_PAGE: PAGE}, 2),
            (
                {
                    SETTINGS_TABLE: EXPERT,
                    SETTINGS_PAGE: PAGE + "[x](settings-expert.md)\n",
                    EXPERT_PAGE: "### CANELE_EXPERT_FAULT\n",
                },
                0,
            ),
            (
                {
                    SETTINGS_TABLE: EXPERT,
                    SETTINGS_PAGE: PAGE + "### CANELE_EXPERT_FAULT\n[x](settings-expert.md)\n",
                    EXPERT_PAGE: "### CANELE_EXPERT_FAULT\n",
                },
                1,
            ),
        ],
    ),
    (
        "driver-settings",
        check_driver_settings,
        "what a built-in driver reads is in the table of settings",
        [
            (
                {
                    SETTINGS_TABLE: TABLE + '.name = "TCP_PORT", .name = "OFI_DOMAIN", .name = "EXPERT_TCP_X"',
                    DRIVER_NAMES: NAMES,
                    "drivers/tcp/a.cpp": 'a.setting("TCP_PORT");\nread("EXPERT_TCP_X", "TCP_Y", "EXPERT_TCP_Y");\n',
                    "drivers/self/a.cpp": 'a.setting("SELF_DEPTH", "0");\n',
                    "drivers/ofi/a.cpp": 'a.setting("OFI_DOMAIN", "");\na.setting("OFI_X", "");\n',
                    "drivers/psm2/a.cpp": 'a.setting("PSM2_X", "");\n',
                },
                4,
            ),
            ({SETTINGS_TABLE: TABLE, DRIVER_NAMES: "\n"}, 1),
            (
                {
                    SETTINGS_TABLE: TABLE + '.name = "TCP_PORT"',
                    DRIVER_NAMES: NAMES,
                    "drivers/tcp/a.cpp": 'a.setting("TCP_PORT", "0"); setsockopt(fd, IPPROTO_TCP, TCP_NODELAY);\n',
                },
                0,
            ),
        ],
    ),
    (
        "walks",
        check_walks,
        f"the walks of {WALKS_PAGE} are in the sources: each file and function, in this order, without a return",
        [
            (walk("a.cpp one", "a.cpp two", "b.hpp three", "b.hpp four"), 0),
            (walks_page(f"| `a.cpp` | `two` | runs |\n\n{WALK_TABLE}| `a.cpp` | `one` | runs |\n"), 0),  # two walks
            (walk("c.cpp one"), 1),
            (walk("a.cpp one", "a.cpp helper"), 1),
            (walk("b.hpp five"), 1),  # only declared
            (walk("a.cpp two", "a.cpp one"), 1),
            (walk("b.hpp four", "b.hpp three"), 1),
            (walk("a.cpp one", "b.hpp three", "a.cpp two"), 1),
            (walks_page("| `a.cpp` | `one` |" + " x" * (STEP_WORDS + 1) + " |\n"), 1),
            (walks_page("| a.cpp | one | runs |\n"), 1),
            (walks_page("| `a.cpp` | `one` | runs |\n", names=WALKS[1:]), 1),
            ({WALKS_PAGE: "## Receive\n\n| file | function |\n|---|---|\n| `a.cpp` | `one` |\n"}, 3),
        ],
    ),
    (
        "links",
        check_links,
        "links inside the repository lead somewhere",
        [
            ({"README.md": "[a](docs/b.md) [c](docs/no.md)\n", "docs/b.md": ""}, 1),
            ({"README.md": "[a](docs/b.md#the-end) [b](docs/b.md#no)\n", "docs/b.md": "# The end\n"}, 1),
            ({"README.md": "[a](../outside.md)\n"}, 1),
            ({"README.md": "```\n[a](no.md)\n```\n`[a](no.md)` [b](https://x.org/y)\n"}, 0),
        ],
    ),
]
