#!/usr/bin/env python3
"""Random mixes of models in virtual time: is each model served as with its share of the devices alone, and are all
together served as by the best other policy?

A mix is drawn from its seed: 1 to 8 devices of 1 to 4 lanes, and 2 to 8 models with an EXEC of 1 to 400 ms for one
row and an SLO of 5 ms to 5 s, which together ask for a fifth to twice what the devices can do one row at a time; of
that each has a part of one to a hundred. `foliot` and its rivals play the same requests.

Each model that asks for less than its share is played alone, too, on slower devices that are together as fast as its
share. It is below its share if it misses more than it does alone, by two in a hundred of its requests and three
standard deviations of that. An EXEC that cannot be interrupted keeps others waiting under every policy, so models
whose SLO has time for three of the longest parts of any other are told from those whose SLO has not. The exit code is
4 if a goal is missed.

  bench/mixes.py                        # 200 mixes of a fresh seed, into docs/EXPERIMENTS.md
  bench/mixes.py --first 7000 --count 20 --no-document
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from promise import DOCUMENT, RIVALS, percent, play, profile, workload

from figure import machine, say
from foliot_tools.seeds import fresh_seed

SIZES = (1, 2, 4, 8)
BELOW_RIVAL, BELOW_SHARE = 0.5, 0.02  # points; of all requests
REQUESTS = 25_000  # of a mix, if that many come within LONGEST
SHORTEST, LONGEST, WARM_UP = 40, 400, 5  # s
OPERATOR_MS = 2  # an EXEC is cut at operators; parts take this or one operator


@dataclass
class Model:
    name: str
    exec_ms: float  # of one row
    slo_ms: float
    rate: float
    rows_cost: float  # of each further row of a batch, beside the first
    operators: int  # at which EXECs can be cut

    def demand(self):
        """Devices, one row at a time."""
        return self.rate * self.exec_ms / 1000

    def part_ms(self):
        """The least that others wait for once a batch of one row runs."""
        return max(self.exec_ms / self.operators, min(self.exec_ms, OPERATOR_MS))

    def profile(self, slower=1.0):
        execs = [self.exec_ms * slower * (1 + self.rows_cost * (rows - 1)) for rows in SIZES]
        return profile(self.name, SIZES, execs, self.operators)


@dataclass
class Mix:
    seed: int
    devices: int
    lanes: int
    models: list

    def shares(self):
        """Of the devices, by model: what some do not ask for is left to the others."""
        left, shares = self.devices, {}
        for position, model in enumerate(sorted(self.models, key=Model.demand)):
            shares[model.name] = left / (len(self.models) - position)
            left -= min(shares[model.name], model.demand())
        return shares

    def seconds(self):
        return min(max(REQUESTS / sum(model.rate for model in self.models), SHORTEST), LONGEST)

    def text(self, models, devices, slower=1.0):
        return workload([f'name = "{m.name}"\nprofile = "{m.name}"\nslo = "{m.slo_ms:.4f}ms"' for m in models],
                        [f'name = "{m.name}"\nmodels = ["{m.name}"]\nrate = {m.rate:.5f}' for m in models],
                        f"devices = {devices}\nlanes = {self.lanes}\ncontexts = 2",
                        "".join(m.profile(slower) for m in models), duration=f"{self.seconds():.0f}s", warm_up=f"{WARM_UP}s")


def draw(seed):
    draws = random.Random(seed)

    def between(least, most):
        return least * (most / least) ** draws.random()
    devices, lanes = draws.randint(1, 8), draws.randint(1, 4)
    parts = [between(0.01, 1) for _ in range(draws.randint(2, 8))]
    load = between(0.2, 2) * devices
    models = []
    for position, part in enumerate(parts):
        exec_ms = between(1, 400)
        models.append(Model(name=f"m{position}", exec_ms=exec_ms, slo_ms=max(between(5, 5000), 2 * exec_ms + 3),
                            rate=min(load * part / sum(parts) / (exec_ms / 1000), 1500), rows_cost=draws.random(),
                            operators=int(between(1, 200))))
    return Mix(seed, devices, lanes, models)


def compare(mix):
    """What became of the mix: attainment of all by policy, and each model beside its share."""
    reports = play(mix.text(mix.models, mix.devices), ["foliot", *RIVALS], mix.seed)
    groups = {group["name"]: group for group in reports["foliot"]["groups"]}
    shares = mix.shares()
    models = []
    for model in mix.models:
        share, group = shares[model.name], groups[model.name]
        line = {**asdict(model), "share": share, "demand": model.demand(), "offered": group["offered"],
                "here": percent(reports["foliot"], model.name)}
        if model.demand() < share:
            devices = math.ceil(share)
            alone = play(mix.text([model], devices, devices / share), ["foliot"], mix.seed)["foliot"]
            line["alone"] = percent(alone)
            line["time_for_others"] = all(other is model or model.slo_ms > model.exec_ms + 3 * other.part_ms()
                                          for other in mix.models)
            beyond = (line["alone"] - line["here"]) / 100 * group["offered"]
            expected = BELOW_SHARE * group["offered"]
            line["below"] = beyond > expected + 3 * math.sqrt(expected)
        models.append(line)
    return {"seed": mix.seed, "devices": mix.devices, "lanes": mix.lanes, "load": sum(map(Model.demand, mix.models)) / mix.devices,
            "seconds": mix.seconds(), "all": {policy: percent(reports[policy]) for policy in ("foliot", *RIVALS)},
            "models": models}


def summary(results):
    """Lines of a table, and whether both goals are met."""
    within = [model for result in results for model in result["models"] if "alone" in model]
    lines, met = [], True
    able = [model for model in within if model["time_for_others"]]
    modest = [model for model in able if 2 * model["demand"] <= model["share"]]
    for name, of in (("half of it at most, with time for parts of others", modest),
                     ("more than half of it, with time for parts of others", [m for m in able if m not in modest]),
                     ("without time for parts of others", [m for m in within if m not in able])):
        below = [model for model in of if model["below"]]
        worst = max((model["alone"] - model["here"] for model in below), default=0)
        met = met and not below
        lines.append(f"| models that ask for less than their share ({name}): more than 2 points below it | none | {len(below)} of {len(of)}"
                     f"{f', by {worst:.1f} points at most' if below else ''} | {'**missed**' if below else 'met'} |")
    behind = [(max(of for policy, of in result["all"].items() if policy != "foliot") - result["all"]["foliot"], result["seed"])
              for result in results]
    far = [(points, seed) for points, seed in behind if points > BELOW_RIVAL]
    worst = f", by {max(far)[0]:.1f} points at most" if far else ""
    lines.append(f"| mixes: more than {BELOW_RIVAL} points behind the best rival | none | {len(far)} of {len(results)}{worst} | "
                 f"{'**missed**' if far else 'met'} |")
    means = {policy: statistics.fmean(result["all"][policy] for result in results) for policy in results[0]["all"]}
    best = statistics.fmean(max(of for policy, of in result["all"].items() if policy != "foliot") for result in results)
    lines.append(f"| in time, %, mean of all mixes | - | foliot {means.pop('foliot'):.2f}; the best rival of each {best:.2f}; "
                 f"{', '.join(f'{policy} {mean:.2f}' for policy, mean in means.items())} | |")
    return lines, met and not far


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, help="seed of the first mix [fresh]")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time [%(default)s]")
    parser.add_argument("--output", type=pathlib.Path, help="a file to which a line of JSON is added for each mix")
    parser.add_argument("--summary", type=pathlib.Path, nargs="+", help="play nothing: sum up these files")
    parser.add_argument("--no-document", action="store_true", help="leave docs/EXPERIMENTS.md alone")
    options = parser.parse_args()
    results = [json.loads(line) for path in options.summary or () for line in path.read_text().splitlines()]
    if not options.summary:
        first = fresh_seed() if options.first is None else options.first
        with ThreadPoolExecutor(options.jobs) as jobs:
            for result in jobs.map(compare, map(draw, range(first, first + options.count))):
                results.append(result)
                best = max((of, policy) for policy, of in result["all"].items() if policy != "foliot")
                below = [model["name"] for model in result["models"] if model.get("below")]
                say(f"seed {result['seed']}: foliot {result['all']['foliot']:.2f}, {best[1]} {best[0]:.2f}; below: {below}")
                if options.output:
                    with options.output.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(result) + "\n")
    lines, met = summary(results)
    seeds = sorted(result["seed"] for result in results)
    text = "\n".join([f"`bench/mixes.py --first {seeds[0]} --count {len(seeds)}`: {machine()}", "",
                      "| what | goal | here | |", "| --- | --- | --- | --- |", *lines])
    print(f"\n{text}", flush=True)
    if not options.no_document:
        begin, end = "<!-- begin promise mixes -->", "<!-- end promise mixes -->"
        before, rest = DOCUMENT.read_text().split(begin)
        DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")
    return 0 if met else 4


if __name__ == "__main__":
    sys.exit(main())
