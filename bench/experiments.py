#!/usr/bin/env python3
"""Runs the experiments of `foliot experiment`, draws them, and writes what was found
into docs/EXPERIMENTS.md, and those of InferLine into docs/INFERLINE.md, between the marks of
each experiment."""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import subprocess
import sys

from foliot_tools.interval import merged_rows, merged_text
from foliot_tools.plot_experiment import distinct, plot_experiment, select
from foliot_tools.server import ROOT, foliot_binary

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402

NAMES = ("figure_5", "figure_6", "figure_7", "figure_8", "figure_9", "memory_starved", "overload", "bounds",
         "overlap", "overlap_cluster", "lanes_64", "inferline_plan", "inferline_tune", "inferline_estimate",
         "inferline_attribution", "inferline_ds2", "inferline_shapes")
GOAL_MISSED = 4  # exit code
PICTURES = ROOT / "docs/experiments"
# Columns that tell one row of a table from the others, whatever the seed.
IDENTITY = ("policy", "group", "slo_ms", "models", "rate", "scenario", "shape", "arrivals", "pages", "zipf", "load", "system",
            "pipeline", "variation", "trace", "late", "active_models", "what", "direction", "cores", "begin_s", "minute")
# Where a column of the same name is what was found.
FOUND = {"capacity": "rate", "series": "active_models"}


def document_of(name):
    return ROOT / ("docs/INFERLINE.md" if name.startswith("inferline") else "docs/EXPERIMENTS.md")


def folder_of(output, seed):
    return output / f"seed_{seed}"


def run(name, seed, output, flags):
    """Runs one experiment with one seed; what ran where is kept beside its data."""
    folder = folder_of(output, seed)
    say(f"{name} begins with seed {seed}")
    ended = subprocess.run([foliot_binary(), "experiment", name, "--seed", str(seed), "--output", folder, *flags],
                           stdout=subprocess.DEVNULL, check=False)
    if ended.returncode not in (0, GOAL_MISSED):
        raise RuntimeError(f"foliot experiment {name} --seed {seed} ended with {ended.returncode}")
    (folder / f"{name}.run.json").write_text(json.dumps({"machine": machine()}))
    say(f"{name} is done with seed {seed}")


def merged(name, seeds, output):
    """What was found with all seeds, as one, which is also written to `output`."""
    every = [json.loads((folder_of(output, seed) / f"{name}.json").read_text()) for seed in seeds]
    result = {"experiment": name, "findings": [], "tables": {}, "real_seconds": sum(each["real_seconds"] for each in every)}
    for findings in zip(*(each["findings"] for each in every), strict=True):
        met = [finding.get("met") for finding in findings]
        result["findings"].append(findings[0] | {"here": merged_text([finding["here"] for finding in findings]), "met": met})
    for table_name in every[0]["tables"]:
        identity = [column for column in IDENTITY if column != FOUND.get(table_name)]
        result["tables"][table_name] = merged_rows([each["tables"][table_name] for each in every], identity)
    (output / f"{name}.json").write_text(json.dumps(result))
    return result


def verdict(met):
    """Of a goal, by seed."""
    if None in met:
        return ""
    count = sum(met)
    return "met" if count == len(met) else f"**missed** in {len(met) - count} of {len(met)}"


def table(head, lines):
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def pivot(rows, columns, value, corner="policy"):
    """A line per policy and a column per distinct columns(row); the best in bold."""
    heads = list(dict.fromkeys(columns(row) for row in rows))
    values = {(row["policy"], columns(row)): value(row) for row in rows}
    best = {head: max(number for (_, column), number in values.items() if column == head) for head in heads}

    def text(number, head):
        return f"{number:,.0f}" if best[head] > 100 else f"{number:.1f}"

    def cell(policy, head):
        shown = text(values[policy, head], head)
        is_best = text(float(values[policy, head]), head) == text(float(best[head]), head)
        return f"**{shown}**" if is_best else shown

    lines = [[policy, *(cell(policy, head) for head in heads)] for policy in distinct(rows, "policy")]
    return table([corner, *heads], lines)


def with_limits(rows, columns, value, limit):
    """The same with the fluid estimate and the clairvoyant bound, where there are any, as
    the last lines; `limit` is of a row and a column of it."""
    text = pivot(rows, columns, value)
    for name, column in (("fluid estimate", "estimate"), ("clairvoyant bound", "bound")):
        limits = {columns(row): limit(row, column) if row.get(column) is not None else None for row in rows}
        if all(number is None for number in limits.values()):
            continue
        cells = ["-" if number is None else f"{number:,.0f}" if number > 100 else f"{number:.1f}"
                 for number in limits.values()]
        text += "\n| " + " | ".join([name, *cells]) + " |"
    return text


def percent(row):
    return row["attainment"] * 100


def percent_limit(row, column):
    return min(100, row[column] / row["offered_rate"] * 100)


def rate_limit(row, column):
    return row[column]


