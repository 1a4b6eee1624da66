"""Deadlines of compaction: the bytes of every superseded value are out of every file in time, and audit says the same.

Counted from the append that superseded a value: max.compaction.lag.ms, file.delete.delay.ms, two backoffs of the cleaner's single
thread, and the pass itself. What that is says the audit trail: one thread has all partitions to clean, so what counts is the time
it spent on passes, this partition's and those whose turn came before, between the end of the lag and the moment at which the
value was still seen. Partitions are busy or idle; only deadlines start a cleaning. Beside them stands a log that an open
transaction holds.

TIDEMARK_DEADLINE_LONG=1 is the long form: 200 partitions with lags of 10 to 60 seconds, for three minutes.
"""

import glob
import json
import os
import subprocess
import time
import unittest

import kafka_wire
from tidemarkd import Tidemarkd, program, until

LONG = os.environ.get("TIDEMARK_DEADLINE_LONG") == "1"
LAGS = [10, 20, 30, 40, 50, 60] if LONG else [2, 3, 4]            # seconds, a topic each
PARTITIONS = 200 if LONG else 24
SECONDS = 180 if LONG else 15                                      # of writing
BACKOFF, DELETE_DELAY = 1, 1                                       # seconds
TRANSACTION_LAG = 2
KEYS = [b"k%d" % i for i in range(4)]


class Owed:
    """A value that was superseded."""

    def __init__(self, superseded, lag, directory, value):
        self.lag_over = superseded + lag
        self.due = self.lag_over + DELETE_DELAY + 2 * BACKOFF    # without the pass
        self.directory, self.value = directory, value
        self.seen = None                                         # when a file still held it, after that

    def look(self):
        """True once no file holds it."""
        now = time.time()
        if not files_with(self.directory, self.value):
            return True
        self.seen = now
        return False


