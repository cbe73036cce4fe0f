#!/usr/bin/env python3
"""Tests what tools/reproduce reads from runs, with a stand-in for dtrain that only writes these files."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "reproduce"
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))
import runs  # noqa: E402  (the folder is not a package)

# Counts its calls in calls.txt.  The first call with `stop=1` ends without a summary, as an interrupted run does.
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
assert words[-2:] == ["--resume", "auto"], words
folder = pathlib.Path(words[words.index("--output") + 1])
calls = folder / "calls.txt"
before = calls.read_text() if calls.exists() else ""
calls.write_text(before + "x")
print("12:00:00 epoch 1.0, 3.5 virtual s: test accuracy 90 %")
if "stop=1" in words and not before:
    sys.exit(75)
code = 5 if "lr=1000" in words else 0
(folder / "summary.json").write_text(json.dumps({"exit_code": code}))
sys.exit(code)
"""


# Stands in for every command that the scripts of GSSP and InHAD call.  A strategy's speed depends on its name and the
# slowdown.
ANY = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
value = lambda option: words[words.index(option) + 1]
keys = dict(word.split("=", 1) for before, word in zip(words, words[1:]) if before == "--set")
strategy = keys.get("strategy.name", "inhad")
accuracy = {"ps_ssp": 0.97, "ps_asp": 0.985, "inhad": 0.98, "allreduce": 0.99}.get(strategy, 0.99)
if keys.get("compress.name") == "topk":
    accuracy -= 0.02
rate = 200.0 if strategy in ("gssp", "inhad") else 100.0
length = float(keys.get("max_steps", 200)) / 200
summary = {"exit_code": 0, "seconds": 2.0 * length, "samples_per_second": rate,
           "workers_detail": [{"steps": rate * length / 2, "own_steps": rate * length, "wait_seconds": 1, "compute_seconds": 1, "group": w % 2}
                              for w in range(2)],
           "test": {"accuracy": accuracy, "loss": 2.0}, "best": {"accuracy": accuracy}, "train": {"loss": 1.0},
           "staleness": {"mean": 1.0, "max": 2, "histogram": [1, 2]},
           "communication": {"bytes_sent": 1e6, "density": 0.1},
           "protocol": {"up_transfers_per_gradient": 0.25}}

def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "metrics.jsonl").write_text("".join(
        json.dumps({"kind": "evaluation", "samples": 100 * i, "training_seconds": 100 * i / rate, "seconds": i,
                    "accuracy": 0.979 + 0.001 * i}) + "\\n" for i in (1, 2)))

if words[0] == "sweep":
    lines = []
    for seed in keys["seed"].split(","):
        folder = pathlib.Path(value("--output")) / ("seed-" + seed)
        write(folder)
        lines.append(json.dumps({"kind": "run", "folder": str(folder)}))
    (pathlib.Path(value("--output")) / "sweep.jsonl").write_text("\\n".join(lines))
elif words[0] == "time":
    pathlib.Path(value("--profile")).write_text(json.dumps({"layers": [{"params": 100}]}))
elif words[:2] == ["bench", "link"]:
    print(json.dumps(dict.fromkeys(["bandwidth_gbit_s", "latency_us", "bucket_bytes", "line_gbit_s"], 1.0)))
elif "--numeric" in words:
    write(pathlib.Path(value("--output")))
else:
    print(json.dumps(summary))
