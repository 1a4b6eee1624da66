#!/usr/bin/env python3
"""Apache Kafka 4.4 opens metadata that our controller wrote, changes it, and our controller goes on with that.

    run.py metadata_interop [-v] [Class.test ...]
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "kafka-tools"))
import kafka  # noqa: E402

PROGRAM = ""


def ours(command, directory, *arguments):
    done = subprocess.run([PROGRAM, command, directory, *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1]) if command == "show" else None


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Kafka:
    """A broker and controller on a data directory, until closed."""

    def __init__(self, directory):
        self.port, controller_port = free_ports(2)
        self.log = os.path.join(directory, "..", "kafka.log")
        settings = os.path.join(directory, "..", "server.properties")
        with open(settings, "w", encoding="utf-8") as f:
            f.write(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
log.dirs={directory}
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
""")
        self.output = open(self.log, "w", encoding="utf-8")
        self.process = subprocess.Popen(kafka.command("server", settings), stdout=self.output, stderr=subprocess.STDOUT)
        self.server = ("--bootstrap-server", f"127.0.0.1:{self.port}")
        deadline = time.monotonic() + 120
        while True:
            if self.process.poll() is not None:
                raise AssertionError("Kafka did not start:\n" + self.text()[-5000:])
            if kafka_answers(self.port):
                return
            if time.monotonic() > deadline:
                self.close()
                raise AssertionError("Kafka does not answer:\n" + self.text()[-5000:])
            time.sleep(0.5)   # a starting JVM is looked at again; nothing is assumed of how long it takes

    def run(self, tool, *arguments, **options):
        """One of Kafka's programs, on this broker; when it fails, the broker's own words are shown too."""
        try:
            return kafka.run(tool, *self.server, *arguments, **options)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            raise AssertionError(f"{error}\nthe broker ({self.process.poll() or 'running'}) says:\n{self.text()[-5000:]}") from error

    def text(self):
        self.output.flush()
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.output.close()


def kafka_answers(port):
    """An ApiVersions request, version 0, gets an answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as s:
            s.settimeout(2)
            s.sendall(bytes.fromhex("0000000a" "0012" "0000" "00000001" "ffff"))
            return len(s.recv(4)) == 4
    except OSError:
        return False


class Metadata(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.data = os.path.join(self.temporary.name, "data")

    def metadata_files(self, suffix):
        directory = os.path.join(self.data, "__cluster_metadata-0")
        return sorted(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(suffix))

    def test_dump_log_decodes_every_record(self):
        ours("make", self.data, "33")
        logs, snapshots = self.metadata_files(".log"), self.metadata_files(".checkpoint")
        self.assertGreater(len(logs), 2)
        self.assertGreater(len(snapshots), 1)
        for name in logs + snapshots:
            dumped = kafka.run("dump-log", "--cluster-metadata-decoder", "--files", name)
            self.assertIn("payload" if ".log" in name else "SnapshotHeader", dumped)
            for bad in ("Could not", "invalid", "isvalid: false", "Exception", "skipping"):
                self.assertNotIn(bad, dumped, name)

    def test_kafka_opens_changes_and_leaves_it(self):
        ours("make", self.data, "33")
        before = ours("show", self.data)
        broker = Kafka(self.data)
        self.addCleanup(broker.close)
        listed = broker.run("topics", "--list").split()
        self.assertEqual(sorted(listed), sorted(before["topics"]))
        described = broker.run("topics", "--describe", "--topic", "orders")
        self.assertIn("TopicId: " + before["topics"]["orders"]["id"], described)
        self.assertIn("PartitionCount: 4", described)
        for setting in ("segment.bytes=1048576", "retention.ms=-1", "max.message.bytes=200000"):
            self.assertIn(setting, described)
        self.assertIn("max.compaction.lag.ms=60000", broker.run("topics", "--describe", "--topic", "compacted"))
        self.assertIn("log.retention.ms=1000000000", broker.run("configs", "--describe", "--entity-type", "brokers", "--entity-default"))
        self.assertIn("log.cleaner.threads=2", broker.run("configs", "--describe", "--entity-type", "brokers", "--entity-name", "1"))
        self.assertIn("interval.ms=60000", broker.run("configs", "--describe", "--entity-type", "client-metrics", "--entity-name", "cm1"))
        self.assertIn("consumer.session.timeout.ms=50000", broker.run("configs", "--describe", "--entity-type", "groups", "--entity-name", "g1"))
        self.assertIn("metadata.version", broker.run("features", "describe"))
        broker.run("console-producer", "--topic", "orders", text="one\ntwo\n")
        read = broker.run("console-consumer", "--topic", "orders", "--from-beginning", "--max-messages", "2", "--timeout-ms", "30000")
        self.assertEqual(sorted(read.split()), ["one", "two"])
        broker.run("topics", "--create", "--topic", "made.by.kafka", "--partitions", "2", "--config", "segment.ms=7777777")
        broker.run("topics", "--delete", "--topic", "many.7")
        broker.close()
        self.assertNotIn("-stray", "".join(os.listdir(self.data)))

        left = ours("show", self.data)
        expected = set(before["topics"]) - {"many.7"} | {"made.by.kafka", "__consumer_offsets"}
        self.assertEqual(set(left["topics"]), expected)
        self.assertEqual(left["topics"]["orders"]["id"], before["topics"]["orders"]["id"])
        self.assertEqual(left["configs"]["2:made.by.kafka"], {"segment.ms": "7777777"})
        self.assertGreater(left["nextProducerId"], before["nextProducerId"])
        ours("visit", self.data)
        again = ours("show", self.data)
        self.assertEqual(again["configs"]["2:tidemark.again"], {"retention.bytes": "12345"})
        # The setting that Kafka does not know is there as before.
        self.assertEqual(again["configs"]["2:compacted"], before["configs"]["2:compacted"])
        for name, topic in again["topics"].items():
            for number, partition in topic["partitions"].items():
                self.assertEqual(partition["leader"], 1, f"{name}-{number}")
                if name in before["topics"] and number in before["topics"][name]["partitions"]:
                    self.assertGreaterEqual(partition["leaderEpoch"], before["topics"][name]["partitions"][number]["leaderEpoch"])
        broker = Kafka(self.data)
        self.addCleanup(broker.close)
        self.assertIn("tidemark.again", broker.run("topics", "--list").split())
        read = broker.run("console-consumer", "--topic", "orders", "--from-beginning", "--max-messages", "2", "--timeout-ms", "30000")
        self.assertEqual(sorted(read.split()), ["one", "two"])

    def test_a_directory_for_an_older_kafka(self):
        ours("make", self.data, "25")
        broker = Kafka(self.data)
        self.addCleanup(broker.close)
        self.assertIn("orders", broker.run("topics", "--list").split())
        self.assertIn("4.0-IV3", broker.run("features", "describe"))
        broker.close()
        ours("visit", self.data)
        self.assertIn("tidemark.again", ours("show", self.data)["topics"])


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    kafka.class_path()
    unittest.main()
