#!/usr/bin/env python3
"""Makes an OCI image of Foliot without a registry: Debian's packages that the Debian package depends on, and the program.

    packaging/image.py --package dist/foliot_VERSION_amd64.deb --output dist [--python]

mmdebstrap fetches the packages from the archives of this machine; none of their scripts runs. What the image runs, as
whom, and its health check are those of the last stage of deploy/docker/Dockerfile. With --python it has Debian's
interpreter and NumPy, for models that are containers. The output is a tar file that `podman load` and `docker load`
read, and an OCI layout. The same packages, program and SOURCE_DATE_EPOCH give the same bytes.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
USER = 10001
PYTHON = ("python3", "python3-numpy")
# What no program of the image reads. Copyrights stay.
LEFT_OUT = re.compile(r"(usr/share/(man|info|locale|lintian|bash-completion|zsh|fish|perl5|pixmaps|python3/runtime.d)"
                      r"|usr/share/doc/[^/]+/(?!copyright$)|var/(cache|log|lib)|run|usr/lib/systemd|lib/systemd"
                      r"|usr/share/(gcc|gdb|ca-certificates|python)|usr/lib/x86_64-linux-gnu/(gconv|engines-3|sasl2|perl)"
                      r"|(usr/)?s?bin/(?!foliot|python3)|usr/(games|include|src|local)|home|media|mnt|srv|opt|boot|root)(/|$|.)")
CERTIFICATES = "usr/share/ca-certificates/mozilla/"
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def dependencies(package):
    """The names of the Debian packages that `package` depends on; of alternatives the first."""
    depends = subprocess.run(["dpkg-deb", "--field", package, "Depends"], capture_output=True, text=True, check=True).stdout
    return [dependency.split("|")[0].split("(")[0].strip() for dependency in depends.split(",")]


def libraries_of(program):
    """The names of the files of all shared libraries that a program is linked with, here."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return {name for path in re.findall(r"(/\S+) \(0x", listed) for name in (pathlib.Path(path).name, pathlib.Path(path).resolve().name)}


def icu_without_data(library, work):
    """What stands in place of a library of ICU's data (icu_without_data.c)."""
    version = re.search(r"libicudata[.]so[.](\d+)", library)[1]
    subprocess.run(["cc", "-shared", "-nostdlib", "-O1", f"-DICU_DATA_NAME=icudt{version}_dat", "-Wl,--build-id=none",
                    f"-Wl,-soname,libicudata.so.{version}", "-o", work / "icu.so", ROOT / "packaging/icu_without_data.c"],
                   check=True)
    return (work / "icu.so").read_bytes()


class Layer:
    """A tar file in the making, with members in the order of their names, of one time."""

    def __init__(self, time):
        self.time = time
        self.members = {}  # {name: (its head, its bytes)}

    def add(self, name, content=b"", **head):
        member = tarfile.TarInfo(name)
        member.size = len(content)
        for key, value in head.items():
            setattr(member, key, value)
        self.members[name] = (member, content)

    def add_folder(self, name, mode=0o755, owner=0):
        self.add(name, type=tarfile.DIRTYPE, mode=mode, uid=owner, gid=owner)

    def add_link(self, name, to):
        self.add(name, type=tarfile.SYMTYPE, linkname=to)

    def copy(self, source, keep):
        """Adds what `keep` says yes to, of the tar file `source`."""
        for member in source:
            name = member.name.removeprefix("./").rstrip("/")
            if name in ("", ".") or member.isdev() or not keep(name):
                continue
            if member.islnk():
                member.linkname = member.linkname.removeprefix("./")
            self.add(name, source.extractfile(member).read() if member.isreg() else b"", type=member.type,
                     mode=member.mode & 0o1777, linkname=member.linkname)

    def bytes(self):
        for name in list(self.members):
            for parent in map(str, pathlib.PurePosixPath(name).parents):
                if parent != "." and parent not in self.members:
                    self.add_folder(parent)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            # Hard links come after what they are links to.
            for member, content in sorted(self.members.values(), key=lambda item: (item[0].islnk(), item[0].name)):
                member.mtime = self.time
                tar.addfile(member, io.BytesIO(content))
        return out.getvalue()


def system_layer(packages, libraries, time):
    """Debian's libraries, of those in a folder of libraries only `libraries` if they are given, and what the scripts of
    their packages would have made of them."""
    def wanted(name):
        if libraries and re.match(r"(usr/)?lib/.*[.]so", name):
            return pathlib.Path(name).name in libraries
        return not LEFT_OUT.match(name)

    layer = Layer(time)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root.tar"
        release = re.search(r"^VERSION_CODENAME=(.*)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)[1]
        subprocess.run(["mmdebstrap", "--variant=extract", f"--include={','.join(packages)}", "--quiet", release, root],
                       check=True)
        with tarfile.open(root) as tar:
            authorities = [tar.extractfile(member).read() for member in tar
                           if member.name.removeprefix("./").startswith(CERTIFICATES) and member.isreg()]
        with tarfile.open(root) as tar:
            layer.copy(tar, wanted)
        for name, (member, content) in list(layer.members.items()):
            if "/libicudata.so." in name and content:
                layer.add(name, icu_without_data(name, pathlib.Path(folder)), mode=member.mode)
    for library in ("blas", "lapack"):
        if f"{LIBRARIES}/{library}/lib{library}.so.3" in layer.members:
            layer.add_link(f"{LIBRARIES}/lib{library}.so.3", f"{library}/lib{library}.so.3")
    layer.add("etc/ssl/certs/ca-certificates.crt", b"".join(authorities))
    layer.add("etc/passwd", f"root:x:0:0::/:/\nfoliot:x:{USER}:{USER}::/:/\n".encode())
    layer.add("etc/group", f"root:x:0:\nfoliot:x:{USER}:\n".encode())
    layer.add_folder("tmp", 0o1777)
    for folder in ("proc", "sys", "dev", "models"):
        layer.add_folder(folder)
    for folder in ("cache", "observations"):
        layer.add_folder(folder, owner=USER)
    return layer.bytes()


def program_layer(package, time):
    """What is Foliot's own: an upgrade replaces only this layer."""
    layer = Layer(time)
    files = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(files)) as tar:
        layer.copy(tar, lambda name: re.match(r"usr/bin/foliot$|usr/share/(foliot/|doc/foliot/copyright)", name))
    return layer.bytes()


def settings(dockerfile):
    """The configuration of an image that the last stage of a Dockerfile says, as OCI and Docker write it."""
    stage = re.split(r"^FROM ", dockerfile, flags=re.MULTILINE)[-1].replace("\\\n", " ")
    found = {"Env": ["PATH=/usr/bin:/bin"], "ExposedPorts": {}, "WorkingDir": "/"}
    for line in stage.splitlines():
        word, _, rest = line.partition(" ")
        if word == "USER":
            found["User"] = f"{USER}:{USER}"
        elif word == "EXPOSE":
            found["ExposedPorts"] = {f"{port}/tcp": {} for port in rest.split()}
        elif word == "ENV":
            found["Env"] += shlex.split(rest)
        elif word in ("ENTRYPOINT", "CMD"):
            found[word.capitalize()] = json.loads(rest)
        elif word == "HEALTHCHECK":
            flags, _, command = rest.partition("CMD ")
            found["Healthcheck"] = {"Test": ["CMD", *json.loads(command)]}
            for name, value, unit in re.findall(r"--([a-z-]+)=(\d+)([sm])", flags):
                key = "".join(part.capitalize() for part in name.split("-"))
                found["Healthcheck"][key] = int(value) * (60 if unit == "m" else 1) * 10**9
    return found | {"Cmd": found.pop("Cmd", [])}


def write_image(to, name, layers, config, time):
    """Writes an image as a tar file that is an OCI layout and what `docker save` writes."""
    blobs = {}

    def blob(content, kind):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    descriptors = [blob(gzip.compress(layer, 6, mtime=0), "layer.v1.tar+gzip") for layer in layers]
    image = blob(json.dumps({
        "architecture": "amd64", "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
    }).encode(), "config.v1+json")
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                "config": image, "layers": descriptors}).encode(), "manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name.split(":")[1], "io.containerd.image.name": name}
    path = lambda descriptor: f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}"
    out = Layer(time)
    out.add("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    out.add("index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode())
    out.add("manifest.json", json.dumps([{"Config": path(image), "RepoTags": [name],
                                          "Layers": [path(layer) for layer in descriptors]}]).encode())
    for digest, content in blobs.items():
        out.add(f"blobs/sha256/{digest}", content)
    to.write_bytes(out.bytes())
    return sum(layer["size"] for layer in descriptors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=pathlib.Path, required=True, help="the Debian package")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--python", action="store_true", help="with an interpreter and NumPy, for containers")
    flags = parser.parse_args()
    time = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    version = subprocess.run(["dpkg-deb", "--field", flags.package, "Version"], capture_output=True, text=True,
                             check=True).stdout.strip()
    packages = [*dependencies(flags.package), "ca-certificates", *(PYTHON if flags.python else ())]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "--extract", flags.package, folder], check=True)
        libraries = set() if flags.python else libraries_of(pathlib.Path(folder) / "usr/bin/foliot")
    layers = [system_layer(packages, libraries, time), program_layer(flags.package, time)]
    tag = version + ("-python" if flags.python else "")
    to = flags.output / f"foliot_{tag}_amd64.oci.tar"
    compressed = write_image(to, f"localhost/foliot:{tag}", layers, settings((ROOT / "deploy/docker/Dockerfile").read_text()), time)
    print(f"{to}: layers of {sum(map(len, layers)) / 1e6:.1f} MB, {compressed / 1e6:.1f} MB compressed")


if __name__ == "__main__":
    main()
