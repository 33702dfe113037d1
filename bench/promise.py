#!/usr/bin/env python3
"""What the policy promises, in virtual time, on workloads that nothing was tuned for: when refusals come, whether a
slow model starves, durations with tails, batches dearer than their rows, memory that is short, faults, and a trace
of functions. Each cell is the mean over --seeds with half the width of its 95 % interval (Student's t), beside what
it is held to; the exit code is 4 if one is missed.

  bench/promise.py                     # all rows, into docs/EXPERIMENTS.md
  bench/promise.py --rows slow tails --seeds 1 2 3 --no-document
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from foliot_tools.interval import Interval
from foliot_tools.server import ROOT, foliot_binary

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402

SEEDS = (401, 402, 403, 404, 405)
RIVALS = ("clockwork", "edf", "sjf", "flex", "deferred", "adaptive_batching")
DOCUMENT = ROOT / "docs/EXPERIMENTS.md"


def play(text, policies, seed, *flags):
    """{policy: report}"""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "promise.toml"
        path.write_text(text, encoding="utf-8")
        run = subprocess.run([foliot_binary(), "simulate", path, "--scheduler", ",".join(policies), "--seed", str(seed),
                              "--output", folder, *flags], check=True, capture_output=True, text=True)
        reports = {policy: json.loads((pathlib.Path(folder) / f"{policy}.json").read_text()) for policy in policies}
    for line in run.stdout.splitlines():
        if line.startswith("clairvoyant bound"):
            reports["bound"] = float(line.split()[2])
    return reports


def percent(report, group=None):
    of = report["all"] if group is None else next(g for g in report["groups"] if g["name"] == group)
    return 100 * of["attainment"]


def workload(models, streams, cluster="devices = 1", profiles="", noise="", duration="30s", warm_up="5s", preload="true"):
    text = f'duration = "{duration}"\nwarm_up = "{warm_up}"\npreload = {preload}\n[cluster]\n{cluster}\n'
    if noise:
        text += f"[noise]\n{noise}\n"
    return text + profiles + "".join(f"[[models]]\n{m}\n" for m in models) + "".join(f"[[streams]]\n{s}\n" for s in streams)


def profile(name, sizes, execs, operators=1):
    return (f'[[profiles]]\nname = "{name}"\nweights = "1MB"\nload = "1ms"\noperators = {operators}\n'
            f'batch_sizes = {list(sizes)}\nexec = [{", ".join(f"{chr(34)}{ms:.4f}ms{chr(34)}" for ms in execs)}]\n')


# ---- The rows. Each yields cells: (setting, function of a seed to a tuple of figures, columns, verdict of the means) ----

def refusals(_):
    """When refusals come (copies of ResNet-50 on two devices)"""
    columns = ("in time, %", "p50 of refusals", "p90", "admitted and missed, %")
    for count, pages in ((1, 0), (12, 0), (12, 8), (200, 0), (200, 100)):
        for slo in (25, 100, 500):
            for load in (1.2, 1.7, 3):
                cache = f'page_cache = "{16 * 7 * pages}MiB"' if pages else 'page_cache = "32GiB"'
                text = workload([f'name = "m_"\nprofile = "resnet50"\ncount = {count}\nslo = "{slo}ms"'],
                                [f"rate = {2042 * load:.0f}"], f"devices = 2\n{cache}", duration="8s", warm_up="2s")

                def cell(seed, text=text):
                    report = play(text, ["foliot"], seed)["foliot"]
                    told = report["refused_after_share_of_time"]
                    return (percent(report), told["p50"], told["p90"],
                            100 * told["admitted_missed"] / max(1, told["admitted"]))
                name = f"{count} models{f', {pages} in memory' if pages else ''}, {slo} ms, x {load:g}"
                yield name, cell, columns, lambda m: m[1] <= 0.05 and m[2] <= 0.2 and m[3] <= 1


def slow(_):
    """A slow model beside small ones (four ResNet-18 with 30 ms, 200/s together; it has 2 s, and one request a second)"""
    for operators in (100, 1):
        for exec_ms in (45, 60, 90, 100, 200, 400):
            rate, small = (1, 200) if exec_ms < 400 else (0.5, 100)
            text = workload(['name = "slow"\nprofile = "slow"\nslo = "2s"',
                             'name = "s_"\nprofile = "resnet18"\ncount = 4\nslo = "30ms"'],
                            [f'models = ["slow"]\nrate = {rate}', f'models = ["s_"]\nrate = {small}'],
                            "devices = 1\ncontexts = 2",
                            profile("slow", (1, 2, 4), (exec_ms, 1.9 * exec_ms, 3.7 * exec_ms), operators),
                            duration="65s")

            def cell(seed, text=text):
                reports = play(text, ["foliot", "clockwork", "edf"], seed)
                own, *others = (tuple(percent(reports[p], g) for g in ("slow", "s_")) for p in reports)
                best = max(others, key=sum)
                return *own, *best
            columns = ("slow, %", "small, %", "slow, best of clockwork and edf", "small, the same")
            cut = operators > 1
            yield (f"EXEC {exec_ms} ms, {'cut' if cut else 'not cut'}", cell, columns,
                   (lambda m: m[0] >= 99 and m[1] >= 99) if cut else (lambda m: m[0] >= m[2] - 1 and m[1] >= m[3] - 1))


def tails(draws):
    """Durations with tails (a container of which 64 rows take little longer than one, 20 ms)"""
    sizes = (1, 2, 4, 8, 16, 32, 64)
    forest = profile("forest", sizes, [2.4 + 0.005 * rows for rows in sizes])
    for _ in range(20):
        probability, factor = 0.01 * 20 ** draws.random(), 2 * 5 ** draws.random()
        rate = 1000 * 12 ** draws.random()

        def text(margin=None, probability=probability, factor=factor, rate=rate):
            cluster = 'devices = 1\nlink = "60us"\nlink_jitter = "100us"' + (f'\nmargin_fixed = "{margin}"' if margin else "")
            noise = (f'exec_deviation = 0.1\noutlier_probability = {probability}\noutlier_factor = {factor}\ncopy = "1us"')
            return workload(['profile = "forest"\nslo = "20ms"'], [f'models = ["forest"]\nrate = {rate}'], cluster, forest,
                            noise, "14s", "4s")

        def cell(seed, text=text):
            reports = play(text(), ["foliot", "adaptive_batching"], seed)
            fixed = max(percent(play(text(m), ["foliot"], seed)["foliot"]) for m in ("200us", "500us", "2ms", "6ms"))
            return percent(reports["foliot"]), fixed, percent(reports["adaptive_batching"])
        yield (f"{100 * probability:.1f} % take {factor:.1f} times as long, {rate:,.0f}/s", cell,
               ("in time, %", "best fixed margin", "AIMD"), lambda m: m[0] >= m[1] - 1 and m[0] >= m[2] - 0.1)


def beside_rivals(name, text):
    def cell(seed):
        reports = play(text, ["foliot", *RIVALS], seed)
        return percent(reports["foliot"]), max(percent(reports[p]) for p in RIVALS)
    return name, cell, ("in time, %", "best rival"), lambda m: m[0] >= m[1] - 0.3


def dear(draws):
    """Batches dearer than their rows (two devices)"""
    for _ in range(10):
        power, slo = 1.05 + 0.35 * draws.random(), 15 * 10 ** draws.random()
        execs = [2 * rows ** power for rows in (1, 2, 4, 8)]
        rate = 2 * 1000 / execs[0] * (0.8 + 0.5 * draws.random())
        yield beside_rivals(f"{', '.join(f'{e:.1f}' for e in execs)} ms, {slo:.0f} ms, {rate:.0f}/s", workload(
            [f'profile = "p"\nslo = "{slo:.2f}ms"'], [f"rate = {rate:.1f}"], "devices = 2",
            profile("p", (1, 2, 4, 8), execs), duration="14s", warm_up="2s"))


def memory(draws):
    """Memory for some of 60 ResNet-152 (two devices)"""
    for _ in range(10):
        cache, rate = 4 * 3 ** draws.random(), 500 * 2.4 ** draws.random()
        slo, zipf = 100 * 4 ** draws.random(), 1.2 * draws.random()
        yield beside_rivals(f"{cache:.1f} GB, {slo:.0f} ms, {rate:.0f}/s, Zipf {zipf:.1f}", workload(
            [f'name = "r"\nprofile = "resnet152"\ncount = 60\nslo = "{slo:.1f}ms"'], [f"rate = {rate:.0f}\nzipf = {zipf:.2f}"],
            f'devices = 2\npage_cache = "{cache:.2f}GB"', duration="20s"))


def faults(_):
    """Faults (examples/simulate/faults.toml, sixty drawn with each seed)"""
    text = (ROOT / "examples/simulate/faults.toml").read_text()

    def cell(seed):
        sums = {"foliot": [0, 0], "edf": [0, 0]}
        for drawn in range(seed * 1000, seed * 1000 + 60):
            for policy, report in play(text, list(sums), drawn).items():
                sums[policy][0] += report["all"]["good"]
                sums[policy][1] += report["all"]["offered"]
        return tuple(100 * good / offered for good, offered in sums.values())
    yield "two of four devices", cell, ("in time, %", "edf"), lambda m: m[0] >= m[1] - 0.3


def trace(_):
    """A trace like Azure's (672 models, four V100, 100 ms): requests of a million that were missed"""
    names = ("densenet169", "inceptionv3", "mobile_pose_mobilenetv3", "resnet18", "resnet50", "resnet152")
    for busy, rate, preload in ((45, 620, "true"), (70, 960, "true"), (45, 620, "false"), (70, 960, "false")):
        def cell(seed, rate=rate, preload=preload):
            text = workload([f'name = "{n}_"\nprofile = "{n}"\ncount = 112\nslo = "100ms"' for n in names],
                            [f'[streams.trace]\nkind = "azure-like"\nfunctions = 7056\nrate = {rate}\nseed = {seed}\nfrom = "8h"'],
                            "devices = 4", duration="60s", warm_up="20s", preload=preload)
            reports = play(text, ["foliot", "clockwork", "edf"], seed, "--bound")
            report = reports["foliot"]
            bound = max(0.0, 1 - reports["bound"] / report["offered_per_second"])
            return (1e6 * (1 - report["all"]["attainment"]), 1e6 * bound, 1e6 * (1 - reports["clockwork"]["all"]["attainment"]),
                    100 * report["device_busy"])
        yield (f"{busy} % busy, {'' if preload == 'true' else 'not '}loaded before", cell, ("missed", "that no policy can avoid", "clockwork", "busy, %"),
               lambda m: m[0] <= 1.5 * m[1])


