#!/usr/bin/env python3
"""Injects faults into real runs and checks how they end.

Each injection is drawn from its seed: a strategy and placement, a phase of the run, a rank and the fault of that
rank. A signal kills it (KILL, SEGV, ABRT, BUS) or stops it (STOP); it leaves an MPI call by exit(3) (EXIT)
or by an exception (THROW), or its fsync(2) fails (FSYNC; see harm/harm.cc); the disk of the run folder is
full (FULL; as root: a small tmpfs). With --hosts, on hosts made of network namespaces, the rank's host is
cut off from the network (CUT). After the fault the run must end in time, with the exit code of the fault
and with the right rank in its message; no process, shared memory or temporary file may be left; and
with --resume auto the run must continue, with a synchronous strategy to the weights of the run without
the fault.

    tests/faults/inject.py --count 300              # under `dtrain train --workers`
    tests/faults/inject.py --count 50 --mpirun      # the same ranks under a plain mpirun
    tests/faults/inject.py --count 20 --hosts PROGRAM  # on hosts whose links are cut (netns-cluster)
    tests/faults/inject.py --seed 815               # repeats one injection with its whole output
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
SYNCHRONOUS = [["strategy.name=allreduce"], ["strategy.name=wfbp"], ["strategy.name=naive"], ["strategy.name=single"],
               ["strategy.name=allreduce", "compress.name=topk", "compress.density=0.1"],
               ["strategy.name=ps_bsp", "strategy.servers=1"],
               ["strategy.name=ps_bsp", "strategy.placement=colocated"]]
# mgwfbp is synchronous, but its bits depend on its plan, which is made from measured times.
OTHERS = [["strategy.name=mgwfbp", "collective=ring"], ["strategy.name=ps_asp"], ["strategy.name=ps_asp", "compress.name=topk"],
                ["strategy.name=ps_ssp", "strategy.servers=2"],
                ["strategy.name=ps_ssp", "strategy.placement=colocated"], ["strategy.name=ps_dssp"],
                ["strategy.name=gssp", "strategy.servers=2"],
                ["strategy.name=gssp", "strategy.servers=2", "compress.name=gdtopk"],
                ["strategy.name=inhad", "cluster.per_node=3"],
                ["strategy.name=inhad", "cluster.per_node=1", "window=false"]]
# Number of ranks with a server and no worker.
SERVERS = {"ps_bsp": 1, "ps_asp": 1, "ps_ssp": 1, "ps_dssp": 1, "gssp": 2, "inhad": 1}
PHASES = ["MPI_Init", "starting", "loading data", "training", "evaluating", "writing a checkpoint", "ended"]
# The order of the phases in status records (framework/launch/status_record.h); writing the results is part of the end.
DOING = PHASES[1:] + ["ended", "measuring the model"]
KILLING = ["KILL", "SEGV", "ABRT", "BUS"]
# The signals on which harm/harm.cc acts.
BY_LIBRARY = {"EXIT": signal.SIGRTMIN + 1, "THROW": signal.SIGRTMIN + 2, "FSYNC": signal.SIGRTMIN + 3}
# Exit codes of the program (framework/cli/README.md) or of a shell.
EXPECTED = {"STOP": 7, "CUT": 7, "EXIT": 4, "THROW": 1, "FSYNC": 6, "FULL": 6,
            **{name: 128 + signal.Signals[f"SIG{name}"] for name in KILLING}}


@dataclasses.dataclass
class Fault:
    seed: int
    settings: list
    phase: str
    rank: int
    harm: str  # a key of EXPECTED
    delay: float  # seconds after the begin of the phase

    def __str__(self):
        return (f"seed {self.seed}: {' '.join(self.settings)}; {self.harm} for rank {self.rank}, "
                f"{self.phase} + {self.delay:.3f} s")


def ranks_of(settings):
    keys = dict(setting.split("=", 1) for setting in settings)
    name = keys["strategy.name"]
    if keys.get("strategy.placement") == "colocated" or name not in SERVERS:
        return WORKERS
    return WORKERS + int(keys.get("strategy.servers", SERVERS[name]))


def draw(seed, harms, per_host):
    draws = random.Random(seed)
    fitting = [one for one in SYNCHRONOUS + OTHERS if not (per_host == 1 and "cluster.per_node=3" in one)]
    settings = draws.choice(fitting)
    return Fault(seed, settings, draws.choice(PHASES), draws.randrange(ranks_of(settings)),
                 draws.choice(harms), draws.random() * draws.choice([0.002, 0.02, 0.2]))


class Run:
    """One run of the program in a folder of its own."""

    def __init__(self, options, folder, settings, harm=None):
        self.folder, self.ranks, self.harm = folder, ranks_of(settings), harm
        self.by_mpirun = options.mpirun or options.hosts
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.disk = folder / "disk"
        self.disk.mkdir()
        if harm == "FULL":
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "faults", self.disk], check=True)
        self.output = self.disk / "run"
        self.words = ["train", "--config", str(ROOT / "configs/runs/quickstart.yaml"), "--output",
                      str(self.output), "--resume", "auto"]
        for setting in ["data.name=digits", "data.train_samples=1500", "data.test_samples=500", "batch=30", "epochs=3",
                        f"cluster.workers={WORKERS}", "checkpoint.every_steps=20", "evaluate.every_steps=15",
                        f"stall_seconds={STALL}", "threads=1", *settings]:
            self.words += ["--set", setting]
        self.program = [options.dtrain]
        if options.hosts:
            self.program = [options.hosts, "mpirun", "--map-by", "node", "-n", str(self.ranks), options.dtrain]
        elif options.mpirun:
            # TMPDIR is a folder of this run, so that left() sees which files the run leaves.
            self.program = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(self.ranks), options.dtrain]

    def start(self, library=None):
        environment = dict(os.environ, TMPDIR=str(self.temporary))
        if library:
            environment["LD_PRELOAD"] = str(library)
        return subprocess.Popen([*self.program, *self.words], stdout=open(self.folder / "out", "a"),
                                stderr=open(self.folder / "err", "a"), env=environment, start_new_session=True)

    def remove(self):
        if self.harm == "FULL":
            subprocess.run(["umount", self.disk], check=True)
        shutil.rmtree(self.folder)

    def processes(self):
        """Returns {pid: rank} of all processes of the run; the rank is -1 for other processes."""
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
        """Returns the rank's phase and pid from its status record, or (None, None) before it has one."""
        for record in self.temporary.glob(f"dtrain-*/rank-{rank}"):
            try:
                valid, _, pid, doing = struct.unpack("<4i", record.read_bytes()[:16])
            except (OSError, struct.error):
                continue
            if valid:
                return DOING[doing], pid
        return None, None

    def await_phase(self, program, fault):
        """Returns the pid of the rank when it is in the phase, or None if the run ends before."""
        while program.poll() is None:
            phase, pid = self.doing(fault.rank)
            if pid and (phase == fault.phase or fault.phase in ("starting", "MPI_Init")):
                return pid
            if phase is None and (fault.phase == "MPI_Init" or self.by_mpirun):
                pids = [pid for pid, rank in self.processes().items() if rank == fault.rank]
                if pids:
                    return pids[0]
            time.sleep(0.001)
        return None

    def left(self, supervisor):
        """Returns an error for each file that the run has left behind."""
        shared = pathlib.Path("/dev/shm").glob(f"dtrain-{supervisor}-*")
        wrong = [f"left in TMPDIR: {entry.name}" for entry in self.temporary.iterdir()]
        return wrong + [f"left in /dev/shm: {entry.name}" for entry in shared]

    def hash(self):
        summary = self.output / "summary.json"
        return json.loads(summary.read_text())["weights_sha256"] if summary.exists() else None


