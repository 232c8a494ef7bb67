# SPDX-License-Identifier: BSD-3-Clause
"""Rules about the text: lengths, first lines, words that promise work not done, comments of the driver contract."""
import re

import dictionary
import english

FUNCTION_LINES = 70
FILE_LINES = 600
LINE_COLUMNS = 120
DRIVER_FUNCTIONS = 16
LICENSE = "SPDX-License-Identifier: BSD-3-Clause"
CONTRACT = "drivers/driver.hpp"


def check_function_length(tree):
    for file in tree.code:
        for function in file.functions:
            if function is None:
                yield file.path, 1, "braces do not match (an #if that splits a block?): cannot measure functions"
                continue
            name, first, last = function
            if last - first + 1 > FUNCTION_LINES:
                yield file.path, first, f"function {name} has {last - first + 1} lines; at most {FUNCTION_LINES}"


def check_file_length(tree):
    for file in tree.code:
        if len(file.lines) > FILE_LINES:
            yield file.path, FILE_LINES, f"file has {len(file.lines)} lines; at most {FILE_LINES}"


def check_line_length(tree):
    for file in tree.code:
        for number, line in enumerate(file.lines, 1):
            if len(line) > LINE_COLUMNS:
                yield file.path, number, f"line has {len(line)} columns; at most {LINE_COLUMNS}"


def check_spaces(tree):
    for file in tree.code:
        for number, line in enumerate(file.lines, 1):
            if line != line.rstrip():
                yield file.path, number, "blanks at the end of the line"
            if "\t" in line and not file.is_shell:
                yield file.path, number, "tab"
        if file.text and not file.text.endswith("\n"):
            yield file.path, len(file.lines), "no newline at the end of the file"


def check_license(tree):
    for file in tree.code:
        first = 1 if file.lines and file.lines[0].startswith("#!") else 0
        if len(file.lines) <= first or LICENSE not in file.lines[first]:
            yield file.path, first + 1, f'the file must open with "{LICENSE}"'


def check_opening(tree):
    """Checks that headers of the library name the threads that may use them."""
    for file in tree.select(
        lambda file: file.suffix == ".hpp" and file.room in ("comm", "ltask", "drivers", "strategies", "starpu_glue")
    ):
        if "thread" not in "\n".join(file.lines[:40]).lower():
            yield file.path, 1, "the opening comment does not say which threads may use what is here"


# Written so that this file does not contain them.
PROMISES = re.compile(
    r"\b("
    + "|".join(
        [
            "TO" + "DO",
            "FIX" + "ME",
            "X" + "XX",
            "HA" + "CK",
            "TB" + "D",
            "WI" + "P",
            "place" + r"holder(?!s::)",
            "not (?:yet )?" + "implemented",
            "for " + "now,",
        ]
    )
    + r")\b"
)


def check_promises(tree):
    for file in tree.code:
        for number, line in enumerate(file.lines, 1):
            match = PROMISES.search(line)
            if match:
                yield file.path, number, f'"{match.group(1)}": do it, or file an issue'


# A thousand lines of comment and prose may have one such word; a hundred sentences one that is too long.
ENGLISH_LIMITS = {"who": ("lines", 1000), "body": ("lines", 1000), "too long": ("sentences", 100)}


def check_english(tree):
    """Words for persons in messages; and these words and long sentences, where the tree has more than it may."""
    files = tree.select(english.is_text)
    for file in files:
        for line, word in english.persons_in_messages(file):
            yield file.path, line, f"message: {word} (CONTRIBUTING.md, English)"
    total = english.measure(files)
    broken = {kind for kind, (of, per) in ENGLISH_LIMITS.items() if total[kind] * per > total[of]}
    for file in files if broken else []:
        for line, kind, text in english.findings(file)[0]:
            if kind in broken:
                yield file.path, line, f"{kind}: {text} (CONTRIBUTING.md, English)"


def check_dictionary(tree):
    index = dictionary.Index(dictionary.all_rows())
    for file in tree.select(dictionary.is_checked):
        for line, name, row in dictionary.findings(file, index):
            yield file.path, line, f"{name}: the field's word is \"{row.new}\" (tests/tidy/dictionary.txt)"


def comment_share(file):
    """Returns the share of comments in the file's characters (blanks not counted)."""
    written, code = (len(re.sub(r"\s", "", text)) for text in (file.text, file.code))
    return 1 - code / written if written else 0.0


def check_driver_contract(tree):
    file = tree.files.get(CONTRACT)
    if file is None:
        return
    functions = re.findall(r"\bvirtual\b[^;{]*?\b(\w+_impl)\s*\(", file.code)
    if len(functions) > DRIVER_FUNCTIONS:
        yield CONTRACT, 1, f"{len(functions)} virtual functions; at most {DRIVER_FUNCTIONS}"
    share = comment_share(file)
    if share < 0.5:
        yield CONTRACT, 1, f"{share:.0%} of it is comment; a contract wants at least 50 %"


def many(line, count):
    return line * count


