// SPDX-License-Identifier: BSD-3-Clause
//
// The table of settings: one row each, in the order of enum Setting.
//
// Constants, which settings.cpp reads. docs/settings*.md repeat the words of this table; tests/unit/config compares the
// two.
#include "comm/config/settings_table.hpp"

#include "comm/config/names.hpp"

namespace canele::comm {
namespace {
constexpr std::uint64_t seconds_per_day = 86'400;
}

constinit const std::array<SettingEntry, static_cast<int>(Setting::count)> settings_table = {{
    {{"DRIVERS", "shm,tcp", "",
      "Drivers to use, in order of preference: the first that reaches a peer carries its messages. Drivers joined by + "
      "carry a peer's messages together, and go on alone if one fails. What follows a colon is for the driver: an "
      "interface (tcp), a provider (ofi). Fewer drivers start faster and open fewer resources; a peer that none of "
      "them "
      "reaches is an error at its first message.",
      "e.g. shm,tcp or shm+tcp or tcp:eth0+tcp:eth1; names: shm, tcp, ofi, psm2, or a module in CANELE_DRIVER_PATH"},
     SettingKind::drivers},
    {{"DRIVER_PATH", "", "",
      "Directories with driver modules (canele-driver-NAME.so), searched before those installed with the library. They "
      "are programs: name only directories that you trust.",
      "colon-separated directories"},
     SettingKind::text},
    {{"DECORATORS", "", "",
      "What is wrapped around every driver, the outermost first: trace (a line per call), delay, fault (from a seed), "
      "check "
      "(the contract of drivers). For tests and for looking; each costs time.",
      "e.g. check,delay:us=50,fault:seed=7:full=0.05"},
     SettingKind::text},
    {{"STRATEGY", "aggregate", "",
      "Which queued messages leave in the next packet. fifo: one message a packet, least work per message, most "
      "packets. "
      "aggregate: as many as pay, fewer packets when a rail is busy. priority: highest priority first, at the price "
      "of a sorted queue.",
      "fifo | aggregate | priority"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     known_strategies},
    {{"MATCHER", "table", "",
      "How receives and messages find each other. table: in constant time, however many wait. The others search, and "
      "are "
      "there to be compared with: list, bins (hash bins of a fixed number), peers (a list for each peer), arrays (a "
      "list "
      "of small arrays), vector and fuzzy (lists that compare many entries at once).",
      "table | list | bins | peers | arrays | vector | fuzzy"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     known_matchers},
    {{"HEATER", "0", "us",
      "Time from one pass to the next over the memory of CANELE_MATCHER=arrays, vector or fuzzy, by threads that poll "
      "and find nothing: it brings what the program has pushed out back into the caches of their core. Shorter: "
      "warmer, and more of the memory's bandwidth. 0: none; the table has no use for it.",
      "0 | time"},
     SettingKind::number,
     false,
     0,
     10'000'000},
    {{"WORKER", "auto", "",
      "Who makes communication progress beside the program's own calls to wait, test and progress. auto: a thread that "
      "looks after what is pending while the program computes, and sleeps otherwise. bound: a thread that makes all "
      "progress; faster while it has a core of its own, slower where it has not. idle: as auto, but only on cores with "
      "nothing else to do; computation then loses nothing, and communication may stand still. bound+idle: the second "
      "helps while the first is in a callback. timer: once in every CANELE_WORKER_INTERVAL. none: nobody, which saves "
      "the thread; large transfers then stand still while the program computes.",
      "none | auto | bound | idle | bound+idle | timer"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "none auto bound idle bound+idle timer"},
    {{"WORKER_INTERVAL", "1000", "us",
      "Time from one turn of CANELE_WORKER=timer to the next. Shorter: answers sooner, and takes more of the cores.",
      "time"},
     SettingKind::number,
     false,
     10,
     10'000'000},
    {{"WORKER_CORE", "auto", "",
      "Processing unit (hwloc logical index) that the worker is pinned to. Pinned, it answers faster if the program "
      "leaves that unit free, and disturbs the program if not. auto: if the program is pinned, the nearest unit that "
      "none "
      "of your programs is pinned to, or else where the program runs; if it is not, anywhere until the host runtime "
      "names "
      "a unit.",
      "auto | index"},
     SettingKind::number,
     true,
     0,
     1'000'000},
    {{"WORKER_PLACE", "auto", "",
      "Where bound workers run if CANELE_WORKER_CORE names no unit, each rank having one. auto: see there; no two "
      "workers "
      "share a unit. The others let several ranks share the units that a NUMA node has left (of a program that is not "
      "pinned: the machine). bind: on the rank's own unit; quick alone, and hides nothing. numa: on the nearest that "
      "is "
      "left; neighbours share one, so what goes from rank to rank takes turns. odd-even: neighbours never share one if "
      "two are left; best for chains.",
      "auto | bind | numa | odd-even"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto bind numa odd-even"},
    {{"WORKER_COMPANY", "auto", "",
      "What runs beside a bound worker where a host has fewer cores than its ranks have workers and one thread more "
      "each. busy: threads that compute or poll all the time, as a task runtime's do. A worker would have no core "
      "there, so the thread of CANELE_WORKER=auto is taken instead; it sleeps rather than yields, since a yield "
      "costs it the turn, and messages from 64 KiB on are copied by the kernel, below 1 MiB by one end. auto: unknown; "
      "a worker finds out by losing turns. Programs on StarPU get busy, unless CANELE_WORKER is set.",
      "auto | busy"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto busy"},
    {{"SPREAD", "auto", "",
      "Where a host has as many ranks as units, or more. auto: the thread that starts the engine moves to its rank's "
      "share of the units, in turn, and back there now and then while it waits; it is bound nowhere, nor are threads "
      "that it starts. The system leaves ranks that wait for each other where they woke, now and then all of them on "
      "one unit. Not done for a thread that is bound by the launcher or the program. off: the system decides.",
      "auto | off"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto off"},
    {{"EAGER_LIMIT", "auto", "bytes",
      "Messages up to this length leave at once and may be copied once more at the receiver; longer ones ask first "
      "(rendezvous), which costs a round trip and saves copies and memory. auto: each driver's own limit.",
      "auto | size, e.g. 16k"},
     SettingKind::size,
     true,
     0,
     std::uint64_t{1} << 30},
    {{"UNEXPECTED_MEMORY", "auto", "bytes",
      "Memory for messages that have arrived before their receives. What does not fit stays with its sender, and moves "
      "as soon as a receive asks for it: nothing is lost, but a send then ends later. Raise it for bursts of messages "
      "that are received late. At least 16 KiB for each rank. auto: 64 MiB, or 32 KiB for each rank if that is more.",
      "auto | size, e.g. 256M"},
     SettingKind::size,
     true,
     0,
     std::uint64_t{1} << 50},
    {{"UNEXPECTED_PER_PEER", "auto", "bytes",
      "The most of that memory which one sender may use. Lower: one rank that floods leaves more to the others. auto: "
      "a quarter of it.",
      "auto | size, e.g. 16M"},
     SettingKind::size,
     true,
     0,
     std::uint64_t{1} << 50},
    {{"MULTICAST", "auto", "",
      "Who hands the data of a multicast to whom. flat: the root to all. chain: each to the next, best for very large "
      "data. binomial, 4-nomial, 8-nomial: whoever has it serves 1, 3, 7 more at a time. auto: what a model of the "
      "network expects to end first. Ranks that are reached through shared memory are always served by the root.",
      "auto | flat | chain | binomial | 4-nomial | 8-nomial"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto flat chain binomial 4-nomial 8-nomial"},
    {{"MULTICAST_MEMORY", "64M", "bytes",
      "Memory for data of multicasts that other ranks want from this one before its own receive is there. What does "
      "not fit they get from the root, which takes longer. 0: nothing is handed on before it is received.",
      "size, e.g. 256M"},
     SettingKind::size,
     false,
     0,
     std::uint64_t{1} << 40},
    {{"COLLECTIVES", "auto", "",
      "How collectives are done where the program does not say: a list of operation=algorithm. auto, as a word or for "
      "what is not in the list: what a model of the network expects to end first. All ranks of a job need the same "
      "value. What each operation has is in collectives.h; what does not exist is an error that says what does.",
      "auto | e.g. bcast=chain,allreduce=ring"},
     SettingKind::text},
    {{"SPLIT_TREE", "auto", "",
      "How many levels of a large non-blocking bcast, scatter, reduce or gather along a tree are left to the threads "
      "that "
      "compute, the widest ones, beside bound workers: half of all messages are on the first. bcast and scatter do "
      "them "
      "in the wait, reduce and gather before the call returns; the rest is hidden behind the computation. More: sooner "
      "done where few cores are left for workers; less is hidden. 0: none. auto: what a model says, from the cores "
      "that "
      "the host has left and the time from call to wait so far; ranks may differ.",
      "auto | levels"},
     SettingKind::number,
     true,
     0,
     32},
    {{"PUSH", "auto", "",
      "Whether a large receive on the same host is offered to its sender, which then writes the data there while the "
      "receiver computes; both copy if both wait. Costs a small message for each large receive. off: only the receiver "
      "copies, when it next makes progress. auto: on, but off where more ranks than processing units are on the host.",
      "auto | on | off"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto on off"},
    {{"CHECKSUM", "off", "",
      "Whether every packet carries a CRC32C of all its bytes, messages and protocol. packets: damage on the way is "
      "never delivered: the rail fails, or the peer with its last one, with an error that names the rank; all ranks of "
      "a job need the same value. Costs some 0.1 ns a byte at each end and one more copy of large messages, which then "
      "go in packets over every driver: no remote memory access, no copy from process to process. off: the fabric's "
      "own checks are trusted, and nothing is paid.",
      "off | packets"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "off packets"},
    {{"SPIN", "auto", "ns",
      "Time to spin after the last event before giving up the core. Longer: lower latency after a pause. Shorter: less "
      "processor time taken from others. auto: from the machine, and zero when it has more runnable threads than "
      "cores.",
      "auto | time"},
     SettingKind::number,
     true,
     0,
     10'000'000'000},
    {{"START_TIMEOUT", "60", "s",
      "Time for all ranks to appear at the start. Raise it on machines that start jobs slowly; lower it to learn of a "
      "missing rank sooner. Unless it is set, a job of n ranks has n/10 s more.",
      "1 to 86400"},
     SettingKind::number,
     false,
     1,
     seconds_per_day},
    {{"FINALIZE_TIMEOUT", "600", "s",
      "Time for all ranks to reach the end. Raise it if ranks end far apart; lower it to learn of a stuck rank sooner. "
      "0: for ever.",
      "0 to 86400"},
     SettingKind::number,
     false,
     0,
     seconds_per_day},
    {{"COUNTERS", "", "",
      "File that the counters are written to, as JSON, when the engine is finalized; %r becomes the rank. Without %r "
      "the ranks overwrite each other. Empty: nothing is written.",
      "file name | - (stderr)"},
     SettingKind::text},
    {{"PROFILE", "", "",
      "File that a profile of the MPI functions is written to, as JSON, in MPI_Finalize; %r becomes the rank: calls "
      "and "
      "times of each function, in classes, and the program's own time, for canele-model. Each call then reads the "
      "clock "
      "twice, some 50 ns. Empty: nothing is counted. Programs on the native API have no profile.",
      "file name | - (stderr)"},
     SettingKind::text},
    {{"TRACE", "", "",
      "File that the last events (messages posted, matched and done, packets, peers, the worker's sleep) are "
      "written to "
      "when the engine is finalized, for Perfetto (ui.perfetto.dev) or chrome://tracing; %r becomes the rank. Messages "
      "take a slower way through the library meanwhile. Empty: nothing is kept.",
      "file name | - (stderr)"},
     SettingKind::text},
    {{"TRACE_EVENTS", "65536", "",
      "With CANELE_TRACE: how many events are kept, 32 bytes each. The oldest ones give way to new ones; their number "
      "is told in the file.",
      "16 to 100000000"},
     SettingKind::number,
     false,
     16,
     100'000'000},
    {{"VERBOSE", "1", "",
      "What is said on stderr. 0: errors. 1: warnings too. 2: one line on drivers, strategy and worker at the start. "
      "3: "
      "for developers; slows down.",
      "0 to 3"},
     SettingKind::number,
     false,
     0,
     3},
    {{"TCP_INTERFACE", "auto", "",
      "Interface or address that the tcp driver listens on and is reached at. auto: it listens on all interfaces that "
      "are up and publishes all their addresses, those of virtual bridges last; peers try one after the other, on one "
      "host loop-back first. Name one where hosts have several networks, or the slow one may be taken.",
      "auto | interface | address"},
     SettingKind::text,
     true},
    {{"TCP_PORT", "0", "",
      "First port that the tcp driver tries to listen on; the next ones follow if it is taken. 0: any free port. A "
      "fixed "
      "port suits a firewall, and can be taken.",
      "0 to 65535"},
     SettingKind::number,
     false,
     0,
     65'535},
    {{"TCP_SILENCE", "30", "s",
      "Time without an answer from the kernel of a peer's host after which a TCP connection counts as lost. A program "
      "that "
      "computes or is stopped is not silent: its kernel answers. Raise it where links are down for longer; lower it to "
      "learn of a lost host sooner.",
      "3 to 86400"},
     SettingKind::number,
     false,
     3,
     seconds_per_day},
    {{"TCP_SEND_BUFFER", "0", "bytes",
      "What the kernel may keep for each TCP connection until the peer has it. 0: the kernel's choice, which grows "
      "with the traffic; 1048576 to ranks of the same host where they are more than cores. A small buffer saves memory "
      "where there are many peers, and costs bandwidth.",
      "0 to 1073741824"},
     SettingKind::number,
     false,
     0,
     std::uint64_t{1} << 30},
    {{"SHM_CMA", "auto", "",
      "Whether large messages on one host are copied straight from the other process's memory (cross-memory attach). "
      "auto: if the kernel allows it. off: through shared buffers, one copy more.",
      "auto | off"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto off"},
    {{"SHM_CMA_FROM", "auto", "bytes",
      "Shorter messages go through shared buffers even where cross-memory attach is used. auto: 524288 where the "
      "kernel "
      "takes longer for its one copy than two copies by hand, which the driver tries at the start; else 0.",
      "auto | 0 to 1073741824"},
     SettingKind::number,
     true,
     0,
     std::uint64_t{1} << 30},
    {{"SHM_SHELF", "auto", "",
      "Whether a message to several ranks of this host, or a long one of a collective whose ranks share cores, is "
      "copied to memory that all of them read. auto: where the kernel takes longer for its one copy than two copies "
      "by hand. Needs cross-memory attach.",
      "auto | on | off"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto on off"},
    {{"SHM_MEMBARRIER", "auto", "",
      "Whether a rank that goes to sleep orders memory for all its peers by one call of membarrier(). auto: if the "
      "kernel allows it. off: every message through shared memory costs its sender a fence instead; for comparison.",
      "auto | off"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto off"},
    {{"OFI_PROVIDER", "", "",
      "libfabric provider that the ofi driver uses. Empty: the best that fi_getinfo offers for a network, fabrics "
      "before "
      "tcp;ofi_rxm before udp;ofi_rxd. shm, which reaches ranks of this host only, must be asked for.",
      "name, e.g. verbs;ofi_rxm"},
     SettingKind::text},
    {{"OFI_DOMAIN", "", "",
      "libfabric domain (a network interface or adapter) that the ofi driver uses. Empty: the first of the provider "
      "that "
      "other hosts reach.",
      "name, e.g. eth0, mlx5_0"},
     SettingKind::text},
    {{"OFI_MULTI_RECV", "auto", "",
      "Whether the ofi driver receives many messages into one buffer. auto: where the provider does it well. off: one "
      "buffer for each message, for a provider that has trouble with it. on: always; through libfabric 1.17's TCP this "
      "loses and damages messages.",
      "auto | on | off"},
     SettingKind::choice,
     false,
     0,
     unlimited,
     "auto on off"},
    {{"OFI_SILENCE", "30", "s",
      "Time without an answer from the kernel of a peer's host after which the peer counts as lost. Only for providers "
      "over TCP; as CANELE_TCP_SILENCE.",
      "3 to 86400"},
     SettingKind::number,
     false,
     3,
     seconds_per_day},
    {{"SAMPLES", "", "",
      "Directory with what canele-perf sample has measured, one file a host: the costs by which the engine chooses "
      "among "
      "rails. Empty: canele in the user's cache ($XDG_CACHE_HOME or ~/.cache). off: nothing is read, and drivers cost "
      "what they declare.",
      "directory | off"},
     SettingKind::text},
    {{"HANG_REPORT", "30", "s",
      "Time without a packet or a completion after which one report of what is pending is written to stderr, or given "
      "to the host's callback; only if a thread has been blocked in a wait for a request, a barrier or finalize, or a "
      "send has been pending, for that long. Ranks that wait long for others to compute report, too: set it above "
      "such times. Again only after progress. 0: never.",
      "0 to 86400"},
     SettingKind::number,
     false,
     0,
     seconds_per_day},
    {{"FAULT", "", "",
      "Faults to inject, for tests of the library and of the programs that check its results. Never set it in "
      "production. "
      "flip-byte:1000 inverts a byte of the 1000th received message. "
      "shuffle-tasks:7 runs what is ready (callbacks, tasks, parts of copies) in an order drawn from seed 7; debug "
      "builds "
      "do so with a seed of their own, told by CANELE_VERBOSE=2.",
      "name:number, comma-separated"},
     SettingKind::fault},
}};

}  // namespace canele::comm
