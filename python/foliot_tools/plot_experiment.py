"""Draws what `foliot experiment` wrote, in the axes of the papers.

    python -m foliot_tools.plot_experiment out/experiments/figure_5.json --output out
"""

import argparse
import json
import math
import pathlib

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

from foliot_tools import plot_inferline  # noqa: E402
from foliot_tools.rows import distinct, select  # noqa: E402

# The two that are compared stand out; the baselines are thin.
STRONG = {"foliot": ("tab:red", "-"), "clockwork": ("tab:blue", "-")}
WEAK = {
    "adaptive_batching": ("tab:olive", "-"),
    "adaptive_batching_quantile": ("tab:olive", ":"),
    "deferred": ("tab:green", "-"),
    "dynamic_batching": ("tab:brown", "-"),
    "edf": ("tab:orange", "-"),
    "fcfs": ("tab:gray", "-"),
    "flex": ("tab:purple", "-"),
    "foliot_consolidating": ("lightcoral", "--"),
    "overlap": ("tab:cyan", "-"),
    "sjf": ("tab:pink", "-"),
}
ESTIMATE = {"color": "black", "linestyle": "--", "linewidth": 1, "label": "fluid estimate"}
BOUND = {"color": "black", "linestyle": "-", "linewidth": 1, "label": "clairvoyant bound"}


def looks_of(policy):
    """Color and kind of line; those of a policy that is not known here are dull."""
    return {**WEAK, **STRONG}.get(policy, ("silver", "-."))


def style(policy):
    color, line = looks_of(policy)
    width = 2 if policy in STRONG else 1
    return {"color": color, "linestyle": line, "linewidth": width, "zorder": 2 + width, "label": policy}


def curve(axes, rows, x, y, **looks):
    axes.plot([row[x] for row in rows], [row[y] for row in rows], **looks)


def curves(axes, rows, x, y, estimate=None, bound=None):
    """A curve per policy, and those of the fluid estimate and the clairvoyant bound, which
    are the same for all."""
    for policy in distinct(rows, "policy"):
        curve(axes, select(rows, policy=policy), x, y, **style(policy))
    for column, looks in ((estimate, ESTIMATE), (bound, BOUND)):
        if column:
            limited = [row for row in select(rows, policy=rows[0]["policy"]) if row[column] is not None]
            curve(axes, limited, x, column, **looks)


def add_shares(row, offered_rate):
    """Estimate and bound as shares of what is offered."""
    for column in ("estimate", "bound"):
        row[f"{column}_share"] = None if row[column] is None else min(1, row[column] / offered_rate)


