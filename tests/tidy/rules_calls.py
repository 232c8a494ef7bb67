# SPDX-License-Identifier: BSD-3-Clause
"""Rules about calls that must not be made, each with what to use instead.

The world (time, randomness, threads, environment, sleeping) reaches the engine through injected interfaces, so that a
simulator can own it. And the library is a guest: no output on stdout, no exit, no signal handlers, no work at load
time.

Names are searched as words in code without comments and literals. A call through a function pointer, or hidden in a
macro of another library, is not seen. `type name(` is taken for a declaration: members may be called sleep or random.
"""
import re

ENGINE = ("comm", "ltask", "strategies")
WITH_DRIVERS = ENGINE + ("drivers",)
LIBRARY = WITH_DRIVERS + ("starpu_glue",)
EVERYWHERE = LIBRARY + ("apps", "tests")
PLATFORM = r"^ltask/posix_\w+\.cpp$"
# The C++ layer is compiled in the user's program: there, and under MPI's errors-are-fatal rule, the program ends.
USERS_PROGRAM = r"^comm/include/canele/canele\.hpp$"


def call(*names):
    """Returns a pattern for a call of one of the functions: not a member, not qualified by anything but std:: or ::."""
    return rf"(?<![\w.>:])(?:(?:std)?::)?(?:{'|'.join(names)})\s*\("


# (name, pattern, rooms, what to use instead, files that may, must be caught, must not be caught)
BANNED = [
    (
        "clock",
        r"\b(?:steady_clock|system_clock|high_resolution_clock)\b|"
        + call("clock_gettime", "gettimeofday", "timespec_get", "clock", "time"),
        WITH_DRIVERS,
        "Platform::now_ns(), or DriverContext::now_ns() in a driver",
        PLATFORM,
        ["auto t = std::chrono::steady_clock::now();", "clock_gettime(CLOCK_MONOTONIC, &t);", "x = ::time(nullptr);"],
        ["platform.time();", "deadline_time(3);", "// clock_gettime()"],
    ),
    (
        "threads",
        r"\bstd::(?:thread|jthread|async)\b(?!::)|" + call("pthread_create", "thrd_create", "clone"),
        WITH_DRIVERS,
        "Platform::start_thread()",
        PLATFORM,
        ["std::thread t(run);", "std::jthread t;", "pthread_create(&t, nullptr, run, nullptr);"],
        ["platform.start_thread(name, run);"],
    ),
    (
        "randomness",
        r"\b(?:random_device|mt19937(?:_64)?|minstd_rand0?|default_random_engine)\b|"
        + call("rand", "srand", "random", "srandom", "drand48", "getrandom", "getentropy", "arc4random"),
        WITH_DRIVERS,
        "Platform::random(), or DriverContext::random() in a driver",
        PLATFORM,
        ["std::random_device r;", "int x = rand();", "getrandom(&x, 8, 0);"],
        ["platform.random();", "context->random();", "virtual long random() = 0;"],
    ),
    (
        "environment",
        call("getenv", "secure_getenv", "setenv", "putenv", "unsetenv") + r"|\benviron\b",
        WITH_DRIVERS,
        "Platform::variable(), or DriverContext::setting() in a driver",
        PLATFORM,
        ['getenv("X");', 'std::getenv("X");', "extern char** environ;"],
        ["platform.variable(name);"],
    ),
    (
        "sleep",
        call("sleep", "usleep", "nanosleep", "clock_nanosleep") + r"|\bsleep_(?:for|until)\b",
        LIBRARY,
        "Platform::park() with a condition",
        PLATFORM,
        ["usleep(10);", "return sleep(1);", "std::this_thread::sleep_for(1s);", "sleep(1);"],
        ["sleeper.sleep(1);"],
    ),
    (
        "yield",
        call("sched_yield", "pthread_yield") + r"|\bthis_thread::yield\b",
        WITH_DRIVERS,
        "Platform::yield()",
        PLATFORM,
        ["sched_yield();", "std::this_thread::yield();"],
        ["platform.yield();"],
    ),
    (
        "process",
        call("getpid", "fork", "vfork", "gettid"),
        ENGINE,
        "Platform::process(); children are for apps",
        PLATFORM + r"|^ltask/topology\.cpp$",  # hwloc needs a process id
        ["getpid();"],
        ["platform.process();"],
    ),
    (
        "stdout",
        call("printf", "puts", "putchar", "vprintf") + r"|\bstdout\b|\bstd::(?:cout|print(?:ln)?)\b",
        LIBRARY,
        "Platform::log() or an error detail: the library writes nothing to stdout",
        None,
        ['printf("x");', "std::cout << 1;", "fprintf(stdout, x);"],
        ["snprintf(a, 1, b);", "fprintf(stderr, x);"],
    ),
    (
        "stderr",
        r"\bstd::(?:cerr|clog)\b|\bstderr\b|" + call("perror"),
        WITH_DRIVERS,
        "Platform::log() or DriverContext::log()",
        f"{PLATFORM}|{USERS_PROGRAM}",
        ["std::cerr << 1;", "fprintf(stderr, x);", 'perror("x");'],
        ["context->log(1, text);"],
    ),
    (
        "exit",
        call("exit", "_exit", "_Exit", "quick_exit", "abort", "terminate", "atexit", "at_quick_exit", "on_exit"),
        LIBRARY,
        "an error code: the library is a guest (canele_abort alone ends the process)",
        rf"^comm/api/(abort|engine_api)\.cpp$|^starpu_glue/mpi/core/error\.cpp$|{PLATFORM}|{USERS_PROGRAM}",
        ["exit(1);", "std::abort();", "atexit(f);", "::_exit(3);"],
        ["canele_abort(engine, 1, why);", "x.exit();"],
    ),
    (
        "signals",
        call("signal", "sigaction", "sigprocmask", "sigset", "raise", "alarm", "setitimer"),
        LIBRARY,
        "nothing: the library installs no signal handlers (MSG_NOSIGNAL for sockets)",
        r"^comm/registry/modules\.cpp$",  # removes handlers that a fabric's library installs when it is loaded
        ["signal(SIGPIPE, SIG_IGN);", "sigaction(1, &a, nullptr);"],
        ["condition.signal(1);", "canele_condition_signal(c, 1);"],
    ),
    (
        "load-time",
        r"__attribute__\s*\(\(\s*(?:constructor|destructor)|\[\[gnu::(?:con|de)structor",
        LIBRARY,
        "nothing: loading the library has no side effects",
        None,
        ["__attribute__((constructor)) void f();"],
        ['__attribute__((visibility("default")))'],
    ),
    (
        "shell",
        call("system", "popen", "execvp", "execl", "execlp"),
        LIBRARY,
        "nothing: the library starts no programs",
        None,
        ['system("x");'],
        ["file.system();"],
    ),
    (
        "unsafe",
        call("strcpy", "strcat", "sprintf", "vsprintf", "gets", "strtok", "alloca", "tmpnam", "mktemp"),
        EVERYWHERE,
        "the variant with a length, or a std::string",
        None,
        ["strcpy(a, b);", 'sprintf(a, "x");'],
        ["snprintf(a, 3, b);"],
    ),
    (
        "prefetch",
        r"\b(?:__builtin_prefetch|_mm_prefetch)\b",
        LIBRARY,
        "comm/matching/prefetch.hpp: GCC deletes calls of functions that do nothing else",
        r"^comm/matching/prefetch\.hpp$",
        ["__builtin_prefetch(line, 1);"],
        ["prefetch_to_read(line);"],
    ),
    (
        "thread-local",
        r"\bthread_local\b|\b__thread\b",
        ("drivers", "strategies"),
        "state in the object: any thread may make the next call",
        None,
        ["thread_local int x;"],
        ["int thread_locality;"],
    ),
]