ROWS = {row.__name__: row for row in (refusals, slow, tails, dear, memory, faults, trace)}


def run(row, options, jobs):
    """The lines of the row's table, and how many are missed of how many."""
    cells = list(row(random.Random(options.draw)))
    futures = [[jobs.submit(cell, seed) for seed in options.seeds] for _, cell, _, _ in cells]
    lines, missed = [], 0
    for (name, _, columns, verdict), seeds in zip(cells, futures):
        figures = [Interval(values) for values in zip(*(future.result() for future in seeds))]
        met = verdict(figures)
        missed += not met
        digits = [2 if "refus" in column or column == "p90" else 1 for column in columns]
        lines.append([name, *(f"{figure:.{d}f}" for figure, d in zip(figures, digits)), "met" if met else "**missed**"])
        say(" | ".join(lines[-1]))
    return [["setting", *cells[0][2], "goal"], *lines], missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--draw", type=int, default=401, help="seed of the settings that are drawn [%(default)s]")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time [%(default)s]")
    parser.add_argument("--no-document", action="store_true", help="leave docs/EXPERIMENTS.md alone")
    options = parser.parse_args()
    all_missed = 0
    for name in options.rows:
        with ThreadPoolExecutor(options.jobs) as jobs:
            (head, *lines), missed = run(ROWS[name], options, jobs)
        all_missed += missed
        title = f"{ROWS[name].__doc__}: {len(lines) - missed} of {len(lines)} met"
        table = "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])
        print(f"\n{title}\n\n{table}", flush=True)
        if not options.no_document:
            begin, end = f"<!-- begin promise {name} -->", f"<!-- end promise {name} -->"
            before, rest = DOCUMENT.read_text().split(begin)
            _, after = rest.split(end)
            text = f"**{title}**; seeds {' '.join(map(str, options.seeds))}; {machine()}\n\n{table}"
            DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    return 4 if all_missed else 0


if __name__ == "__main__":
    sys.exit(main())