SPDX = f"// {LICENSE}\n"
RULES = [
    (
        "function-length",
        check_function_length,
        f"functions have at most {FUNCTION_LINES} lines",
        [
            ({"a.cpp": "int f() {\n" + many("  g();\n", 69) + "}\n"}, 1),
            ({"a.cpp": "int f() {\n" + many("  g();\n", 68) + "}\n"}, 0),
            (
                {
                    "a.cpp": "namespace a {\nclass B {\n void f() const {\n"
                    + many("  if (x) { y(); }\n", 70)
                    + "}\n};\n}\n"
                },
                1,
            ),
            ({"a.cpp": "struct A {\n" + many("  int f() { return 1; }\n", 100) + "};\n"}, 0),
            ({"a.cpp": "const int table[] = {\n" + many("  f(1),\n", 100) + "};\n"}, 0),
            ({"a.cpp": "TEST(A, b) {\n  auto s = \"}\";\n  char c = '{';\n" + many("  g();\n", 70) + "}\n"}, 1),
            ({"a.cpp": "auto f() {\n  return [] {\n" + many("    g();\n", 70) + "  };\n}\n"}, 1),
            ({"a.cpp": "A::A(int x)\n    : x_(x), y_{1} {\n" + many("  g();\n", 70) + "}\n"}, 1),
            ({"a.cpp": "template <typename T>\nstruct Result f(int a) {\n" + many("  g();\n", 70) + "}\n"}, 1),
            ({"a.cpp": "void f() {\n#if A\n  if (a) {\n#else\n  if (b) {\n#endif\n}\n}\n"}, 1),
            ({"a.py": "def f():\n" + many("    g()\n", 70)}, 1),
            ({"a.sh": "f() {\n" + many("  g\n", 70) + "}\n"}, 1),
        ],
    ),
    (
        "file-length",
        check_file_length,
        f"files have at most {FILE_LINES} lines",
        [({"a.cpp": many("x\n", 601)}, 1), ({"a.cpp": many("x\n", 600)}, 0)],
    ),
    (
        "line-length",
        check_line_length,
        f"lines have at most {LINE_COLUMNS} columns",
        [({"a.cpp": many("é", 121) + "\n"}, 1), ({"a.cpp": many("é", 120) + "\n"}, 0)],
    ),
    (
        "spaces",
        check_spaces,
        "no tabs, no blanks at line ends, a newline at the end",
        [({"a.cpp": "x \n"}, 1), ({"a.cpp": "\tx\n"}, 1), ({"a.cpp": "x"}, 1), ({"a.cpp": "x\n"}, 0)],
    ),
    (
        "license",
        check_license,
        "every file opens with its licence",
        [
            ({"a.cpp": "int x;\n"}, 1),
            ({"a.cpp": SPDX + "int x;\n"}, 0),
            ({"a.sh": f"#!/bin/bash\n# {LICENSE}\n"}, 0),
            ({"a.py": "#!/usr/bin/python3\nx = 1\n"}, 1),
        ],
    ),
    (
        "opening",
        check_opening,
        "library headers say which threads may use them",
        [
            ({"comm/a.hpp": SPDX + "// A thing.\n"}, 1),
            ({"comm/a.hpp": SPDX + "// A thing. Any thread may use it.\n"}, 0),
        ],
    ),
    (
        "dictionary",
        check_dictionary,
        "no name that the dictionary has replaced by the field's word",
        [
            ({"a.cpp": "void withhold_it();\n"}, 1),
            ({"a.cpp": "int PutOff;\n"}, 1),
            ({"a.cpp": "// The send is withheld.\n"}, 1),
            ({"docs/a.md": "See `short_cut`.\n"}, 1),
            ({"docs/a.md": "This is a short cut.\n"}, 0),
            ({"docs/notes/a.md": "The send is withheld.\n"}, 0),
            ({"a.cpp": "void block_it();\n"}, 0),
        ],
    ),
    (
        "promises",
        check_promises,
        "no words that stand for work not done",
        [
            ({"a.cpp": "// TO" + "DO later\n"}, 1),
            ({"a.cpp": "using std::place" + "holders::_1;\n"}, 0),
            ({"a.py": "# not " + "implemented\n"}, 1),
        ],
    ),
    (
        "english",
        check_english,
        "comments and pages are plain English",
        [
            ({"a.cpp": "// Whoever calls it waits.\n"}, 1),
            ({"a.md": "Nobody calls it.\n"}, 1),
            ({"a.cpp": "EXPECT_TRUE(x) << \"who waits is woken\";\n"}, 1),
            ({"a.cpp": "start(\"nobody\");\n"}, 0),
            ({"a.py": "# " + "word " * 31 + "end.\n"}, 1),
            ({"a.cpp": "// The caller waits.\nconst char* who = nullptr;\n", "a.md": "`nobody` is a name.\n"}, 0),
        ],
    ),
    (
        "driver-contract",
        check_driver_contract,
        f"at most {DRIVER_FUNCTIONS} functions, half of it comment",
        [
            (
                {
                    CONTRACT: "".join(
                        f"// comment, longer than the code\nvirtual int f{n}_impl() = 0;\n" for n in range(17)
                    )
                },
                1,
            ),
            (
                {
                    CONTRACT: "".join(
                        f"// comment, longer than the code\nvirtual int f{n}_impl() = 0;\n" for n in range(16)
                    )
                },
                0,
            ),
            ({CONTRACT: "virtual int f_impl() = 0;\n// c\n"}, 1),
        ],
    ),
]
