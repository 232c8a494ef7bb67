# SPDX-License-Identifier: BSD-3-Clause
"""A rule about standard headers: a file that uses a name of the standard library includes its header, or a header of
ours that does.

No compiler would report it: precompiled headers and unity builds bring in nearly all of them, in every preset. Names
that are not in the table are not checked.
"""
import re

# Header: the names that it declares and that we use.
DECLARES = {
    "algorithm": "all_of any_of clamp copy copy_n count_if equal fill find find_if for_each lower_bound max "
    "max_element min min_element none_of nth_element remove_if reverse rotate shuffle sort stable_sort transform "
    "upper_bound",
    "array": "array",
    "atomic": "atomic atomic_bool atomic_flag atomic_ref atomic_thread_fence memory_order memory_order_acquire "
    "memory_order_relaxed memory_order_release",
    "bit": "bit_cast bit_ceil bit_width countl_zero countr_zero has_single_bit popcount",
    "charconv": "from_chars to_chars",
    "chrono": "chrono",
    "cmath": "ceil floor isnan log pow sqrt",
    "condition_variable": "condition_variable",
    "cstddef": "byte max_align_t ptrdiff_t size_t",
    "cstdint": "int16_t int32_t int64_t intptr_t uint16_t uint32_t uint64_t uint8_t uintptr_t",
    "cstdio": "FILE fopen fprintf printf snprintf",
    "cstdlib": "abort exit free getenv malloc strtoul",
    "cstring": "memcmp memcpy memmove memset strcmp strlen",
    "deque": "deque",
    "exception": "exception exception_ptr",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "function hash",
    "initializer_list": "initializer_list",
    "iterator": "back_inserter",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag scoped_lock unique_lock",
    "new": "align_val_t bad_alloc launder nothrow",
    "numeric": "accumulate iota",
    "optional": "nullopt optional",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64",
    "regex": "regex",
    "set": "set",
    "span": "span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument logic_error out_of_range runtime_error",
    "string": "stoi stoul string to_string",
    "string_view": "string_view",
    "system_error": "errc system_error",
    "thread": "this_thread thread",
    "tuple": "tie tuple",
    "type_traits": "conditional_t is_same_v is_trivially_copyable_v remove_cvref_t",
    "unordered_map": "unordered_map",
    "utility": "exchange forward move pair swap",
    "variant": "holds_alternative monostate variant visit",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in DECLARES.items() for name in names.split()}
# Headers that a header cannot do without: a file that includes the one need not include the others.
CONTAINERS = ("deque", "list", "map", "set", "string", "unordered_map", "vector")
BRINGS = {
    **{header: {"cstddef", "initializer_list", "utility"} for header in CONTAINERS},
    "algorithm": {"utility"},
    "charconv": {"system_error"},
    "condition_variable": {"chrono", "mutex"},
    "cstdio": {"cstddef"},
    "cstdlib": {"cstddef"},
    "cstring": {"cstddef"},
    "filesystem": {"string"},
    "fstream": {"string"},
    "functional": {"utility"},
    "memory": {"cstddef", "utility"},
    "mutex": {"chrono"},
    "optional": {"utility"},
    "span": {"array", "cstddef"},
    "sstream": {"string"},
    "stdexcept": {"exception", "string"},
    "string": {"cstddef", "initializer_list", "string_view", "utility"},
    "string_view": {"cstddef"},
    "thread": {"chrono"},
    "tuple": {"utility"},
    "variant": {"utility"},
}


def reached(tree, file):
    """Returns the standard headers that the file includes, itself or by headers of ours."""
    standard = set()
    for member in tree.with_included(file):
        for _, name, _ in member.includes:
            if tree.resolve(member, name) is None:
                standard |= {name} | BRINGS.get(name, set())
    return standard


def check_standard_headers(tree):
    for file in tree.select(lambda file: file.suffix in (".cpp", ".hpp")):
        missing = {}
        standard = reached(tree, file)
        for number, line in enumerate(file.code.splitlines(), 1):
            for name in re.findall(r"\bstd::(\w+)", line):
                header = HEADER_OF.get(name)
                if header is not None and header not in standard:
                    missing.setdefault(header, (number, name))
        for header, (number, name) in missing.items():
            yield file.path, number, f"uses std::{name} and does not include <{header}>"


RULES = [
    (
        "standard",
        check_standard_headers,
        "the standard headers that a source uses are included",
        [
            ({"a.cpp": "std::string f();\n"}, 1),
            ({"a.cpp": "#include <string>\nstd::string f(std::string_view);\n"}, 0),
            ({"a.cpp": '#include "b.hpp"\nstd::string f();\n', "b.hpp": "#include <string>\n"}, 0),
            ({"a.cpp": "std::string f();\nstd::string g();\nstd::vector<int> h();\n// std::map\n"}, 2),
        ],
    ),
]
