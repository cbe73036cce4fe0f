#!/usr/bin/env python3
"""Does real runs real harm, and looks at how they end.

Each injection is drawn from its seed: a strategy and placement, a phase of the run, a rank and what
happens to it: a signal that kills it (KILL, SEGV, ABRT, BUS), or one that stops it (STOP). Behind it
the run must have ended in time, with the exit code that says why and with the right rank named; no
process, no shared memory and no temporary file may be left; and with --resume auto it must go on, a
synchronous strategy to the weights of the run that nobody harmed.

    tests/faults/inject.py --count 300              # under `dtrain train --workers`
    tests/faults/inject.py --count 50 --mpirun      # the same ranks under a plain mpirun
    tests/faults/inject.py --seed 815               # one again, with all that it says
"""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKERS = 3
STALL = 4  # seconds
SYNCHRONOUS = [["strategy.name=allreduce"], ["strategy.name=wfbp"],
               ["strategy.name=allreduce", "compress.name=topk", "compress.density=0.1"],
               ["strategy.name=ps_bsp", "strategy.servers=1"],
               ["strategy.name=ps_bsp", "strategy.placement=colocated"]]
# mgwfbp is synchronous, but has the bits of its plan, which follows measured times.
OTHERS = [["strategy.name=mgwfbp", "collective=ring"], ["strategy.name=ps_asp"], ["strategy.name=ps_asp", "compress.name=topk"],
                ["strategy.name=ps_ssp", "strategy.servers=2"],
                ["strategy.name=ps_ssp", "strategy.placement=colocated"], ["strategy.name=ps_dssp"],
                ["strategy.name=gssp", "strategy.servers=2"],
                ["strategy.name=gssp", "strategy.servers=2", "compress.name=gdtopk"],
                ["strategy.name=inhad", "cluster.per_node=3"],
                ["strategy.name=inhad", "cluster.per_node=1", "window=false"]]
# How many ranks have servers of their own.
SERVERS = {"ps_bsp": 1, "ps_asp": 1, "ps_ssp": 1, "ps_dssp": 1, "gssp": 2, "inhad": 1}
PHASES = ["MPI_Init", "starting", "loading data", "training", "evaluating", "writing a checkpoint", "ended"]
DOING = PHASES[1:]  # as status records count (framework/runtime/launch/status_record.h)
SIGNALS = [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGSTOP]


@dataclasses.dataclass
class Fault:
    seed: int
    settings: list
    phase: str
    rank: int
    signal: signal.Signals
    delay: float  # behind the begin of the phase

    def __str__(self):
        return (f"seed {self.seed}: {' '.join(self.settings)}; {self.signal.name} for rank {self.rank}, "
                f"{self.phase} + {self.delay:.3f} s")


def ranks_of(settings):
    keys = dict(setting.split("=", 1) for setting in settings)
    name = keys["strategy.name"]
    if keys.get("strategy.placement") == "colocated" or name not in SERVERS:
        return WORKERS
    return WORKERS + int(keys.get("strategy.servers", SERVERS[name]))


def draw(seed):
    draws = random.Random(seed)
    settings = draws.choice(SYNCHRONOUS + OTHERS)
    return Fault(seed, settings, draws.choice(PHASES), draws.randrange(ranks_of(settings)),
                 draws.choice(SIGNALS), draws.random() * draws.choice([0.002, 0.02, 0.2]))


class Run:
    """One run of the program in a folder of its own."""

    def __init__(self, dtrain, folder, settings, mpirun):
        self.folder, self.ranks, self.mpirun = folder, ranks_of(settings), mpirun
        self.output = folder / "run"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.words = ["train", "--config", str(ROOT / "configs/runs/quickstart.yaml"), "--output",
                      str(self.output), "--resume", "auto"]
        for setting in ["data.name=digits", "data.train_samples=1500", "data.test_samples=500", "batch=30", "epochs=3",
                        f"cluster.workers={WORKERS}", "checkpoint.every_steps=20", "evaluate.every_steps=15",
                        f"stall_seconds={STALL}", "threads=1", *settings]:
            self.words += ["--set", setting]
        self.program = [dtrain]
        if mpirun:
            # Ours looks for its files there; a folder of this run's shows what is left.
            self.program = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(self.ranks), dtrain]

    def start(self):
        environment = dict(os.environ, TMPDIR=str(self.temporary))
        return subprocess.Popen([*self.program, *self.words], stdout=open(self.folder / "out", "a"),
                                stderr=open(self.folder / "err", "a"), env=environment, start_new_session=True)

    def processes(self):
        """{pid: rank} of all processes of the run; -1 for those that are no rank."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if str(self.output) not in (entry / "cmdline").read_bytes().decode(errors="replace"):
                    continue
                if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                    continue
                rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", (entry / "environ").read_bytes())
            except OSError:
                continue
            found[int(entry.name)] = int(rank[1]) if rank else -1
        return found

    def doing(self, rank):
        """The rank's phase and pid by its status record, once there is one."""
        for record in self.temporary.glob(f"dtrain-*/rank-{rank}"):
            try:
                valid, _, pid, doing = struct.unpack("<4i", record.read_bytes()[:16])
            except (OSError, struct.error):
                continue
            if valid:
                return DOING[doing], pid
        return None, None

    def await_phase(self, program, fault):
        """The pid of the rank once it is in the phase; None when the run ends before."""
        while program.poll() is None:
            phase, pid = self.doing(fault.rank)
            if pid and (phase == fault.phase or fault.phase in ("starting", "MPI_Init")):
                return pid
            if phase is None and (fault.phase == "MPI_Init" or self.mpirun):
                pids = [pid for pid, rank in self.processes().items() if rank == fault.rank]
                if pids:
                    return pids[0]
            time.sleep(0.001)
        return None

    def hash(self):
        summary = self.output / "summary.json"
        return json.loads(summary.read_text())["weights_sha256"] if summary.exists() else None


