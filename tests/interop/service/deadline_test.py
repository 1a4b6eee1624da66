"""Deadlines of compaction: the bytes of every superseded value are out of every file in time, and audit says the same.

Counted from the append that superseded a value: max.compaction.lag.ms, file.delete.delay.ms, two backoffs of the cleaner's single
thread, and the pass itself. Partitions are busy or idle; only deadlines start a cleaning.

TIDEMARK_DEADLINE_LONG=1 is the long form: 200 partitions with lags of 10 to 60 seconds, for three minutes.
"""

import glob
import json
import os
import subprocess
import threading
import time
import unittest

import kafka_wire
from tidemarkd import Tidemarkd, program, until

LONG = os.environ.get("TIDEMARK_DEADLINE_LONG") == "1"
LAGS = [10, 20, 30, 40, 50, 60] if LONG else [2, 3, 4]            # seconds, a topic each
PARTITIONS = 200 if LONG else 24
SECONDS = 180 if LONG else 15                                      # of writing
BACKOFF, DELETE_DELAY = 1, 1                                       # seconds
# The pass itself: one thread has all partitions to clean, on a machine that has other things to do.
PASS = float(os.environ.get("TIDEMARK_DEADLINE_PASS", "5"))
KEYS = [b"k%d" % i for i in range(4)]


class Owed:
    """Values that have been superseded: (by when they are gone, directory of the partition, their bytes)."""

    def __init__(self):
        self.lock = threading.Lock()
        self.entries = []

    def add(self, due, directory, value):
        with self.lock:
            self.entries.append((due, directory, value))

    def take_due(self, now):
        with self.lock:
            due = [entry for entry in self.entries if entry[0] <= now]
            self.entries = [entry for entry in self.entries if entry[0] > now]
        return due


def files_with(directory, value):
    """Files of a partition that hold the bytes."""
    found = []
    for path in glob.glob(os.path.join(directory, "*.log*")):
        try:
            with open(path, "rb") as f:
                if value in f.read():
                    found.append(path)
        except FileNotFoundError:
            pass   # unlinked between the two calls
    return found


class Deadline(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.daemon = Tidemarkd({"log.cleaner.backoff.ms": BACKOFF * 1000, "log.segment.delete.delay.ms": DELETE_DELAY * 1000, "log.cleaner.threads": 1, "durability": "page-cache"})
        self.addCleanup(self.daemon.close)
        self.daemon.start()
        self.keys = os.path.join(self.daemon.directory, "keys")
        with open(self.keys, "wb") as f:
            f.write(b"\n".join(KEYS) + b"\n")

    def audit(self):
        """(exit status, traces)"""
        done = subprocess.run([program("tidemark"), "audit", self.daemon.data, "--key-file", self.keys, "--json", "--grace-ms", str(int((2 * BACKOFF + PASS) * 1000))],
                              capture_output=True, text=True, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def late(self, traces):
        return [t for t in traces if t["past_deadline"]]

    def test_every_superseded_value_leaves_in_time(self):
        owed, late, sent = Owed(), [], 0
        connection = kafka_wire.Connection(self.daemon.port, timeout=120)
        self.addCleanup(connection.close)
        partitions = []
        for number, lag in enumerate(LAGS):
            count = PARTITIONS // len(LAGS) + (1 if number < PARTITIONS % len(LAGS) else 0)
            configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 1, "max.compaction.lag.ms": lag * 1000, "segment.ms": 86400000, "delete.retention.ms": 0}
            self.assertEqual(connection.create_topic(f"lag-{lag}", count, configs), 0)
            partitions += [(f"lag-{lag}", p, lag) for p in range(count)]

        def write(topic, partition, lag, n):
            directory = os.path.join(self.daemon.data, f"{topic}-{partition}")
            key = KEYS[n % len(KEYS)]
            value = None if n % 7 == 6 else b"<%s-%d-%d>" % (topic.encode(), partition, n)
            before = latest.get((topic, partition, key))
            error, _ = connection.produce(topic, partition, kafka_wire.batch([(key, value)], int(time.time() * 1000)))
            self.assertEqual(error, 0)
            if before is not None:
                owed.add(time.monotonic() + lag + DELETE_DELAY + 2 * BACKOFF + PASS, directory, before)
            latest[topic, partition, key] = value

        latest = {}
        begin = time.monotonic()
        rounds = 0
        audited = begin
        # Idle partitions hear nothing after the first rounds; the busy ones all the time.
        while time.monotonic() - begin < SECONDS or owed.entries:
            for i, (topic, partition, lag) in enumerate(partitions):
                idle = i % 2 == 1
                if time.monotonic() - begin < SECONDS and (not idle or rounds < 6):
                    write(topic, partition, lag, rounds)
                    sent += 1
            rounds += 1
            for due, directory, value in owed.take_due(time.monotonic()):
                late += [(value, path, round(time.monotonic() - due, 1)) for path in files_with(directory, value)]
            if time.monotonic() - audited > (10 if LONG else 2):
                audited = time.monotonic()
                status, traces = self.audit()
                self.assertEqual((status, self.late(traces)), (0, []), "audit finds nothing past its deadline")
            time.sleep(0.5 if LONG else 0.1)   # the pace of the writers
        self.assertEqual(late, [])
        self.assertGreater(sent, 10 * len(partitions) // 2)

        status, traces = self.audit()
        self.assertEqual(status, 0)
        values = [t for t in traces if not t["tombstone"] and t["place"] == "live"]
        self.assertTrue(values and all(t["stays"] for t in values), "only the latest values are left")
        # The trail tells of every partition that was cleaned, and of no late pass.
        trail = subprocess.run([program("tidemark"), "audit", "--trail", self.daemon.data, "--json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(trail.returncode, 0, trail.stderr)
        events = [json.loads(line) for line in trail.stdout.splitlines()]
        cleaned = {(e["topic"], e["partition"]) for e in events if e["event"] == "cleaned"}
        self.assertEqual(cleaned, {(topic, partition) for topic, partition, _ in partitions})
        self.assertGreater(sum(e["superseded"] for e in events), 0)

    def test_audit_tells_what_nobody_removed(self):
        """Without cleaner threads the values stay, and audit says so."""
        self.daemon.stop()
        self.daemon.settings["log.cleaner.threads"] = 0
        self.daemon.start()
        connection = kafka_wire.Connection(self.daemon.port)
        self.addCleanup(connection.close)
        self.assertEqual(connection.create_topic("stuck", 1, {"cleanup.policy": "compact", "max.compaction.lag.ms": 1000}), 0)
        for value in (b"old", b"new"):
            self.assertEqual(connection.produce("stuck", 0, kafka_wire.batch([(KEYS[0], value)], int(time.time() * 1000)))[0], 0)
        until(lambda: self.audit()[0] != 0, "the old value becomes late", 60)
        _, traces = self.audit()
        self.assertEqual([(t["offset"], t["stays"]) for t in self.late(traces)], [(0, False)])


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
