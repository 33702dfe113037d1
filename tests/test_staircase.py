"""The staircase finds the rate that is attained in half of the turns, from wherever it starts."""

import math

import numpy as np
import pytest
from foliot_tools.staircase import FIRST_STEP, LEAST_RATE, TURNS, Staircase

LIMIT = 1000


def climbed(first_rate, attains, turns_max=200):
    """The staircase when it has ended, and the rates of its turns."""
    staircase, rates = Staircase(first_rate), []
    while staircase.rate is not None:
        assert len(rates) < turns_max
        rates.append(staircase.rate)
        staircase.add(attains(staircase.rate))
    return staircase, rates


@pytest.mark.parametrize("first_rate", [100, LIMIT, 10000])
def test_finds_a_sharp_limit(first_rate):
    staircase, rates = climbed(first_rate, lambda rate: rate <= LIMIT)
    rate, error = staircase.result()
    assert rate == pytest.approx(LIMIT, rel=0.03)  # its last step
    assert error < 0.01 * LIMIT
    assert len(rates) < TURNS + 20


@pytest.mark.parametrize("first_rate", [500, LIMIT, 3000])
def test_finds_the_rate_attained_in_half_of_the_turns(first_rate):
    random = np.random.default_rng(7)

    def attains(rate):
        return random.random() < 1 / (1 + (rate / LIMIT) ** 20)

    found = [climbed(first_rate, attains)[0].result() for _ in range(200)]
    rates, errors = np.transpose(found)
    assert np.mean(rates) == pytest.approx(LIMIT, rel=0.02)
    true_error = np.std(rates)
    assert 0.4 * true_error < math.sqrt(np.mean(np.square(errors))) < true_error


@pytest.mark.parametrize("first_rate, first_step", [(LIMIT / 2, FIRST_STEP), (LIMIT * 2, 1 / FIRST_STEP)])
def test_steps_shrink_from_the_first_reversal_on(first_rate, first_step):
    rates = climbed(first_rate, lambda rate: rate <= LIMIT)[1]
    steps = [later / earlier for earlier, later in zip(rates, rates[1:])]
    assert steps[:4] == pytest.approx([first_step] * 3 + [first_step ** -0.5])


def test_turns_before_the_last_step_do_not_count():
    # By luck the first turns are attained at ten times the limit.
    lucky = iter([True] * 3)
    rate, _ = climbed(10 * LIMIT, lambda rate: next(lucky, rate <= LIMIT))[0].result()
    assert rate == pytest.approx(LIMIT, rel=0.03)


def test_ends_where_no_rate_is_attained():
    staircase, rates = climbed(LIMIT, lambda rate: False)
    assert staircase.result() == (0, 0)
    assert rates[-1] / rates[-2] < 1 and rates[-1] >= LEAST_RATE
