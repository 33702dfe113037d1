"""Foliot beside the tools whose folders it serves: mlserver, MLflow and scikit-learn, as PyPI has them.

    make test-mlserver
    python tests/mlserver_matrix.py [--only beside|pipelines] [--seed N] [--requests N] [--models PREFIX]

beside: the same folders behind mlserver and behind Foliot, asked the same by mlserver's own codecs over REST and gRPC; names,
shapes, data types, content types and values of the outputs are compared. pipelines: 25 random pipelines of scikit-learn with
columns of texts, over every form of a table, beside what scikit-learn answers.

Runs in an environment of its own, which is made from python/requirements-rival-mlserver.txt when it is first needed. Ends with
1 unless all is equal.
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def environment():
    """The interpreter that has the tools."""
    sys.path.insert(0, str(ROOT / "bench"))
    from rival_servers import environment_of, install

    wrong = install("mlserver")
    if wrong:
        raise SystemExit(f"mlserver cannot be installed: {wrong}")
    return str(environment_of("mlserver") / "bin/python")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--python", help="interpreter of an environment that has the tools; default: one is made")
    options.add_argument("--only", choices=["beside", "pipelines"])
    options.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(31))
    options.add_argument("--requests", type=int, default=200, help="to each folder, over each protocol (default 200)")
    options.add_argument("--models", default="", help="of beside: folders whose names begin so")
    options.add_argument("--pipelines", type=int, default=25)
    chosen = options.parse_args()
    python = chosen.python or environment()
    if pathlib.Path(sys.executable) != pathlib.Path(python):
        os.environ["PYTHONPATH"] = str(ROOT / "python")
        os.execv(python, [python, __file__, "--python", python, "--seed", str(chosen.seed), *sys.argv[1:]])
    sys.path.insert(0, str(ROOT / "tests/mlserver"))
    import beside
    import pipelines

    print(f"--seed {chosen.seed}", flush=True)
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        if chosen.only != "pipelines":
            failures += beside.compare(scratch / "beside", chosen.seed, chosen.requests, chosen.models)
        if chosen.only != "beside":
            failures += pipelines.check_pipelines(scratch / "pipelines", chosen.seed, chosen.pipelines)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
