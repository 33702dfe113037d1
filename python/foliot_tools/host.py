"""When the host gave this machine no processor: what a figure is not to blame a server for."""

import multiprocessing
import os
import time

INTERVAL = 0.002
SECONDS_MIN = 0.004


def _watch(core, stopping, found):
    """Before all others on its core, so that only the host, or the kernel, keeps it waiting."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    standstills, last = [], time.monotonic()
    while not stopping.is_set():
        time.sleep(INTERVAL)
        before, last = last, time.monotonic()
        if last - before > INTERVAL + SECONDS_MIN:
            standstills.append((before, last))
    found.send(standstills)


class HostStandstills:
    """Of each core, while the block lasts; then `standstills` has (begin, end) by time.monotonic(). Needs root."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self._stopping = context.Event()
        self._pipes = [context.Pipe(duplex=False) for _ in os.sched_getaffinity(0)]
        self._watchers = [context.Process(target=_watch, args=(core, self._stopping, pipe[1]), daemon=True)
                          for core, pipe in zip(sorted(os.sched_getaffinity(0)), self._pipes)]
        self.standstills = []

    def __enter__(self):
        for watcher in self._watchers:
            watcher.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for (here, _), watcher in zip(self._pipes, self._watchers):
            self.standstills += here.recv()
            watcher.join()

    def overlap(self, begin, end):
        """How many seconds of these, of one core or another, there were none."""
        return sum(max(min(end, until) - max(begin, since), 0) for since, until in self.standstills)
