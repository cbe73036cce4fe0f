#!/usr/bin/env python3
"""Runs the same scenarios with real messages and in the simulator, and compares them.

    sudo python3 tools/bench/compare_simulation.py --dtrain build/release/dtrain \\
        --netns-cluster path/to/netns-cluster

For every link rate and number of hosts it brings up a cluster of network namespaces, fits rate,
bucket and latency of the link (`dtrain bench link --fit-only`) and how unevenly streams share a NIC
(`--incast`), and runs every scenario twice: with real messages and compute replaced by sleep (`dtrain
bench exchange` under mpirun), and in virtual time (`dtrain simulate`), with the same settings and
seeds.  Prints one table; the last line reports whether all predictions are within their bounds (exit
status 1 if not):

    step time (mean of all workers' steps, and seconds in all)   10 %, LeNet's small messages 20 %
    mean staleness                                               10 %

The median of worker 0's steps is also printed, without a bound: on the slow link there are a dozen
steps of two kinds (a push overlaps another worker's pull, or not), and the median jumps between the
two.

All ranks share this machine's cores.  Other work on them delays the real runs, so each is repeated, each time with
another seed, and the means are compared; a simulation takes little time, so its mean is over more seeds.  The load in
the heading is a part of the result.  Asynchronous workers on a saturated link are the hardest case: small delays
decide whether pushes and pulls overlap, and one seed's steps are up to 10 % from another's.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

SEED = 7
SIMULATED_SEEDS = 12
BATCH = 840  # a multiple of every number of workers used here
STALENESS_BOUND = 0.1
STEP_BOUND = {"lenet5": 0.2, "5MB": 0.1}
METRICS = ["step", "seconds", "staleness", "p50"]
STRATEGIES = [  # name, servers, more settings
    ("allreduce", 0, []),
    ("ps_bsp", 1, []),
    ("ps_bsp", 2, []),
    ("ps_asp", 1, []),
    ("ps_asp", 2, []),
    ("ps_ssp", 1, ["strategy.staleness=3"]),
    ("ps_ssp", 2, ["strategy.staleness=3"]),
]
# Synchronous training: schedules, collectives and sparse all-reduces.
SUMS = [
    ("naive", 0, []),
    ("wfbp", 0, []),
    ("single", 0, []),
    ("mgwfbp", 0, []),
    ("wfbp", 0, ["collective=ring"]),
    ("wfbp", 0, ["collective=halving_doubling"]),
    ("wfbp", 0, ["collective=hierarchical", "cluster.per_node=2"]),
    ("wfbp", 0, ["collective=double_trees"]),
    ("wfbp", 0, ["compress.name=topk", "compress.density=0.05"]),
    ("wfbp", 0, ["compress.name=gaussiank", "compress.density=0.05", "compress.exchange=gtopk"]),
    ("wfbp", 0, ["compress.name=topk", "compress.density=0.05", "compress.exchange=oktopk"]),
]
SCENARIOS = {"strategies": STRATEGIES, "sums": SUMS}
# By model and link rate: seconds of compute per step, and steps.  In some of these the network is the
# bottleneck, in others the slow worker.
LOADS = {
    ("lenet5", "100mbit"): (0.1, 40),
    ("lenet5", "1gbit"): (0.05, 60),
    ("5MB", "100mbit"): (0.5, 12),
    ("5MB", "1gbit"): (0.2, 30),
}


class Cluster:
    """Network namespaces as hosts; they are removed at the end of the `with` block, however it ends."""

    def __init__(self, tool, hosts, rate):
        self.command = [tool]
        self.hosts = hosts
        self.rate = rate

    def __enter__(self):
        try:
            self.call("up", str(self.hosts), "--rate", self.rate)
        except BaseException:
            self.call("down")
            raise
        return self

    def __exit__(self, *_):
        self.call("down")

    def call(self, *arguments):
        environment = dict(os.environ, NETNS_CLUSTER="calib")
        return output_of(self.command + list(arguments), environment)

    def mpirun(self, ranks, command):
        return self.call("mpirun", "-np", str(ranks), *command)


def output_of(command, environment=None):
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: status {result.returncode}\n"
                         f"{result.stdout}{result.stderr}")
    return result.stdout


def layer(name, params):
    """Returns a layer of a profile without times: all layers take the same part of a step."""
    return {"name": name, "params": params, "bytes": 4 * params, "forward_seconds": 0,
            "backward_seconds": 0, "flops": 0}


def write_profiles(folder):
    """Writes the profiles and returns their paths by model: LeNet-5, and four layers of 5 MB together."""
    layers = {
        "lenet5": [layer("conv1", 156), layer("conv2", 2416), layer("fc1", 48120),
                   layer("fc2", 10164), layer("fc3", 850)],
        "5MB": [layer(f"fc{i}", 312500) for i in range(1, 5)],
    }
    paths = {}
    for model, of_model in layers.items():
        profile = {"model": model, "device": "cpu", "batch": 1, "threads": 1, "layers": of_model}
        paths[model] = str(folder / f"{model}.json")
        pathlib.Path(paths[model]).write_text(json.dumps(profile), encoding="utf-8")
    return paths


def fit_link(args, cluster):
    """Returns the settings of the link (of several fits the one with the median bucket), and how all hosts
    together share one NIC."""
    lines = [json.loads(cluster.mpirun(2, [args.dtrain, "bench", "link", "--fit-only"]))
             for _ in range(args.fits)]
    middle = sorted(lines, key=lambda line: line["bucket_bytes"])[len(lines) // 2]
    link = {key: middle[key]
            for key in ["bandwidth_gbit_s", "latency_us", "bucket_bytes", "line_gbit_s"]}
    incast = cluster.mpirun(cluster.hosts, [args.dtrain, "bench", "link", "--incast"])
    link["share_deviation"] = json.loads(incast)["share_deviation"]
    print(f"\n{cluster.rate}: " + ", ".join(f"{key} {value:.6g}" for key, value in link.items())
          + f"; load {os.getloadavg()[0]:.1f}", flush=True)
    return [f"cluster.network.{key}={value}" for key, value in link.items()]


def settings_of(model, rate, ranks, strategy, seed=SEED):
    name, servers, more = strategy
    seconds, steps = LOADS[model, rate]
    workers = ranks - servers
    slowdown = [1] * (workers - 1) + [2]
    settings = [f"seed={seed}", f"batch={BATCH}", f"max_steps={steps}", f"strategy.name={name}",
                f"cluster.workers={workers}", f"cluster.step_seconds={seconds}",
                f"cluster.slowdown={slowdown}", "cluster.jitter=0.1"] + more
    return settings + ([f"strategy.servers={servers}"] if servers else [])


def with_sets(command, settings):
    return command + [word for setting in settings for word in ("--set", setting)]


def metrics_of(summary):
    staleness = summary.get("staleness") or {"mean": 0}
    workers = summary["workers_detail"]
    steps = sum(worker["own_steps"] for worker in workers)
    busy = sum(worker["compute_seconds"] + worker["wait_seconds"] for worker in workers)
    return {"step": busy / steps, "seconds": summary["seconds"], "staleness": staleness["mean"],
            "p50": summary["step_seconds"]["p50"]}


def means_of(runs):
    return {key: statistics.mean(run[key] for run in runs) for key in METRICS}


def compare(args, cluster, model, profile, strategy, link):
    """Returns the metrics of the real runs and of the simulated ones, as means over the seeds."""
    def command(words, seed):
        settings = settings_of(model, cluster.rate, cluster.hosts, strategy, seed) + link + args.set
        return with_sets([args.dtrain, *words, "--profile", profile], settings)

    measured = [metrics_of(json.loads(output.splitlines()[-1]))
                for output in (cluster.mpirun(cluster.hosts, command(["bench", "exchange"], seed))
                               for seed in range(SEED, SEED + args.repeats))]
    predicted = [metrics_of(json.loads(output_of(command(["simulate", "--json"], seed))))
                 for seed in range(SEED, SEED + max(args.repeats, SIMULATED_SEEDS))]
    return means_of(measured), means_of(predicted)


def broken_bounds(model, measured, predicted):
    bounds = {"step": STEP_BOUND[model], "seconds": STEP_BOUND[model], "staleness": STALENESS_BOUND}
    return [key for key in bounds
            if abs(predicted[key] - measured[key]) > bounds[key] * measured[key]]


def print_heading():
    print(f"{'':48}" + "".join(f"{title:^29}" for title in
                               ["step mean s", "seconds in all", "staleness mean", "step p50 s"]))
    print(f"{'scenario':48}" + f"{'measured':>11}{'predicted':>11}{'ratio':>7}" * 4, flush=True)


def print_row(scenario, measured, predicted, broken):
    row = f"{scenario:48}"
    for key in METRICS:
        ratio = f"{predicted[key] / measured[key]:.3f}" if measured[key] else "-"
        mark = "!" if key in broken else ""
        row += f"{measured[key]:11.4f}{predicted[key]:11.4f}{ratio + mark:>7}"
    print(row, flush=True)


def run_cluster(args, rate, ranks, profiles):
    """Returns how many predictions are outside their bound."""
    count = 0
    with Cluster(args.netns_cluster, ranks, rate) as cluster:
        link = fit_link(args, cluster)
        print_heading()
        for model in args.models:
            for strategy in SCENARIOS[args.scenarios]:
                if args.strategies and strategy[0] not in args.strategies:
                    continue
                measured, predicted = compare(args, cluster, model, profiles[model], strategy, link)
                broken = broken_bounds(model, measured, predicted)
                count += len(broken)
                servers = f" {strategy[1]} server{'s' if strategy[1] > 1 else ''}"
                more = [it.split("=")[1] for it in strategy[2] if args.scenarios == "sums"]
                name = " ".join([strategy[0] + (servers if strategy[1] else ""), *more])
                print_row(f"{model} {ranks} ranks {name}", measured, predicted, broken)
    return count


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", default="build/release/dtrain", help="the program to measure")
    parser.add_argument("--netns-cluster", required=True, help="the program that makes the hosts")
    parser.add_argument("--rates", nargs="+", choices=["100mbit", "1gbit"],
                        default=["100mbit", "1gbit"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[4, 8], help="numbers of ranks, one rank per host")
    parser.add_argument("--models", nargs="+", choices=list(STEP_BOUND), default=list(STEP_BOUND))
    parser.add_argument("--scenarios", choices=list(SCENARIOS), default="strategies",
                        help="all-reduce and parameter servers, or collectives (default: %(default)s)")
    parser.add_argument("--strategies", nargs="+", help="only these",
                        choices=list(dict.fromkeys(name for name, _, _ in STRATEGIES + SUMS)))
    parser.add_argument("--repeats", type=int, default=3, help="real runs of a scenario")
    parser.add_argument("--fits", type=int, default=3, help="fits of a link")
    parser.add_argument("--set", action="append", default=[], help="more settings, for both sides")
    args = parser.parse_args()
    args.dtrain = os.path.abspath(args.dtrain)
    return args


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that the cluster is removed
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        profiles = write_profiles(pathlib.Path(folder))
        for rate in args.rates:
            for ranks in args.ranks:
                broken += run_cluster(args, rate, ranks, profiles)
    print(f"\n{broken} predictions out of bounds (marked !)" if broken
          else "\nall predictions within their bounds")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
