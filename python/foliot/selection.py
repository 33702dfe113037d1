"""The process of an application's policy in Python: python -m foliot.selection FOLDER, as foliot.runtime.

The class `Policy` of the policy's file is a model of one row: the state of one context and the feedback that it has not seen
go in, the state after it and the numbers by which models are asked come out (docs/APPLICATIONS.md#a-policy-of-your-own).
"""

import os

from foliot import loading, runtime
from foliot.description import ModelError, make_description
from foliot.registration import Model

STATE_MAX = 4096  # numbers
FEEDBACK_MAX = 64  # observations of one call
METHODS = ("init", "select", "observe")


def description_of(models):
    """What src/answer/own_policies/policy_process.cc writes and reads."""
    return make_description(
        # counts: whether the state is to be made, its numbers, the observations.
        inputs={"counts": ("INT64", [3]), "state": ("FP64", [STATE_MAX]), "weights": ("FP64", [FEEDBACK_MAX, models]),
                "losses": ("FP64", [FEEDBACK_MAX, models])},
        # counts: the state's numbers, whether models are asked together.
        outputs={"counts": ("INT64", [2]), "state": ("FP64", [STATE_MAX]), "weights": ("FP64", [models])},
        batch_size_max=1)


def numbers_of(given):
    """None: it is no array of numbers."""
    import numpy as np

    try:
        return np.asarray(given, np.float64)
    except (OverflowError, TypeError, ValueError):
        return None


def weights_of(given, names, method):
    """What select() or combine() returned, by the position of its model. Raises ValueError."""
    import numpy as np

    if isinstance(given, str):
        given = {given: 1}
    if isinstance(given, dict):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(f"{method} returned the unknown model {unknown[0]!r}; the application has {', '.join(names)}")
        given = [given.get(name, 0) for name in names]
    weights = numbers_of(given)
    if weights is None or weights.shape != (len(names),):
        raise ValueError(f"{method} returned {given!r:.99}; it must be a list of {len(names)} numbers, one for each model, "
                         "a dict {model: number}, or a model's name")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(f"{method} returned {weights.tolist()}; they must be numbers from 0 on, and one above")
    weights = weights / weights.max()  # the sum of large numbers may be none
    return weights / weights.sum()


def state_of(given, method):
    import numpy as np

    state = numbers_of(given)
    if state is None or state.ndim != 1 or len(state) > STATE_MAX or not np.isfinite(state).all():
        raise ValueError(f"{method} returned a state that is no list of at most {STATE_MAX} finite numbers")
    return state


def policy_model(policy, names):
    """The Policy as a Model."""
    import numpy as np

    combine = getattr(policy, "combine", None)

    def predict(batch):
        begins, size, observations = batch["counts"][0]
        state = state_of(policy.init(list(names)), "init") if begins else batch["state"][0, :size].copy()
        for weights, losses in zip(batch["weights"][0, :observations], batch["losses"][0, :observations]):
            state = state_of(policy.observe(state, weights, losses), "observe")
        weights = weights_of(policy.select(state.copy()), names, "select")
        if combine is not None:
            # Those that select() leaves out are not asked.
            weights = weights_of(np.where(weights > 0, weights_of(combine(state.copy()), names, "combine"), 0), names, "combine")
        padded = np.zeros((1, STATE_MAX))
        padded[0, :len(state)] = state
        return {"counts": np.array([[len(state), combine is not None]]), "state": padded, "weights": weights[None]}

    return Model(description_of(len(names)), predict, "the policy")


def load(folder):
    """The model that the process serves. Raises ModelError."""
    file, names = os.environ["FOLIOT_POLICY"], os.environ["FOLIOT_POLICY_MODELS"].split("\n")

    def model_of(module):
        policy = getattr(module, "Policy", None)
        missing = [method for method in METHODS if not callable(getattr(policy, method, None))]
        if missing:
            raise ModelError(f"{file} needs a class Policy with the methods {', '.join(METHODS)}; {missing[0]} is missing")
        return policy_model(policy(), names)

    return loading.load_module(folder, file, model_of)


if __name__ == "__main__":
    runtime.run(load)
