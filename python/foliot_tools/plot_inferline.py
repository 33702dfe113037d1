"""Draws the experiments of InferLine, in the axes of its figures: called by plot_experiment.py."""

from matplotlib import pyplot

from foliot_tools.rows import distinct, select

LOOKS = {
    "inferline": ("tab:red", "-"),
    "tuner": ("tab:red", "-"),
    "tuner down by own rho": ("tab:orange", "-"),
    "tuner by ratio": ("tab:green", "-"),
    "replan": ("tab:purple", "-"),
    "plan alone": ("tab:gray", "--"),
    "oracle plan": ("black", "--"),
    "plan, rate tuner": ("tab:olive", "-"),
    "baseline plan": ("tab:blue", "--"),
    "cg-mean": ("tab:cyan", "-"),
    "cg-peak": ("tab:blue", "-"),
    "cg-peak one batch": ("tab:blue", ":"),
    "ds2": ("tab:brown", "-"),
    "ds2 without halts": ("tab:brown", ":"),
}


def looks(system):
    color, line = LOOKS[system]
    return {"color": color, "linestyle": line, "linewidth": 1.5, "label": system}


def legend(figure, axes):
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=6, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))


def inferline_plan(tables):
    """Figure 4.5: cost and misses by rate; Figure 4.9: cost by SLO."""
    rows = tables["results"]
    systems = distinct(rows, "system")
    cells = [(pipeline, variation) for pipeline in distinct(rows, "pipeline") for variation in distinct(rows, "variation")]
    figure, grid = pyplot.subplots(2, len(cells), figsize=(2.6 * len(cells), 6), squeeze=False)
    for column, (pipeline, variation) in enumerate(cells):
        for system in systems:
            chosen = select(rows, pipeline=pipeline, variation=variation, system=system, slo_ms=150)
            rates = [row["rate"] for row in chosen]
            grid[0][column].plot(rates, [row["cost"] for row in chosen], **looks(system))
            grid[1][column].plot(rates, [100 * (1 - row["attainment"]) for row in chosen], **looks(system))
        grid[0][column].set(title=f"{pipeline}, CV {variation ** 2:g}", yscale="log")
        grid[1][column].set(xlabel="queries per second", yscale="symlog", ylim=(0, 100))
        grid[1][column].axhline(1, color="black", linewidth=0.5)
    grid[0][0].set_ylabel("dollars per hour")
    grid[1][0].set_ylabel("misses, %")
    legend(figure, grid[0][0])
    return {"inferline_plan": figure, "inferline_slo": inferline_slo(rows)}


def inferline_slo(rows):
    rows = select(rows, pipeline="social", system="inferline")
    figure, axes = pyplot.subplots(figsize=(6, 4))
    colors = ("tab:blue", "tab:green", "tab:red", "tab:purple", "tab:orange")
    for color, rate in zip(colors, distinct(rows, "rate")):
        for variation, line in ((1.0, "-"), (2.0, ":")):
            chosen = sorted(select(rows, rate=rate, variation=variation), key=lambda row: row["slo_ms"])
            if len(chosen) > 1:
                axes.plot([row["slo_ms"] for row in chosen], [row["cost"] for row in chosen], color=color,
                          linestyle=line, marker=".", label=f"{rate:g} q/s, CV {variation ** 2:g}")
    axes.set(xlabel="SLO, ms", ylabel="dollars per hour", title="social")
    axes.legend(fontsize=7)
    figure.tight_layout()
    return figure


def over_time(grid, column, rows, systems):
    """Attainment and cost by minutes."""
    for system in systems:
        chosen = select(rows, system=system)
        minutes = [row["minute"] for row in chosen]
        grid[0][column].plot(minutes, [100 * row["attainment"] for row in chosen], **looks(system))
        grid[1][column].plot(minutes, [row["dollars_per_hour"] for row in chosen], **looks(system))
    grid[0][column].set(ylim=(0, 102))
    grid[1][column].set(xlabel="minutes", yscale="log")


