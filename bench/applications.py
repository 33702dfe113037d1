#!/usr/bin/env python3
"""Applications of scikit-learn models on handwritten digits, as in the figures of Clipper's section 3.5, through
`foliot serve`: the error of an ensemble and of what its models agree on (Figure 3.7), ensembles with a straggler under an SLO
of 20 ms (3.9), a policy that learns for each of eight contexts (3.10), and how many observations of feedback a second are
processed, with and without the prediction cache (section 3.3).

The models run in containers. Each part trains what it needs. The behaviour under a model that breaks (3.8) is a test:
`answer_selection_test --gtest_filter='ModelFailure*'`."""

import argparse
import json
import pathlib
import re
import socket
import sys
import tempfile
import time
import warnings
from collections import Counter

import numpy as np
import skops.io
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC

from foliot_tools.http_load import HttpLoad
from foliot_tools.server import ROOT, Server

sys.path.insert(0, str(ROOT / "tests/figures"))
from figure import machine, say  # noqa: E402

TRAINED_ON = 500  # images; the others are asked about
OWN_IMAGES = 150  # that each model of an ensemble is trained on, drawn from these
SLO_SECONDS = 0.02
ENSEMBLE = {
    "nearest_neighbours": lambda seed: KNeighborsClassifier(),
    "extra_trees": lambda seed: ExtraTreesClassifier(random_state=seed),
    "random_forest": lambda seed: RandomForestClassifier(random_state=seed),
    "logistic_regression": lambda seed: LogisticRegression(max_iter=200),
    "neural_network": lambda seed: MLPClassifier((64,), max_iter=300, learning_rate_init=0.005, random_state=seed),
}
STRAGGLER = """import foliot, skops.io, time

forest = skops.io.load("model.skops", trusted=["sklearn.tree._tree.Tree"])
calls = 0

@foliot.model(inputs={"x": ("FP32", [64])}, outputs={"y": ("INT64", [])})
def predict(batch):
    global calls
    calls += 1
    if calls % %(every)d == 0:
        time.sleep(%(seconds)g)
    return {"y": forest.predict(batch["x"])}
"""
SLOW_EVERY, SLOW_SECONDS = 20, 0.06  # of the straggler: so many calls take so long


def digits(seed, noise=0.0):
    """(rows for training, their labels, rows to ask about, their labels), each pixel from 0 to 1."""
    data = load_digits()
    random = np.random.default_rng(seed)
    rows = (data.data / 16 + random.normal(0, noise, data.data.shape)).astype(np.float32)
    order = random.permutation(len(rows))
    train, test = order[:TRAINED_ON], order[TRAINED_ON:]
    return rows[train], data.target[train], rows[test], data.target[test]


def write_model(repository, name, estimator, code='import foliot\nfoliot.sklearn("model.skops")\n', settings="",
                container=""):
    folder = repository / name
    folder.mkdir(parents=True)
    skops.io.dump(estimator, folder / "model.skops")
    (folder / "model.py").write_text(code)
    (folder / "model.toml").write_text(f'{settings}[container]\npython = "{sys.executable}"\n{container}')


def write_application(repository, name, models, policy, settings=""):
    (repository / name).mkdir(parents=True)
    models = ", ".join(f'"{model}"' for model in models)
    (repository / name / "application.toml").write_text(f"models = [{models}]\n{settings}policy = {policy}\n")


