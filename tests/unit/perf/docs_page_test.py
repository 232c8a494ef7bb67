# SPDX-License-Identifier: BSD-3-Clause
"""What `canele-perf compare --docs` writes: the table in docs/performance.md, and the plots of that table.

Run by ctest. Nothing is measured here: the results are recorded ones, and the page is that of the tree.
"""
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "apps" / "perf" / "peers"))
# pylint: disable=wrong-import-position
import docs_page
import report
import svg

PAGE = f"# Performance\n\nBefore.\n\n{docs_page.BEGIN}\n\nold\n\n{docs_page.END}\n\nAfter.\n"
# Medians of two rounds: {row: {contender: (first round, second round)}}.
MEDIANS = {
    "shm-latency-8": {"canele": (0.06, 0.07), "canele-mpi": (0.07, 0.07), "openmpi": (0.2, 0.22), "mpich": (0.1, 0.1),
                      "ucx_perftest": (0.12, 0.11), "floor": (0.04, 0.04), "bare-engine": (0.05, 0.05)},
    "shm-latency-64": {"canele": (0.08, 0.08), "openmpi": (0.1, 0.12), "mpich": (0.13, 0.13)},
    "shm-bandwidth-64k": {"canele": (40.0, 44.0), "canele-mpi": (39.0, 41.0), "openmpi": (11.0, 12.0),
                          "ucx_perftest": (10.0, 9.0), "floor": (13.0, 13.0)},
    "shm-bandwidth-1M": {"canele": (28.0, 28.0), "canele-mpi": (27.0, 29.0), "openmpi": (15.0, 16.0)},
    "tcp-latency-8": {"canele": (3.6, 3.6), "mpich": (9.0, 9.0), "floor": (3.2, 3.2)},
    "overlap-sender": {"canele": (0.66, 0.68), "mpich": (0.5, 0.52)},
}


def recorded(medians=None):
    """Returns a result in the form of `--json`."""
    medians = MEDIANS if medians is None else medians
    records = [{"row": row, "contender": name, "round": number, "samples": [value], "disturbed": []}
               for row, named in medians.items() for name, values in named.items()
               for number, value in enumerate(values)]
    records[0]["disturbed"] = ["steal"]
    return {"date": "2026-11-26", "minutes": 7.66, "rounds": 2, "batches": 21, "worker": None, "missing": {},
            "yields": {}, "failures": [], "contenders": sorted({one["contender"] for one in records}),
            "machine": {"processor": "AMD EPYC", "cores": 2, "kernel": "6.18"}, "records": records}


def written(result):
    """Returns (the page, {name: plot}) that a result gives."""
    with tempfile.TemporaryDirectory() as directory:
        page = pathlib.Path(directory) / "performance.md"
        page.write_text(PAGE, encoding="utf-8")
        paths = docs_page.write(json.loads(json.dumps(result)), report.verdicts(result), directory)
        return page.read_text(encoding="utf-8"), {path.name: path.read_text(encoding="utf-8") for path in paths[1:]}


