"""Kafka Streams with exactly_once_v2 and a changelog (Streams.java), while daemon and application die and come back.

What it has written equals what the input says, record by record. The environment has KILLS (2) of the daemon and SEED.
"""

import os
import random
import subprocess
import threading
import time
import unittest

import kafka
import kafka_wire
from messages import Wire
from tidemarkd import Tidemarkd, until
from transactions import Refused, committed_offsets, read_committed

PARTITIONS, KEYS = 4, 20


class Feeder(threading.Thread):
    """Writes to `in` for as long as it is let, a thousand or two records a second; twice where an answer was lost."""

    def __init__(self, port, seed):
        super().__init__(daemon=True)
        self.port, self.dice, self.ended = port, random.Random(seed), threading.Event()

    def run(self):
        while not self.ended.is_set():
            try:
                connection = kafka_wire.Connection(self.port, timeout=5)
                while not self.ended.is_set():
                    partition = self.dice.randrange(PARTITIONS)
                    records = [(b"k%d" % (partition + PARTITIONS * self.dice.randrange(KEYS // PARTITIONS)), b"%d" % self.dice.randrange(1000)) for _ in range(10)]
                    connection.produce("in", partition, kafka_wire.batch(records, int(time.time() * 1000)))
                    self.ended.wait(0.005)
            except OSError:
                time.sleep(0.05)


class Application:
    def __init__(self, daemon):
        self.log_path = os.path.join(daemon.directory, "streams.log")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(kafka.command("streams", daemon.bootstrap, os.path.join(daemon.directory, "streams")), stdin=subprocess.PIPE, stdout=log, stderr=log)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-8000:]

    def stop(self):
        self.process.stdin.close()
        return self.process.wait(90)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


def history(records):
    """What the application makes of its input: {key: every value of `out`}."""
    out = {}
    for _, key, value in records:
        count, total = map(int, out[key][-1].split()) if key in out else (0, 0)
        out.setdefault(key, []).append(b"%d %d" % (count + 1, (total * 31 + int(value)) % 1_000_000_007))
    return out


class Streams(unittest.TestCase):
    def test_output_equals_the_model(self):
        kills = int(os.environ.get("KILLS", "2"))
        seed = int(os.environ.get("SEED", str(random.randrange(1 << 32))))
        print(f"seed {seed}", flush=True)
        dice = random.Random(seed)
        daemon = Tidemarkd({"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 5, "transaction.state.log.num.partitions": 5})
        self.addCleanup(daemon.close)
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        for topic in ("in", "out"):
            self.assertEqual(connection.create_topic(topic, PARTITIONS), 0)
        connection.close()
        feeder, self.application = Feeder(daemon.port, seed), Application(daemon)
        self.addCleanup(lambda: self.application.kill())   # pylint: disable=unnecessary-lambda
        self.addCleanup(feeder.ended.set)
        feeder.start()
        for number in range(kills):
            before = self.processed(daemon)
            more = dice.randrange(200, 2000)
            self.wait(lambda: self.processed(daemon) >= before + more, f"round {number}: the application goes on", 120)
            if number == kills // 2:   # and once it is the application, whose next one knows only what is in the topics
                self.application.kill()
                self.application = Application(daemon)
            time.sleep(dice.uniform(0, 0.1))
            daemon.kill()
            daemon.start()
        before = self.processed(daemon)
        self.wait(lambda: self.processed(daemon) > before, "the application goes on after the last one", 120)
        feeder.ended.set()
        feeder.join(30)

        with kafka_wire_of(daemon) as reader:
            given = [reader.read_all("in", partition) for partition in range(PARTITIONS)]
        fed = sum(map(len, given))
        self.wait(lambda: self.processed(daemon) == fed, f"all {fed} records are processed", 120)
        self.assertEqual(self.application.stop(), 0, self.application.log())
        written = {}
        with Wire(daemon.port) as wire:
            for partition in range(PARTITIONS):
                records, stable, high = read_committed(wire, "out", partition)
                self.assertEqual(stable, high, "no transaction is left open")
                for _, key, value in records:
                    written.setdefault(key, []).append(value)
                changes, _, _ = read_committed(wire, "streams-history-changelog", partition)
                self.assertEqual({key: value for _, key, value in changes}, {key: values[-1] for key, values in history(given[partition]).items()}, f"changelog of partition {partition}")
        self.assertEqual(written, {key: values for records in given for key, values in history(records).items()})
        self.assertEqual(daemon.stop(), 0)
        print(f"{kills} kills, {fed} records", flush=True)

    def wait(self, condition, what, seconds):
        try:
            until(condition, what, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- the application's log\n{self.application.log()}") from error

    @staticmethod
    def processed(daemon):
        """Records of `in` whose results are committed."""
        try:
            with Wire(daemon.port) as wire:
                return sum(offset for (topic, _), offset in committed_offsets(wire, "streams").items() if topic == "in")
        except Refused:   # the topic of offsets comes with the first group
            return 0


def kafka_wire_of(daemon):
    class Open(kafka_wire.Connection):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.close()
    return Open(daemon.port)