def post(path, body):
    return (f"POST {path} HTTP/1.1\r\nHost: foliot\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            .encode() + body)


def question(model, row, parameters=None):
    body = {"inputs": [{"name": "x", "shape": [1, len(row)], "datatype": "FP32", "data": [float(each) for each in row]}]}
    if parameters:
        body["parameters"] = parameters
    return post(f"/v2/models/{model}/infer", json.dumps(body).encode())


def feedback(application, feedback_id, label):
    return post(f"/v2/applications/{application}/feedback",
                b'{"feedback_id": "%s", "label": %d}' % (feedback_id.encode(), label))


class Connection:
    """Keeps alive; several requests may be sent before the first answer is read."""

    def __init__(self, server):
        host, port = server.http.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def send(self, *messages):
        self.socket.sendall(b"".join(messages))

    def receive(self):
        """The body of the next answer. Raises RuntimeError unless its status is 200."""
        while True:
            head, separator, rest = self.buffer.partition(b"\r\n\r\n")
            if separator:
                length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
                if len(rest) >= length:
                    self.buffer = rest[length:]
                    if not head.startswith(b"HTTP/1.1 200"):
                        raise RuntimeError(f"{head[:60]!r}: {rest[:length]!r}")
                    return rest[:length]
            received = self.socket.recv(1 << 18)
            if not received:
                raise RuntimeError("the server closed a connection")
            self.buffer += received


    def receive_all(self, count):
        """So many answers at once, without their bodies. Raises RuntimeError unless the status of all is 200."""
        while (answers := self.buffer.count(b"HTTP/1.1 ")) < count or not self.is_whole():
            if answers != self.buffer.count(b"HTTP/1.1 200 "):
                raise RuntimeError(f"{self.buffer[-200:]!r}")
            received = self.socket.recv(1 << 18)
            if not received:
                raise RuntimeError("the server closed a connection")
            self.buffer += received
        self.buffer = b""

    def is_whole(self):
        """Whether the last answer in the buffer is."""
        head, separator, body = self.buffer[self.buffer.rfind(b"HTTP/1.1 "):].partition(b"\r\n\r\n")
        return not head or bool(separator) and len(body) == int(re.search(rb"(?i)content-length: *(\d+)", head)[1])


def ask_all(connections, messages):
    """The answers, decoded, in order; as many requests are under way as there are connections."""
    answers = []
    for first in range(0, len(messages), len(connections)):
        asked = list(zip(connections, messages[first:first + len(connections)]))
        for connection, message in asked:
            connection.send(message)
        answers += [json.loads(connection.receive()) for connection, _ in asked]
    return answers


def label_in(answer):
    return answer["outputs"][0]["data"][0]


def ensembles(folder, arguments):
    """Figure 3.7: a vote of five models, and its error by how many of them agree."""
    print("\nErrors of five models, of their vote, and of the vote by how many agree; in percent, and the share of the digits\n")
    names = list(ENSEMBLE)
    print(f"| seed | {' | '.join(name.replace('_', ' ') for name in names)} | vote | 4 or 5 agree | 5 agree | 4 agree | fewer |")
    print(f"|---|{'---|' * (len(names) + 5)}")
    for seed in range(1, arguments.seeds + 1):
        rows, labels, asked, truth = digits(seed, 0.05)
        repository = folder / f"ensemble_{seed}"
        random = np.random.default_rng(seed)
        for name in names:
            own = random.choice(len(rows), OWN_IMAGES, replace=False)
            write_model(repository, name, ENSEMBLE[name](seed).fit(rows[own], labels[own]))
        write_application(repository, "vote", names, '"majority"')
        with Server(repository, folder / "log") as server:
            connections = [Connection(server) for _ in range(8)]

            def wrong(model):
                answers = ask_all(connections, [question(model, row) for row in asked])
                return np.array([label_in(answer) for answer in answers]) != truth, answers

            errors = [wrong(name)[0].mean() for name in names]
            votes, answers = wrong("vote")
        agree = np.array([round(5 * answer["parameters"]["confidence"]) for answer in answers])
        groups = [agree >= 4, agree == 5, agree == 4, agree < 4]
        cells = [f"{100 * error:.1f}" for error in [*errors, votes.mean()]]
        cells += [f"{100 * votes[group].mean():.1f} ({100 * group.mean():.0f})" if group.any() else "-" for group in groups]
        print(f"| {seed} | {' | '.join(cells)} |", flush=True)


def stragglers(folder, arguments):
    """Figure 3.9: larger and larger ensembles of forests, of which one is slow now and then."""
    print(f"\nForests of ten trees at {arguments.rate:g} calls/s with an SLO of {1000 * SLO_SECONDS:.0f} ms; one of them takes "
          f"{1000 * SLOW_SECONDS:.0f} ms in every {SLOW_EVERY}th of its calls\n")
    print("| forests | calls | p50 ms | p99 ms | max ms | refused | due first | missing | accuracy | of all forests |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    rows, labels, asked, truth = digits(1)
    random = np.random.default_rng(1)
    forests = []
    for number in range(16):
        drawn = random.choice(len(rows), 200)
        forests.append(RandomForestClassifier(10, random_state=number).fit(rows[drawn], labels[drawn]))
    for count in (2, 4, 8, 16):
        repository = folder / f"forests_{count}"
        names = [f"forest_{number}" for number in range(count)]
        for number, name in enumerate(names):
            every = SLOW_EVERY if number == 0 else 1 << 60
            code = STRAGGLER.replace("%(every)d", str(every)).replace("%(seconds)g", str(SLOW_SECONDS))
            write_model(repository, name, forests[number], code, container="batch_size_max = 8\n")
        write_application(repository, "forests", names, '"majority"')
        with Server(repository, folder / "log") as server:
            time.sleep(1)
            with HttpLoad(server.http, model="forests", inputs=asked, expected=[truth.reshape(-1, 1)], rate=arguments.rate,
                          deadline_seconds=SLO_SECONDS, input_name="x") as load:
                time.sleep(arguments.seconds)
            page = server.metrics()
        requests = load.report.requests
        answered = [request for request in requests if request.outcome in ("served", "wrong")]
        took = np.array([request.answered - request.at for request in answered]) * 1e3
        missing = sum(page.get(f'foliot_application_missing_total{{application="forests",model="{name}"}}', 0)
                      for name in names)
        expired = page.get('foliot_application_expired_total{application="forests"}', 0)
        votes = np.array([forest.predict(asked) for forest in forests[:count]])
        vote_is_right = np.array([np.bincount(column, minlength=10).argmax() for column in votes.T]) == truth
        # On the same images: those of 200 calls differ by more than the models do.
        whole = np.mean([vote_is_right[request.input] for request in answered])
        right = np.mean([request.outcome == "served" for request in answered])
        p50, p99 = np.quantile(took, [0.5, 0.99])
        say(f"{count} forests: {dict(Counter(request.outcome for request in requests))}; the one with a straggler: "
            f"{ends_of(page, names[:1])}; the others: {ends_of(page, names[1:])}")
        print(f"| {count} | {len(requests)} | {p50:.1f} | {p99:.1f} | {took.max():.1f} | {len(requests) - len(answered)} | "
              f"{expired:.0f} | {100 * missing / (count * len(requests)):.1f} % | {100 * right:.1f} % | {100 * whole:.1f} % |",
              flush=True)


def ends_of(page, models):
    """How the requests of these models ended, and how many did so."""
    ends = Counter()
    for name, value in page.items():
        found = re.fullmatch(r'foliot_requests_total\{model="(.*)",outcome="(.*)"\}', name)
        if found and found[1] in models and value:
            ends[found[2]] += int(value)
    return dict(ends)


def contexts(folder, arguments):
    """Figure 3.10: digits that are turned by an angle of their own in each of eight contexts."""
    angles = np.arange(8) * 12.0 - 42
    rows, labels, asked, truth = digits(1)

    def turned(pixels, angle):
        return np.array([rotate(row.reshape(8, 8), angle, reshape=False, order=1).ravel() for row in pixels], np.float32)

    repository = folder / "contexts"
    names = [f"dialect_{number}" for number in range(len(angles))]
    random = np.random.default_rng(1)
    shares = [random.choice(len(rows), arguments.dialect_rows, replace=False) for _ in angles]
    trained = [(turned(rows[share], angle), labels[share]) for share, angle in zip(shares, angles)]
    for name, (pixels, digit) in zip(names, trained):
        write_model(repository, name, LogisticRegression(max_iter=200).fit(pixels, digit))
    every = LogisticRegression(max_iter=200).fit(np.concatenate([pixels for pixels, _ in trained]),
                                                 np.concatenate([digit for _, digit in trained]))
    write_model(repository, "oblivious", every)
    write_application(repository, "learned", names, '{ name = "exp4", eta = 0.05 }')
    count = arguments.calls
    wrong = {side: np.zeros((len(angles), count)) for side in ("oblivious", "designated", "learned")}
    with Server(repository, folder / "log") as server:
        connections = [Connection(server) for _ in angles]
        questions = [turned(asked[:count], angle) for angle in angles]
        for call in range(count):
            # One call of each context at a time, and its feedback before its next one.
            for side in wrong:
                messages = [question({"designated": names[which]}.get(side, side), questions[which][call],
                                     {"context": names[which]} if side == "learned" else None)
                            for which in range(len(angles))]
                answers = ask_all(connections, messages)
                wrong[side][:, call] = [label_in(answer) != truth[call] for answer in answers]
            ask_all(connections, [feedback("learned", answer["parameters"]["feedback_id"], truth[call]) for answer in answers])
    print(f"\nErrors in eight contexts, {count} calls each with feedback at once, in percent\n")
    print("| calls | one model for all | the context's own model | Exp4 over all eight, learned for each context |")
    print("|---|---|---|---|")
    for first, last in ((0, count // 4), (count // 4, count), (0, count)):
        cells = " | ".join(f"{100 * errors[:, first:last].mean():.1f}" for errors in wrong.values())
        print(f"| {first + 1} to {last} | {cells} |", flush=True)
    better = int((wrong["learned"].mean(1) < wrong["designated"].mean(1)).sum())
    print(f"\nBelow the context's own model in {better} of {len(angles)} contexts.")


def observations(folder, arguments):
    """Section 3.3: an observation is an answer of four models and its feedback; inputs repeat."""
    rows, labels, asked, truth = digits(1)
    models = {"random_forest": RandomForestClassifier(random_state=1), "logistic_regression": LogisticRegression(max_iter=200),
              "linear_svm": LinearSVC(), "kernel_svm": SVC()}
    popular, rates = 200, {}
    for cache in ("false", "true"):
        repository = folder / f"observations_{cache}"
        for name, model in models.items():
            write_model(repository, name, model.fit(rows, labels), settings=f"cache = {cache}\n")
        write_application(repository, "digits", models, '"exp4"')
        with Server(repository, folder / "log") as server:
            connections = [Connection(server) for _ in range(32)]
            questions = [question("digits", row) for row in asked[:popular]]

            def observe(count):
                begin = time.perf_counter()
                for _ in range(count // popular):
                    answers = ask_all(connections, questions)
                    ask_all(connections, [feedback("digits", answer["parameters"]["feedback_id"], label)
                                          for answer, label in zip(answers, truth)])
                return count / (time.perf_counter() - begin)

            observe(popular)
            rates[cache] = observe(arguments.observations)
            if cache == "true":
                rates["feedback"] = feedback_alone(connections, questions, truth, 4 * arguments.observations)
    print("\nObservations per second: a call of four models on inputs that repeat, and its feedback, over HTTP\n")
    print("| | per second |\n|---|---|")
    print(f"| without the cache | {rates['false']:.0f} |")
    print(f"| with the cache | {rates['true']:.0f} ({rates['true'] / rates['false']:.1f} times) |")
    print(f"| feedback alone, on answers given before | {rates['feedback']:.0f} |", flush=True)


def feedback_alone(connections, questions, truth, count):
    """Feedback per second, sent 64 at a time on each of four connections in turn. A connection's answers are read before
    it is sent the next: meanwhile the server has those of the others."""
    messages = []
    while len(messages) < count:
        messages += [feedback("digits", answer["parameters"]["feedback_id"], label)
                     for answer, label in zip(ask_all(connections, questions), truth)]
    batches = [b"".join(messages[first:first + 64]) for first in range(0, count, 64)]
    used, unread = connections[:4], [0] * 4
    begin = time.perf_counter()
    for number, batch in enumerate(batches):
        used[number % 4].receive_all(unread[number % 4])
        used[number % 4].send(batch)
        unread[number % 4] = min(64, count - 64 * number)
    for connection, answers in zip(used, unread):
        connection.receive_all(answers)
    return count / (time.perf_counter() - begin)


PARTS = {"ensembles": ensembles, "stragglers": stragglers, "contexts": contexts, "observations": observations}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Each part takes one to three minutes; with --quick, all take less than four.")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"what to measure: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="of ensembles: splits of the digits (default: 5)")
    parser.add_argument("--rate", type=float, default=20, metavar="N", help="of stragglers: calls per second (default: 20)")
    parser.add_argument("--seconds", type=float, default=30, metavar="N",
                        help="of stragglers: how long each ensemble is asked (default: 30)")
    parser.add_argument("--calls", type=int, default=1000, metavar="N",
                        help="of contexts: calls in each, 1297 at most (default: 1000)")
    parser.add_argument("--dialect-rows", type=int, default=60, metavar="N",
                        help="of contexts: digits that the model of each is trained on, 500 at most (default: 60)")
    parser.add_argument("--observations", type=int, default=10000, metavar="N",
                        help="of observations: how many (default: 10000)")
    parser.add_argument("--quick", action="store_true", help="little of each part: to see that it works")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds, arguments.seconds, arguments.calls, arguments.observations = 1, 5, 100, 2000
    warnings.simplefilter("ignore")  # of training that ends before it converges
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
        for part in arguments.parts:
            say(part)
            PARTS[part](pathlib.Path(folder), arguments)
    print(f"\n{machine()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
