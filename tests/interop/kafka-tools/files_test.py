"""What tidemarkd leaves on disk, read by Apache Kafka's own code, and Apache Kafka itself on a copy of its data directory."""

import glob
import json
import os
import re
import shutil
import struct
import time
import unittest

import kafka
import kafka_wire
from messages import Wire
from tidemarkd import Tidemarkd, until
from transactions import Producer, committed_offsets, read_committed


class Files(unittest.TestCase):
    SETTINGS = {"log.segment.bytes": 1 << 20, "log.index.interval.bytes": 1024}

    def filled(self):
        """A daemon with a few topics, and what they hold: {(topic, partition): [(offset, key, value)]}."""
        daemon = Tidemarkd(self.SETTINGS)
        self.addCleanup(daemon.close)
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        self.assertEqual(connection.create_topic("plain", 3, {"retention.ms": 7200000}), 0)
        self.assertEqual(connection.create_topic("compacted", 1, {"cleanup.policy": "compact"}), 0)
        self.assertEqual(connection.create_topic("removed"), 0)
        producer = connection.init_producer_id()
        now = int(time.time() * 1000)
        for n in range(400):
            error, _ = connection.produce("plain", n % 2, kafka_wire.batch([(b"k%d" % n, b"v" * 5000 + b"%d" % i) for i in range(2)], now + n))
            self.assertEqual(error, 0)
        for n in range(50):
            values = [(b"k%d" % (i % 5), None if (n + i) % 7 == 0 else b"%d-%d" % (n, i)) for i in range(10)]
            error, _ = connection.produce("compacted", 0, kafka_wire.batch(values, now + n, *producer, sequence=n * 10))
            self.assertEqual(error, 0)
        connection.ask(20, 1, struct.pack(">i", 1) + kafka_wire.text("removed") + struct.pack(">i", 30000))
        kafka.run("delete-records", "--bootstrap-server", daemon.bootstrap, "--offset-json-file", self.delete_plan(daemon))
        held = {(t, p): connection.read_all(t, p) for t, p in (("plain", 0), ("plain", 1), ("plain", 2), ("compacted", 0))}
        self.assertEqual(held["plain", 0][0][0], 5)
        topics = {t["name"]: t for t in daemon.json("/api/v1/topics")["topics"]}
        self.assertEqual(daemon.stop(), 0)
        return daemon, held, topics

    @staticmethod
    def delete_plan(daemon):
        path = os.path.join(daemon.directory, "delete.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"partitions": [{"topic": "plain", "partition": 0, "offset": 5}], "version": 1}')
        return path

    def test_dump_log_reads_every_file(self):
        daemon, held, _ = self.filled()
        logs = sorted(glob.glob(os.path.join(daemon.data, "plain-*", "*.log")) + glob.glob(os.path.join(daemon.data, "compacted-*", "*.log")))
        self.assertGreater(len(logs), 4, "several segments")
        text = kafka.run("dump-log", "--deep-iteration", "--files", ",".join(logs))
        self.assertNotIn("isvalid: false", text)
        records = len(re.findall(r"^\| offset:", text, re.MULTILINE))
        self.assertEqual(records, sum(len(r) for r in held.values()) + 5, "five were deleted from the front and are still in their segment")
        indexes = [f for f in glob.glob(os.path.join(daemon.data, "*-[0-9]", "*.index")) + glob.glob(os.path.join(daemon.data, "*-[0-9]", "*.timeindex")) if "__cluster_metadata" not in f]
        text = kafka.run("dump-log", "--verify-index-only", "--files", ",".join(sorted(indexes)))
        self.assertNotRegex(text, r"(?i)mismatch|corrupt|not monotonic|Found ")
        text = kafka.run("dump-log", "--files", ",".join(sorted(indexes)))
        self.assertNotRegex(text, r"(?i)mismatch|corrupt|out of order|Found timestamp")
        snapshots = glob.glob(os.path.join(daemon.data, "compacted-0", "*.snapshot"))
        self.assertTrue(snapshots)
        self.assertIn("producerId", kafka.run("dump-log", "--files", max(snapshots)))
        metadata = sorted(glob.glob(os.path.join(daemon.data, "__cluster_metadata-0", "*.log")) + glob.glob(os.path.join(daemon.data, "__cluster_metadata-0", "*.checkpoint")))
        text = kafka.run("dump-log", "--cluster-metadata-decoder", "--files", ",".join(metadata))
        for kind in ("TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD", "FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD"):
            self.assertIn(f'"type":"{kind}"', text)
        self.assertNotIn("isvalid: false", text)

    def test_zeros_behind_a_time_index(self):
        """KAFKA-10207: an index that nobody trimmed ends in zeros, which read as timestamp 0 would make its segment decades old."""
        daemon = Tidemarkd({"log.segment.bytes": 1 << 20, "log.index.interval.bytes": 1024})
        self.addCleanup(daemon.close)
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        self.assertEqual(connection.create_topic("t", 1, {"retention.ms": 7 * 86_400_000}), 0)
        now = int(time.time() * 1000)
        while len(logs := sorted(glob.glob(os.path.join(daemon.data, "t-0", "*.log")))) < 4:
            error, end = connection.produce("t", 0, kafka_wire.batch([(b"k", b"v" * 20_000)] * 2, now))
            self.assertEqual(error, 0)
            now += 10
        times = range(now - 10 * end // 2 - 5, now + 10, 5)
        answers = [connection.list_offset("t", 0, t) for t in times]
        bounds = [connection.list_offset("t", 0, t) for t in (-1, -2)]
        index = logs[1].replace(".log", ".timeindex")
        for zeros in (12, 24, 120, 7, None):   # None: up to what the file had while it was written
            with self.subTest(zeros=zeros):
                self.assertEqual(daemon.stop(), 0)
                whole = os.path.getsize(index)
                self.assertGreater(whole, 12 * 5)
                os.truncate(index, whole + zeros if zeros else 10 << 20)
                daemon.start()
                connection = kafka_wire.Connection(daemon.port)
                self.assertEqual(daemon.admin("POST", "/v1/retention?topic=t")[0], 200)
                self.assertEqual([connection.list_offset("t", 0, t) for t in (-1, -2)], bounds, "nothing is deleted")
                self.assertEqual([connection.list_offset("t", 0, t) for t in times], answers)
                rebuilt = [value for series, value in daemon.metrics().items() if series.startswith("tidemark_log_directory_rebuilt_indexes_total")]
                self.assertEqual(rebuilt, [1])
                self.assertEqual(daemon.stop(), 0)
                self.assertEqual(os.path.getsize(index), whole)
                for how in ([], ["--verify-index-only"]):
                    text = kafka.run("dump-log", *how, "--files", ",".join(sorted(glob.glob(os.path.join(daemon.data, "t-0", "*index")))))
                    self.assertNotRegex(text, r"(?i)mismatch|corrupt|out of order|not monotonic|Found ")
                daemon.start()
        self.assertEqual(len(re.findall(rf"{os.path.basename(index)}.*", daemon.log())), 5, "a line for each")

    def test_kafka_serves_a_copy(self):
        daemon, held, topics = self.filled()
        copy = os.path.join(daemon.directory, "copy")
        shutil.copytree(daemon.data, copy, copy_function=shutil.copy2)
        server = kafka.Broker(copy, daemon.directory)
        self.addCleanup(server.close)
        server.wait_for(held)
        connection = kafka_wire.Connection(server.port)
        for (topic, partition), records in held.items():
            self.assertEqual(connection.read_all(topic, partition), records, f"{topic}-{partition}")
        bootstrap = ("--bootstrap-server", server.bootstrap)
        described = kafka.run("topics", *bootstrap, "--describe")
        self.assertNotIn("removed", described)
        for name in ("plain", "compacted"):
            self.assertRegex(described, rf"Topic: {name}\s+TopicId: {re.escape(topics[name]['id'])}\s")
        configs = kafka.run("configs", *bootstrap, "--describe", "--entity-type", "topics", "--entity-name", "plain")
        self.assertIn("retention.ms=7200000", configs)
        # Of a deleted partition's directory Kafka says loudly that an empty segment has no index, then makes one.
        self.assertEqual([line for line in server.log().splitlines() if " ERROR " in line and "partition=removed-0" not in line], [])
        server.stop()

        # And back again: what Kafka wrote while it had the directory is there too.
        daemon.settings["log.dirs"] = daemon.data = copy
        daemon.start()
        back = kafka_wire.Connection(daemon.port)
        for (topic, partition), records in held.items():
            self.assertEqual(back.read_all(topic, partition), records, f"{topic}-{partition}")
        self.assertEqual(daemon.stop(), 0)


class Coordinators(unittest.TestCase):
    """Groups and transactions that tidemarkd has written, read by Kafka, taken over by Kafka, and taken back."""

    def test_kafka_takes_over_and_gives_back(self):
        daemon = Tidemarkd({"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 5, "transaction.state.log.num.partitions": 5})
        self.addCleanup(daemon.close)
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        self.assertEqual(connection.create_topic("t", 2), 0)
        connection.close()
        bootstrap = ("--bootstrap-server", daemon.bootstrap)
        with Wire(daemon.port) as wire:
            committed, aborted, pending = (Producer(wire, id_, timeout_ms=600_000) for id_ in ("committed", "aborted", "pending"))
            for producer, word in ((committed, b"committed"), (aborted, b"aborted"), (pending, b"pending")):
                for partition in range(2):
                    producer.send("t", partition, [(b"k", word)])
                producer.send_offsets(f"of-{producer.id}", {("t", 0): 2, ("t", 1): 3})
            committed.end(True)
            aborted.end(False)
        for protocol in ("classic", "consumer"):
            values = kafka.run("console-consumer", *bootstrap, "--topic", "t", "--group", protocol, "--from-beginning", "--command-property", f"group.protocol={protocol}", "--max-messages", "4", "--timeout-ms", "30000")
            self.assertEqual(len(values.split()), 4)
        groups = ("classic", "consumer", "of-committed", "of-pending")
        before = self.seen(daemon.port, groups)
        self.assertEqual(before["of-committed"], {("t", 0): 2, ("t", 1): 3})
        self.assertEqual(before["values"], [b"committed"] * 2)
        listed = kafka.run("transactions", *bootstrap, "list")
        self.assertEqual(daemon.stop(), 0)
        self.check_records(daemon)

        copy = os.path.join(daemon.directory, "copy")
        shutil.copytree(daemon.data, copy, copy_function=shutil.copy2)
        server = kafka.Broker(copy, daemon.directory)
        self.addCleanup(server.close)
        server.wait_for([("t", 0), ("t", 1), *((topic, partition) for topic in ("__consumer_offsets", "__transaction_state") for partition in range(5))])
        self.assertEqual(self.seen(server.port, groups), before)
        bootstrap = ("--bootstrap-server", server.bootstrap)
        self.assertEqual(self.transactions(kafka.run("transactions", *bootstrap, "list")), self.transactions(listed))
        kinds = {line.split()[0]: line.split()[1:] for line in kafka.run("consumer-groups", *bootstrap, "--list", "--type", "--state").splitlines()}
        self.assertEqual((kinds["classic"], kinds["consumer"]), (["Classic", "Empty"], ["Consumer", "Empty"]))
        # Kafka ends what was begun here, and writes what is ended there.
        with Wire(server.port) as wire:
            pending.wire = wire
            pending.end(True)
            until(lambda: committed_offsets(wire, "of-pending", require_stable=True) == {("t", 0): 2, ("t", 1): 3}, "the pending offsets count")
            half = Producer(wire, "half", timeout_ms=600_000)
            half.send("t", 0, [(b"k", b"half")])
            half.send_offsets("of-half", {("t", 0): 1})
        for protocol in ("classic", "consumer"):
            values = kafka.run("console-consumer", *bootstrap, "--topic", "t", "--group", protocol, "--command-property", f"group.protocol={protocol}", "--max-messages", "2", "--timeout-ms", "30000")
            self.assertEqual(len(values.split()), 2, f"{protocol} goes on where it was")
        after = self.seen(server.port, groups)
        server.stop()
        self.assertNotRegex(server.log(), r"(?i)error.*(__consumer_offsets|__transaction_state)")

        daemon.settings["log.dirs"] = daemon.data = copy
        daemon.start()
        self.assertEqual(self.seen(daemon.port, groups), after)
        with Wire(daemon.port) as wire:
            half.wire = wire
            half.end(True)
            until(lambda: committed_offsets(wire, "of-half", require_stable=True) == {("t", 0): 1}, "what Kafka left pending counts")
        until(lambda: self.seen(daemon.port, groups)["values"] == sorted([b"committed"] * 2 + [b"pending"] * 2 + [b"half"]), "everything committed is there")
        self.assertEqual(daemon.stop(), 0)

    @staticmethod
    def seen(port, groups):
        with Wire(port) as wire:
            found = {group: committed_offsets(wire, group) for group in groups}
            found["values"] = sorted(value for partition in range(2) for _, _, value in read_committed(wire, "t", partition)[0])
        return found

    @staticmethod
    def transactions(listed):
        """Without the coordinator's column: a broker's number."""
        return sorted(tuple(line.split()) for line in listed.splitlines())

    def check_records(self, daemon):
        """Kafka's decoders know every record in the two topics."""
        def decoded(topic, decoder):
            """(type, key, value) of each record that is no marker."""
            logs = sorted(glob.glob(os.path.join(daemon.data, f"{topic}-*", "*.log")))
            text = kafka.run("dump-log", "--deep-iteration", decoder, "--files", ",".join(logs))
            self.assertNotIn("isvalid: false", text)
            found = []
            for line in text.splitlines():
                if line.startswith("| offset:") and "endTxnMarker: " not in line:
                    key, value = line.split(" key: ", 1)[1].split(" payload: ", 1)
                    key, value = json.loads(key), None if value == "<DELETE>" else json.loads(value)
                    found.append((int(key["type"]), key["data"], value and value["data"]))
            return found
        records = decoded("__consumer_offsets", "--offsets-decoder")
        self.assertEqual({kind for kind, _, _ in records}, {1, 2, 3, 5, 6, 7, 8})
        self.assertIn(({"group": "of-pending", "topic": "t", "partition": 1}, 3), [(key, value["offset"]) for kind, key, value in records if kind == 1 and value])
        states = {}
        for kind, key, value in decoded("__transaction_state", "--transaction-log-decoder"):
            self.assertEqual(kind, 0)
            states.setdefault(key["transactionalId"], []).append(value["transactionStatus"])
        begun = ["Empty", "Ongoing", "Ongoing", "Ongoing"]
        self.assertEqual(states, {"committed": begun + ["PrepareCommit", "CompleteCommit"], "aborted": begun + ["PrepareAbort", "CompleteAbort"], "pending": begun})