STATEMENT_WORDS = {"return", "co_return", "co_await", "co_yield", "else", "do", "throw", "case", "goto"}


def is_declaration(line, start):
    """Returns whether the word at `start` follows another word, its type."""
    before = re.search(r"(\w+)\s+$", line[:start])
    return bool(before) and before.group(1) not in STATEMENT_WORDS


def check_one(entry):
    name, pattern, rooms, instead, exception, _, _ = entry
    expression = re.compile(pattern)

    def check(tree):
        for file in tree.select(lambda file: file.is_cpp and file.room in rooms):
            if exception and re.search(exception, file.path):
                continue
            for number, line in enumerate(file.code.splitlines(), 1):
                for match in expression.finditer(line):
                    if line.lstrip().startswith("#") or (
                        match.group(0).endswith("(") and is_declaration(line, match.start())
                    ):
                        continue
                    yield file.path, number, f"{match.group(0).strip('( ')} ({name}): use {instead}"

    return check


def self_tests(entry):
    _, _, rooms, _, exception, bad, good = entry
    tests = [({f"{rooms[0]}/a.cpp": text + "\n"}, 1) for text in bad]
    tests += [({f"{rooms[0]}/a.cpp": text + "\n"}, 0) for text in good]
    if exception and PLATFORM in exception:
        tests.append(({"ltask/posix_platform.cpp": bad[0] + "\n"}, 0))
    return tests


NATIVE = "-march=" + "native"


def check_native(tree):
    """Machine-dependent code generation: the library must run on other machines than it was built on."""
    for file in tree.code:
        for number, line in enumerate(file.lines, 1):
            if re.search(r"-m(arch|tune|cpu)=native", line) and not file.path.startswith("tests/tidy/"):
                yield file.path, number, f"{NATIVE}: dispatch at run time instead"


ENTRY = re.compile(r"^int canele_\w+\([^;{]*?\)\s*(try )?\{\n.*?^\}([^\n]*)$", re.MULTILINE | re.DOTALL)


def check_entries(tree):
    """Functions of the C API with more than one line: an exception ends in them."""
    for file in tree.code:
        if not re.match(r"comm/api/\w+\.cpp$", file.path):
            continue
        text = "\n".join(file.lines)
        for match in ENTRY.finditer(text):
            if not match.group(1) or not match.group(2).startswith(" catch (...)"):
                number = text.count("\n", 0, match.start()) + 1
                yield file.path, number, "an entry of the C API: } catch (...) { return caught(); }"


RULES = [
    (f"banned-{entry[0]}", check_one(entry), f"not in {', '.join(entry[2])}; use {entry[3]}", self_tests(entry))
    for entry in BANNED
]
RULES.append(
    (
        "native-code",
        check_native,
        "no machine-dependent code generation",
        [
            ({"CMakeLists.txt": f"add_compile_options({NATIVE})\n"}, 1),
            ({"CMakeLists.txt": "add_compile_options(-O2)\n"}, 0),
        ],
    )
)
RULES.append(
    (
        "entries",
        check_entries,
        "no exception leaves a function of the C API",
        [
            ({"comm/api/a.cpp": "int canele_a(int a,\n             int b) {\n  return a;\n}\n"}, 1),
            ({"comm/api/a.cpp": "int canele_a(int a) try {\n  return a;\n} catch (...) {\n  return 0;\n}\n"}, 0),
            ({"comm/api/a.cpp": "int canele_a(int a) { return a; }\n"}, 0),
        ],
    )
)
