#!/usr/bin/env python3
"""Makes the Debian package of Foliot: the program, the Python package for containers, the units of systemd, manual pages
and completions.

    packaging/deb.py --program build/release/bin/foliot --output dist

It depends on the Debian packages of the libraries that the program is linked with, as dpkg-shlibdeps finds them, and
so is for the release of Debian that it was built on. The same program and SOURCE_DATE_EPOCH give the same bytes.
"""

import argparse
import email.utils
import gzip
import os
import pathlib
import shutil
import subprocess
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
# There is no address to write to (packaging/debian/overrides).
MAINTAINER = "The Foliot project <foliot@localhost>"
SCRIPTS = ("postinst", "prerm", "postrm")
COMPLETIONS = {"bash": "bash-completion/completions/foliot", "zsh": "zsh/vendor-completions/_foliot",
               "fish": "fish/vendor_completions.d/foliot.fish"}


def dependencies(program, work):
    """The value of Depends."""
    (work / "debian").mkdir()
    (work / "debian/control").write_text("Source: foliot\n\nPackage: foliot\nArchitecture: any\n")
    done = subprocess.run(["dpkg-shlibdeps", "-O", program], cwd=work, capture_output=True, text=True, check=True)
    return done.stdout.strip().removeprefix("shlibs:Depends=")


def install(source, to, mode=0o644):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)
    to.chmod(mode)


def printed(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def write_completions(share, program):
    for shell, place in COMPLETIONS.items():
        to = share / place
        to.parent.mkdir(parents=True)
        to.write_text(printed(program, "completion", shell))


def write_manual(share, program, version, work):
    """A page for the program and for each command, from what --help prints."""
    folder = share / "man/man1"
    folder.mkdir(parents=True)
    commands = [line.split("\t") for line in printed(program, "completion", "words", "--", "").splitlines()]
    for name, description in [("", "serve deep-learning models under deadlines"), *commands]:
        # help2man takes a page's title from the name of the program that it runs.
        page = work / "-".join(filter(None, ("foliot", name)))
        page.write_text(f"#!/bin/sh\nexec {program} {name} \"$@\"\n")
        page.chmod(0o755)
        everything = "--help-all" if "--help-all" in printed(program, *filter(None, (name,)), "--help") else "--help"
        text = subprocess.run(["help2man", "--no-info", f"--name={description}", f"--version-string={version}",
                               f"--help-option={everything}", page], capture_output=True, check=True).stdout
        (folder / f"{page.name}.1.gz").write_bytes(gzip.compress(text, 9, mtime=0))


def write_changelog(documents, version):
    """What Debian's tools read; what changed stands in the project's own CHANGELOG."""
    date = email.utils.formatdate(int(os.environ.get("SOURCE_DATE_EPOCH", 0)))
    text = f"foliot ({version}) stable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {MAINTAINER}  {date}\n"
    (documents / "changelog.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (documents / "CHANGELOG.md.gz").write_bytes(gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), 9, mtime=0))


def lay_out(root, program, version, work):
    """All files of the package, but its control files."""
    (root / "usr/bin").mkdir(parents=True)
    subprocess.run(["strip", "-o", root / "usr/bin/foliot", program], check=True)
    shutil.copytree(ROOT / "python/foliot", root / "usr/share/foliot/python/foliot",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for unit in (ROOT / "deploy/systemd").glob("*.service"):
        to = root / "usr/lib/systemd/system" / unit.name
        to.parent.mkdir(parents=True, exist_ok=True)
        # Its head says how to install it by hand.
        text = unit.read_text()
        to.write_text(text[text.index("[Unit]"):].replace("/usr/local/bin/", "/usr/bin/"))
    install(ROOT / "deploy/systemd/foliot.toml", root / "etc/foliot/foliot.toml")
    install(ROOT / "packaging/copyright", root / "usr/share/doc/foliot/copyright")
    install(ROOT / "packaging/debian/overrides", root / "usr/share/lintian/overrides/foliot")
    write_changelog(root / "usr/share/doc/foliot", version)
    write_completions(root / "usr/share", program)
    write_manual(root / "usr/share", program, version, work)


def write_control(root, version, depends):
    control = root / "DEBIAN"
    control.mkdir()
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) // 1024
    (control / "control").write_text(f"""\
Package: foliot
Version: {version}
Architecture: amd64
Section: net
Priority: optional
Maintainer: {MAINTAINER}
Installed-Size: {size}
Depends: {depends}
Recommends: python3-numpy
Description: inference server for deep-learning models under deadlines
 Every request states by when its answer is still useful. Foliot answers in
 time or refuses, with the reason and the earliest time at which it could
 have answered. It serves ONNX models, and any Python code in confined
 processes, over the Open Inference Protocol by HTTP and gRPC.
""")
    (control / "conffiles").write_text("/etc/foliot/foliot.toml\n")
    for name in SCRIPTS:
        install(ROOT / "packaging/debian" / name, control / name, 0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/foliot")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    flags = parser.parse_args()
    version = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]["version"]
    flags.output.mkdir(parents=True, exist_ok=True)
    to = flags.output / f"foliot_{version}_amd64.deb"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        root = work / "root"
        root.mkdir(0o755)
        lay_out(root, flags.program.resolve(), version, work)
        write_control(root, version, dependencies(flags.program.resolve(), work))
        subprocess.run(["chmod", "-R", "u=rwX,go=rX", root], check=True)
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, to], check=True)
    print(f"{to}: {to.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
