"""The layering check finds what it is there to find."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402: needs the path
import rooms  # noqa: E402

ROOMS = rooms.Rooms.load()


@pytest.fixture
def src(tmp_path):
    """A src/ with one good header in every room that the cases include from."""
    for header in ("foundation/base/time.h", "foundation/core/action.h", "engine/worker/worker.h", "control/controller/policy.h", "app/command.h",
                   "control/policies/fcfs/fcfs.h", "engine/device/device.h"):
        write(tmp_path, header, guarded(header))
    return tmp_path


def guarded(path, body=""):
    guard = "FOLIOT_" + path.replace("/", "_").replace(".", "_").upper() + "_"
    return f"// What it is.\n#ifndef {guard}\n#define {guard}\n\n{body}\n#endif  // {guard}\n"


def write(src, path, text):
    (src / path).parent.mkdir(parents=True, exist_ok=True)
    (src / path).write_text(text)


def test_the_project_itself_passes():
    assert check_layers.check(ROOT / "src", ROOMS) == []


def test_what_the_table_allows_passes(src):
    write(src, "control/controller/controller.cc", '#include "foundation/base/time.h"\n#include "foundation/core/action.h"\n#include <vector>\n')
    write(src, "control/policies/clockwork/clockwork.cc", '#include "control/controller/policy.h"\n')
    write(src, "app/serve.cc", '#include "engine/worker/worker.h"\n#include <CLI/CLI.hpp>\n')
    write(src, "engine/device/cpu/kernels.cc", '#include "engine/device/device.h"\n#include <oneapi/dnnl/dnnl.hpp>\n')
    assert check_layers.check(src, ROOMS) == []


@pytest.mark.parametrize(
    "path, text, complaint",
    [
        ("control/controller/a.cc", '#include "engine/worker/worker.h"\n', "control/controller may include only control/controller, foundation/base, control/variants, foundation/core"),
        ("foundation/base/a.cc", '#include "foundation/core/action.h"\n', "foundation/base may include only foundation/base"),
        ("foundation/core/a.cc", '// first line\n#include "engine/device/device.h"\n', "src/foundation/core/a.cc:2: includes engine/device/device.h"),
        ("control/policies/edf/edf.cc", '#include "control/policies/fcfs/fcfs.h"\n', "includes control/policies/fcfs/fcfs.h"),
        ("engine/worker/a.cc", '#include "app/command.h"\n', "nobody includes app"),
        ("control/controller/a_test.cc", '#include "app/command.h"\n', "nobody includes app"),
        ("control/attic/a.cc", "", "the room 'control/attic' is not in src/rooms.json"),
        ("engine/worker/a.cc", "#include <dnnl.hpp>\n", "only engine/device/cpu may"),
        ("engine/device/a.cc", "#include <oneapi/dnnl/dnnl.hpp>\n", "only engine/device/cpu may"),
        ("foundation/logging/a.cc", "#include <CLI/CLI.hpp>\n", "only app may"),
        ("engine/program/a.cc", "#include <onnx/onnx_pb.h>\n", "only engine/compiler, models/steps may"),
        ("foundation/core/a.cc", "#include <grpcpp/grpcpp.h>\n", "includes grpcpp/grpcpp.h"),
        ("engine/worker/a.cc", '#include "package.pb.h"\n', "includes package.pb.h"),
        ("control/controller/a.cc", "#include <boost/asio/io_context.hpp>\n", "includes boost/asio/io_context.hpp"),
        ("engine/compiler/a.cc", "#include <toml++/toml.h>\n", "only foundation/config may"),
        ("control/controller/a.cc", "auto t = std::chrono::steady_clock::now();\n", "uses steady_clock"),
        ("engine/worker/a.h", guarded("engine/worker/a.h", "std::jthread thread_;\n"), "uses std::jthread"),
        ("control/policies/edf/edf.cc", "\nstd::this_thread::sleep_for(x);\n", "src/control/policies/edf/edf.cc:2: uses sleep_for"),
        ("foundation/core/a.cc", "std::random_device random;\n", "uses random_device"),
        ("engine/worker/a.cc", "std::mutex mutex_;\n", "uses std::mutex: take that of foundation/base/mutex.h"),
        ("edge/http/a.cc", "\nconst std::unique_lock lock(mutex_);\n", "src/edge/http/a.cc:2: uses std::unique_lock"),
        ("node/server/a.cc", "std::condition_variable_any changed_;\n", "uses std::condition_variable_any"),
        ("foundation/core/a.h", "#pragma once\n", "the include guard must be FOLIOT_FOUNDATION_CORE_A_H_"),
        ("foundation/core/a.h", guarded("foundation/core/b.h"), "the include guard must be FOLIOT_FOUNDATION_CORE_A_H_"),
    ],
)
def test_a_breach_is_found(src, path, text, complaint):
    write(src, path, text)
    breaches = check_layers.check(src, ROOMS)
    assert len(breaches) == 1, breaches
    assert breaches[0].startswith(f"src/{path}:")
    assert complaint in breaches[0]


def test_bare_locks_are_for_tests_and_the_header_of_the_checked_ones(src):
    write(src, "foundation/base/mutex.h", guarded("foundation/base/mutex.h", "std::mutex mutex_;\n"))
    write(src, "node/server/a_test.cc", "std::mutex mutex;\nstd::lock_guard lock(mutex);\n")
    assert check_layers.check(src, ROOMS) == []


def test_a_folder_within_a_room_belongs_to_it(src):
    write(src, "engine/worker/parts/a.cc", '#include "engine/worker/worker.h"\n')
    assert check_layers.check(src, ROOMS) == []
    write(src, "engine/worker/parts/a.cc", '#include "control/controller/policy.h"\n')
    assert len(check_layers.check(src, ROOMS)) == 1


def test_a_comment_is_no_breach(src):
    write(src, "control/controller/a.cc", "// unlike std::thread, steady_clock, std::mutex and sleep_for\n")
    assert check_layers.check(src, ROOMS) == []


def test_clocks_and_threads_are_free_where_they_belong(src):
    write(src, "foundation/platform/a.cc", "std::jthread t; auto n = std::chrono::steady_clock::now();\n")
    assert check_layers.check(src, ROOMS) == []


def table(**may_include):
    """A table of two wings with three rooms; `may_include` replaces the rule of the room of that name."""
    entries = [{"room": room, "may_include": may_include.get(room.split("/")[1], rule), "holds": room}
               for room, rule in (("below/base", []), ("below/core", []), ("above/worker", ["below/core"]))]
    return rooms.Rooms({"wings": {"below": "b", "above": "a"}, "rooms": entries, "headers": {}, "state_machines": []})


@pytest.mark.parametrize("rule", [[], ["below"], ["below/base", "below/core"], ["*"]])
def test_a_rule_names_rooms_or_wings_below(rule):
    assert list(check_layers.check_table(table(worker=rule))) == []


@pytest.mark.parametrize("room, rule, complaint", [
    ("core", "above/worker", "src/rooms.json: below/core includes above/worker, which does not stand before it"),
    ("core", "above", "src/rooms.json: below/core includes above, which does not stand before it"),
    ("worker", "above", "src/rooms.json: above/worker includes above, which does not stand before it"),
    ("worker", "attic", "src/rooms.json: above/worker includes attic, which does not stand before it"),
])
def test_no_room_includes_what_stands_after_it(room, rule, complaint):
    assert list(check_layers.check_table(table(**{room: [rule]}))) == [complaint]


def test_no_wing_includes_one_above_it_though_its_room_stands_before():
    entries = [{"room": room, "may_include": rule, "holds": room}
               for room, rule in (("above/worker", []), ("below/core", ["above/worker"]))]
    upside_down = rooms.Rooms({"wings": {"below": "b", "above": "a"}, "rooms": entries, "headers": {}, "state_machines": []})
    assert list(check_layers.check_table(upside_down)) == [
        "src/rooms.json: below/core includes above/worker, whose wing stands above below"
    ]


def test_the_name_of_a_wing_means_its_rooms_but_not_those_for_tests():
    assert ROOMS.allows("engine", "engine/device/cpu")
    assert not ROOMS.allows("engine", "engine/device/conformance")
    assert not ROOMS.allows("engine", "control/controller")
    assert ROOMS.allows("app", "app")


def test_a_folder_that_is_no_wing_is_found(src):
    (src / "attic").mkdir()
    assert list(check_layers.check_folders(src, ROOMS)) == ["src/attic: is no wing of src/rooms.json"]


def test_a_document_has_the_table_as_it_is(tmp_path, monkeypatch, capsys):
    document = tmp_path / "ARCHITECTURE.md"
    document.write_text("Before.\n\n<!-- rooms -->\n| old |\n<!-- /rooms -->\n\nAfter.\n")
    monkeypatch.setattr(sys, "argv", ["rooms.py", "--check", str(document)])
    assert rooms.main() == 1
    assert "tools/rooms.py --write" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["rooms.py", "--write", str(document)])
    assert rooms.main() == 0
    monkeypatch.setattr(sys, "argv", ["rooms.py", "--check", str(document)])
    assert rooms.main() == 0
    text = document.read_text()
    assert text.startswith("Before.\n") and text.endswith("\nAfter.\n")
    assert "| worker | executors, page cache, io cache; the engine under them: native, for compiled programs | engine/program, engine/device, foundation/core |\n" in text


def test_a_room_that_is_too_large_is_named(src, capsys):
    write(src, "engine/worker/much.cc", "// line\n" * rooms.LINES_MAX)
    write(src, "control/controller/much_test.cc", "// line\n" * (rooms.LINES_MAX + 1))
    write(src, "engine/compiler/much.cc", "// line\n" * (rooms.LINES_MAX + 1))
    write(src, "engine/device/cpu/much.cc", "// line\n" * (rooms.LINES_MAX + 1))
    assert rooms.check_lines(ROOMS, src) == 1
    assert f"src/engine/worker has {rooms.LINES_MAX + 6} lines" in capsys.readouterr().err
