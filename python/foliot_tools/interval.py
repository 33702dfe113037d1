"""Figures that were measured with several seeds, as a mean and an interval around it."""

import math
import re
import statistics

# Quantiles of 97.5 % of Student's t, by the number of values.
STUDENT_T = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
BRACKETS = re.compile(r" ?\[[^]]*\]")


class Interval(float):
    """The mean of `values`, to calculate with; as text the mean and ± half of its 95 % interval (Student's t).

    Times a number it stays an interval; what else is made of it is a float.
    """

    def __new__(cls, values):
        values = list(values)
        self = super().__new__(cls, statistics.fmean(values))
        self.values = values
        return self

    @property
    def half(self):
        if len(self.values) < 2:
            return 0.0
        return STUDENT_T.get(len(self.values), 2.0) * statistics.stdev(self.values) / math.sqrt(len(self.values))

    def __mul__(self, factor):
        return Interval(value * factor for value in self.values)

    __rmul__ = __mul__

    def __format__(self, spec):
        spec = ",.0f" if spec == "," else spec
        mean = format(float(self), spec)
        return mean if len(self.values) < 2 else f"{mean} ± {format(self.half, spec.replace('+', ''))}"


def merged_values(values):
    """One value of several seeds: as it is where all agree, an Interval of numbers, else the first."""
    if all(value == values[0] for value in values):
        return values[0]
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return Interval(values) if numbers else values[0]


def merged_rows(tables, identity):
    """The rows of a table of the first seed that are in those of all others, which agree in the columns `identity`."""
    def key(row):
        return tuple((column, row[column]) for column in identity if column in row)

    others = [{key(row): row for row in table} for table in tables[1:]]
    return [{column: merged_values([row[column], *(other[key(row)][column] for other in others)]) for column in row}
            for row in tables[0] if all(key(row) in other for other in others)]


def merged_text(texts):
    """The text of several seeds with its numbers as intervals; where they differ in words, all of them. What stands in
    brackets is left out where it differs."""
    if len({tuple(BRACKETS.findall(text)) for text in texts}) > 1:
        texts = [BRACKETS.sub("", text) for text in texts]
    if len({NUMBER.sub("", text) for text in texts}) > 1:
        return "; ".join(f"seed {seed}: {text}" for seed, text in enumerate(texts, 1))
    numbers = iter(zip(*(NUMBER.findall(text) for text in texts)))

    def number(match):
        same = next(numbers)
        if len(set(same)) == 1:
            return match.group()
        whole, point, decimals = match.group().partition(".")
        digits = "e" if "e" in match.group() else "f"
        decimals = len(decimals.split("e")[0]) if point else 0
        sign = "+" if whole.startswith(("+", "-")) else ""
        return format(Interval(float(text.replace(",", "")) for text in same), f"{sign},.{decimals}{digits}" if digits == "f"
                      else f"{sign}.{decimals}e")

    return NUMBER.sub(number, texts[0])
