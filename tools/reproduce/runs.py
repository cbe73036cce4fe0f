"""What the scripts of this folder share: runs that are done once, tables and plots.

Runs are those of `dtrain sweep`: what is completed is not run again, so that a script that was
interrupted goes on where it stopped.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments(description, parts, *more):
    """The command line of a script: which parts, which program, where to; `more`: parsers of its own."""
    parser = argparse.ArgumentParser(description=description, parents=list(more),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART",
                        help="what to run (default: all): " + ", ".join(parts))
    parser.add_argument("--dtrain", default=str(ROOT / "build" / "release" / "dtrain"),
                        help="the program (default: %(default)s)")
    parser.add_argument("--output", default="runs/reproduce", type=pathlib.Path,
                        help="folder of the runs and plots (default: %(default)s)")
    parser.add_argument("--seeds", default="1,2,3", help="seeds of each run (default: %(default)s)")
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(parts))
    if unknown:
        parser.error(f"no part '{unknown[0]}'; there are: {', '.join(parts)}")
    if not pathlib.Path(options.dtrain).exists():
        parser.error(f"{options.dtrain} is not there; build it, or name it with --dtrain")
    options.dtrain = str(pathlib.Path(options.dtrain).resolve())
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    options.parts = options.parts or list(parts)
    return options


def hosts_option():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--hosts", help="program that makes hosts of network namespaces")
    return parser


class Runs:
    def __init__(self, options):
        self.dtrain = options.dtrain
        self.folder = options.output
        self.folder.mkdir(parents=True, exist_ok=True)

    def sweep(self, name, config, settings=(), seeds=(1,), cluster=None, simulate=False):
        """`dtrain sweep` over the seeds, below FOLDER/NAME: (summary, folder) of each.  A sweep that was
        interrupted goes on, and refuses a folder that holds runs of another config."""
        folder = self.folder / name
        words = [self.dtrain, "sweep", "--config", str(config), "--output", str(folder)]
        words += ["--cluster", cluster] if cluster else []
        words += ["--simulate"] if simulate else []
        words += flags([*settings, ("seed", ",".join(str(seed) for seed in seeds))])
        print(f"  {name} ...", file=sys.stderr, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "log.txt"
        with open(log, "w") as out:
            status = subprocess.run(words, stdout=out, stderr=subprocess.STDOUT).returncode
        if status != 0:
            sys.exit(f"{name} ended with code {status}:\n" +
                     "".join(log.read_text().splitlines(keepends=True)[-5:]))
        lines = map(json.loads, (folder / "sweep.jsonl").read_text().splitlines())
        folders = [pathlib.Path(line["folder"]) for line in lines if line["kind"] == "run"]
        return [(json.loads((run / "summary.json").read_text()), run) for run in folders]

    def simulate(self, name, config, settings):
        """The numeric simulation of a config in FOLDER/NAME: (summary, folder).  It says how far it is, and one that
        was interrupted goes on from its last checkpoint.  A run that diverges is a result as well: its
        summary has exit_code 5."""
        folder = self.folder / name
        words = ["simulate", "--config", str(config), "--numeric", *flags(settings)]
        stamp = folder / "command.txt"
        if stamp.exists() and stamp.read_text() != "\n".join(words):
            sys.exit(f"{folder} holds a run of other settings; remove it, or name another folder with --output")
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text("\n".join(words))
        if not (folder / "summary.json").exists():
            print(f"  {name} ...", file=sys.stderr, flush=True)
            with open(folder / "log.txt", "a") as log:
                status = follow([self.dtrain, *words, "--output", str(folder), "--resume", "auto"], log,
                                f"  {name}", float(dict(settings).get("epochs", 0)))
            if not (folder / "summary.json").exists():
                sys.exit(f"{name} ended with code {status}:\n" +
                         "".join((folder / "log.txt").read_text().splitlines(keepends=True)[-5:]))
        return json.loads((folder / "summary.json").read_text()), folder

    def ghost(self, profile, settings):
        """The summary of a simulation of sizes only; it takes seconds and is kept as JSON."""
        return self.kept("ghost", ["simulate", "--profile", str(profile), "--json", *flags(settings)])

    def plan(self, profile, settings, schedules, collectives):
        """What `dtrain plan` predicts: {(schedule, collective): row}."""
        found = self.kept("plan", ["plan", "--profile", str(profile), "--json",
                                   "--schedules", ",".join(schedules),
                                   "--collectives", ",".join(collectives), *flags(settings)])
        return {(row["schedule"], row["collective"]): row for row in found["predictions"]}

    def kept(self, folder, words, call=None):
        """The JSON that `dtrain WORDS` prints, or that `call()` returns as text for these words; it is kept
        below FOLDER and not asked for again."""
        name = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
        kept = self.folder / folder / f"{name}.json"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            text = call() if call else self.say(words)
            json.loads(text)
            kept.write_text(text)
        return json.loads(kept.read_text())

    def say(self, words):
        done = subprocess.run([self.dtrain, *words], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"dtrain {' '.join(words)} ended with code {done.returncode}:\n{done.stderr}")
        return done.stdout

    def profile(self, config):
        """Layer times of a config's model, measured once."""
        path = self.folder / f"{pathlib.Path(config).stem}.profile.json"
        if not path.exists():
            subprocess.run([self.dtrain, "time", "--config", str(config), "--profile", str(path)],
                           check=True, stdout=subprocess.DEVNULL)
        return path

    def link(self):
        """Settings of a simulated network as fast as messages between two ranks of this machine are."""
        path = self.folder / "link.json"
        if not path.exists():
            done = subprocess.run([self.dtrain, "bench", "link", "--fit-only"], check=True,
                                  capture_output=True, text=True)
            path.write_text(done.stdout)
        fit = json.loads(path.read_text())
        return [(f"cluster.network.{key}", fit[key])
                for key in ("bandwidth_gbit_s", "latency_us", "bucket_bytes", "line_gbit_s")]


