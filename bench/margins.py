#!/usr/bin/env python3
"""What the measured margin costs beside the best fixed one: `foliot simulate` with margins from
--margins, each the same for every device and all the time, and with the default, which follows
what is measured; for SLOs of some milliseconds and for links of 0 to 5 ms with jitter. For the
links also what the rival policies attain, all with the default.

  bench/margins.py                       # all, on seeds that nothing was tuned by
  bench/margins.py --only links --duration 20s

Share of requests answered in time in per cent, and promises broken (answers that came late, or
were sent to a device and had to be refused) in 100,000."""

import argparse
import json
import pathlib
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from foliot_tools.server import foliot_binary

MARGINS = ("50us", "100us", "150us", "200us", "300us", "500us", "1ms", "3ms")
LINK_MARGINS = MARGINS + ("6ms", "12ms", "25ms", "50ms")
SEEDS = (101, 102, 103)
# name, profile, models, SLO, requests per second
TIGHT = (
    ("SLO 4 ms", "resnet18", 10, "4ms", 350),
    ("SLO 7 ms", "resnet50", 10, "7ms", 200),
    ("SLO 13 ms", "resnet50", 10, "13ms", 300),
    ("SLO 13 ms, too much", "resnet50", 10, "13ms", 500),
)
# name, link, jitter
LINKS = (
    ("link 0", "0us", "0us"),
    ("link 1 ms", "1ms", "200us"),
    ("link 2 ms", "2ms", "500us"),
    ("link 5 ms", "5ms", "1ms"),
    ("link 5 ms, jitter 3 ms", "5ms", "3ms"),
)
RIVALS = ("foliot", "clockwork", "flex")


def experiment(profile, count, slo, rate, duration, cluster):
    return f"""
duration = "{duration}"
warm_up = "5s"
preload = true
[cluster]
{cluster}
[[models]]
profile = "{profile}"
count = {count}
slo = "{slo}"
[[streams]]
rate = {rate}
"""


def played(text, policies, seed):
    """{policy: (offered, good, mispredicted)}"""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "margins.toml"
        path.write_text(text, encoding="utf-8")
        subprocess.run([foliot_binary(), "simulate", path, "--scheduler", ",".join(policies), "--seed", str(seed),
                        "--output", folder], check=True, capture_output=True, text=True)
        results = {}
        for policy in policies:
            report = json.loads((pathlib.Path(folder) / f"{policy}.json").read_text(encoding="utf-8"))["all"]
            results[policy] = (report["offered"], report["good"], report["mispredicted"])
        return results


def over_seeds(options, settings, policies, cluster):
    """{policy: (attained %, broken promises in 100,000)}"""
    text = experiment(*settings, options.duration, cluster)
    runs = [played(text, policies, seed) for seed in options.seeds]
    results = {}
    for policy in policies:
        offered, good, broken = (sum(column) for column in zip(*(run[policy] for run in runs)))
        results[policy] = (100 * good / offered, 1e5 * broken / max(good + broken, 1))
    return results


def sweep(options, jobs, name, settings, cluster, margins, rivals):
    def fixed(margin):
        return over_seeds(options, settings, ("foliot",), f'{cluster}\nmargin_fixed = "{margin}"')["foliot"]

    attained = list(jobs.map(fixed, margins))
    default = over_seeds(options, settings, rivals, cluster)
    best = max(attained)
    return {"setting": name, "default": default["foliot"], "best": best,
            "best margin": margins[attained.index(best)], "fixed": dict(zip(margins, attained)),
            "rivals": {policy: default[policy] for policy in rivals if policy != "foliot"}}


def show(row):
    line = (f"{row['setting']:24} {row['default'][0]:7.2f} {row['default'][1]:9.1f}   "
            f"{row['best'][0]:7.2f} {row['best'][1]:9.1f}  at {row['best margin']:>6}")
    print(line + "".join(f"   {policy} {result[0]:6.2f}" for policy, result in row["rivals"].items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("slo", "links"))
    parser.add_argument("--duration", default="60s", help="simulated, 5 s of it not counted [%(default)s]")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--margins", nargs="+", help="instead of those that are swept")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time [%(default)s]")
    parser.add_argument("--json", type=pathlib.Path, help="all figures, to this file")
    options = parser.parse_args()
    print(f"{'':24} {'default':>7} {'broken':>9}   {'best':>7} {'broken':>9}")
    rows = []
    with ThreadPoolExecutor(options.jobs) as jobs:
        for name, *settings in TIGHT if options.only != "links" else ():
            rows.append(sweep(options, jobs, name, settings, "devices = 1", options.margins or MARGINS, ("foliot",)))
            show(rows[-1])
        for name, link, jitter in LINKS if options.only != "slo" else ():
            for slo, rate in (("30ms", 300), ("100ms", 600)):
                cluster = f'devices = 1\nlink = "{link}"\nlink_jitter = "{jitter}"'
                rows.append(sweep(options, jobs, f"{name}, SLO {slo}", ("resnet50", 15, slo, rate), cluster,
                                  options.margins or LINK_MARGINS, RIVALS))
                show(rows[-1])
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
