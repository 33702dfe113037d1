"""The largest rate of requests that a server attains, by turns whose outcomes are noisy."""

import math

import numpy as np

FIRST_STEP = 1.4  # from the rate of one turn to the next
STEP = 1.03  # the last
TURNS = 16  # at the last step
PARTS = 4  # of them, by which the error is found; since one rate is near the next it is 0.6 of the true one (simulated)
LEAST_RATE = 5


class Staircase:
    """For the largest rate that is attained in most turns: each turn is at a higher rate after one that is attained, and at a
    lower one after one that is not, by a factor whose logarithm halves at each reversal, to STEP. TURNS rates count from the
    first reversal at that step. `rate` is the next one to measure; None when there are as many, or when it is below
    LEAST_RATE."""

    def __init__(self, first_rate):
        self.rate = first_rate
        self.step = FIRST_STEP
        self.was_attained = None  # before the first turn
        self.counts = False
        self.rates = []

    def add(self, attained):
        """The outcome of one turn at this rate."""
        if self.was_attained not in (None, attained):
            self.counts = self.counts or self.step == STEP
            self.step = max(STEP, math.sqrt(self.step))
        self.was_attained = attained
        if self.counts:
            self.rates.append(self.rate)
        self.rate *= self.step if attained else 1 / self.step
        if len(self.rates) == TURNS or self.rate < LEAST_RATE:
            self.rate = None

    def result(self):
        """(rate, its standard error); (0, 0) if the rates that are attained are below LEAST_RATE."""
        if len(self.rates) < TURNS:
            return 0, 0
        parts = np.mean(np.reshape(self.rates, (PARTS, -1)), axis=1)
        return np.mean(parts), np.std(parts, ddof=1) / math.sqrt(PARTS)