def inject(fault, run, undisturbed):
    """What is wrong with how the run ended, and whether it was harmed at all."""
    wrong = []
    program = run.start()
    pid = run.await_phase(program, fault)
    if run.mpirun:  # there are no records: somewhere in the run
        time.sleep(fault.delay * 20)
    else:
        time.sleep(fault.delay)
    harmed = False
    if pid is not None:
        try:
            os.kill(pid, fault.signal)
            harmed = True
        except ProcessLookupError:
            pass
    begin = time.monotonic()
    limit = 10 + (STALL if fault.signal == signal.SIGSTOP else 0)
    try:
        code = program.wait(limit + 20)
    except subprocess.TimeoutExpired:
        wrong.append("it hangs")
        for left in run.processes():
            os.kill(left, signal.SIGKILL)
        code = program.wait()
    took = time.monotonic() - begin
    said = (run.folder / "err").read_text()
    finished = code == 0 and run.hash() is not None
    if harmed and not finished:
        if took > limit:
            wrong.append(f"it took {took:.1f} s to end")
        expected = 7 if fault.signal == signal.SIGSTOP else 128 + fault.signal
        if code != expected:
            wrong.append(f"exit code {code} instead of {expected}")
        # Of ranks that have ended well only mpirun knows who was killed.
        if fault.phase != "ended" and not re.search(rf"rank {fault.rank}\b", said):
            wrong.append("the rank is not named")
    time.sleep(0.5)  # ranks that were told to end do so
    orphans = run.processes()
    if orphans:
        wrong.append(f"orphans {orphans}")
        for left in orphans:
            os.kill(left, signal.SIGKILL)
    if not run.mpirun:
        left = [entry.name for entry in run.temporary.iterdir()]
        if left:
            wrong.append(f"left in TMPDIR: {left}")
        left = [entry.name for entry in pathlib.Path("/dev/shm").glob(f"dtrain-{program.pid}-*")]
        if left:
            wrong.append(f"left in /dev/shm: {left}")
    code = run.start().wait(120)
    if code != 0:
        wrong.append(f"--resume auto ends with {code}")
    elif undisturbed and run.hash() != undisturbed:
        wrong.append(f"resumed to {run.hash()} instead of {undisturbed}")
    return wrong, harmed and not finished


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="injections (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="this one alone, in a folder that stays")
    parser.add_argument("--mpirun", action="store_true", help="under a plain mpirun")
    parser.add_argument("--dtrain", default=str(ROOT / "build/release/dtrain"), help="the program (default: %(default)s)")
    options = parser.parse_args()
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    undisturbed, failed, harmed = {}, [], 0
    for seed in seeds:
        fault = draw(seed)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
        synchronous = fault.settings in SYNCHRONOUS
        key = " ".join(fault.settings)
        if synchronous and key not in undisturbed:
            alone = Run(options.dtrain, folder / "undisturbed", fault.settings, options.mpirun)
            if alone.start().wait(120) != 0:
                sys.exit(f"{key}: does not run at all; see {folder}")
            undisturbed[key] = alone.hash()
        run = Run(options.dtrain, folder / "harmed", fault.settings, options.mpirun)
        wrong, was_harmed = inject(fault, run, undisturbed.get(key) if synchronous else None)
        harmed += was_harmed
        if wrong:
            failed.append(seed)
            told = re.findall(r"^.* (?:error|warning) .*$", (run.folder / "err").read_text(), re.MULTILINE)
            print(f"{fault}: {'; '.join(wrong)}", *told, sep="\n    ", flush=True)
        if options.seed is None:
            shutil.rmtree(folder)
        else:
            print(f"{fault}: {'harmed' if was_harmed else 'it had ended before'}; see {folder}")
    print(f"{len(seeds)} injections, {harmed} of them before the run's end: {len(failed)} ended wrongly"
          f"{': seeds ' + ', '.join(map(str, failed)) if failed else ''}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
