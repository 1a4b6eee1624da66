"""Measures what a start and an idle daemon cost, prints it, and fails above the limits given on the command line.

    cost.py [--runs 5] [--idle 10] [--start-max 0.2] [--rss-max 25] [--cpu-max 0.2]

Start: from exec to the first answer to a Metadata request, on an empty directory (first start) and after a clean stop.
Idle: resident memory in MiB and CPU in per cent of one core, over --idle seconds without a client.
"""

import argparse
import os
import statistics
import sys
import time

import kafka_wire
from tidemarkd import Tidemarkd

TICKS = os.sysconf("SC_CLK_TCK")


def seconds_to_metadata(daemon):
    begin = time.perf_counter()
    daemon.start(ready=False)
    while True:
        try:
            connection = kafka_wire.Connection(daemon.port)
            connection.metadata()
            took = time.perf_counter() - begin
            connection.close()
            return took
        except OSError:
            if daemon.process.poll() is not None:
                raise SystemExit(f"tidemarkd ended: {daemon.log()}")
            time.sleep(0.001)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--idle", type=float, default=10)
    parser.add_argument("--start-max", type=float, default=None)
    parser.add_argument("--rss-max", type=float, default=None)
    parser.add_argument("--cpu-max", type=float, default=None)
    arguments = parser.parse_args()

    first, again = [], []
    for _ in range(arguments.runs):
        daemon = Tidemarkd()
        first.append(seconds_to_metadata(daemon))
        daemon.stop()
        again.append(seconds_to_metadata(daemon))
        daemon.stop()
        daemon.close()
    daemon = Tidemarkd().start()
    time.sleep(2)  # what the start itself still does is not idling
    before, begin = cpu_seconds(daemon.process.pid), time.monotonic()
    time.sleep(arguments.idle)
    cpu = 100 * (cpu_seconds(daemon.process.pid) - before) / (time.monotonic() - begin)
    rss = rss_mib(daemon.process.pid)
    daemon.stop()
    daemon.close()

    missed = False
    for name, value, unit, limit in (
        ("first start to first metadata answer, median", statistics.median(first), "s", arguments.start_max),
        ("start after a clean stop, median", statistics.median(again), "s", arguments.start_max),
        ("idle resident memory", rss, "MiB", arguments.rss_max),
        ("idle CPU of one core", cpu, "%", arguments.cpu_max),
    ):
        over = limit is not None and value > limit
        missed |= over
        print(f"{name}: {value:.3f} {unit}" + (f"  (limit {limit}{', missed' if over else ''})" if limit is not None else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