def log_axis(axes, ticks):
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def legend(figure, axes):
    """Below all axes, which leave as much room as its lines need."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 6
    figure.legend(handles, labels, loc="lower center", ncol=columns, fontsize=8, frameon=False)
    inches = 0.15 + 0.19 * math.ceil(len(labels) / columns)
    figure.tight_layout(rect=(0, inches / figure.get_figheight(), 1, 1))


QUANTILES = {"p1": 0.01, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99, "p99.9": 0.999,
             "p99.99": 0.9999}


def figure_5(tables):
    results = tables["results"]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5))
    curves(left, results, "slo_ms", "goodput", "estimate")
    log_axis(left, distinct(results, "slo_ms"))
    left.set(xlabel="SLO, ms", ylabel="goodput, r/s", title="goodput")
    for row in select(results, slo_ms=100):
        latencies = [row[f"latency_ms_{name}"] for name in QUANTILES]
        right.plot(latencies, [1 / (1 - share) for share in QUANTILES.values()], **style(row["policy"]))
    right.axvline(100, color="black", linewidth=0.5)
    right.set_yscale("log")
    right.set_yticks([1, 10, 100, 1000, 10000], ["0", "90", "99", "99.9", "99.99"])
    right.set(xlabel="latency of the answered, ms", ylabel="share, %", title="latency at SLO 100 ms")
    legend(figure, left)
    return {"figure_5": figure}


def minutes_since_major(row, before=300):
    return (row["begin_s"] - before) / 60


def figure_6(tables):
    figure, panels = pyplot.subplots(5, 1, figsize=(9, 12), sharex=False)
    curves(panels[0], tables["active_models"], "active_models", "attainment", "estimate")
    panels[0].set(xlabel="active models", ylabel="attainment", title="all requests", ylim=(0, 1))
    panels[0].set_xscale("log")
    for policy in [policy for policy in STRONG if select(tables["series"], policy=policy)]:
        for group, line in (("minor", ":"), ("major", "-")):
            rows = select(tables["series"], policy=policy, group=group)
            minutes = [minutes_since_major(row) for row in rows]
            looks = {**style(policy), "linestyle": line, "linewidth": 1, "label": f"{policy}, {group}"}
            panels[1].plot(minutes, [row["goodput"] for row in rows], **looks)
            panels[2].plot(minutes, [row["latency_ms_max"] for row in rows], **looks)
            panels[3].plot(minutes, [row["cold_start_rate"] for row in rows], **looks)
        rows = select(tables["series"], policy=policy, group="all")
        minutes = [minutes_since_major(row) for row in rows]
        for column, line, name in (("device_busy", "-", "EXEC"), ("load_busy", ":", "LOAD")):
            looks = {**style(policy), "linestyle": line, "linewidth": 1, "label": f"{policy}, {name}"}
            panels[4].plot(minutes, [row[column] for row in rows], **looks)
    for axes, name in zip(panels[1:], ("goodput, r/s", "longest latency, ms", "cold starts, r/s", "busy")):
        axes.set(xlabel="minutes since the major workload began", ylabel=name)
        axes.legend(fontsize=7, ncol=4)
    panels[0].legend(fontsize=7, ncol=4)
    figure.tight_layout()
    return {"figure_6": figure}


def figure_7(tables):
    results = tables["results"]
    for row in results:
        add_shares(row, row["offered_rate"])
    counts, rates = distinct(results, "models"), distinct(results, "rate")
    figure, grid = pyplot.subplots(len(counts), len(rates), figsize=(12, 6), sharey=True, squeeze=False)
    for line, models in zip(grid, counts):
        for axes, rate in zip(line, rates):
            curves(axes, select(results, models=models, rate=rate), "slo_ms", "attainment", "estimate_share", "bound_share")
            log_axis(axes, [2.9, 6.5, 14.7, 33, 74])
            axes.set(xlabel="SLO, ms", ylabel="workload satisfaction", title=f"N={models}, R={rate} r/s")
    legend(figure, grid[0][0])
    return {"figure_7": figure}


def figure_8(tables):
    results = tables["results"]
    scenarios = distinct(results, "scenario")
    figure, grid = pyplot.subplots(2, len(scenarios), figsize=(12, 6.5), sharey="row", squeeze=False)
    for column, scenario in enumerate(scenarios):
        rows = select(results, scenario=scenario)
        sensitive = select(rows, group="sensitive") or select(rows, group="all")
        for row in sensitive:
            add_shares(row, 1200)
        curves(grid[0][column], sensitive, "slo_ms", "attainment", "estimate_share", "bound_share")
        grid[0][column].set(title=scenario, ylabel="satisfaction with an SLO")
        if batch := select(rows, group="batch"):
            curves(grid[1][column], batch, "slo_ms", "goodput", "estimate")
        grid[1][column].set(ylabel="goodput without an SLO, r/s")
        for axes in (grid[0][column], grid[1][column]):
            log_axis(axes, [2.9, 6.5, 14.7, 33, 74])
            axes.set_xlabel("SLO, ms")
    legend(figure, grid[0][0])
    return {"figure_8": figure}


def figure_9(tables):
    figure, panels = pyplot.subplots(5, 1, figsize=(9, 11), sharex=True)
    for policy in distinct(tables["series"], "policy"):
        rows = select(tables["series"], policy=policy, group="all")
        minutes = [row["begin_s"] / 60 for row in rows]

        def draw(axes, column, line="-", name=""):
            looks = {**style(policy), "linestyle": line, "linewidth": 1, "label": policy + name}
            axes.plot(minutes, [row[column] for row in rows], **looks)

        draw(panels[0], "goodput")
        for column, line in (("latency_ms_p50", ":"), ("latency_ms_p99", "-"), ("latency_ms_max", "--")):
            draw(panels[1], column, line, f", {column[11:]}")
        draw(panels[2], "batch_size_mean")
        draw(panels[3], "cold_models")
        draw(panels[4], "cold_start_rate")
    panels[0].plot(minutes, [row["offered_rate"] for row in rows], color="black", linewidth=0.5, label="offered")
    panels[0].axhline(tables["results"][0]["estimate"], **ESTIMATE)
    for axes, name in zip(panels, ("goodput, r/s", "latency, ms", "mean batch", "models with cold starts",
                                   "cold starts, r/s")):
        axes.set_ylabel(name)
        axes.legend(fontsize=7, ncol=4)
    panels[-1].set_xlabel("minutes")
    figure.tight_layout()
    return {"figure_9": figure, "figure_10": figure_10(tables["errors"])}


def figure_10(errors):
    kinds = distinct(errors, "what")
    figure, grid = pyplot.subplots(1, len(kinds), figsize=(12, 4), sharey=True)
    names = ["p50", "p90", "p99", "p99.9", "p99.99"]
    for axes, what in zip(grid, kinds):
        for row in select(errors, what=what):
            looks = style(row["policy"])
            line = "-" if row["direction"] == "over" else ":"
            label = f"{row['policy']}, predicted too {'long' if row['direction'] == 'over' else 'short'}"
            axes.plot([row[f"us_{name}"] for name in names], range(len(names)),
                      **{**looks, "linestyle": line, "label": label})
        log_axis(axes, [10, 100, 1000])
        axes.set(xlabel="error, us", title=what, xlim=(10, 5000))
        axes.set_yticks(range(len(names)), names)
    grid[0].legend(fontsize=7)
    figure.tight_layout()
    return figure


def memory_starved(tables):
    results, capacity = tables["results"], tables["capacity"]
    cells = distinct([{"key": (row["models"], row["pages"])} for row in results], "key")
    figure, grid = pyplot.subplots(2, len(cells), figsize=(2.6 * len(cells), 6.5), sharey="row", squeeze=False)
    for column, (models, pages) in enumerate(cells):
        rows = select(results, models=models, pages=pages, group="all")
        for row in rows:
            add_shares(row, row["offered_rate"])
        curves(grid[0][column], rows, "slo_ms", "attainment", "estimate_share", "bound_share")
        grid[0][column].set(title=f"{models}, {pages} pages")
        curves(grid[1][column], select(capacity, models=models, pages=pages), "slo_ms", "rate", "estimate")
        for axes in (grid[0][column], grid[1][column]):
            log_axis(axes, [25, 50, 100, 250])
            axes.set_xlabel("SLO, ms")
    grid[0][0].set_ylabel("attainment at 1,800 r/s")
    grid[1][0].set_ylabel("rate with 99 % attainment, r/s")
    legend(figure, grid[0][0])
    return {"memory_starved": figure}


def overload(tables):
    rows = select(tables["results"], group="all")
    shapes, policies = distinct(rows, "shape"), distinct(rows, "policy")
    figure, axes = pyplot.subplots(figsize=(11, 4.5))
    width = 0.8 / len(policies)
    for i, policy in enumerate(policies):
        color, _ = looks_of(policy)
        chosen = select(rows, policy=policy)
        axes.bar([j + (i - len(policies) / 2 + 0.5) * width for j in range(len(chosen))],
                 [row["attainment"] for row in chosen], width, color=color, label=policy,
                 alpha=0.5 if policy.endswith("quantile") else 1)
    for j, shape in enumerate(shapes):
        row = select(rows, shape=shape)[0]
        add_shares(row, row["offered_rate"])
        for column, looks in (("estimate_share", ESTIMATE), ("bound_share", BOUND)):
            if row[column] is not None:
                axes.plot([j - 0.42, j + 0.42], [row[column]] * 2,
                          **{**looks, "label": looks["label"] if j == 0 else None})
    axes.set_xticks(range(len(shapes)), shapes)
    axes.set(ylabel="attainment", ylim=(0, 1))
    legend(figure, axes)
    return {"overload": figure}


def bounds(tables):
    """A group of marks per workload: how many points each policy is below the bound."""
    rows = select(tables["results"], group="all")
    for row in rows:
        row["below"] = 100 * (row["bound"] / row["offered_rate"] - row["attainment"])
        row["cell"] = f"{row['arrivals']}, {row['models']}, {row['pages']}, {row['slo_ms']}, {row['zipf']}"
    figure, axes = pyplot.subplots(figsize=(11, 6))
    for policy in distinct(rows, "policy"):
        chosen = select(rows, policy=policy)
        looks = {**style(policy), "linestyle": "none", "marker": "o"}
        axes.plot([row["cell"] for row in chosen], [row["below"] for row in chosen], **looks)
    axes.set(ylabel="points below the clairvoyant bound", ylim=0)
    axes.tick_params(axis="x", labelrotation=90, labelsize=7)
    axes.set_xlabel("arrivals, models, pages, SLO in ms, Zipf")
    legend(figure, axes)
    return {"bounds": figure}


def overlap(tables):
    """Answers in time of each deployment, at the two rates."""
    rows = select(tables["results"], group="all")
    rates = distinct(rows, "rate")
    figure, grid = pyplot.subplots(len(rates), 1, figsize=(11, 8), sharex=True, squeeze=False)
    for (axes,), rate in zip(grid, rates):
        for policy in distinct(rows, "policy"):
            chosen = select(rows, policy=policy, rate=rate)
            axes.plot([row["models"] for row in chosen], [row["attainment"] for row in chosen],
                      **{**style(policy), "linestyle": "none", "marker": "o"})
        axes.set(ylabel=f"attainment at {rate:.0f} r/s", ylim=(0, 1.02))
        axes.tick_params(axis="x", labelrotation=90, labelsize=7)
    legend(figure, grid[0][0])
    return {"overlap": figure}


def overlap_cluster(tables):
    """Answers in time and their latency over the load."""
    rows = tables["results"]
    figure, (shares, times) = pyplot.subplots(1, 2, figsize=(11, 4))
    for policy in distinct(rows, "policy"):
        chosen = select(rows, policy=policy)
        loads = [row["load"] for row in chosen]
        shares.plot(loads, [row["attainment"] for row in chosen], marker="o", **style(policy))
        times.plot(loads, [row["mean_ms"] for row in chosen], marker="o", **style(policy))
    shares.set(xlabel="load, of one query at a time", ylabel="attainment", ylim=(0, 1.02))
    times.set(xlabel="load, of one query at a time", ylabel="mean latency, ms", ylim=0)
    legend(figure, shares)
    return {"overlap_cluster": figure}


def lanes_64(tables):
    """Of each set of models: attainment with lanes and of each division of the cores, and the widths that each load
    chose."""
    groups = distinct(tables["results"], "group")
    figure, panels = pyplot.subplots(len(groups), 2, figsize=(11, 3.2 * len(groups)), sharex="col", squeeze=False)
    for group, (shares, widths) in zip(groups, panels):
        rows = [row for row in select(tables["results"], group=group) if row["policy"].startswith("foliot, ")]
        for policy in distinct(rows, "policy"):
            chosen = select(rows, policy=policy)
            is_own = policy.endswith("lanes")
            shares.plot([row["rate"] for row in chosen], [row["attainment"] for row in chosen], label=policy,
                        marker="o" if is_own else ".", linewidth=2.5 if is_own else 1)
        shares.set(title=f"models: {group}", ylabel="attainment", ylim=(0, 1.02))
        draw_widths(widths, select(tables["widths"], policy="foliot", group=group))
    for axes in panels[-1]:
        axes.set_xlabel("requests/s")
    for axes in panels[0]:
        axes.legend(fontsize=7)
    figure.tight_layout()
    return {"lanes_64": figure}


def draw_widths(axes, rows):
    """Bars of the share of each number of cores, one on the other."""
    rates, below = distinct(rows, "rate"), {}
    for index, cores in enumerate(2**power for power in range(7)):
        share = [sum(row["share"] for row in select(rows, rate=rate, cores=cores)) for rate in rates]
        bottom = [below.get(rate, 0) for rate in rates]
        axes.bar([f"{rate:.0f}" for rate in rates], share, bottom=bottom, label=f"{cores} cores", color=f"C{index}")
        below = {rate: low + own for rate, low, own in zip(rates, bottom, share)}
    axes.set(ylabel="share of EXECs, by cores", ylim=(0, 1))


PLOTS = {plot.__name__: plot for plot in (figure_5, figure_6, figure_7, figure_8, figure_9, memory_starved, overload,
                                          bounds, overlap, overlap_cluster, lanes_64)} | plot_inferline.PLOTS


def plot_experiment(path, folder):
    """Draws one experiment; returns the paths of its pictures, which some have none of."""
    data = json.loads(pathlib.Path(path).read_text())
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for name, figure in PLOTS.get(data["experiment"], lambda tables: {})(data["tables"]).items():
        pictures.append(folder / f"{name}.png")
        figure.savefig(pictures[-1], dpi=80)
        pyplot.close(figure)
    return pictures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=pathlib.Path, metavar="NAME.json")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out"), metavar="DIR")
    arguments = parser.parse_args()
    for path in arguments.data:
        for picture in plot_experiment(path, arguments.output):
            print(picture)


if __name__ == "__main__":
    main()