def inferline_tune(tables):
    """Figures 4.6, 4.7, 4.10 and 4.11, with late queries served and refused."""
    systems = ("tuner", "tuner down by own rho", "tuner by ratio", "replan", "plan alone", "cg-peak")
    figures = {}
    for late in distinct(tables["results"], "late"):
        traces = distinct(tables["series"], "trace")
        figure, grid = pyplot.subplots(2, len(traces), figsize=(3 * len(traces), 6), squeeze=False)
        for column, trace in enumerate(traces):
            over_time(grid, column, select(tables["series"], trace=trace, late=late), systems)
            grid[0][column].set(title=trace)
        grid[0][0].set_ylabel(f"attainment, %, late queries {late}")
        grid[1][0].set_ylabel("dollars per hour")
        legend(figure, grid[0][0])
        figures[f"inferline_tune_{late}"] = figure
    return figures


def inferline_estimate(tables):
    """Figure 4.3: three profiles; Figure 4.8: estimated and simulated P99."""
    figure, (rates, latencies, tails) = pyplot.subplots(1, 3, figsize=(14, 4.5))
    chosen = {"preprocess": "cpu", "resnet152": "k80", "translate": "k80"}
    for stage, kind in chosen.items():
        rows = select(tables["profiles"], stage=stage, kind=kind)
        rows = select(rows, pipeline=rows[0]["pipeline"])
        batches = [row["batch"] for row in rows]
        rates.plot(batches, [row["queries_per_second"] for row in rows], marker=".", label=f"{stage}, {kind}")
        latencies.plot(batches, [row["latency_ms"] for row in rows], marker=".", label=f"{stage}, {kind}")
    for axes, name in ((rates, "queries per second"), (latencies, "latency, ms")):
        axes.set(xlabel="batch size", ylabel=name, xscale="log", yscale="log")
        axes.legend(fontsize=8)
    rows = tables["results"]
    names = [f"{row['pipeline']}\n{row['slo_ms']:g} ms" for row in select(rows, policy="inferline")]
    series = [("estimated", [row["estimated_p99_ms"] for row in select(rows, policy="inferline")], "tab:gray")]
    for policy, color in (("inferline", "tab:red"), ("foliot", "tab:blue")):
        series.append((f"simulated, {policy}", [row["simulated_p99_ms"] for row in select(rows, policy=policy)], color))
    for i, (label, values, color) in enumerate(series):
        tails.bar([j + (i - 1) * 0.27 for j in range(len(values))], values, 0.27, label=label, color=color)
    tails.set_xticks(range(len(names)), names, fontsize=7)
    tails.set(ylabel="P99, ms", ylim=(0, 1.3 * max(max(values) for _, values, _ in series)))
    tails.legend(fontsize=8)
    figure.tight_layout()
    return {"inferline_estimate": figure}


def inferline_attribution(tables):
    """Figure 4.12."""
    systems = ("baseline plan", "plan alone", "plan, rate tuner", "tuner", "tuner by ratio", "oracle plan")
    figure, grid = pyplot.subplots(2, 1, figsize=(8, 6.5), squeeze=False)
    over_time(grid, 0, tables["series"], systems)
    grid[0][0].set_ylabel("attainment, %")
    grid[1][0].set_ylabel("dollars per hour")
    legend(figure, grid[0][0])
    return {"inferline_attribution": figure}


def inferline_ds2(tables):
    """Figure 4.14: P99 of each minute."""
    traces = distinct(tables["series"], "trace")
    figure, panels = pyplot.subplots(1, len(traces), figsize=(3.4 * len(traces), 4.5), sharey=True)
    for axes, trace in zip(panels, traces):
        for system in ("ds2", "ds2 without halts", "tuner", "tuner by ratio", "replan"):
            rows = select(tables["series"], trace=trace, system=system)
            axes.plot([row["minute"] for row in rows], [row["p99_ms"] for row in rows], **looks(system))
        axes.axhline(150, color="black", linewidth=0.5)
        axes.set(title=trace, xlabel="minutes", yscale="log")
    panels[0].set_ylabel("P99, ms")
    legend(figure, panels[0])
    return {"inferline_ds2": figure}


PLOTS = {plot.__name__: plot for plot in (inferline_plan, inferline_tune, inferline_estimate, inferline_attribution,
                                          inferline_ds2)}
