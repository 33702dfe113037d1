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
    for header in ("base/time.h", "core/action.h", "worker/worker.h", "controller/policy.h", "app/command.h",
                   "policies/fcfs/fcfs.h", "device/device.h"):
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
    write(src, "controller/controller.cc", '#include "base/time.h"\n#include "core/action.h"\n#include <vector>\n')
    write(src, "policies/clockwork/clockwork.cc", '#include "controller/policy.h"\n')
    write(src, "app/serve.cc", '#include "worker/worker.h"\n#include <CLI/CLI.hpp>\n')
    write(src, "device/cpu/kernels.cc", '#include "device/device.h"\n#include <oneapi/dnnl/dnnl.hpp>\n')
    assert check_layers.check(src, ROOMS) == []


@pytest.mark.parametrize(
    "path, text, complaint",
    [
        ("controller/a.cc", '#include "worker/worker.h"\n', "controller may include only controller, base, variants, core"),
        ("base/a.cc", '#include "core/action.h"\n', "base may include only base"),
        ("core/a.cc", '// first line\n#include "device/device.h"\n', "src/core/a.cc:2: includes device/device.h"),
        ("policies/edf/edf.cc", '#include "policies/fcfs/fcfs.h"\n', "includes policies/fcfs/fcfs.h"),
        ("worker/a.cc", '#include "app/command.h"\n', "nobody includes app"),
        ("controller/a_test.cc", '#include "app/command.h"\n', "nobody includes app"),
        ("attic/a.cc", "", "the room 'attic' is not in src/rooms.json"),
        ("worker/a.cc", "#include <dnnl.hpp>\n", "only device/cpu may"),
        ("device/a.cc", "#include <oneapi/dnnl/dnnl.hpp>\n", "only device/cpu may"),
        ("logging/a.cc", "#include <CLI/CLI.hpp>\n", "only app may"),
        ("program/a.cc", "#include <onnx/onnx_pb.h>\n", "only compiler, steps may"),
        ("core/a.cc", "#include <grpcpp/grpcpp.h>\n", "includes grpcpp/grpcpp.h"),
        ("worker/a.cc", '#include "package.pb.h"\n', "includes package.pb.h"),
        ("controller/a.cc", "#include <boost/asio/io_context.hpp>\n", "includes boost/asio/io_context.hpp"),
        ("compiler/a.cc", "#include <toml++/toml.h>\n", "only config may"),
        ("controller/a.cc", "auto t = std::chrono::steady_clock::now();\n", "uses steady_clock"),
        ("worker/a.h", guarded("worker/a.h", "std::jthread thread_;\n"), "uses std::jthread"),
        ("policies/edf/edf.cc", "\nstd::this_thread::sleep_for(x);\n", "src/policies/edf/edf.cc:2: uses sleep_for"),
        ("core/a.cc", "std::random_device random;\n", "uses random_device"),
        ("core/a.h", "#pragma once\n", "the include guard must be FOLIOT_CORE_A_H_"),
        ("core/a.h", guarded("core/b.h"), "the include guard must be FOLIOT_CORE_A_H_"),
    ],
)
def test_a_breach_is_found(src, path, text, complaint):
    write(src, path, text)
    breaches = check_layers.check(src, ROOMS)
    assert len(breaches) == 1, breaches
    assert breaches[0].startswith(f"src/{path}:")
    assert complaint in breaches[0]


def test_a_folder_within_a_room_belongs_to_it(src):
    write(src, "worker/parts/a.cc", '#include "worker/worker.h"\n')
    assert check_layers.check(src, ROOMS) == []
    write(src, "worker/parts/a.cc", '#include "controller/policy.h"\n')
    assert len(check_layers.check(src, ROOMS)) == 1


def test_a_comment_is_no_breach(src):
    write(src, "controller/a.cc", "// unlike std::thread, steady_clock and sleep_for\n")
    assert check_layers.check(src, ROOMS) == []


def test_clocks_and_threads_are_free_where_they_belong(src):
    write(src, "platform/a.cc", "std::jthread t; auto n = std::chrono::steady_clock::now();\n")
    assert check_layers.check(src, ROOMS) == []


def table(**changes):
    entries = [{"room": "base", "may_include": [], "holds": "b"}, {"room": "core", "may_include": [], "holds": "c"},
               {"room": "worker", "may_include": ["core"], "holds": "w"}]
    for entry in entries:
        entry |= changes.get(entry["room"], {})
    return rooms.Rooms({"rooms": entries, "headers": {}, "state_machines": []})


def test_no_room_includes_one_that_stands_after_it():
    assert list(check_layers.check_table(table())) == []
    assert list(check_layers.check_table(table(core={"may_include": ["worker"]}))) == [
        "src/rooms.json: core includes worker, which does not stand before it"
    ]


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
    assert "| worker | executors, page cache, io cache; the engine under them: native, for compiled programs | program, device, core |\n" in text


def test_a_room_that_is_too_large_is_named(src, capsys):
    write(src, "worker/much.cc", "// line\n" * rooms.LINES_MAX)
    write(src, "controller/much_test.cc", "// line\n" * (rooms.LINES_MAX + 1))
    write(src, "compiler/much.cc", "// line\n" * (rooms.LINES_MAX + 1))
    write(src, "device/cpu/much.cc", "// line\n" * (rooms.LINES_MAX + 1))
    assert rooms.check_lines(ROOMS, src) == 1
    assert f"src/worker has {rooms.LINES_MAX + 6} lines" in capsys.readouterr().err
