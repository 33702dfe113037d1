"""The demo's picture: how long answers took, and what the executors did."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

INK = "#22303c"
FAINT = "#d8dee4"
DEADLINE_COLOUR = "#c8553d"
DIGITS_COLOUR = "#2a7f9e"
RESNET_COLOUR = "#33415c"
WINDOW_SECONDS = 0.25


def draw(answers, actions, copies, deadline, path):
    """Writes one PNG and returns its path."""
    plt.rcParams.update({"font.size": 10, "font.family": "DejaVu Sans", "text.color": INK, "axes.labelcolor": INK,
                         "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": FAINT})
    figure, (latency, timeline) = plt.subplots(2, 1, figsize=(12, 8.4), height_ratios=(1.25, 1), layout="constrained")
    draw_latency(latency, answers, copies, deadline)
    draw_timeline(timeline, actions, copies)
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)
    return path


def draw_latency(axes, answers, copies, deadline):
    """Share of answers slower than x, both axes logarithmic: tails are visible."""
    groups = (
        ("digits", DIGITS_COLOUR, "right", [a for a in answers if a.model in copies]),
        ("ResNet-50", RESNET_COLOUR, "left", [a for a in answers if a.model not in copies]),
    )
    for name, colour, side, group in groups:
        latencies = np.sort([a.latency * 1e3 for a in group if not a.refusal])
        if not len(latencies):
            continue
        slower = 1 - np.arange(len(latencies)) / len(latencies)
        label = f"{name}, {len(latencies):,} answers"
        axes.step(latencies, slower, where="post", color=colour, linewidth=2.2, label=label)
        for q, mark in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")):
            if len(latencies) * (1 - q) < 1:
                continue
            value = float(np.quantile(latencies, q, method="higher"))
            axes.plot(value, 1 - q, "o", color=colour, markersize=5)
            offset = (8, 4) if side == "left" else (-8, -13)  # the faster curve's labels go below it
            axes.annotate(f"{mark} {value:.1f} ms", (value, 1 - q), xytext=offset, textcoords="offset points",
                          ha=side, color=colour, fontsize=9)
    axes.axvline(deadline * 1e3, color=DEADLINE_COLOUR, linewidth=1.6)
    axes.annotate(f"deadline {deadline * 1e3:.0f} ms", (deadline * 1e3, 0.97), xycoords=("data", "axes fraction"),
                  xytext=(-6, 0), textcoords="offset points", rotation=90, ha="right", va="top", color=DEADLINE_COLOUR)
    axes.set(xscale="log", yscale="log", ylim=(None, 1.3), xlabel="latency from the scheduled send time, ms",
             ylabel="share of answers that took longer")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
    axes.grid(True, which="major", color=FAINT, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", frameon=False)
    refused = sum(bool(a.refusal) for a in answers)
    axes.set_title(f"Latency of {len(answers):,} requests, {refused} of them refused", loc="left", weight="bold")


def busiest_window(actions):
    """Start, in seconds, of the window with the most LOADs."""
    loads = np.array([a.start_us / 1e6 for a in actions if a.type == "LOAD"])
    starts = loads if len(loads) else np.array([a.start_us / 1e6 for a in actions])
    if not len(starts):
        return 0.0
    # What the server did before the traffic began is not of interest.
    starts = starts[starts >= np.quantile(starts, 0.1)]
    counts = np.searchsorted(starts, starts + WINDOW_SECONDS) - np.arange(len(starts))
    return float(starts[np.argmax(counts)]) - 0.005


def draw_timeline(axes, actions, copies):
    """A quarter of a second of the LOAD and EXEC executors, coloured by model. EXEC has a part for each lane."""
    actions = sorted(actions, key=lambda action: action.start_us)
    begin = busiest_window(actions)
    palette = plt.get_cmap("tab20")
    colours = {model: palette(i % 20) for i, model in enumerate(copies)}
    rows = {"LOAD": 1, "INFER": 0}
    lanes = max((action.lane + action.lanes for action in actions if action.type == "INFER"), default=1)
    for action in actions:
        start = (action.start_us / 1e6 - begin) * 1e3
        width = (action.end_us - action.start_us) / 1e3
        if action.type not in rows or start + width < 0 or start > WINDOW_SECONDS * 1e3:
            continue
        first, part = (action.lane / lanes, action.lanes / lanes) if action.type == "INFER" else (0, 1)
        # The shortest actions stay visible.
        axes.broken_barh([(start, max(width, WINDOW_SECONDS * 0.6))],
                         (rows[action.type] - 0.36 + 0.72 * first, 0.72 * part),
                         facecolor=colours.get(action.model, RESNET_COLOUR), linewidth=0)
    axes.set(xlim=(0, WINDOW_SECONDS * 1e3), ylim=(-0.6, 1.6), yticks=[0, 1],
             yticklabels=["EXEC" if lanes == 1 else f"EXEC on\n{lanes} lanes", "LOAD"],
             xlabel=f"ms, from {begin:.2f} s after the server started")
    axes.grid(True, axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(f"The executors at work: one colour per model, one action at a time{' on each lane' if lanes > 1 else ''}",
                   loc="left", weight="bold")
    handles = [Patch(color=RESNET_COLOUR, label="ResNet-50")]
    handles += [Patch(color=colours[model], label=model.removeprefix("digits_")) for model in copies]
    axes.legend(handles=handles, ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False,
                fontsize=8, handlelength=1, handleheight=1, columnspacing=0.9, handletextpad=0.3)
