#!/usr/bin/env python3
"""Measures every figure that Foliot promises and prints one table."""

import sys

import faults
import many_models
import model_updates
import overload
import restart
import simulation
from figure import print_figures

if __name__ == "__main__":
    sys.exit(print_figures([*restart.measure(), *many_models.measure(), *overload.measure(), *simulation.measure(),
                            *model_updates.measure(model_updates.read_options([])), *faults.measure(20)]))
