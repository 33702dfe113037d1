"""tools/run-tests: what fails beside others runs again alone, what fails twice fails the run, and many are not run again."""

import os
import pathlib
import subprocess

import pytest
from foliot_tools.server import ROOT

ONCE = """
import pathlib
def test_unsteady():
    first = pathlib.Path({mark!r})
    if not first.exists():
        first.touch()
        assert False
"""


def run(folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "FOLIOT_TEST_SEED"))}
    result = subprocess.run([ROOT / "tools/run-tests", *arguments], cwd=folder, env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.returncode, result.stdout


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests/test_good.py").write_text("def test_good(): pass\n")
    return tmp_path


def ctest_of(project, *commands):
    lines = [f'add_test(test{i} {command})\n' for i, command in enumerate(commands)]
    (project / "CTestTestfile.cmake").write_text("".join(lines))
    return "ctest", "--test-dir", str(project)


def unsteady(folder):
    """A command that fails once."""
    script: pathlib.Path = folder / "unsteady"
    script.write_text(f"#!/bin/sh\n[ -e {folder}/mark ] || {{ touch {folder}/mark; exit 1; }}\n")
    script.chmod(0o755)
    return str(script)


def test_pytest_that_fails_beside_others_only(project):
    (project / "tests/test_bad.py").write_text(ONCE.format(mark=str(project / "mark")))
    code, output = run(project, "pytest", "tests", "--junitxml=report.xml")
    assert code == 0 and "PASSED ALONE" in output and "test_bad.py::test_unsteady" in output.splitlines()[-1], output
    assert output.count("FOLIOT_TEST_SEED=") == 2
    assert 'failures="1"' in (project / "report.xml").read_text(), "the report of the first run stays"


def test_pytest_that_fails_always(project):
    (project / "tests/test_bad.py").write_text("def test_bad(): assert False\n")
    code, output = run(project, "pytest", "tests", "--junitxml=report.xml")
    assert code == 1 and "run again" in output and "PASSED ALONE" not in output, output


def test_many_failures_are_no_accident(project):
    (project / "tests/test_bad.py").write_text("".join(f"def test_{i}(): assert False\n" for i in range(6)))
    code, output = run(project, "pytest", "tests", "--junitxml=report.xml")
    assert code == 1 and "none is run again" in output, output


def test_what_is_no_failed_test(project):
    code, output = run(project, "pytest", "nowhere", "--junitxml=report.xml")
    assert code == 5 and "run again" not in output, output


def test_a_test_that_ends_its_process_ends_the_run(project):
    (project / "tests/conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (project / "tests/test_bad.py").write_text("import os\ndef test_bad(): os._exit(1)\n")
    code, output = run(project, "pytest", "tests", "--junitxml=report.xml")
    assert code == 3 and "test_bad.py::test_bad ended" in output and "run again" not in output, output


def test_ctest(project):
    assert run(project, *ctest_of(project, "/bin/true", "/bin/true"))[0] == 0
    code, output = run(project, *ctest_of(project, "/bin/true", unsteady(project)))
    assert code == 0 and output.endswith("FAILED BESIDE OTHERS (look at the output above):\ntest1\n"), output
    code, output = run(project, *ctest_of(project, "/bin/true", "/bin/false"))
    assert code == 8 and "run again, alone" in output and "PASSED ALONE" not in output, output
    code, output = run(project, *ctest_of(project, *["/bin/false"] * 6))
    assert code == 8 and "none is run again" in output, output
