#!/usr/bin/env python3
"""Makes the wheel of Foliot: the command with every library that it is linked with, and the Python package of
containers.

    packaging/wheel.py --program build/release/bin/foliot --output dist

auditwheel copies the libraries of this machine into the wheel and names the oldest C library that it runs with;
python/requirements-wheel.txt has it. The same program, libraries and SOURCE_DATE_EPOCH give the same bytes.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Runs the program that lies in the package. Containers that name no interpreter are run by that of the wheel, in whose
# environment their packages are.
COMMAND = """\
#!python
import importlib.util
import os
import sys

folder = importlib.util.find_spec("foliot").submodule_search_locations[0]
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath)
os.execv(os.path.join(folder, "bin", "foliot"), ["foliot", *sys.argv[1:]])
"""


def metadata(project):
    """The file METADATA."""
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {package}" for package in project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {package}; extra == "{extra}"' for package in packages]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / "README.md").read_text()]
    return "\n".join(lines)


def copy_package(to):
    shutil.copytree(ROOT / "python/foliot", to, ignore=shutil.ignore_patterns("__pycache__"))


def licenses_of(program):
    """{Debian package: its file of copyrights} of the libraries that a program is linked with."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = {os.path.realpath(line.split()[2]) for line in listed.splitlines() if "=> /" in line}
    packages = set()
    for path in sorted(paths):
        # Debian 12 knows some libraries below /lib, which is a link to /usr/lib.
        for name in (path, path.removeprefix("/usr")):
            found = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True)
            if found.returncode == 0:
                packages.add(found.stdout.split(":")[0])
                break
        else:
            sys.exit(f"{path} is of no Debian package: its licence is not known, so that it cannot be passed on")
    return {package: pathlib.Path("/usr/share/doc", package, "copyright") for package in sorted(packages)}


def stage(folder, program, project):
    """Lays out the wheel in `folder`, without libraries."""
    name = f"{project['name']}-{project['version']}"
    package, information = folder / "foliot", folder / f"{name}.dist-info"
    copy_package(package)
    # As src/app/commands/container_launch_command.cc looks for it: for interpreters that have no such wheel.
    copy_package(package / "share/foliot/python/foliot")
    (package / "bin").mkdir()
    subprocess.run(["strip", "-o", package / "bin/foliot", program], check=True)
    scripts = folder / f"{name}.data/scripts"
    scripts.mkdir(parents=True)
    (scripts / "foliot").write_text(COMMAND)
    (scripts / "foliot").chmod(0o755)
    (information / "licenses").mkdir(parents=True)
    (information / "METADATA").write_text(metadata(project))
    (information / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: foliot\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n")
    shutil.copy(ROOT / "LICENSE", information / "licenses/LICENSE")
    for package_name, copyrights in licenses_of(program).items():
        shutil.copy(copyrights, information / "licenses" / f"{package_name}.txt")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/foliot")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    flags = parser.parse_args()
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    tools = os.path.dirname(sys.executable)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    flags.output.mkdir(parents=True, exist_ok=True)
    for old in flags.output.glob(f"{project['name']}-*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work, "staged")
        stage(folder, flags.program, project)
        subprocess.run([sys.executable, "-m", "wheel", "pack", folder, "--dest-dir", work], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        [plain] = pathlib.Path(work).glob("*.whl")
        subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", flags.output, plain],
                       env=environment, check=True)
    [wheel] = flags.output.glob("*.whl")
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
