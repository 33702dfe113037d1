#!/usr/bin/env python3
"""Draws docs/overview.svg, the picture of the parts in README.md.

Plain SVG from coordinates, so that it needs no library and two runs give the
same bytes.
"""

import argparse
import html
import pathlib

WIDTH, HEIGHT = 760, 268
STYLE = """
  text { font-family: sans-serif; font-size: 12px; fill: #24292f; }
  .name { font-size: 14px; font-weight: bold; }
  .label { font-size: 11px; fill: #57606a; }
  .box { stroke: #57606a; stroke-width: 1.2; rx: 6px; }
  .arrow { stroke: #57606a; stroke-width: 1.4; fill: none; marker-end: url(#head); }
"""


def text(x, y, words, kind="", anchor="start"):
    return f'  <text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>'


def box(x, y, width, height, color, name, lines):
    """A part: its name and what it does, one line each."""
    yield f'  <rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{color}" class="box"/>'
    yield text(x + 12, y + 22, name, "name")
    for number, line in enumerate(lines):
        yield text(x + 12, y + 42 + 17 * number, line)


def arrow(points, label, x, y, anchor="middle"):
    """A line through `points` with its label at (x, y)."""
    path = " ".join(f"{'L' if number else 'M'}{px},{py}" for number, (px, py) in enumerate(points))
    yield f'  <path d="{path}" class="arrow"/>'
    yield text(x, y, label, "label", anchor)


def picture():
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
    yield f"<style>{STYLE}</style>"
    yield ('<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
           'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" fill="#57606a"/></marker></defs>')
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    yield from box(8, 40, 96, 62, "#f6f8fa", "client", ["HTTP, gRPC,", "a deadline"])
    yield from box(176, 20, 178, 112, "#ddf4ff", "front end",
                   ["decodes, checks", "computes the deadline", "holds inputs and outputs", "joins rows, answers"])
    yield from box(474, 20, 278, 112, "#fff8c5", "controller",
                   ["policy: which model, batch, when, where", "device model: pages, timelines",
                    "estimator: measured durations", "refuses what cannot be in time"])
    yield from box(474, 188, 278, 72, "#dafbe1", "worker",
                   ["runs LOAD, UNLOAD and INFER exactly in", "their windows, or refuses them"])
    yield from arrow([(104, 60), (172, 60)], "request", 139, 53)
    yield from arrow([(176, 86), (108, 86)], "answer", 139, 101)
    yield from arrow([(354, 52), (470, 52)], "requests", 413, 45)
    yield from arrow([(474, 100), (358, 100)], "answered, refused", 414, 93)
    yield from arrow([(560, 132), (560, 184)], "actions", 552, 163, "end")
    yield from arrow([(660, 188), (660, 136)], "outcomes", 668, 163, "start")
    yield from arrow([(240, 132), (240, 214), (470, 214)], "inputs", 355, 207)
    yield from arrow([(474, 240), (212, 240), (212, 136)], "outputs", 355, 256)
    yield "</svg>"


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "docs/overview.svg"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=default, help="the file to write")
    parser.parse_args().output.write_text("\n".join(picture()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