def compared_systems(rows, head):
    """A line per trace and a column per system: attainment and dollars."""
    systems = distinct(rows, "system")

    def cell(trace, system):
        row = select(rows, trace=trace, system=system)
        return f"{percent(row[0]):.2f} %, {row[0]['dollars']:.2f}" if row else "-"

    return table([head, *systems], [[trace, *(cell(trace, system) for system in systems)]
                                    for trace in distinct(rows, "trace")])


def inferline_tables(name, tables):
    rows = tables["results"]
    if name == "inferline_plan":
        cells = select(rows, slo_ms=150)
        rates = distinct(cells, "rate")
        for rival in ("cg-mean", "cg-peak", "cg-peak one batch"):
            def cost(system, pipeline, variation, rate):
                return select(cells, system=system, pipeline=pipeline, variation=variation, rate=rate)[0]
            lines = []
            for pipeline in distinct(cells, "pipeline"):
                for variation in distinct(cells, "variation"):
                    line = [f"{pipeline}, CV {variation ** 2:g}"]
                    for rate in rates:
                        plan, other = (cost(system, pipeline, variation, rate) for system in ("inferline", rival))
                        line.append(f"{other['cost'] / plan['cost']:.1f} ({percent(plan):.1f}, {percent(other):.1f})")
                    lines.append(line)
            yield (f"Cost of {rival} over the plan's, SLO 150 ms (attainment of the plan and of {rival}, %)",
                   table(["pipeline", *(f"{rate:g} q/s" for rate in rates)], lines))
    if name == "inferline_estimate":
        yield "P99, ms; simulated under inferline and foliot", table(
            ["pipeline", "SLO, ms", "estimated", "simulated, inferline", "error, %", "simulated, foliot"],
            [[row["pipeline"], f"{row['slo_ms']:g}", f"{row['estimated_p99_ms']:.1f}", f"{row['simulated_p99_ms']:.1f}",
              f"{100 * row['error']:.1f}",
              f"{select(rows, pipeline=row['pipeline'], slo_ms=row['slo_ms'], policy='foliot')[0]['simulated_p99_ms']:.1f}"]
             for row in select(rows, policy="inferline")])
    if name == "inferline_shapes":
        shapes = tables["shapes"]
        systems = distinct(shapes, "system")
        lines = []
        for pipeline in distinct(shapes, "pipeline"):
            for trace in distinct(shapes, "trace"):
                found = [select(shapes, pipeline=pipeline, trace=trace, system=system)[0] for system in systems]
                lines.append([f"{pipeline}, {trace}", *(f"{percent(row):.2f} %, {row['of_capacity']:.2f}, {row['changes']:.0f}"
                                                        for row in found)])
        yield "Attainment, cost in that which capacity needs, changes", table(["arrivals", *systems], lines)
    if name in ("inferline_tune", "inferline_attribution", "inferline_ds2"):
        for late in distinct(rows, "late"):
            yield f"Attainment and dollars, late queries {late}", compared_systems(select(rows, late=late), "trace")


