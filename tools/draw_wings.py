#!/usr/bin/env python3
"""Draws docs/wings.svg to standard output: the wings of src/ as src/rooms.json and the includes have them.

A row is a wing; a dot says that it includes the wing of that column. All dots are below the diagonal,
since no wing includes one above it. Plain SVG, so that it needs no library and two runs give the same bytes.
"""

import html

import check_layers
from rooms import ROOT, Rooms, TEST, wing_of

ROW, TOP, BOX, CELL = 44, 92, 470, 26
STYLE = """
  text { font-family: sans-serif; font-size: 11px; fill: #57606a; }
  .name { font-size: 14px; font-weight: bold; fill: #24292f; }
  .box { fill: #f6f8fa; stroke: #57606a; stroke-width: 1; rx: 5px; }
  .cell { fill: #ffffff; stroke: #d0d7de; stroke-width: 0.8; }
  .own { fill: #d0d7de; stroke: #d0d7de; }
  .dot { fill: #0969da; }
"""


def arrows(src, rooms):
    """{wing: the other wings that its production code includes}"""
    found = {wing: set() for wing in rooms.wings}
    for path in check_layers.source_files(src):
        wing = wing_of(path.as_posix())
        if TEST.fullmatch(path.stem):
            continue
        for _, quoted, target in check_layers.includes((src / path).read_text(encoding="utf-8")):
            if quoted and (src / target).exists() and wing_of(target) != wing:
                found[wing].add(wing_of(target))
    return found


def wrapped(words, width):
    """At most two lines of at most `width` characters."""
    first = words if len(words) <= width else words[:words.rindex(" ", 0, width)]
    return [line for line in (first, words[len(first):].strip()) if line]


def picture(rooms, included):
    wings = list(reversed(rooms.wings))
    width, height = BOX + 20 + CELL * len(wings) + 60, TOP + ROW * len(wings) + 12
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    yield f"<style>{STYLE}</style>"
    yield f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    yield '<text x="10" y="24" class="name">The wings of src/, the highest first</text>'
    yield '<text x="10" y="44">A dot: this wing (row) includes that one (column).</text>'
    for row, wing in enumerate(wings):
        y = TOP + ROW * row
        x = BOX + 24 + CELL * row
        yield f'<text transform="translate({x + 16},{TOP - 8}) rotate(-50)">{wing}</text>'
        yield f'<rect x="8" y="{y}" width="{BOX}" height="{ROW - 6}" class="box"/>'
        yield f'<text x="18" y="{y + 24}" class="name">{wing}</text>'
        lines = wrapped(rooms.wings[wing], 62)
        for number, line in enumerate(lines):
            yield f'<text x="112" y="{y + (24 if len(lines) == 1 else 17 + 14 * number)}">{html.escape(line)}</text>'
        for column, other in enumerate(wings):
            x = BOX + 24 + CELL * column
            kind = "own" if other == wing else "cell"
            yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{ROW - 6}" class="{kind}"/>'
            if other in included[wing]:
                yield f'<circle cx="{x + CELL / 2:g}" cy="{y + (ROW - 6) / 2:g}" r="5" class="dot"/>'
    yield "</svg>"


def main():
    rooms = Rooms.load()
    print("\n".join(picture(rooms, arrows(ROOT / "src", rooms))))


if __name__ == "__main__":
    main()