class Hosts:
    """Hosts of network namespaces, with mpirun over them; taken down at the end of the block."""

    def __init__(self, program, name, count, link_rate, slots=1, delay=None):
        self.program, self.words = program, ["up", str(count), "--rate", link_rate, "--slots", str(slots)]
        self.words += ["--delay", delay] if delay else []
        self.environment = dict(os.environ, NETNS_CLUSTER=name)

    def call(self, *words):
        done = subprocess.run([self.program, *words], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.program} {' '.join(words)} ended with code {done.returncode}:\n"
                     f"{done.stdout}{done.stderr}")
        return done.stdout

    def train(self, all_runs, ranks, name, config, settings):
        """(summary, folder) of a run over the hosts; one that has been completed is not run again."""
        folder = (all_runs.folder / name).resolve()
        # mpirun hands on no variable of its own accord.
        data = ["-x", "DTRAIN_DATA"] if "DTRAIN_DATA" in os.environ else []
        words = ["-np", str(ranks), *data, all_runs.dtrain, "train", "--config", str(config), "--output", str(folder),
                 *flags(settings)]
        stamp = all_runs.folder / f"{name}.command.txt"
        if not stamp.exists() or stamp.read_text() != "\n".join(words):
            print(f"  {name} ...", file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            self.call("mpirun", *words)
            stamp.write_text("\n".join(words))
        return json.loads((folder / "summary.json").read_text()), folder

    def __enter__(self):
        self.call(*self.words)
        return self

    def __exit__(self, *_):
        subprocess.run([self.program, "down"], env=self.environment, check=False)


def follow(words, log, name, epochs):
    """Runs a program with its output in a file, and shows its evaluations and, where it is known how many `epochs` there
    are, when it will have ended: (exit status)."""
    begin = first = None
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        for line in program.stdout:
            log.write(line)
            log.flush()
            found = re.search(r"epoch ([\d.]+), .*", line)
            if not found:
                continue
            now, done = time.monotonic(), float(found[1])
            left = ""
            if begin is None:
                begin, first = now, done
            elif epochs > done > first:
                left = f" ({(now - begin) / (done - first) * (epochs - done) / 60:.0f} minutes left)"
            print(f"{name}: {found[0]}{left}", file=sys.stderr, flush=True)
    return program.returncode


def flags(settings):
    return [word for key, value in settings for word in ("--set", f"{key}={value}")]


def own_steps(worker):
    """Steps as the worker counts them, which summaries of schema 1 call `steps`."""
    return worker.get("own_steps", worker["steps"])


def gradients(summary):
    return sum(own_steps(worker) for worker in summary["workers_detail"])


def rate(summary):
    """Gradients a second."""
    return gradients(summary) / summary["seconds"]


def training_rate(folder):
    """Samples a second of training up to the last evaluation, pauses for evaluations left out."""
    with open(folder / "metrics.jsonl") as lines:
        *_, last = (line for line in map(json.loads, lines) if line["kind"] == "evaluation")
    return last["samples"] / last["training_seconds"]


def waiting(summary):
    return [worker["wait_seconds"] for worker in summary["workers_detail"]]


def wait_share(summary):
    wait = sum(waiting(summary))
    compute = sum(worker["compute_seconds"] for worker in summary["workers_detail"])
    return wait / (wait + compute)


def metric(folder, kind, key, over=None):
    """Points (seconds of training, or the value of `over`; value) of metrics.jsonl."""
    points = []
    with open(folder / "metrics.jsonl") as lines:
        for line in map(json.loads, lines):
            if line["kind"] == kind and line.get(key) is not None:
                at = line[over] if over else line.get("training_seconds", line["seconds"])
                points.append((at, line[key]))
    return points


def seconds_to(folder, accuracy):
    """Seconds of training until an evaluation found this accuracy; None where none did."""
    return next((seconds for seconds, found in metric(folder, "evaluation", "accuracy")
                 if found >= accuracy), None)


def verdict(value, expected, bound):
    """How far from what was expected, and whether that is within the bound (a fraction)."""
    off = value / expected - 1
    return f"{100 * off:+.1f} %" + ("" if abs(off) <= bound else "  OUTSIDE")


def at_least(value, aim):
    return f">= {aim:.2f}" + ("" if value >= aim else "  OUTSIDE")


def at_most(value, aim):
    return f"<= {aim:.3g}" + ("" if value <= aim else "  OUTSIDE")


def median(values):
    return statistics.median(values)


def table(title, header, rows):
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    print(f"\n{title}\n")
    for index, row in enumerate(cells):
        first, *rest = row
        print("  ".join([first.ljust(widths[0])] +
                        [cell.rjust(width) for cell, width in zip(rest, widths[1:])]).rstrip())
        if index == 0:
            print("  ".join("-" * width for width in widths))
    sys.stdout.flush()


def staleness(summary):
    """Points (staleness, per cent of the gradients that had it)."""
    counts = summary.get("staleness", {}).get("histogram", [])
    return [(tau, 100 * count / sum(counts)) for tau, count in enumerate(counts)]


def pyplot_for(path):
    """matplotlib's pyplot; None, and a word about it, where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        print(f"(no plot {path}: matplotlib is not installed)", file=sys.stderr)
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def save(pyplot, figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    print(f"plot {path}", file=sys.stderr)


def draw(axes, title, x_label, y_label, curves):
    for name, points in curves.items():
        axes.plot([x for x, _ in points], [y for _, y in points], marker=".", label=name)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.3)
    axes.legend()


def plot(path, title, x_label, y_label, curves):
    """Curves {name: [(x, y), ...]} as a PNG, where matplotlib is installed."""
    pyplot = pyplot_for(path)
    if pyplot is None:
        return
    figure, axes = pyplot.subplots(figsize=(8, 5))
    draw(axes, title, x_label, y_label, curves)
    save(pyplot, figure, path)


def panels(path, x_label, y_label, curves_of):
    """Curves of each title side by side, over workers, both axes logarithmic, as a PNG."""
    pyplot = pyplot_for(path)
    if pyplot is None:
        return
    figure, all_axes = pyplot.subplots(1, len(curves_of), figsize=(5 * len(curves_of), 5), sharey=True,
                                       squeeze=False)
    for axes, (title, curves) in zip(all_axes[0], curves_of.items()):
        draw(axes, title, x_label, y_label, curves)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
    save(pyplot, figure, path)


def bars(path, title, y_label, groups):
    """Bars {name: [value, ...]}, one a worker, as a PNG."""
    pyplot = pyplot_for(path)
    if pyplot is None:
        return
    figure, axes = pyplot.subplots(figsize=(9, 4))
    width = 0.8 / len(groups)
    for index, (name, values) in enumerate(groups.items()):
        axes.bar([i + index * width for i in range(len(values))], values, width, label=name)
    axes.set(title=title, xlabel="worker", ylabel=y_label)
    axes.legend()
    save(pyplot, figure, path)