class Page(unittest.TestCase):
    def setUp(self):
        self.page, self.plots = written(recorded())

    def test_only_the_part_between_the_marks_changes(self):
        self.assertTrue(self.page.startswith(f"# Performance\n\nBefore.\n\n{docs_page.BEGIN}\n\n"))
        self.assertTrue(self.page.endswith(f"\n\n{docs_page.END}\n\nAfter.\n"))
        self.assertNotIn("old", self.page)

    def test_when_and_where(self):
        for words in ("2026-11-26: `canele-perf compare`, 2 rounds of 21 batches, 7.7 minutes.", "1 of 46 jobs were",
                      "AMD EPYC, 2 cores, Linux 6.18."):
            self.assertIn(words, self.page.replace("\n", " "))

    def test_rows(self):
        for row in ("| shm latency 64 B | canele | 0.08 us | 0.11, openmpi | 0.73 (0.68 to 0.79) | ≤ 0.80: met "
                    "| ahead |  |",
                    "| shm latency 8 B | canele | 0.07 us | 0.1, mpich | 0.70 (0.70 to 0.70) | ≤ 0.85: met "
                    "| ahead | 1.75 (1.75 to 1.75), ≤ 1.35: **missed** |",
                    "| shm overlap 1 MiB, sender computes | canele | 0.67 of serial | 0.51, mpich "
                    "| 1.31 (1.31 to 1.32) |  | **behind** |  |"):
            self.assertIn(row + "\n", self.page)

    def test_all_medians(self):
        self.assertIn("| median | canele | canele-mpi | openmpi | mpich | ucx_perftest | floor |\n", self.page)
        self.assertIn("| shm bandwidth 64 KiB, GB/s | 42 | 40 | 11.5 |  | 9.5 | 13 |\n", self.page)

    def test_count_and_missed_targets(self):
        self.assertIn("**Ahead in 8 of 9 rows. Met: 8 of 8 targets to the best peer, 1 of 3 to the floor.**", self.page)
        self.assertIn("| shm latency 8 B, ≤ 1.35 x floor | 0.07 us | 0.04 | 0.05 | 1.40 (1.40 to 1.40) |", self.page)
        self.assertIn("| shm latency 8 B by our MPI functions, ≤ 1.49 x floor | 0.07 us |", self.page)

    def test_lines_of_prose_fit(self):
        self.assertEqual([line for line in self.page.splitlines() if len(line) > 100 and not line.startswith("|")], [])

    def test_the_block_is_found_again(self):
        _, block, _ = docs_page.parts_of(self.page)
        self.assertEqual(block, docs_page.block(recorded(), report.verdicts(recorded())))

    def test_a_page_without_marks(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertIn("performance.md", docs_page.missing(directory))
            (pathlib.Path(directory) / "performance.md").write_text("# Performance\n", encoding="utf-8")
            self.assertIn("has no lines '<!-- canele-perf compare --docs: begin -->'", docs_page.missing(directory))
        self.assertEqual(docs_page.missing(SOURCE / "docs"), "")


class Reading(unittest.TestCase):
    def test_what_was_written(self):
        medians, ratios, complete = docs_page.read_page(written(recorded())[0])
        self.assertTrue(complete)
        self.assertEqual(medians["shm-latency-8"], {"canele": 0.07, "canele-mpi": 0.07, "mpich": 0.1, "openmpi": 0.21,
                                                    "ucx_perftest": 0.115, "floor": 0.04})
        self.assertEqual(ratios["overlap-sender"], (1.31, "mpich"))

    def test_ratio_is_that_of_the_native_api(self):
        only = {"shm-bandwidth-64k": {"canele-mpi": (20.0, 20.0), "openmpi": (10.0, 10.0)}}
        self.assertEqual(docs_page.read_page(written(recorded(only))[0])[1], {"shm-bandwidth-64k": (2.0, "openmpi")})
        both = {"shm-bandwidth-64k": {**only["shm-bandwidth-64k"], "canele": (30.0, 30.0)}}
        self.assertEqual(docs_page.read_page(written(recorded(both))[0])[1], {"shm-bandwidth-64k": (3.0, "openmpi")})

    def test_a_page_with_the_best_peers_only(self):
        page = f"{docs_page.BEGIN}\n| row | by | ours | best peer | to it |\n|---|---|---|---|---|\n"
        page += "| shm latency 8 B | canele | 0.07 us | 0.1, mpich | 0.70 |\n"
        page += f"| shm latency 64 B | canele | 0.08 us | 0.1, openmpi | 0.8 |\n{docs_page.END}\n"
        medians, _, complete = docs_page.read_page(page)
        self.assertFalse(complete)
        self.assertEqual(medians["shm-latency-64"], {"canele": 0.08, "openmpi": 0.1})
        latency = docs_page.plots_of(page)["latency.svg"]
        for words in ("MPICH", "Open MPI", "best of them", "only the best of each size"):
            self.assertIn(words, latency)


class Plots(unittest.TestCase):
    def setUp(self):
        _, self.plots = written(recorded())

    def texts(self, name):
        root = xml.etree.ElementTree.fromstring(self.plots[name])
        return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]

    def test_three(self):
        self.assertEqual(sorted(self.plots), ["bandwidth.svg", "latency.svg", "peers.svg"])

    def test_sizes_and_contenders(self):
        texts = self.texts("latency.svg")
        for words in ("shared memory, µs", "8 B", "64 B", "Canelé", "Open MPI", "MPICH", "UCX", "bare machine"):
            self.assertIn(words, texts)
        self.assertNotIn("TCP on one host, µs", texts)  # one size is no line
        self.assertIn("64 KiB", self.texts("bandwidth.svg"))

    def test_factors(self):
        texts = self.texts("peers.svg")
        self.assertIn("1.43 × MPICH", texts)  # 1 / 0.70
        self.assertIn("0.763 × MPICH", texts)  # behind, and shown as plainly: 1 / 1.31
        self.assertIn("3.65 × Open MPI", texts)

    def test_readable_in_light_and_dark_mode(self):
        for chart in self.plots.values():
            self.assertIn("@media(prefers-color-scheme:dark)", chart)
            self.assertIn('<rect class="paper"', chart)

    def test_names_are_those_of_readers(self):
        for name in self.plots:
            for text in self.texts(name):
                self.assertNotRegex(text, r"\bshm\b|canele-|_perftest|\bfloor\b")

    def test_no_rows(self):
        self.assertEqual(docs_page.plots_of(PAGE), {})

    def test_grid(self):
        self.assertEqual([svg.label_of(value) for value in svg.steps(0.07, 0.31, True)], ["0.05", "0.1", "0.2", "0.5"])
        self.assertEqual(svg.steps(6.7, 49.3, False), [0, 10, 20, 30, 40, 50])

    def test_those_in_the_tree_are_those_of_the_page(self):
        """After a change of the page: apps/perf/peers/docs_page.py docs."""
        for name, chart in docs_page.plots_of((SOURCE / "docs/performance.md").read_text(encoding="utf-8")).items():
            self.assertEqual(chart, (SOURCE / "docs/plots" / name).read_text(encoding="utf-8"), name)


if __name__ == "__main__":
    unittest.main()
