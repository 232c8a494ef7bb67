// SPDX-License-Identifier: BSD-3-Clause
//
// The table of settings: one row each, in the order of enum Setting.
//
// Constants, which settings.cpp reads. docs/settings.md and docs/settings-expert.md repeat the words of this table;
// tests/unit/config compares them.
#include "comm/config/settings_table.hpp"

#include "comm/config/names.hpp"

namespace canele::comm {
namespace {
constexpr std::uint64_t seconds_per_day = 86'400;
}

constinit const std::array<SettingEntry, static_cast<int>(Setting::count)> settings_table = {{
    {.info = {.name = "DRIVERS",
              .fallback = "shm,tcp",
              .help = "Drivers to use, in order of preference: the first that reaches a peer carries its messages. "
                      "Drivers joined by + carry a peer's messages together, and go on alone if one fails. What "
                      "follows a colon is for the driver: an interface (tcp), a provider (ofi). Fewer drivers start "
                      "faster and open fewer resources; a peer that none of them reaches is an error at its first "
                      "message.",
              .values = "e.g. shm,tcp or shm+tcp or tcp:eth0+tcp:eth1; names: shm, tcp, ofi, psm2, or a module in "
                        "CANELE_DRIVER_PATH"},
     .kind = SettingKind::drivers},
    {.info = {.name = "DRIVER_PATH",
              .help = "Directories with driver modules (canele-driver-NAME.so), searched before those installed with "
                      "the library. They are programs: name only directories that you trust.",
              .values = "colon-separated directories"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_DECORATORS",
              .alias = "DECORATORS",
              .help = "What is wrapped around every driver, the outermost first: trace (a line per call), delay, "
                      "fault (from a seed), check (the contract of drivers). For tests and for looking; each costs "
                      "time.",
              .values = "e.g. check,delay:us=50,fault:seed=7:full=0.05"},
     .kind = SettingKind::text},
    {.info = {.name = "STRATEGY",
              .fallback = "aggregate",
              .help = "Which queued messages leave in the next packet. fifo: one message a packet, least work per "
                      "message, most packets. aggregate: as many as pay, fewer packets when a rail is busy. "
                      "priority: highest priority first, at the price of a sorted queue.",
              .values = "fifo | aggregate | priority"},
     .kind = SettingKind::choice,
     .words = known_strategies},
    {.info = {.name = "EXPERT_MATCHER",
              .alias = "MATCHER",
              .fallback = "table",
              .help = "How receives and messages find each other. table: in constant time, however many wait. The "
                      "others search, and are there to be compared with: list, bins (hash bins of a fixed number), "
                      "peers (a list for each peer), arrays (a list of small arrays), vector and fuzzy (lists that "
                      "compare many entries at once).",
              .values = "table | list | bins | peers | arrays | vector | fuzzy"},
     .kind = SettingKind::choice,
     .words = known_matchers},
    {.info = {.name = "EXPERT_CACHE_WARMER",
              .alias = "HEATER",
              .fallback = "0",
              .unit = "us",
              .help = "Time from one pass to the next over the memory of CANELE_EXPERT_MATCHER=arrays, vector or "
                      "fuzzy, by threads that poll and find nothing: it brings what the program has pushed out back "
                      "into the caches of their core. Shorter: warmer, and more of the memory's bandwidth. 0: none; "
                      "the table has no use for it.",
              .values = "0 | time"},
     .kind = SettingKind::number,
     .most = 10'000'000},
    {.info = {.name = "WORKER",
              .fallback = "auto",
              .help = "Who makes communication progress beside the program's own calls to wait, test and progress. "
                      "auto: a thread that looks after what is pending while the program computes, and sleeps "
                      "otherwise. bound: a thread that makes all progress; faster while it has a core of its own, "
                      "slower where it has not. idle: as auto, but only on cores with nothing else to do; "
                      "computation then loses nothing, and communication may stand still. bound+idle: the second "
                      "helps while the first is in a callback. timer: once in every CANELE_EXPERT_WORKER_INTERVAL. "
                      "none: nobody, which saves the thread; large transfers then stand still while the program "
                      "computes.",
              .values = "none | auto | bound | idle | bound+idle | timer"},
     .kind = SettingKind::choice,
     .words = "none auto bound idle bound+idle timer"},
    {.info = {.name = "EXPERT_WORKER_INTERVAL",
              .alias = "WORKER_INTERVAL",
              .fallback = "1000",
              .unit = "us",
              .help = "Time from one turn of CANELE_WORKER=timer to the next. Shorter: answers sooner, and takes "
                      "more of the cores.",
              .values = "time"},
     .kind = SettingKind::number,
     .least = 10,
     .most = 10'000'000},
    {.info = {.name = "WORKER_CORE",
              .fallback = "auto",
              .help = "Processing unit (hwloc logical index) that the worker is pinned to. Pinned, it answers faster "
                      "if the program leaves that unit free, and disturbs the program if not. auto: if the program "
                      "is pinned, the nearest unit that none of your programs is pinned to, or else where the "
                      "program runs; if it is not, anywhere until the host runtime names a unit.",
              .values = "auto | index"},
     .kind = SettingKind::number,
     .may_be_auto = true,
     .most = 1'000'000},
    {.info = {.name = "WORKER_PLACE",
              .fallback = "auto",
              .help = "Where bound workers run if CANELE_WORKER_CORE names no unit, each rank having one. auto: see "
                      "there; no two workers share a unit. The others let several ranks share the units that a NUMA "
                      "node has left (of a program that is not pinned: the machine). bind: on the rank's own unit; "
                      "quick alone, and hides nothing. numa: on the nearest that is left; neighbours share one, so "
                      "what goes from rank to rank takes turns. odd-even: neighbours never share one if two are "
                      "left; best for chains.",
              .values = "auto | bind | numa | odd-even"},
     .kind = SettingKind::choice,
     .words = "auto bind numa odd-even"},
    {.info = {.name = "HOST_THREADS",
              .alias = "WORKER_COMPANY",
              .fallback = "auto",
              .help = "What runs beside a bound worker where a host has fewer cores than its ranks have workers and "
                      "one thread more each. busy: threads that compute or poll all the time, as a task runtime's "
                      "do. A worker would have no core there, so the thread of CANELE_WORKER=auto is taken instead; "
                      "it sleeps rather than yields, since a yield costs it the turn, and messages from 64 KiB on "
                      "are copied by the kernel, below 1 MiB by one end. auto: unknown; a worker finds out by losing "
                      "turns. Programs on StarPU get busy, unless CANELE_WORKER is set.",
              .values = "auto | busy"},
     .kind = SettingKind::choice,
     .words = "auto busy"},
    {.info = {.name = "RANK_AFFINITY",
              .alias = "SPREAD",
              .fallback = "auto",
              .help = "Where a host has as many ranks as units, or more. auto: the thread that starts the engine "
                      "moves to its rank's share of the units, in turn, and back there now and then while it waits; "
                      "it is bound nowhere, nor are threads that it starts. The system leaves ranks that wait for "
                      "each other where they woke, now and then all of them on one unit. Not done for a thread that "
                      "is bound by the launcher or the program. off: the system decides.",
              .values = "auto | off"},
     .kind = SettingKind::choice,
     .words = "auto off"},
    {.info = {.name = "EAGER_LIMIT",
              .fallback = "auto",
              .unit = "bytes",
              .help = "Messages up to this length leave at once and may be copied once more at the receiver; longer "
                      "ones ask first (rendezvous), which costs a round trip and saves copies and memory. auto: each "
                      "driver's own limit.",
              .values = "auto | size, e.g. 16k"},
     .kind = SettingKind::size,
     .may_be_auto = true,
     .most = std::uint64_t{1} << 30},
    {.info = {.name = "UNEXPECTED_MEMORY",
              .fallback = "auto",
              .unit = "bytes",
              .help = "Memory for messages that have arrived before their receives. What does not fit stays with its "
                      "sender, and moves as soon as a receive asks for it: nothing is lost, but a send then ends "
                      "later. Raise it for bursts of messages that are received late. At least 16 KiB for each rank. "
                      "auto: 64 MiB, or 32 KiB for each rank if that is more.",
              .values = "auto | size, e.g. 256M"},
     .kind = SettingKind::size,
     .may_be_auto = true,
     .most = std::uint64_t{1} << 50},
    {.info = {.name = "EXPERT_UNEXPECTED_PER_PEER",
              .alias = "UNEXPECTED_PER_PEER",
              .fallback = "auto",
              .unit = "bytes",
              .help = "The most of that memory which one sender may use. Lower: one rank that floods leaves more to "
                      "the others. auto: a quarter of it.",
              .values = "auto | size, e.g. 16M"},
     .kind = SettingKind::size,
     .may_be_auto = true,
     .most = std::uint64_t{1} << 50},
    {.info = {.name = "EXPERT_MULTICAST",
              .alias = "MULTICAST",
              .fallback = "auto",
              .help = "Who hands the data of a multicast to whom. flat: the root to all. chain: each to the next, "
                      "best for very large data. binomial, 4-nomial, 8-nomial: whoever has it serves 1, 3, 7 more at "
                      "a time. auto: what a model of the network expects to end first. Ranks that are reached "
                      "through shared memory are always served by the root.",
              .values = "auto | flat | chain | binomial | 4-nomial | 8-nomial"},
     .kind = SettingKind::choice,
     .words = "auto flat chain binomial 4-nomial 8-nomial"},
    {.info = {.name = "MULTICAST_MEMORY",
              .fallback = "64M",
              .unit = "bytes",
              .help = "Memory for data of multicasts that other ranks want from this one before its own receive is "
                      "there. What does not fit they get from the root, which takes longer. 0: nothing is handed on "
                      "before it is received.",
              .values = "size, e.g. 256M"},
     .kind = SettingKind::size,
     .most = std::uint64_t{1} << 40},
    {.info = {.name = "COLLECTIVES",
              .fallback = "auto",
              .help = "How collectives are done where the program does not say: a list of operation=algorithm. auto, "
                      "as a word or for what is not in the list: what a model of the network expects to end first. "
                      "All ranks of a job need the same value. What each operation has is in collectives.h; what "
                      "does not exist is an error that says what does.",
              .values = "auto | e.g. bcast=chain,allreduce=ring"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_SPLIT_TREE",
              .alias = "SPLIT_TREE",
              .fallback = "auto",
              .help = "How many levels of a large non-blocking bcast, scatter, reduce or gather along a tree are "
                      "left to the threads that compute, the widest ones, beside bound workers: half of all messages "
                      "are on the first. bcast and scatter do them in the wait, reduce and gather before the call "
                      "returns; the rest is hidden behind the computation. More: sooner done where few cores are "
                      "left for workers; less is hidden. 0: none. auto: what a model says, from the cores that the "
                      "host has left and the time from call to wait so far; ranks may differ.",
              .values = "auto | levels"},
     .kind = SettingKind::number,
     .may_be_auto = true,
     .most = 32},
    {.info = {.name = "EXPERT_RECEIVER_INITIATED",
              .alias = "PUSH",
              .fallback = "auto",
              .help = "Whether a large receive on the same host is offered to its sender, which then writes the data "
                      "there while the receiver computes; both copy if both wait. Costs a small message for each "
                      "large receive. off: only the receiver copies, when it next makes progress. auto: on, but off "
                      "where more ranks than processing units are on the host.",
              .values = "auto | on | off"},
     .kind = SettingKind::choice,
     .words = "auto on off"},
    {.info = {.name = "CHECKSUM",
              .fallback = "off",
              .help = "Whether every packet carries a CRC32C of all its bytes, messages and protocol. packets: "
                      "damage on the way is never delivered: the rail fails, or the peer with its last one, with an "
                      "error that names the rank; all ranks of a job need the same value. Costs some 0.1 ns a byte "
                      "at each end and one more copy of large messages, which then go in packets over every driver: "
                      "no remote memory access, no copy from process to process. off: the fabric's own checks are "
                      "trusted, and nothing is paid.",
              .values = "off | packets"},
     .kind = SettingKind::choice,
     .words = "off packets"},
    {.info = {.name = "SPIN",
              .fallback = "auto",
              .unit = "ns",
              .help = "Time to spin after the last event before giving up the core. Longer: lower latency after a "
                      "pause. Shorter: less processor time taken from others. auto: from the machine, and zero when "
                      "it has more runnable threads than cores.",
              .values = "auto | time"},
     .kind = SettingKind::number,
     .may_be_auto = true,
     .most = 10'000'000'000},
    {.info = {.name = "START_TIMEOUT",
              .fallback = "60",
              .unit = "s",
              .help = "Time for all ranks to appear at the start. Raise it on machines that start jobs slowly; lower "
                      "it to learn of a missing rank sooner. Unless it is set, a job of n ranks has n/10 s more.",
              .values = "1 to 86400"},
     .kind = SettingKind::number,
     .least = 1,
     .most = seconds_per_day},
    {.info = {.name = "FINALIZE_TIMEOUT",
              .fallback = "600",
              .unit = "s",
              .help = "Time for all ranks to reach the end. Raise it if ranks end far apart; lower it to learn of a "
                      "stuck rank sooner. 0: for ever.",
              .values = "0 to 86400"},
     .kind = SettingKind::number,
     .most = seconds_per_day},
    {.info = {.name = "COUNTERS",
              .help = "File that the counters are written to, as JSON, when the engine is finalized; %r becomes the "
                      "rank. Without %r the ranks overwrite each other. Empty: nothing is written.",
              .values = "file name | - (stderr)"},
     .kind = SettingKind::text},
    {.info = {.name = "PROFILE",
              .help = "File that a profile of the MPI functions is written to, as JSON, in MPI_Finalize; %r becomes "
                      "the rank: calls and times of each function, in classes, and the program's own time, for "
                      "canele-model. Each call then reads the clock twice, some 50 ns. Empty: nothing is counted. "
                      "Programs on the native API have no profile.",
              .values = "file name | - (stderr)"},
     .kind = SettingKind::text},
    {.info = {.name = "TRACE",
              .help = "File that the last events (messages posted, matched and done, packets, peers, the worker's "
                      "sleep) are written to when the engine is finalized, for Perfetto (ui.perfetto.dev) or "
                      "chrome://tracing; %r becomes the rank. Messages take a slower way through the library "
                      "meanwhile. Empty: nothing is kept.",
              .values = "file name | - (stderr)"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_TRACE_EVENTS",
              .alias = "TRACE_EVENTS",
              .fallback = "65536",
              .help = "With CANELE_TRACE: how many events are kept, 32 bytes each. The oldest ones give way to new "
                      "ones; their number is told in the file.",
              .values = "16 to 100000000"},
     .kind = SettingKind::number,
     .least = 16,
     .most = 100'000'000},
    {.info = {.name = "VERBOSE",
              .fallback = "1",
              .help = "What is said on stderr. 0: errors. 1: warnings too. 2: one line on drivers, strategy and "
                      "worker at the start. 3: for developers; slows down.",
              .values = "0 to 3"},
     .kind = SettingKind::number,
     .most = 3},
    {.info = {.name = "TCP_INTERFACE",
              .fallback = "auto",
              .help = "Interface or address that the tcp driver listens on and is reached at. auto: it listens on "
                      "all interfaces that are up and publishes all their addresses, those of virtual bridges last; "
                      "peers try one after the other, on one host loop-back first. Name one where hosts have several "
                      "networks, or the slow one may be taken.",
              .values = "auto | interface | address"},
     .kind = SettingKind::text,
     .may_be_auto = true},
    {.info = {.name = "TCP_PORT",
              .fallback = "0",
              .help = "First port that the tcp driver tries to listen on; the next ones follow if it is taken. 0: "
                      "any free port. A fixed port suits a firewall, and can be taken.",
              .values = "0 to 65535"},
     .kind = SettingKind::number,
     .most = 65'535},
    {.info = {.name = "TCP_PEER_TIMEOUT",
              .alias = "TCP_SILENCE",
              .fallback = "30",
              .unit = "s",
              .help = "Time without an answer from the kernel of a peer's host after which a TCP connection counts "
                      "as lost. A program that computes or is stopped is not silent: its kernel answers. Raise it "
                      "where links are down for longer; lower it to learn of a lost host sooner.",
              .values = "3 to 86400"},
     .kind = SettingKind::number,
     .least = 3,
     .most = seconds_per_day},
    {.info = {.name = "EXPERT_TCP_SEND_BUFFER",
              .alias = "TCP_SEND_BUFFER",
              .fallback = "0",
              .unit = "bytes",
              .help = "What the kernel may keep for each TCP connection until the peer has it. 0: the kernel's "
                      "choice, which grows with the traffic; 1048576 to ranks of the same host where they are more "
                      "than cores. A small buffer saves memory where there are many peers, and costs bandwidth.",
              .values = "0 to 1073741824"},
     .kind = SettingKind::number,
     .most = std::uint64_t{1} << 30},
    {.info = {.name = "SHM_CMA",
              .fallback = "auto",
              .help = "Whether large messages on one host are copied straight from the other process's memory "
                      "(cross-memory attach). auto: if the kernel allows it. off: through shared buffers, one copy "
                      "more.",
              .values = "auto | off"},
     .kind = SettingKind::choice,
     .words = "auto off"},
    {.info = {.name = "EXPERT_SHM_CMA_MIN",
              .alias = "SHM_CMA_FROM",
              .fallback = "auto",
              .unit = "bytes",
              .help = "Shorter messages go through shared buffers even where cross-memory attach is used. auto: "
                      "524288 where the kernel takes longer for its one copy than two copies by hand, which the "
                      "driver tries at the start; else 0.",
              .values = "auto | 0 to 1073741824"},
     .kind = SettingKind::number,
     .may_be_auto = true,
     .most = std::uint64_t{1} << 30},
    {.info = {.name = "EXPERT_SHM_BROADCAST_SEGMENT",
              .alias = "SHM_SHELF",
              .fallback = "auto",
              .help = "Whether a message to several ranks of this host, or a long one of a collective whose ranks "
                      "share cores, is copied to memory that all of them read. auto: where the kernel takes longer "
                      "for its one copy than two copies by hand. Needs cross-memory attach.",
              .values = "auto | on | off"},
     .kind = SettingKind::choice,
     .words = "auto on off"},
    {.info = {.name = "EXPERT_SHM_MEMBARRIER",
              .alias = "SHM_MEMBARRIER",
              .fallback = "auto",
              .help = "Whether a rank that goes to sleep orders memory for all its peers by one call of "
                      "membarrier(). auto: if the kernel allows it. off: every message through shared memory costs "
                      "its sender a fence instead; for comparison.",
              .values = "auto | off"},
     .kind = SettingKind::choice,
     .words = "auto off"},
    {.info = {.name = "OFI_PROVIDER",
              .help = "libfabric provider that the ofi driver uses. Empty: the best that fi_getinfo offers for a "
                      "network, fabrics before tcp;ofi_rxm before udp;ofi_rxd. shm, which reaches ranks of this host "
                      "only, must be asked for.",
              .values = "name, e.g. verbs;ofi_rxm"},
     .kind = SettingKind::text},
    {.info = {.name = "OFI_DOMAIN",
              .help = "libfabric domain (a network interface or adapter) that the ofi driver uses. Empty: the first "
                      "of the provider that other hosts reach.",
              .values = "name, e.g. eth0, mlx5_0"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_OFI_MULTI_RECV",
              .alias = "OFI_MULTI_RECV",
              .fallback = "auto",
              .help = "Whether the ofi driver receives many messages into one buffer. auto: where the provider does "
                      "it well. off: one buffer for each message, for a provider that has trouble with it. on: "
                      "always; through libfabric 1.17's TCP this loses and damages messages.",
              .values = "auto | on | off"},
     .kind = SettingKind::choice,
     .words = "auto on off"},
    {.info = {.name = "OFI_PEER_TIMEOUT",
              .alias = "OFI_SILENCE",
              .fallback = "30",
              .unit = "s",
              .help = "Time without an answer from the kernel of a peer's host after which the peer counts as lost. "
                      "Only for providers over TCP; as CANELE_TCP_PEER_TIMEOUT.",
              .values = "3 to 86400"},
     .kind = SettingKind::number,
     .least = 3,
     .most = seconds_per_day},
    {.info = {.name = "SAMPLES",
              .help = "Directory with what canele-perf sample has measured, one file a host: the costs by which the "
                      "engine chooses among rails. Empty: canele in the user's cache ($XDG_CACHE_HOME or ~/.cache). "
                      "off: nothing is read, and drivers cost what they declare.",
              .values = "directory | off"},
     .kind = SettingKind::text},
    {.info = {.name = "HANG_REPORT",
              .fallback = "30",
              .unit = "s",
              .help = "Time without a packet or a completion after which one report of what is pending is written to "
                      "stderr, or given to the host's callback; only if a thread has been blocked in a wait for a "
                      "request, a barrier or finalize, or a send has been pending, for that long. Ranks that wait "
                      "long for others to compute report, too: set it above such times. Again only after progress. "
                      "0: never.",
              .values = "0 to 86400"},
     .kind = SettingKind::number,
     .most = seconds_per_day},
    {.info = {.name = "EXPERT_FAULT",
              .alias = "FAULT",
              .help = "Faults to inject, for tests of the library and of the programs that check its results. Never "
                      "set it in production. flip-byte:1000 inverts a byte of the 1000th received message. "
                      "shuffle-tasks:7 runs what is ready (callbacks, tasks, parts of copies) in an order drawn from "
                      "seed 7; debug builds do so with a seed of their own, told by CANELE_VERBOSE=2.",
              .values = "name:number, comma-separated"},
     .kind = SettingKind::fault},
}};

}  // namespace canele::comm
