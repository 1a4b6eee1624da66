"""Deletion seen by clients, in real time: by age, by a client's own minimum timestamp (KIP-47), while they read, and foretold by `tidemark plan`."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import kafka_wire
from tidemarkd import Tidemarkd, program, until

LOOK_MS, BACKOFF_MS = 200, 100
FAST = {"log.cleaner.backoff.ms": BACKOFF_MS, "log.retention.check.interval.ms": LOOK_MS, "log.initial.task.delay.ms": 0, "log.segment.delete.delay.ms": 100}
OUT_OF_RANGE = 1
ANY_PAST = {"message.timestamp.before.max.ms": 9223372036854775807}


def now_ms():
    return int(time.time() * 1000)


def kcat(daemon, topic, offset, *options):
    """What kcat reads of partition 0 from an offset to the end."""
    return subprocess.run(["kcat", "-b", daemon.bootstrap, "-C", "-t", topic, "-p", "0", "-o", str(offset), "-e", "-q", *options], capture_output=True, text=True, timeout=60)


class Retention(unittest.TestCase):
    def daemon(self, **settings):
        daemon = Tidemarkd({**FAST, **settings})
        daemon.__enter__()
        self.addCleanup(daemon.close)
        connection = kafka_wire.Connection(daemon.port)
        self.addCleanup(connection.close)
        return daemon, connection

    def put(self, connection, topic, value, timestamp=None, partition=0):
        error, offset = connection.produce(topic, partition, kafka_wire.batch([(None, value)], timestamp if timestamp is not None else now_ms()))
        self.assertEqual(error, 0)
        return offset

    def test_by_age(self):
        """docs/record-lifetime.md in the small: retention.ms=2000, segment.ms=500."""
        daemon, connection = self.daemon()
        retention, segment = 2000, 500
        self.assertEqual(connection.create_topic("aged", 1, {"retention.ms": retention, "segment.ms": segment, "file.delete.delay.ms": 100}), 0)
        stamps = []
        end = time.monotonic() + 4
        while time.monotonic() < end:
            stamp = now_ms()
            self.assertEqual(self.put(connection, "aged", b"x" * 100, stamp), len(stamps))
            stamps.append(stamp)
            asked = now_ms()
            start = connection.list_offset("aged", 0, -2)[2]
            answered = now_ms()
            # Nobody goes early; who is still there beyond the latest moment is late (a busy machine has its grace).
            self.assertTrue(all(answered - s > retention for s in stamps[:start]), "removed too early")
            self.assertTrue(all(asked - s < segment + retention + LOOK_MS + 2000 for s in stamps[start:]), "still there")
            time.sleep(0.02)
        self.assertGreater(connection.list_offset("aged", 0, -2)[2], 0, "some have gone while others came")
        # Nobody writes any more: the last segment is rolled and goes as well.
        until(lambda: connection.list_offset("aged", 0, -2)[2] == len(stamps), "the idle log empties")
        self.assertGreater(now_ms() - stamps[-1], retention)
        self.assertEqual(connection.list_offset("aged", 0, -1)[2], len(stamps))
        self.assertEqual(connection.list_offset("aged", 0, stamps[0])[1:], (-1, -1), "and time finds nothing")
        self.assertEqual(connection.fetch("aged", 0, 0)[0], OUT_OF_RANGE)
        self.assertEqual(self.put(connection, "aged", b"again"), len(stamps))
        directory = os.path.join(daemon.data, "aged-0")
        until(lambda: not [f for f in os.listdir(directory) if f.endswith(".deleted")], "the files are unlinked")
        series = daemon.metrics()
        self.assertEqual(series['tidemark_retention_deleted_records_total{rule="retention_ms"}'], len(stamps))
        deleted = int(series['tidemark_retention_deleted_segments_total{rule="retention_ms"}'])
        self.assertEqual(daemon.log().count(f"retention.ms {retention}: largest timestamp") >= deleted, True, "the log gives every segment's reason")

    def test_a_client_trims_by_timestamp(self):
        """KIP-47: the owner of a commit log moves the timestamp before which nothing is needed any more."""
        daemon, connection = self.daemon()
        self.assertEqual(connection.create_topic("commits", 1, {"segment.ms": 500, "retention.ms": -1, **ANY_PAST}), 0)
        base = now_ms() - 10_000_000
        for n in range(12):   # two commits to a segment
            self.put(connection, "commits", b"%d" % n, base + n // 2 * 1000 + n % 2)
        for step in (1, 2, 4):
            timestamp = base + step * 1000
            self.assertEqual(connection.alter_topic("commits", "log.retention.mintimestamp", timestamp), 0)
            until(lambda: connection.list_offset("commits", 0, -2)[2] == 2 * step, f"what is older than commit {2 * step} goes")
            self.assertEqual([int(r[2]) for r in connection.read_all("commits", 0)], list(range(2 * step, 12)), "the commit at the timestamp stays")
            self.assertEqual(connection.list_offset("commits", 0, 0)[1:], (timestamp, 2 * step))
            # A follower of the log that slept too long.
            self.assertEqual(connection.fetch("commits", 0, 2 * step - 1)[0], OUT_OF_RANGE)
            recovered = kcat(daemon, "commits", 0, "-X", "auto.offset.reset=earliest", "-f", "%o:%s\n")
            self.assertEqual(recovered.stdout.split(), [f"{n}:{n}" for n in range(2 * step, 12)], recovered.stderr)
            strict = kcat(daemon, "commits", 0, "-X", "auto.offset.reset=error")
            self.assertIn("out of range", strict.stderr.lower())
        # Back: nothing returns. A timestamp inside a segment keeps it whole.
        self.assertEqual(connection.alter_topic("commits", "log.retention.mintimestamp", base), 0)
        self.assertEqual(connection.alter_topic("commits", "log.retention.mintimestamp", base + 4001), 0)
        ran = daemon.metrics()["tidemark_retention_runs_total"]
        until(lambda: daemon.metrics()["tidemark_retention_runs_total"] >= ran + 2, "two more looks")
        self.assertEqual(connection.list_offset("commits", 0, -2)[2], 8)
        # Ahead of everything: the active segment goes as well.
        self.assertEqual(connection.alter_topic("commits", "log.retention.mintimestamp", now_ms()), 0)
        until(lambda: connection.list_offset("commits", 0, -2)[2] == 12, "all is gone")
        self.assertEqual(connection.alter_topic("commits", "log.retention.mintimestamp", -1), 40, "INVALID_CONFIG")
        until(lambda: daemon.metrics()['tidemark_retention_deleted_segments_total{rule="min_timestamp"}'] == 6, "the metric tells")
        self.assertEqual(self.put(connection, "commits", b"12"), 12)
        self.assertEqual(connection.alter_topic("commits", "log.retention.mintimestamp", None), 0)

    def test_reading_while_it_goes(self):
        """A consumer at the log start of 20 partitions: data or OFFSET_OUT_OF_RANGE, for each by itself, and earliest recovers."""
        daemon, connection = self.daemon(**{"log.retention.check.interval.ms": 50})
        partitions = 20
        self.assertEqual(connection.create_topic("racing", partitions, {"retention.ms": 100, "segment.ms": 100, "file.delete.delay.ms": 50}), 0)
        stop, produced, failures = threading.Event(), [0] * partitions, []

        def produce():
            with_own = kafka_wire.Connection(daemon.port)
            try:
                while not stop.is_set():
                    for p in range(partitions):
                        for _ in range(3):
                            error, offset = with_own.produce("racing", p, kafka_wire.batch([(None, b"v" * 200)], now_ms()), acks=1)
                            if error:
                                failures.append(error)
                            produced[p] = offset + 1
            finally:
                with_own.close()

        producer = threading.Thread(target=produce)
        producer.start()
        self.addCleanup(producer.join)
        self.addCleanup(stop.set)
        offsets, read, out_of_range = dict.fromkeys(range(partitions), 0), 0, 0
        began, seconds, rounds = time.monotonic(), float(os.environ.get("RACE_SECONDS", "12")), 0
        # On a busy machine it takes longer until both has been seen.
        while time.monotonic() < began + (seconds if read and out_of_range else 5 * seconds):
            behind = {p: o for p, o in offsets.items()}
            for partition, (error, data) in connection.fetch_many("racing", behind, max_bytes=2000).items():
                self.assertIn(error, (0, OUT_OF_RANGE))
                if error == OUT_OF_RANGE:
                    out_of_range += 1
                    start = connection.list_offset("racing", partition, -2)[2]
                    self.assertGreater(start, offsets[partition])
                    offsets[partition] = start
                    continue
                for offset, _, _ in kafka_wire.records_of(data):
                    if offset < offsets[partition]:
                        continue
                    self.assertEqual(offset, offsets[partition], "no record is jumped over")
                    offsets[partition] = offset + 1
                    read += 1
            rounds += 1
            time.sleep(0.3 * (rounds % 2))   # longer than a record lives: it is overtaken, and then reads on at once
        stop.set()
        producer.join()
        self.assertEqual(failures, [])
        self.assertGreater(read, 0)
        self.assertGreater(out_of_range, 0, "the consumer was never overtaken: the test proves nothing")
        self.assertNotRegex(daemon.log(), r"(?m)^.*\b(error|critical)\b.*\[racing")

    def test_plan(self):
        daemon, connection = self.daemon(**{"log.retention.check.interval.ms": 3600000, "log.initial.task.delay.ms": 3600000})
        self.assertEqual(connection.create_topic("planned", 1, {"segment.ms": 500, "retention.ms": 86400000, **ANY_PAST}), 0)
        self.assertEqual(connection.create_topic("other", 1, {"retention.ms": -1}), 0)
        self.put(connection, "other", b"x")
        base = now_ms() - 3600_000
        for n in range(4):
            self.put(connection, "planned", b"%d" % n, base + n * 1000)
        http = f"127.0.0.1:{daemon.http_port}"

        def planned(*options):
            done = subprocess.run([program("tidemark"), "plan", "--http", http, "--retention", "--topic", "planned", *options], capture_output=True, text=True, timeout=60)
            return done.returncode, done.stdout, done.stderr

        code, text, errors = planned()
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual((text.count("now  "), text.count("later  ")), (0, 4), text)
        self.assertNotIn("other-0", text)
        gone = time.strftime("%F %T", time.gmtime((base + 86400_001) / 1000))
        self.assertIn(gone, text, "the moment is told")
        _, text, _ = planned("--set", "retention.ms=3599000")   # a few seconds ago for the first at least
        self.assertGreaterEqual(text.count("now  "), 1, text)
        _, text, _ = planned("--set", f"log.retention.mintimestamp={base + 2000}", "--set", "retention.ms=-1")
        self.assertEqual((text.count("now  "), text.count("later  ")), (2, 2), text)
        self.assertIn(f"log.retention.mintimestamp {base + 2000}: largest timestamp {base}", text)
        _, text, _ = planned("--set", "cleanup.policy=compact", "--set", "retention.ms=1")
        self.assertEqual((text.count("now  "), text.count("later  ")), (0, 4), text)
        code, _, errors = planned("--set", "retention.ms=x")
        self.assertEqual(code, 2)
        self.assertIn("Not a number of type LONG", errors)
        code, _, errors = planned("--set", "retention.mss=1")
        self.assertEqual(code, 2)
        self.assertIn("did you mean retention.ms", errors)
        self.assertEqual(connection.list_offset("planned", 0, -2)[2], 0, "nothing was done")

        # What the plan says is what a pass does.
        self.assertEqual(connection.alter_topic("planned", "log.retention.mintimestamp", base + 2000), 0)
        due = daemon.json("/api/v1/retention?topic=planned")["logs"][0]["due"]
        self.assertEqual([(s["base_offset"], s["rule"]) for s in due], [(0, "log.retention.mintimestamp"), (1, "log.retention.mintimestamp")])
        status, _ = daemon.admin("POST", "/v1/retention")
        self.assertEqual(status, 200)
        self.assertEqual(connection.list_offset("planned", 0, -2)[2], 2)
        log = daemon.json("/api/v1/retention?topic=planned")["logs"][0]
        self.assertEqual((log["due"], log["deleted"]["log.retention.mintimestamp"]), ([], {"segments": 2, "bytes": log["deleted"]["log.retention.mintimestamp"]["bytes"], "records": 2}))
        self.assertEqual((log["oldest_timestamp"], log["newest_timestamp"]), (base + 2000, base + 3000))
        series = daemon.metrics()
        self.assertEqual(series['tidemark_log_oldest_timestamp_seconds{topic="planned",partition="0"}'], (base + 2000) / 1000)
        self.assertEqual(series['tidemark_log_newest_timestamp_seconds{topic="planned",partition="0"}'], (base + 3000) / 1000)

    def test_a_clock_that_is_not_believed(self):
        """D23: behind what an earlier run saw, deletion by time waits, what does not ask for the time goes on; until it is confirmed."""
        daemon, connection = self.daemon()
        for topic, configs in (("timed", {"retention.ms": 1000}), ("sized", {"retention.ms": -1, "retention.bytes": 0}), ("dated", {"retention.ms": -1, "log.retention.mintimestamp": now_ms()})):
            self.assertEqual(connection.create_topic(topic, 1, configs), 0)
        self.assertEqual(daemon.stop(), 0)
        with open(os.path.join(daemon.data, "tidemark-clock"), "w", encoding="utf-8") as file:
            file.write(f"{now_ms() + 86400_000}\n")
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        self.addCleanup(connection.close)
        self.assertEqual(daemon.metrics()["tidemark_clock_trusted"], 0)
        self.assertRegex(daemon.log(), r"error\W.*the clock is \d+ ms behind the time that was seen before: deletion by time")
        for topic in ("timed", "sized", "dated"):
            self.put(connection, topic, b"x", now_ms() - 5000)
        for topic in ("sized", "dated"):
            until(lambda t=topic: connection.list_offset(t, 0, -2)[2] == 1, f"{topic} needs no clock")
        ran = daemon.metrics()["tidemark_retention_runs_total"]
        until(lambda: daemon.metrics()["tidemark_retention_runs_total"] >= ran + 2, "two more looks")
        self.assertEqual(connection.list_offset("timed", 0, -2)[2], 0)
        self.assertEqual(daemon.admin("POST", "/v1/clock/confirm")[0], 200)
        until(lambda: connection.list_offset("timed", 0, -2)[2] == 1, "the time was confirmed")
        self.assertEqual(daemon.metrics()["tidemark_clock_trusted"], 1)

    def test_records_that_come_too_late(self):
        """Seconds where milliseconds belong: acknowledged, deleted at the next look with a reason; refused where that is asked for."""
        daemon, connection = self.daemon(**{"log.retention.check.interval.ms": 3600000, "log.initial.task.delay.ms": 3600000})
        self.assertEqual(connection.create_topic("seconds", 1, {"retention.ms": 604800000}), 0)
        seconds = now_ms() // 1000
        self.put(connection, "seconds", b"1", seconds)
        self.put(connection, "seconds", b"2", seconds)
        self.assertEqual(daemon.admin("POST", "/v1/retention")[0], 200)
        self.assertEqual(connection.list_offset("seconds", 0, -2)[2], 2)
        self.assertIn(f"largest timestamp {seconds}): retention.ms 604800000: largest timestamp {seconds}", daemon.log())
        self.assertEqual(connection.alter_topic("seconds", "message.timestamp.before.max.ms", 604800000), 0)
        self.assertEqual(connection.produce("seconds", 0, kafka_wire.batch([(None, b"4")], seconds))[0], 32, "INVALID_TIMESTAMP")

    @unittest.skipIf(os.geteuid() != 0, "a file system is mounted")
    def test_a_full_disk_is_freed_by_retention(self):
        """Killed on a full disk, it starts, deletes what is expired and takes appends again, without anybody's help."""
        directory = tempfile.mkdtemp(prefix="tidemark-full-")
        self.addCleanup(shutil.rmtree, directory, True)
        data = os.path.join(directory, "data")
        os.makedirs(data)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", data], capture_output=True, check=False).returncode:
            self.skipTest("no mounts here")
        self.addCleanup(subprocess.run, ["umount", "-l", data], check=False)
        daemon = Tidemarkd({**FAST, "log.initial.task.delay.ms": 3600000}, directory=directory)
        daemon.start()
        self.addCleanup(daemon.close)
        connection = kafka_wire.Connection(daemon.port)
        small_segments = {"segment.bytes": 2 << 20, "segment.index.bytes": 4096}
        self.assertEqual(connection.create_topic("bulk", 1, {**small_segments, "retention.ms": 30_000, "file.delete.delay.ms": 100}), 0)
        self.assertEqual(connection.create_topic("keyed", 1, {**small_segments, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01, "min.compaction.lag.ms": 1}), 0)
        later = now_ms() + 30_000   # from when on there is something to clean, and something expired
        for n in range(20):
            self.assertEqual(connection.produce("keyed", 0, kafka_wire.batch([(b"%d" % n, bytes(300_000))], later))[0], 0)
        appended, large = 0, kafka_wire.batch([(b"k", bytes(900_000))], later - 30_000)
        while (error := connection.produce("bulk", 0, large)[0]) == 0:
            appended += 1
        self.assertEqual(error, 56, "KAFKA_STORAGE_ERROR")
        self.assertGreater(appended, 10)
        self.assertLess(now_ms(), later, "the disk was full before there was anything to clean")
        self.assertGreater(len(connection.fetch("bulk", 0, 0)[2]), 900_000, "fetches go on")
        until(lambda: "[keyed-0] not cleaned, for lack of room" in daemon.log(), "the cleaner says that there is no room for a copy", 60)
        until(lambda: now_ms() > later, "the records are old", 60)
        connection.close()
        daemon.kill()
        daemon.settings["log.initial.task.delay.ms"] = 0
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        self.addCleanup(connection.close)
        until(lambda: connection.list_offset("bulk", 0, -2)[2] == appended, "what is expired goes")
        until(lambda: connection.produce("bulk", 0, large)[0] == 0, "appends resume")
        self.assertEqual(len({key for _, key, _ in connection.read_all("keyed", 0)}), 20, "nothing else is gone")
        self.assertEqual(daemon.stop(), 0)

    def test_delete_records(self):
        daemon, connection = self.daemon()
        self.assertEqual(connection.create_topic("cut", 1, {"segment.ms": 500, "retention.ms": -1, **ANY_PAST}), 0)
        base = now_ms() - 1_000_000
        for n in range(3):
            error, _ = connection.produce("cut", 0, kafka_wire.batch([(None, b"%d" % (10 * n + i)) for i in range(10)], base + n * 1000))
            self.assertEqual(error, 0)
        self.assertEqual(connection.delete_records("cut", 0, 31), (OUT_OF_RANGE, -1))
        self.assertEqual(connection.delete_records("cut", 0, 4), (0, 4))
        self.assertEqual(connection.fetch("cut", 0, 3)[0], OUT_OF_RANGE)
        error, _, data = connection.fetch("cut", 0, 4)
        self.assertEqual((error, next(kafka_wire.records_of(data))[0]), (0, 0), "the batch comes whole")
        self.assertEqual(connection.list_offset("cut", 0, 0)[1:], (base, 4))
        daemon.kill()
        daemon.start()
        again = kafka_wire.Connection(daemon.port)
        self.addCleanup(again.close)
        self.assertEqual(again.list_offset("cut", 0, -2)[2], 4, "a kill does not bring them back")
        self.assertEqual(again.delete_records("cut", 0, 2), (0, 4), "nor does a lower offset")
        self.assertEqual(again.delete_records("cut", 0, 12), (0, 12))
        directory = os.path.join(daemon.data, "cut-0")
        until(lambda: not [f for f in os.listdir(directory) if f.startswith("00000000000000000000.")], "the file follows")
        self.assertIn("00000000000000000010.log", os.listdir(directory), "the log start lies in it")
        self.assertEqual(again.delete_records("cut", 0, -1), (0, 30))
        self.assertEqual([r for r in kcat(daemon, "cut", 5, "-X", "auto.offset.reset=earliest").stdout.split()], [])


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
