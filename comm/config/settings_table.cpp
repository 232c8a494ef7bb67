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
              .help = "Drivers to use, in order of preference: the first one that reaches a peer carries its "
                      "messages. Drivers joined by + share the traffic of a peer; if one fails, the others continue. "
                      "The text after a colon is an argument of the driver: an interface (tcp), or PROVIDER, "
                      "PROVIDER@DOMAIN or @DOMAIN (ofi). Fewer drivers start faster and use fewer resources. A peer "
                      "that no driver reaches is an error at the first message to it.",
              .values = "e.g. shm,tcp or shm+tcp or tcp:eth0+tcp:eth1; names: shm, tcp, ofi, psm2, or a module in "
                        "CANELE_DRIVER_PATH"},
     .kind = SettingKind::drivers},
    {.info = {.name = "DRIVER_PATH",
              .help = "Directories with driver modules (canele-driver-NAME.so), searched before the library's own "
                      "directory. Modules run inside your process: list trusted directories only.",
              .values = "colon-separated directories"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_DECORATORS",
              .alias = "DECORATORS",
              .help = "Decorators around every driver, the outermost first: trace (one line per call), delay, fault "
                      "(from a seed), check (the contract of drivers). For testing and inspection. Each adds "
                      "overhead.",
              .values = "e.g. check,delay:us=50,fault:seed=7:full=0.05"},
     .kind = SettingKind::text},
    {.info = {.name = "STRATEGY",
              .fallback = "aggregate",
              .help = "Selects the queued messages that go into the next packet. fifo: one message per packet; the "
                      "least work per message, the most packets. aggregate: several messages per packet where that "
                      "is worthwhile; fewer packets while a rail is busy. priority: the highest priority first, at "
                      "the cost of a sorted queue.",
              .values = "fifo | aggregate | priority"},
     .kind = SettingKind::choice,
     .words = known_strategies},
    {.info = {.name = "EXPERT_MATCHER",
              .alias = "MATCHER",
              .fallback = "table",
              .help = "Data structure that matches receives and messages. table: constant time for any number of "
                      "entries. The others are linear-search baselines for benchmarks. list: a single list. bins: a "
                      "fixed number of hash bins. peers: a list per peer. arrays: a list of small arrays. vector, "
                      "fuzzy: lists that compare many entries at once.",
              .values = "table | list | bins | peers | arrays | vector | fuzzy"},
     .kind = SettingKind::choice,
     .words = known_matchers},
    {.info = {.name = "EXPERT_CACHE_WARMER",
              .alias = "HEATER",
              .fallback = "0",
              .unit = "us",
              .help = "Interval of the cache warmer. Polling threads that find no work read the memory of "
                      "CANELE_EXPERT_MATCHER=arrays, vector or fuzzy, which keeps it in the caches of their core. A "
                      "shorter interval keeps it warmer and uses more memory bandwidth. 0: off. The table needs "
                      "none.",
              .values = "0 | time"},
     .kind = SettingKind::number,
     .most = 10'000'000},
    {.info = {.name = "WORKER",
              .fallback = "auto",
              .help = "Background progress, beside the program's own calls of wait, test and progress. auto: an "
                      "on-demand thread, which polls while requests are pending and no program thread is in the "
                      "library, and sleeps otherwise. bound: a thread that makes all progress; faster if it has a "
                      "core of its own, slower if it has not. idle: like auto, but only on idle cores; computation "
                      "then loses nothing, and communication may stall. bound+idle: an idle thread helps while the "
                      "bound one runs a callback. timer: one progress call every CANELE_EXPERT_WORKER_INTERVAL. "
                      "none: no thread; large transfers stall while the program computes.",
              .values = "none | auto | bound | idle | bound+idle | timer"},
     .kind = SettingKind::choice,
     .words = "none auto bound idle bound+idle timer"},
    {.info = {.name = "EXPERT_WORKER_INTERVAL",
              .alias = "WORKER_INTERVAL",
              .fallback = "1000",
              .unit = "us",
              .help = "Time between two progress calls of CANELE_WORKER=timer. A shorter interval answers sooner and "
                      "takes more processor time.",
              .values = "time"},
     .kind = SettingKind::number,
     .least = 10,
     .most = 10'000'000},
    {.info = {.name = "WORKER_CORE",
              .fallback = "auto",
              .help = "Processing unit (hwloc logical index) to which the worker is pinned. A pinned worker answers "
                      "faster if the program leaves that unit free, and disturbs the program otherwise. auto, in a "
                      "pinned program: the nearest unit to which none of your programs is pinned, or else the "
                      "program's own units. auto, in a program that is not pinned: any unit, until the host runtime "
                      "names one.",
              .values = "auto | index"},
     .kind = SettingKind::number,
     .may_be_auto = true,
     .most = 1'000'000},
    {.info = {.name = "WORKER_PLACE",
              .fallback = "auto",
              .help = "Placement of bound workers if CANELE_WORKER_CORE is auto; each rank has one. auto: as "
                      "described there; no two workers share a unit. The other values let several ranks share the "
                      "units that remain in a NUMA node (in the machine, if the program is not pinned). bind: the "
                      "rank's own unit; fast without computation, no overlap with it. numa: the nearest remaining "
                      "unit; neighbouring ranks share one, and messages between them take turns. odd-even: "
                      "neighbouring ranks use different units if two remain; best for chains.",
              .values = "auto | bind | numa | odd-even"},
     .kind = SettingKind::choice,
     .words = "auto bind numa odd-even"},
    {.info = {.name = "HOST_THREADS",
              .alias = "WORKER_COMPANY",
              .fallback = "auto",
              .help = "How the application uses the cores when a host has fewer than two per rank. busy: its threads "
                      "compute or poll all the time, as those of a task runtime do. A bound worker would have no "
                      "core, so the on-demand thread of CANELE_WORKER=auto replaces it. That thread sleeps rather "
                      "than yields, because a yield loses its turn on the core. The kernel then copies messages of "
                      "64 KiB and more; below 1 MiB one end does the whole copy. auto: not known; a worker finds out "
                      "by losing its core. Programs on StarPU get busy, unless CANELE_WORKER is set.",
              .values = "auto | busy"},
     .kind = SettingKind::choice,
     .words = "auto busy"},
    {.info = {.name = "RANK_AFFINITY",
              .alias = "SPREAD",
              .fallback = "auto",
              .help = "Affinity of ranks on a host with at least as many ranks as units. auto: the thread that "
                      "starts the engine moves to its rank's share of the units, and returns there at times while it "
                      "waits. It is not bound, nor are threads that it starts. Otherwise the system leaves ranks "
                      "that wait for each other on the unit where they woke, at times all on one. A thread that the "
                      "launcher or the program has bound is not moved. off: the system decides.",
              .values = "auto | off"},
     .kind = SettingKind::choice,
     .words = "auto off"},
    {.info = {.name = "EAGER_LIMIT",
              .fallback = "auto",
              .unit = "bytes",
              .help = "Messages up to this length are sent eagerly, and may be copied once more at the receiver. "
                      "Longer messages use a rendezvous, which costs a round trip and saves copies and memory. auto: "
                      "each driver's own limit.",
              .values = "auto | size, e.g. 16k"},
     .kind = SettingKind::size,
     .may_be_auto = true,
     .most = std::uint64_t{1} << 30},
    {.info = {.name = "UNEXPECTED_MEMORY",
              .fallback = "auto",
              .unit = "bytes",
              .help = "Memory for messages that arrive before their receives. A message that does not fit stays with "
                      "its sender until a receive matches it: nothing is lost, but its send completes later. Raise "
                      "the limit for bursts of messages that are received late. The minimum is 16 KiB per rank. "
                      "auto: 64 MiB, or 32 KiB per rank if that is more.",
              .values = "auto | size, e.g. 256M"},
     .kind = SettingKind::size,
     .may_be_auto = true,
     .most = std::uint64_t{1} << 50},
    {.info = {.name = "EXPERT_UNEXPECTED_PER_PEER",
              .alias = "UNEXPECTED_PER_PEER",
              .fallback = "auto",
              .unit = "bytes",
              .help = "The most of CANELE_UNEXPECTED_MEMORY that one sender may use. A lower limit leaves more to "
                      "the other ranks when one rank floods this one. auto: a quarter of it.",
              .values = "auto | size, e.g. 16M"},
     .kind = SettingKind::size,
     .may_be_auto = true,
     .most = std::uint64_t{1} << 50},
    {.info = {.name = "EXPERT_MULTICAST",
              .alias = "MULTICAST",
              .fallback = "auto",
              .help = "Tree along which the data of a multicast travels. flat: from the root to all. chain: from "
                      "each rank to the next; best for very large data. binomial, 4-nomial, 8-nomial: each rank that "
                      "has the data forwards it to 1, 3 or 7 more ranks per step. auto: the tree that a network "
                      "model expects to finish first. The root always serves the ranks that shared memory reaches.",
              .values = "auto | flat | chain | binomial | 4-nomial | 8-nomial"},
     .kind = SettingKind::choice,
     .words = "auto flat chain binomial 4-nomial 8-nomial"},
    {.info = {.name = "MULTICAST_MEMORY",
              .fallback = "64M",
              .unit = "bytes",
              .help = "Memory for multicast data that other ranks request from this rank before its own receive is "
                      "posted. Data that does not fit comes from the root instead, which takes longer. 0: no data is "
                      "forwarded before its receive.",
              .values = "size, e.g. 256M"},
     .kind = SettingKind::size,
     .most = std::uint64_t{1} << 40},
    {.info = {.name = "COLLECTIVES",
              .fallback = "auto",
              .help = "Algorithms of collectives for which the program names none: a list of operation=algorithm. "
                      "auto, alone or for operations that are not in the list: the algorithm that a network model "
                      "expects to finish first. All ranks of a job need the same value. collectives.h lists the "
                      "algorithms of each operation. An unknown name is an error that lists the known ones.",
              .values = "auto | e.g. bcast=chain,allreduce=ring"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_SPLIT_TREE",
              .alias = "SPLIT_TREE",
              .fallback = "auto",
              .help = "Levels of the tree that the computing threads execute themselves in a large non-blocking "
                      "bcast, scatter, reduce or gather, beside bound workers. These are the widest levels; the "
                      "first has half of all messages. bcast and scatter execute them in the wait, reduce and gather "
                      "before the call returns. The other levels overlap with computation. More levels finish sooner "
                      "if few cores are left for workers, and overlap less. 0: none. auto: a model decides, from the "
                      "cores left on the host and the time from call to wait so far; ranks may differ.",
              .values = "auto | levels"},
     .kind = SettingKind::number,
     .may_be_auto = true,
     .most = 32},
    {.info = {.name = "EXPERT_RECEIVER_INITIATED",
              .alias = "PUSH",
              .fallback = "auto",
              .help = "Whether a large receive on the same host sends an RTR (ready to receive) to its sender. The "
                      "sender then writes the data while the receiver computes; if both wait, both copy. Each large "
                      "receive costs one small message more. off: only the receiver copies, at its next progress "
                      "call. auto: on, but off if the host has more ranks than processing units.",
              .values = "auto | on | off"},
     .kind = SettingKind::choice,
     .words = "auto on off"},
    {.info = {.name = "CHECKSUM",
              .fallback = "off",
              .help = "Whether every packet carries a CRC32C of all its bytes, of messages and protocol. packets: "
                      "damaged data is never delivered. The rail fails, and with its last rail the peer, with an "
                      "error that names the rank. All ranks of a job need the same value. The cost is a pass over "
                      "the data at each end and one more copy of large messages. Large messages travel in packets "
                      "over every driver, without remote memory access or cross-memory attach. off: the library "
                      "relies on the checks of the network, at no cost.",
              .values = "off | packets"},
     .kind = SettingKind::choice,
     .words = "off packets"},
    {.info = {.name = "SPIN",
              .fallback = "auto",
              .unit = "ns",
              .help = "Time to spin after the last event before a thread yields its core. Longer: lower latency "
                      "after a pause. Shorter: less processor time taken from other threads. auto: chosen for the "
                      "machine; 0 if it has more runnable threads than cores.",
              .values = "auto | time"},
     .kind = SettingKind::number,
     .may_be_auto = true,
     .most = 10'000'000'000},
    {.info = {.name = "START_TIMEOUT",
              .fallback = "60",
              .unit = "s",
              .help = "Time limit for all ranks to appear at the start. Raise it on machines that start jobs slowly; "
                      "lower it to detect a missing rank sooner. If it is not set, a job of n ranks has n/10 s more.",
              .values = "1 to 86400"},
     .kind = SettingKind::number,
     .least = 1,
     .most = seconds_per_day},
    {.info = {.name = "FINALIZE_TIMEOUT",
              .fallback = "600",
              .unit = "s",
              .help = "Time limit for all ranks to reach the end. Raise it if ranks end at very different times; "
                      "lower it to detect a stuck rank sooner. 0: no limit.",
              .values = "0 to 86400"},
     .kind = SettingKind::number,
     .most = seconds_per_day},
    {.info = {.name = "COUNTERS",
              .help = "File for the counters, written as JSON when the engine is finalized. %r becomes the rank; "
                      "without it the ranks overwrite each other's file. Empty: no file.",
              .values = "file name | - (stderr)"},
     .kind = SettingKind::text},
    {.info = {.name = "PROFILE",
              .help = "File for a profile of the MPI functions, written as JSON in MPI_Finalize; %r becomes the "
                      "rank. It has the calls and times of each function, in classes, and the program's own time, "
                      "for canele-model. Each MPI call then reads the clock twice. Empty: no profile. Programs on "
                      "the native API have no profile.",
              .values = "file name | - (stderr)"},
     .kind = SettingKind::text},
    {.info = {.name = "TRACE",
              .help = "File for the last events, written when the engine is finalized, for Perfetto "
                      "(ui.perfetto.dev) or chrome://tracing; %r becomes the rank. The events are messages posted, "
                      "matched and completed, packets, peers, and the worker's sleep. Tracing turns the fast path of "
                      "messages off. Empty: no trace.",
              .values = "file name | - (stderr)"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_TRACE_EVENTS",
              .alias = "TRACE_EVENTS",
              .fallback = "65536",
              .help = "Number of events that CANELE_TRACE keeps, 32 bytes each. New events replace the oldest ones; "
                      "the file has the number of replaced events.",
              .values = "16 to 100000000"},
     .kind = SettingKind::number,
     .least = 16,
     .most = 100'000'000},
    {.info = {.name = "VERBOSE",
              .fallback = "1",
              .help = "Verbosity of messages on stderr. 0: errors. 1: warnings too. 2: one line on drivers, strategy "
                      "and worker at the start, and one for each old name of a setting. 3: for developers; slows "
                      "down.",
              .values = "0 to 3"},
     .kind = SettingKind::number,
     .most = 3},
    {.info = {.name = "TCP_INTERFACE",
              .fallback = "auto",
              .help = "Interface or address of the tcp driver. auto: it listens on all interfaces that are up and "
                      "publishes all their addresses, in the order that canele-info --network shows. A peer tries "
                      "several at a time, and uses the first that proves to lead to this rank. Name one if the order "
                      "is not that of your networks.",
              .values = "auto | interface | address"},
     .kind = SettingKind::text,
     .may_be_auto = true},
    {.info = {.name = "TCP_PORT",
              .fallback = "0",
              .help = "First port on which the tcp driver tries to listen; if it is taken, the next ones follow. 0: "
                      "any free port. A fixed port suits a firewall, but may be taken.",
              .values = "0 to 65535"},
     .kind = SettingKind::number,
     .most = 65'535},
    {.info = {.name = "TCP_PEER_TIMEOUT",
              .alias = "TCP_SILENCE",
              .fallback = "30",
              .unit = "s",
              .help = "Time without an answer from the kernel of a peer's host after which a TCP connection counts "
                      "as lost. A program that computes or is stopped still answers, because its kernel does. Raise "
                      "the limit if links may be down for longer; lower it to detect a lost host sooner.",
              .values = "3 to 86400"},
     .kind = SettingKind::number,
     .least = 3,
     .most = seconds_per_day},
    {.info = {.name = "EXPERT_TCP_SEND_BUFFER",
              .alias = "TCP_SEND_BUFFER",
              .fallback = "0",
              .unit = "bytes",
              .help = "Bytes that the kernel may buffer per TCP connection until the peer has them. 0: the kernel's "
                      "choice, which grows with the traffic; 1048576 to ranks of the same host if they outnumber its "
                      "cores. A small buffer saves memory if there are many peers, and costs bandwidth.",
              .values = "0 to 1073741824"},
     .kind = SettingKind::number,
     .most = std::uint64_t{1} << 30},
    {.info = {.name = "SHM_CMA",
              .fallback = "auto",
              .help = "Whether large messages on one host are copied directly from the other process's memory "
                      "(cross-memory attach). auto: if the kernel allows it. off: through shared buffers, with one "
                      "copy more.",
              .values = "auto | off"},
     .kind = SettingKind::choice,
     .words = "auto off"},
    {.info = {.name = "EXPERT_SHM_CMA_MIN",
              .alias = "SHM_CMA_FROM",
              .fallback = "auto",
              .unit = "bytes",
              .help = "Messages shorter than this go through shared buffers, even if cross-memory attach is used. "
                      "auto: the receiver takes the way that has been quicker for messages of its length.",
              .values = "auto | 0 to 1073741824"},
     .kind = SettingKind::number,
     .may_be_auto = true,
     .most = std::uint64_t{1} << 30},
    {.info = {.name = "EXPERT_SHM_BROADCAST_SEGMENT",
              .alias = "SHM_SHELF",
              .fallback = "auto",
              .help = "Whether a message to several ranks of this host is copied once, to memory that all of them "
                      "read. Long messages of a collective whose ranks share cores use it, too. auto: if the "
                      "kernel's single copy is slower than two copies in user space. Needs cross-memory attach.",
              .values = "auto | on | off"},
     .kind = SettingKind::choice,
     .words = "auto on off"},
    {.info = {.name = "EXPERT_SHM_MEMBARRIER",
              .alias = "SHM_MEMBARRIER",
              .fallback = "auto",
              .help = "Whether a rank that goes to sleep orders memory for all its peers by one membarrier() call. "
                      "auto: if the kernel allows it. off: each message through shared memory costs its sender a "
                      "fence; for comparison.",
              .values = "auto | off"},
     .kind = SettingKind::choice,
     .words = "auto off"},
    {.info = {.name = "OFI_PROVIDER",
              .help = "libfabric provider of the ofi driver. Empty: the best network provider of fi_getinfo; fabrics "
                      "come before tcp;ofi_rxm, and that before udp;ofi_rxd. The provider shm reaches ranks of this "
                      "host only, and must be named.",
              .values = "name, e.g. verbs;ofi_rxm"},
     .kind = SettingKind::text},
    {.info = {.name = "OFI_DOMAIN",
              .help = "libfabric domain (network interface or adapter) of the ofi driver. Empty: the first domain of "
                      "the provider that other hosts can reach.",
              .values = "name, e.g. eth0, mlx5_0"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_OFI_MULTI_RECV",
              .alias = "OFI_MULTI_RECV",
              .fallback = "auto",
              .help = "Whether the ofi driver receives many messages into one buffer. auto: with providers that do "
                      "it well. off: one buffer per message, for providers that have trouble with it. on: always; "
                      "over TCP, libfabric 1.17 then loses and damages messages.",
              .values = "auto | on | off"},
     .kind = SettingKind::choice,
     .words = "auto on off"},
    {.info = {.name = "OFI_PEER_TIMEOUT",
              .alias = "OFI_SILENCE",
              .fallback = "30",
              .unit = "s",
              .help = "Time without an answer from the kernel of a peer's host after which the peer counts as lost. "
                      "For providers over TCP only; see CANELE_TCP_PEER_TIMEOUT.",
              .values = "3 to 86400"},
     .kind = SettingKind::number,
     .least = 3,
     .most = seconds_per_day},
    {.info = {.name = "GPU",
              .fallback = "auto",
              .help = "Whether messages may lie in the memory of GPUs. auto: if the program has loaded the driver's "
                      "library (libcuda.so.1) by the time a session is opened. cuda: the library is loaded if it is "
                      "not. off: every address is taken for host memory.",
              .values = "auto | cuda | off"},
     .kind = SettingKind::choice,
     .words = "auto cuda off"},
    {.info = {.name = "EXPERT_GPU_LIBRARY",
              .help = "File name of the GPU driver's library. Empty: libcuda.so.1. For tests without a GPU.",
              .values = "file name"},
     .kind = SettingKind::text},
    {.info = {.name = "EXPERT_GPU_EXPORT_MIN",
              .fallback = "8K",
              .unit = "bytes",
              .help = "Length from which on a message of GPU memory to a process of the same host is not staged: a "
                      "GPU of the receiver copies it out of the sender's memory.",
              .values = "size, e.g. 64K"},
     .kind = SettingKind::size,
     .most = std::uint64_t{1} << 50},
    {.info = {.name = "EXPERT_GPU_FRAGMENT",
              .fallback = "512K",
              .unit = "bytes",
              .help = "Staged messages of GPU memory of at least twice this length go in fragments: one is copied "
                      "between GPU and host while others are sent. A fragment has this length, or a 32nd of the "
                      "message if that is more.",
              .values = "size, e.g. 1M"},
     .kind = SettingKind::size,
     .least = 1024,
     .most = std::uint64_t{1} << 50},
    {.info = {.name = "EXPERT_GPU_STAGING",
              .fallback = "64M",
              .unit = "bytes",
              .help = "Pinned host memory that is kept for the next messages of GPU memory. Messages under way may "
                      "use more. Pinning memory anew costs more than the copy of a short message.",
              .values = "size, e.g. 256M"},
     .kind = SettingKind::size,
     .most = std::uint64_t{1} << 50},
    {.info = {.name = "SAMPLES",
              .help = "Directory of the costs that canele-perf sample has measured, one file per host. The engine "
                      "chooses among rails by them. Empty: canele in the user's cache ($XDG_CACHE_HOME or ~/.cache). "
                      "off: no file is read; drivers have the costs that they declare.",
              .values = "directory | off"},
     .kind = SettingKind::text},
    {.info = {.name = "HANG_REPORT",
              .fallback = "30",
              .unit = "s",
              .help = "Time without a packet or a completion after which one report on pending operations goes to "
                      "stderr, or to the host's callback. For as long, a send must have been pending, or a thread "
                      "blocked in a wait for a request, a barrier or finalize. Ranks that wait long for others to "
                      "compute report, too: set a limit above such times. After progress, another report may follow. "
                      "0: never.",
              .values = "0 to 86400"},
     .kind = SettingKind::number,
     .most = seconds_per_day},
    {.info = {.name = "EXPERT_FAULT",
              .alias = "FAULT",
              .help = "Faults to inject, for tests of the library and of programs that check their results. Never "
                      "set it in production. flip-byte:1000 inverts a byte of the 1000th received message. "
                      "shuffle-tasks:7 runs ready work (callbacks, tasks, pieces of copies) in an order drawn from "
                      "seed 7. Debug builds do so with their own seed, shown at CANELE_VERBOSE=2.",
              .values = "name:number, comma-separated"},
     .kind = SettingKind::fault},
}};

}  // namespace canele::comm