class Passes:
    """What the cleaner's thread spent on passes, as the audit trail tells."""

    def __init__(self, events):
        # To the line in the trail: that its new first dirty offset is on the disk is part of it.
        self.spans = [(e["began"] / 1000, e["time"] / 1000) for e in events if e["event"] == "cleaned"]

    def seconds(self, begin, end):
        return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in self.spans)

    def __str__(self):
        each = sorted(last - first for first, last in self.spans)
        return f"{len(each)} passes of {sum(each) / len(each):.3f} s on average, the longest {each[-1]:.3f} s"


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

    def audit(self, *arguments):
        """(exit status, lines)"""
        done = subprocess.run([program("tidemark"), "audit", *arguments, "--json"], capture_output=True, text=True, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def traces(self):
        return self.audit(self.daemon.data, "--key-file", self.keys, "--grace-ms", str(2000 * BACKOFF))

    def late(self, traces):
        return [t for t in traces if t["past_deadline"]]

    def trail(self):
        return self.audit("--trail", self.daemon.data)[1]

    def hold(self, connection):
        """A superseded value that an open transaction behind it keeps from being cleaned. Returns what ends the transaction."""
        who = "deadline-test"
        configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 1, "max.compaction.lag.ms": TRANSACTION_LAG * 1000}
        self.assertEqual(connection.create_topic("held", 1, configs), 0)
        for value in (b"<held-old>", b"<held-new>"):
            self.assertEqual(connection.produce("held", 0, kafka_wire.batch([(KEYS[0], value)], int(time.time() * 1000)))[0], 0)
        error, producer, epoch = until(lambda: (lambda answer: answer if answer[0] == 0 else None)(connection.init_transactions(who, 600_000)), "there is a coordinator")
        self.assertEqual(connection.add_partition(who, producer, epoch, "held", 0), 0)
        batch = kafka_wire.batch([(b"other", b"open")], int(time.time() * 1000), producer, epoch, 0, True)
        self.assertEqual(connection.produce("held", 0, batch, transactional_id=who)[0], 0)
        return lambda: self.assertEqual(connection.end_transaction(who, producer, epoch, True), 0)

    def plan_of(self, partition):
        done = subprocess.run([program("tidemark"), "plan", "--cleaner", "--http", f"127.0.0.1:{self.daemon.http_port}"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stdout.splitlines() if partition in line]

    def test_every_superseded_value_leaves_in_time(self):
        owed, overdue, late, sent = [], [], [], 0
        connection = kafka_wire.Connection(self.daemon.port, timeout=120)
        self.addCleanup(connection.close)
        partitions = []
        for number, lag in enumerate(LAGS):
            count = PARTITIONS // len(LAGS) + (1 if number < PARTITIONS % len(LAGS) else 0)
            configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 1, "max.compaction.lag.ms": lag * 1000, "segment.ms": 86400000, "delete.retention.ms": 0}
            self.assertEqual(connection.create_topic(f"lag-{lag}", count, configs), 0)
            partitions += [(f"lag-{lag}", p, lag) for p in range(count)]
        end_transaction = self.hold(connection)

        def write(topic, partition, lag, n):
            directory = os.path.join(self.daemon.data, f"{topic}-{partition}")
            key = KEYS[n % len(KEYS)]
            value = None if n % 7 == 6 else b"<%s-%d-%d>" % (topic.encode(), partition, n)
            before = latest.get((topic, partition, key))
            error, _ = connection.produce(topic, partition, kafka_wire.batch([(key, value)], int(time.time() * 1000)))
            self.assertEqual(error, 0)
            if before is not None:
                owed.append(Owed(time.time(), lag, directory, before))
            latest[topic, partition, key] = value

        latest = {}
        begin = time.monotonic()
        rounds = 0
        audited, audits = begin, []
        values = 0
        # Idle partitions hear nothing after the first rounds; the busy ones all the time.
        while time.monotonic() - begin < SECONDS or owed or overdue:
            for i, (topic, partition, lag) in enumerate(partitions):
                idle = i % 2 == 1
                if time.monotonic() - begin < SECONDS and (not idle or rounds < 6):
                    write(topic, partition, lag, rounds)
                    sent += 1
            rounds += 1
            now = time.time()
            overdue = [o for o in overdue + [o for o in owed if o.due <= now] if not o.look()]
            late += [o for o in overdue if o not in late]
            values += sum(o.due <= now for o in owed)
            owed = [o for o in owed if o.due > now]
            if time.monotonic() - audited > (10 if LONG else 2):
                audited = time.monotonic()
                traces = self.traces()[1]
                audits += [(time.time(), t) for t in self.late(traces)]
            self.assertLess(time.monotonic() - begin, SECONDS + 120, "everything has left at last")
            time.sleep(0.5 if LONG else 0.1)   # the pace of the writers
        self.assertGreater(sent, 10 * len(partitions) // 2)

        events = self.trail()
        passes = Passes(events)
        beyond = [round(o.seen - o.due - passes.seconds(o.lag_over, o.seen), 2) for o in late]
        print(f"{values} values, {len(late)} of them seen after lag, delete delay and two backoffs, at most {max([o.seen - o.due for o in late], default=0):.2f} s; {passes}", flush=True)
        self.assertEqual([(b, o.value, o.directory) for b, o in zip(beyond, late) if b > 0], [], "later than the passes explain")
        unexplained = [t for at, t in audits if at - t["due"] / 1000 - 2 * BACKOFF > (passes.seconds(t["due"] / 1000, at) if t["place"] == "live" else 0)]
        self.assertEqual(unexplained, [], "audit finds nothing past its deadline")

        # What the transaction holds is said to be held, by audit and by the plan, and is not late; it goes when that ends.
        held = [t for t in self.traces()[1] if "/held-0/" in t["file"] and t["offset"] == 0]
        self.assertEqual([(t["held_by"], t["past_deadline"], t["stays"]) for t in held], [("an open transaction", False, False)])
        self.assertIn("open transaction", "".join(self.plan_of("held-0")))
        end_transaction()
        ended = time.time()
        directory = os.path.join(self.daemon.data, "held-0")
        until(lambda: not files_with(directory, b"<held-old>"), "what was held has left", 60)
        took = time.time() - ended
        self.assertTrue(files_with(directory, b"<held-new>"))
        self.assertLess(took, DELETE_DELAY + 2 * BACKOFF + TRANSACTION_LAG + Passes(self.trail()).seconds(ended, ended + took) + 0.5)

        status, traces = self.traces()
        self.assertEqual((status, self.late(traces)), (0, []))
        values = [t for t in traces if not t["tombstone"] and t["place"] == "live"]
        self.assertTrue(values and all(t["stays"] for t in values), "only the latest values are left")
        # The trail tells of every partition that was cleaned.
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
        until(lambda: self.traces()[0] != 0, "the old value becomes late", 60)
        _, traces = self.traces()
        self.assertEqual([(t["offset"], t["stays"]) for t in self.late(traces)], [(0, False)])


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