def tables_of(name, tables):
    """The tables of one experiment: pairs of a title and Markdown."""
    if name.startswith("inferline"):
        yield from inferline_tables(name, tables)
        return
    rows = select(tables["results"], group="all")
    if name == "figure_5":
        yield "Goodput, r/s", with_limits(rows, lambda row: f"SLO {row['slo_ms']} ms", lambda row: row["goodput"],
                                          rate_limit)
    if name == "figure_6":
        shown = [row for row in tables["active_models"]
                 if row["active_models"] in (10, 60, 180, 420, 900, 1200, 1800, 2400, 3600)]
        yield ("Attainment, %, up to so many active models",
               with_limits(shown, lambda row: f"{row['active_models']:,}", percent,
                           lambda row, column: row[column] * 100))
    if name == "figure_7":
        shown = [row for row in rows if row["slo_ms"] in (6.53, 9.79, 14.68, 22.02)]
        for rate in distinct(shown, "rate"):
            yield (f"Satisfaction, %, {rate:,} r/s",
                   with_limits(select(shown, rate=rate), lambda row: f"N {row['models']}, {row['slo_ms']:.1f} ms",
                              percent, percent_limit))
    if name == "figure_8":
        for group, what, value in (("sensitive", "Satisfaction with an SLO, %", percent),
                                   ("batch", "Goodput without an SLO, r/s", lambda row: row["goodput"])):
            shown = [row for row in select(tables["results"], group=group)
                     if row["slo_ms"] in (9.79, 14.68, 22.02, 74.32)]
            if shown:
                yield what, with_limits(shown, lambda row: f"{row['scenario']}, {row['slo_ms']:.1f} ms", value,
                                       percent_limit if group == "sensitive" else rate_limit)
    if name == "figure_9":
        yield "Requests", table(
            ["policy", "offered", "missed", "expired", "overload", "unmeetable", "late", "mispredicted", "cold starts"],
            [[row["policy"], f"{row['offered']:,}", f"{round(row['offered'] * (1 - row['attainment'])):,}",
              *(f"{row[key]:,}" for key in ("missed_expired", "missed_overload", "missed_unmeetable", "missed_late",
                                            "mispredicted", "cold_starts"))] for row in rows])
        quantiles = ("p50", "p99", "p99.9", "p99.99", "max")
        yield "Errors of prediction, us", table(
            ["policy", "of", "predicted too", "count", *quantiles],
            [[row["policy"], row["what"], {"over": "long", "under": "short"}[row["direction"]], f"{row['count']:,}",
              *(f"{row[f'us_{quantile}']:,.0f}" for quantile in quantiles)] for row in tables["errors"]])
    if name == "memory_starved":
        def cell(row):
            return f"{row['models']}, {row['pages']}, {row['slo_ms']} ms"
        for models in distinct(rows, "models"):
            yield ("Attainment, %, at 1,800 r/s (models, pages, SLO)",
                   with_limits(select(rows, models=models), cell, percent, percent_limit))
        for models in distinct(rows, "models"):
            yield ("Highest rate with 99 % attainment, r/s",
                   with_limits(select(tables["capacity"], models=models), cell, lambda row: row["rate"],
                               rate_limit))
    if name == "bounds":
        for arrivals in distinct(rows, "arrivals"):
            yield (f"Attainment, %, {arrivals} (models, pages, SLO in ms, Zipf)",
                   with_limits(select(rows, arrivals=arrivals),
                               lambda row: f"{row['models']}, {row['pages']}, {row['slo_ms']}, {row['zipf']}",
                               percent, percent_limit))
    if name == "overlap":
        for rate in distinct(rows, "rate"):
            shown = select(rows, rate=rate)
            policies = distinct(shown, "policy")
            yield (f"Attainment, %, {rate:.0f} r/s", table(["models", *policies], [
                [models, *(f"{percent(select(shown, models=models, policy=policy)[0]):.1f}" for policy in policies)]
                for models in distinct(shown, "models")]))
        yield "What pairs have to gain, and the share of the GPU that they take in turn at 50 r/s", table(
            ["models", "gain", "utilisation, %"],
            [[row["models"], f"{row['gain']:.2f}", f"{100 * row['utilisation_50']:.0f}"] for row in tables["pairs"]])
    if name == "overlap_cluster":
        yield "Attainment, %", pivot(rows, lambda row: f"load {row['load']:.0%}", percent)
    if name == "lanes_64":
        for group in distinct(rows, "group"):
            yield f"Attainment, %: {group}", pivot(select(rows, group=group), lambda row: f"{row['rate']:,.0f} r/s", percent)
        widths = select(tables["widths"], group="all")
        yield "Share of EXECs of foliot by the cores that they took, %", table(
            ["r/s", *(str(cores) for cores in sorted(distinct(widths, "cores")))],
            [[f"{rate:,.0f}", *(f"{100 * sum(row['share'] for row in select(widths, rate=rate, cores=cores)):.0f}"
                                for cores in sorted(distinct(widths, "cores")))]
             for rate in distinct(widths, "rate")])
    if name == "overload":
        yield "Attainment, %", with_limits(rows, lambda row: row["shape"], percent, percent_limit)


def section(name, seeds, output):
    """What stands between the marks of one experiment."""
    data = merged(name, seeds, output)
    ran = json.loads((folder_of(output, seeds[0]) / f"{name}.run.json").read_text())
    pictures = plot_experiment(output / f"{name}.json", PICTURES)
    text = (f"`foliot experiment {name}`, seeds {', '.join(map(str, seeds))}: {data['real_seconds']:.0f} s in all on "
            f"{ran['machine']}\n\n")
    text += table(["figure", "paper", "goal", "here", ""],
                  [[*(finding[key] for key in ("what", "paper", "goal", "here")), verdict(finding["met"])]
                   for finding in data["findings"]])
    for title, markdown in tables_of(name, data["tables"]):
        text += f"\n\n{title}:\n\n{markdown}"
    for picture in pictures:
        text += f"\n\n![{picture.stem}]({picture.relative_to(PICTURES.parent)})"
    return text


def update_document(name, seeds, output):
    """Replaces the text between the marks of one experiment."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    document = document_of(name).read_text()
    before, rest = document.split(begin)
    _, after = rest.split(end)
    document_of(name).write_text(f"{before}{begin}\n{section(name, seeds, output)}\n{end}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"[{' '.join(NAMES)}]")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "out/experiments", metavar="DIR")
    parser.add_argument("--jobs", type=int, default=2, help="experiments at a time [2]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--quick", action="store_true", help="see that they run; leaves the document alone")
    parser.add_argument("--only-document", action="store_true", help="draw and write what was found before")
    arguments = parser.parse_args()
    if not arguments.only_document:
        flags = ["--quick"] if arguments.quick else []
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as jobs:
            list(jobs.map(lambda each: run(*each, arguments.output, flags), itertools.product(arguments.names, arguments.seeds)))
    for name in arguments.names:
        if arguments.quick:
            merged(name, arguments.seeds, arguments.output)
            plot_experiment(arguments.output / f"{name}.json", arguments.output)
        else:
            update_document(name, arguments.seeds, arguments.output)


if __name__ == "__main__":
    main()