class Disk:
    """The disk of a run's folder, which fill() fills to the last byte."""

    def __init__(self, folder):
        self.filler = folder / "filler"

    def fill(self):
        with open(self.filler, "wb", buffering=0) as out:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        out.write(bytes(size))
                except OSError:
                    pass

    def free(self):
        self.filler.unlink()


class Link:
    """The network link of a rank's host."""

    def __init__(self, hosts, rank):
        self.command = [hosts, "link", f"node{rank + 1}"]

    def cut(self):
        subprocess.run([*self.command, "down"], check=True)

    def mend(self):
        subprocess.run([*self.command, "up"], check=True)


def catches(pid, number):
    """Returns whether a process handles the signal: the library installs its handlers before main."""
    try:
        caught = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())
        return bool(int(caught[1], 16) >> (number - 1) & 1)
    except OSError:
        raise ProcessLookupError(pid)


def end_all(processes):
    for pid in processes:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def await_end(program, run, seconds, ranks_only):
    """Waits until the program (or, with ranks_only, every rank) has ended. Returns the seconds, None on a timeout."""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        if program.poll() is not None or (ranks_only and not any(rank >= 0 for rank in run.processes().values())):
            return time.monotonic() - begin
        time.sleep(0.02)
    return None


def inject(fault, run, undisturbed, options):
    """Returns the errors in how the run ended, and whether the fault happened at all."""
    wrong = []
    library = pathlib.Path(options.dtrain).parent / "tests/faults/libharm.so"
    program = run.start(library if fault.harm in BY_LIBRARY else None)
    pid = run.await_phase(program, fault)
    while fault.harm == "CUT" and program.poll() is None and "parameters," not in (run.folder / "err").read_text():
        time.sleep(0.001)  # wait for the end of MPI_Init, whose own time limit is ten minutes
    # A plain mpirun has no status records: the fault happens somewhere in the run.
    time.sleep(fault.delay * 20 if run.by_mpirun else fault.delay)
    disk, link = Disk(run.disk), Link(options.hosts, fault.rank)
    harmed = pid is not None
    try:
        if fault.harm == "FULL":
            disk.fill()
        elif fault.harm == "CUT":
            link.cut()
        elif harmed and fault.harm in BY_LIBRARY:
            while not catches(pid, BY_LIBRARY[fault.harm]):
                time.sleep(0.001)
            os.kill(pid, BY_LIBRARY[fault.harm])
        elif harmed:
            os.kill(pid, signal.Signals[f"SIG{fault.harm}"])
    except ProcessLookupError:
        harmed = False
    # Only the ranks' own watch detects a cut link; mpirun's daemons wait for their keep-alives.
    ranks_only = fault.harm == "CUT"
    # The fault may have an effect only later, at the last checkpoint or the last message.
    later = 60 if fault.harm in ("FULL", "FSYNC", "EXIT", "THROW") else 0
    limit = 10 + (STALL if EXPECTED[fault.harm] == 7 else 0)
    took = await_end(program, run, limit + later + 20, ranks_only)
    if took is None:
        wrong.append(f"it hangs: {run.processes()}")
    elif took > limit + later:
        wrong.append(f"it took {took:.1f} s to end")
    if took is None or ranks_only:
        end_all(run.processes())
        program.kill()
    code = program.wait()
    if fault.harm == "FULL":
        disk.free()
    elif fault.harm == "CUT":
        link.mend()
    said = (run.folder / "err").read_text()
    finished = code == 0 and run.hash() is not None
    if harmed and not finished:
        # mpirun returns the code of a rank that left; the supervisor translates it.
        expected = 9 if fault.harm == "EXIT" and run.by_mpirun else EXPECTED[fault.harm]
        # exit(3) destroys objects that other threads of the rank still use: one may crash before the process ends.
        crashed = fault.harm == "EXIT" and code == EXPECTED["SEGV"]
        if code != expected and not crashed and not ranks_only:
            wrong.append(f"exit code {code} instead of {expected}")
        # No rank is named in three cases: only mpirun knows which rank was killed after all had ended well; a disk
        # belongs to no rank; and ranks that are cut off from rank 0, and so from mpirun, cannot report it.
        named = re.search(rf"rank {fault.rank}\b|,1\],{fault.rank}\]", said)
        nameless = fault.phase == "ended" or fault.harm in ("FULL", "FSYNC") or (fault.harm, fault.rank) == ("CUT", 0)
        if not named and not nameless:
            wrong.append("the rank is not named")
    time.sleep(0.5)  # ranks that were asked to end need a moment
    orphans = run.processes()
    if orphans:
        wrong.append(f"orphans {orphans}")
        end_all(orphans)
    if not run.by_mpirun:
        wrong += run.left(program.pid)
    again = run.start()
    code = again.wait(120)
    if not options.hosts:
        # A plain mpirun has removed its own files by now; dtrain does not remove them.
        wrong += run.left(again.pid)
    if code != 0:
        wrong.append(f"--resume auto ends with {code}")
    elif undisturbed and run.hash() != undisturbed:
        wrong.append(f"resumed to {run.hash()} instead of {undisturbed}")
    return wrong, harmed and not finished


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="injections (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="only this seed; its folder is kept")
    parser.add_argument("--harms", type=lambda words: words.split(","), help="only these faults: KILL,STOP,...")
    parser.add_argument("--mpirun", action="store_true", help="start the ranks with a plain mpirun")
    parser.add_argument("--hosts", help="program that makes hosts for mpirun; faults cut their links")
    parser.add_argument("--dtrain", default=str(ROOT / "build/release/dtrain"), help="the program (default: %(default)s)")
    options = parser.parse_args()
    harms = options.harms
    if not harms:
        harms = ["CUT"] if options.hosts else [harm for harm in EXPECTED if harm != "CUT"]
        if os.geteuid() != 0 and "FULL" in harms:
            harms.remove("FULL")
            print("FULL is left out: only root can mount a small disk")
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.count)
    if options.hosts:
        # One host for each rank, so that a single rank can be cut off.
        subprocess.run([options.hosts, "up", str(WORKERS + max(SERVERS.values()))], check=True)
    try:
        failed, harmed = inject_all(seeds, harms, options)
    finally:
        if options.hosts:
            subprocess.run([options.hosts, "down"], check=True)
    sys.exit(1 if failed or not harmed else 0)


