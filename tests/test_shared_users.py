"""Users of personal models on several front ends: what was acknowledged is there when one is killed, and reads go on."""

import contextlib
import http.client
import re
import struct
import threading

import pytest

from foliot import personal
from foliot_tools.cluster import Frontend, Part
from foliot_tools.server import free_ports
from foliot_tools.waiting import await_output, eventually
from test_personal import GREEDY, IDS, write_version


class Homes:
    """A controller, and front ends that keep users."""

    def __init__(self, folder):
        self.folder = folder
        self.frontends = []

    def __enter__(self):
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self.controller = Part(self.folder / "controller.log", "controller", listen=self.address)
        self.controller.await_line("ready:")
        return self

    def __exit__(self, *_):
        for part in [*self.frontends, self.controller]:
            if part.process.poll() is None:
                part.kill()

    def add(self, name):
        (home_port,) = free_ports(1)
        frontend = Frontend(
            self.folder / f"{name}.log", self.address, name=name, personal=self.folder / "models",
            observations=self.folder / name, home_listen=f"127.0.0.1:{home_port}")
        frontend.await_line("listening:")
        self.frontends.append(frontend)
        return frontend

    def await_named(self, count):
        """The controller has named so many."""
        def is_named():
            return re.findall(r"(\d+) front ends keep users", self.controller.output())[-1:] == [str(count)]

        eventually(is_named, 60, self.controller.output)


@pytest.fixture(name="homes")
def three_front_ends(tmp_path):
    write_version(tmp_path / "models", "1")
    (tmp_path / "models/movies/personal.toml").write_text("lambda = 0.1\n" + GREEDY)
    with Homes(tmp_path) as homes:
        for name in ("one", "two", "three"):
            homes.add(name)
        homes.await_named(3)
        yield homes


def client(frontend):
    return personal.Client(frontend.http, "movies", timeout=5)


def observations_in(folder):
    """Ids by user, in the segments of a log (src/foundation/store/log_frame.h, src/answer/personal/storage/user_records.cc)."""
    found = {}
    for segment in folder.glob("log.*"):
        data = segment.read_bytes()
        at = 48
        while at + 24 <= len(data):
            (length,) = struct.unpack_from("<I", data, at + 16)
            at += 24
            if length == 0 or at + length > len(data):
                break  # it is being written
            record_format, user = struct.unpack_from("<IQ", data, at)
            body = at + 12 + (8 if record_format == 7 else 0)
            (count,) = struct.unpack_from("<I", data, body)
            for i in range(count):
                found.setdefault(user, set()).add(struct.unpack_from("<Q", data, body + 4 + 24 * i)[0])
            at += length
    return found


def taste(group):
    """Half of the users like what the others do not."""
    return 4.5 if group % 2 else -4.5


def observe_until_acknowledged(films, user, number):
    """False: the front end is gone."""
    observation = personal.Observation(user, int(IDS[number % len(IDS)]), 4.0, id=number)
    while True:
        try:
            films.observe_all([observation])
            return True
        except personal.PersonalError:
            continue  # with the same id
        except (OSError, http.client.HTTPException):
            return False


def test_any_front_end_answers_for_any_user(homes):
    one, two, three = homes.frontends
    for user in range(30):
        with client(one) as films:
            films.observe(user, 20, taste(user // 3))
        with client(two) as films:
            assert films.predict(user, 20) * taste(user // 3) > 8
            assert films.top_k(user, 3).places[0].score > 0
        with client(three) as films:
            assert films.predict(user, 20) * taste(user // 3) > 8
    with client(two) as films:
        for user in range(0, 30, 3):
            films.forget(user)
            films.observe(user, 20, -taste(user // 3))
    with client(three) as films:
        for user in range(30):
            likes = taste(user // 3) * (1 if user % 3 else -1)
            assert films.predict(user, 20) * likes > 8, "of both observations the mean would be near zero"


def test_no_acknowledged_observation_is_lost_with_a_front_end(homes):
    one, two, three = homes.frontends
    acknowledged = {}
    failed_reads = []
    stop = threading.Event()

    def observe(frontend, first_user):
        with contextlib.suppress(OSError), client(frontend) as films:
            for number in range(10_000):
                user = first_user + number % 20
                if stop.is_set() or not observe_until_acknowledged(films, user, number):
                    return
                acknowledged.setdefault(user, set()).add(number)

    def read():
        with client(two) as films:
            while not stop.is_set():
                try:
                    films.predict_pairs(range(0, 60), [20] * 60)
                except personal.PersonalError as error:
                    failed_reads.append(error)

    threads = [threading.Thread(target=observe, args=(frontend, 100 * i)) for i, frontend in enumerate(homes.frontends)]
    threads.append(threading.Thread(target=read))
    for thread in threads:
        thread.start()
    eventually(lambda: sum(map(len, list(acknowledged.values()))) > 600, 60)
    three.kill()
    homes.await_named(2)
    before = sum(map(len, list(acknowledged.values())))
    eventually(lambda: sum(map(len, list(acknowledged.values()))) > before + 200, 60)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed_reads

    def lacking():
        """Both that are left have all, each in its own log."""
        for name in ("one", "two"):
            kept = observations_in(homes.folder / name / "movies")
            for user, numbers in acknowledged.items():
                missing = sorted(numbers - kept.get(user, set()))
                if missing:
                    return f"front end {name} lacks observations {missing[:5]} of user {user}"
        return ""

    eventually(lambda: not lacking(), 60, lacking)
    assert homes.frontends[0].stop() == 0 and homes.frontends[1].stop() == 0


def test_a_front_end_that_comes_back_has_all_again(homes):
    one, two, three = homes.frontends
    with client(one) as films:
        for user in range(40):
            films.observe(user, 20, taste(user // 4))
    three.kill()
    homes.await_named(2)
    with client(two) as films:
        for user in range(40):
            films.observe(user, 30, taste(user // 4), id=77)
            if user % 4 == 0:
                films.forget(user)
                films.observe(user, 20, -taste(user // 4))
    three.start()
    homes.await_named(3)
    with client(three) as films:
        for user in range(40):
            if user % 4 == 0:
                assert films.predict(user, 20) * -taste(user // 4) > 8, "its old copy is forgotten, too"
            else:
                assert films.predict(user, 30) * taste(user // 4) > 8


def test_bad_flags_are_named(tmp_path):
    part = Part(tmp_path / "log", "frontend", personal=tmp_path / "none", metrics_port=0, http_port=0, grpc_port=0)
    assert part.process.wait(30) == 1
    await_output(part, "none")
