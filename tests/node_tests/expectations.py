"""Which node tests are expected to fail: expected_failures.txt, and what breaks its promise."""

import pathlib

LIST = pathlib.Path(__file__).parent / "expected_failures.txt"
ROUNDING = "by rounding"


def read(path=LIST):
    """Case -> why it fails."""
    lines = [line.split(None, 1) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name: why.strip() for name, why in lines}


def breaches(outcomes, expected):
    """What must not be, as sentences: a failure that is not listed, or a listed one that is none."""
    verdicts = {outcome.name: outcome.verdict for outcome in outcomes}
    found = [
        f"{outcome.name} fails and is not in {LIST.name}: {outcome.reason}"
        for outcome in outcomes
        if outcome.verdict == "fail" and outcome.name not in expected
    ]
    for name, why in expected.items():
        verdict = verdicts.get(name)
        if verdict is None:
            found.append(f"{name} is no case of this version of onnx: remove it from {LIST.name}")
        elif verdict == "refused":
            found.append(f"{name} is refused on purpose: remove it from {LIST.name}")
        elif verdict == "pass" and why != ROUNDING:
            found.append(f"{name} passes: remove it from {LIST.name}")
    return found
