"""A small disk for a server under test."""

import resource
import signal
import subprocess


def small_disk(mount_point):
    """(prefix, preexec) that give the server a disk of 64 KiB at `mount_point`,
    or, where mounting is forbidden, files of at most 64 KiB."""
    mount = f"mount -t tmpfs -o size=64k none '{mount_point}'"
    if subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", mount], check=False).returncode == 0:
        return ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"], None

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))

    return [], limit