"""


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, str(FOLDER / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Simulate(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        program = self.folder / "dtrain"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.runs = runs.Runs(types.SimpleNamespace(dtrain=str(program), output=self.folder / "runs"))
        self.printed = self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    def calls(self):
        return len((self.folder / "runs" / "one" / "calls.txt").read_text())

    def test_a_completed_run_is_not_run_again(self):
        for _ in range(2):
            summary, folder = self.runs.simulate("one", "a.yaml", [("lr", 1)])
            self.assertEqual(summary["exit_code"], 0)
        self.assertEqual(folder, self.folder / "runs" / "one")
        self.assertEqual(self.calls(), 1)
        self.assertIn("one: epoch 1.0, 3.5 virtual s", self.printed.getvalue())

    def test_an_interrupted_run_goes_on(self):
        with self.assertRaisesRegex(SystemExit, "code 75"):
            self.runs.simulate("one", "a.yaml", [("stop", 1)])
        self.runs.simulate("one", "a.yaml", [("stop", 1)])
        self.assertEqual(self.calls(), 2)

    def test_a_diverged_run_is_a_result(self):
        for _ in range(2):
            self.assertEqual(self.runs.simulate("one", "a.yaml", [("lr", 1000)])[0]["exit_code"], 5)
        self.assertEqual(self.calls(), 1)

    def test_a_run_of_other_settings_is_not_taken_for_this_one(self):
        self.runs.simulate("one", "a.yaml", [("lr", 1)])
        with self.assertRaisesRegex(SystemExit, "other settings"):
            self.runs.simulate("one", "a.yaml", [("lr", 2)])


class Parts(unittest.TestCase):
    """Runs whole parts of the scripts, from the calls to the printed table."""

    def lines_of(self, script, part):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        program = folder / "dtrain"
        program.write_text(ANY)
        program.chmod(0o755)
        options = types.SimpleNamespace(dtrain=str(program), output=folder / "runs", seeds=[1, 2, 3], hosts=None)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            load(script).PARTS[part](runs.Runs(options), options)
        return said.getvalue().splitlines()

    def line_of(self, script, part, begin):
        [line] = [line for line in self.lines_of(script, part) if line.startswith(begin)]
        return line

    def test_gssp_over_mpi(self):
        # GSSP has twice SSP's samples per second and half its time to 98 %.
        line = self.line_of("gssp", "mpi", "1,2,3,4").split()
        self.assertEqual(line[1:4], ["2.00", "2.00", "+0.0"])
        self.assertEqual(line[5:11], ["1.0", "0.5", "2.00", "2.00", ">=", "1.70"])

    def test_gssp_throughput(self):
        line = self.line_of("gssp", "throughput", "1,2,3,4")
        self.assertEqual(line.split()[1:5], ["2.08", "2.00", "-3.8", "%"])
        self.assertTrue(line.endswith("2.00  -12.7 %  OUTSIDE"))  # relative to BSP; the paper has 2.29

    def test_gdtopk(self):
        self.assertIn("1.00", self.line_of("gssp", "gdtopk", "GSSP, gdtopk speed_gap"))

    def test_topk_may_be_a_point_behind(self):
        self.assertIn("95.00  >= 96.00  OUTSIDE", self.line_of("gssp", "topk", "ps_ssp, topk"))

    def test_resnet18_and_models(self):
        self.assertTrue(self.line_of("gssp", "resnet18", "DSSP").endswith("99.00   99.00"))
        self.assertIn("1.000 / 2.000", self.line_of("gssp", "models", "Seq2Seq"))

    def test_inhad(self):
        self.assertEqual(self.line_of("inhad", "free", "8 x 4, n = 1").split()[-3:], ["2", "<=", "3"])
        accuracy = self.line_of("inhad", "accuracy", "InHAD")
        self.assertEqual(accuracy.count("OUTSIDE"), 2)  # 98 % against 98.5 and 98.4
        self.assertEqual(self.line_of("inhad", "horovod", "all-reduce, ring").split()[-2:], ["100", "1.0"])
        self.assertIn("left out", self.lines_of("inhad", "link")[-1])


class Link(unittest.TestCase):
    PLAN = {"step_seconds": 1.0, "compute_seconds": 0.6, "exposed_seconds": 0.4}

    def verdicts(self, step=1.0, simulated=1.0, best=1.0, planned_best=1.0):
        return load("mgwfbp").link_verdicts(step, self.PLAN, simulated, best, planned_best)

    def test_as_planned_and_simulated(self):
        self.assertEqual(self.verdicts(), ("yes", "yes", "yes"))
        self.assertEqual(self.verdicts(step=1.059), ("yes", "yes", "yes"))

    def test_exposed_communication_may_be_off_by_15_per_cent(self):
        self.assertEqual(self.verdicts(step=1.061), ("NO", "yes", "yes"))
        self.assertEqual(self.verdicts(step=0.939), ("NO", "yes", "yes"))

    def test_a_step_may_be_off_the_simulated_one_by_10_per_cent(self):
        self.assertEqual(self.verdicts(simulated=0.92), ("yes", "yes", "yes"))
        self.assertEqual(self.verdicts(simulated=0.90), ("yes", "NO", "yes"))

    def test_mgwfbp_may_be_behind_by_10_per_cent_as_measured_and_not_at_all_as_planned(self):
        self.assertEqual(self.verdicts(best=1.09), ("yes", "yes", "yes"))
        self.assertEqual(self.verdicts(best=1.11), ("yes", "yes", "NO"))
        self.assertEqual(self.verdicts(planned_best=1.001), ("yes", "yes", "NO"))


class Authors(unittest.TestCase):
    def test_seconds_of_resnet50_are_those_of_their_fit(self):
        seconds = load("topk").authors_seconds
        self.assertAlmostEqual(seconds("P102-100", 25.5e6), 0.137, places=3)
        self.assertAlmostEqual(seconds("V100", 25.5e6), 0.31, places=2)


class Histograms(unittest.TestCase):
    def test_shares_are_of_all_entries_and_those_of_a_normal_distribution_too(self):
        # The entries are 4 values below 2^-126, and 1, 1.5, 2.5 and -3; their sum of squares is 18.5.
        record = {"begin": 8, "end": 16,
                  "from": {"squares": 18.5, "zeros": 4, "exponent": 0, "negative": [0, 1], "positive": [2, 1]}}
        up, down, normal_up, normal_down = load("topk").histogram_curves(record, "from")
        self.assertEqual(up, [(0, 25), (1, 12.5)])
        self.assertEqual(down, [(0, 0), (1, -12.5)])
        self.assertEqual([(x, -y) for x, y in normal_up], normal_down)
        # This is P(1 <= |x| < 4) for a deviation of sqrt(18.5 / 8) = 1.5207, from tables of the normal distribution.
        self.assertAlmostEqual(sum(y for _, y in normal_up), 50 * (0.99147 - 0.48917), places=2)


if __name__ == "__main__":
    unittest.main()