def inject_all(seeds, harms, options):
    undisturbed, failed, harmed = {}, [], 0
    for seed in seeds:
        fault = draw(seed, harms, per_host=1 if options.hosts else None)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
        synchronous = fault.settings in SYNCHRONOUS
        key = " ".join(fault.settings)
        if synchronous and key not in undisturbed:
            alone = Run(options, folder / "undisturbed", fault.settings)
            if alone.start().wait(120) != 0:
                sys.exit(f"{key}: does not run at all; see {folder}")
            undisturbed[key] = alone.hash()
        run = Run(options, folder / "harmed", fault.settings, fault.harm)
        wrong, was_harmed = inject(fault, run, undisturbed.get(key) if synchronous else None, options)
        harmed += was_harmed
        if wrong:
            failed.append(seed)
            reported = re.findall(r"^.* (?:error|warning) .*$", (run.folder / "err").read_text(), re.MULTILINE)
            print(f"{fault}: {'; '.join(wrong)}", *reported, sep="\n    ", flush=True)
        if options.seed is None:
            run.remove()
            shutil.rmtree(folder)
        else:
            print(f"{fault}: {'harmed' if was_harmed else 'it had ended before'}; see {folder}")
    print(f"{len(seeds)} injections, {harmed} of them before the run's end: {len(failed)} ended wrongly"
          f"{': seeds ' + ', '.join(map(str, failed)) if failed else ''}")
    return failed, harmed


if __name__ == "__main__":
    main()
