"""Apache Kafka's own tools against tidemarkd: topics, records, settings, the cluster."""

import json
import os
import re
import unittest

import kafka
from tidemarkd import Tidemarkd, until


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kafka.class_path()
        cls.daemon = Tidemarkd().start()
        cls.addClassCleanup(cls.daemon.close)
        cls.server = ("--bootstrap-server", cls.daemon.bootstrap)

    def create(self, topic, partitions=1, **configs):
        settings = [part for key, value in configs.items() for part in ("--config", f"{key.replace('_', '.')}={value}")]
        kafka.run("topics", *self.server, "--create", "--topic", topic, "--partitions", str(partitions), *settings)

    def produce(self, topic, text, *options):
        kafka.run("console-producer", *self.server, "--topic", topic, *options, text=text)

    def consume(self, topic, count, *options):
        return lines(kafka.run("console-consumer", *self.server, "--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "20000", *options))

    def test_console_producer_and_consumer(self):
        self.create("console")
        values = [f"line {n}" for n in range(1000)]
        self.produce("console", "\n".join(values) + "\n")
        self.assertEqual(self.consume("console", 1000), values)

    def test_console_with_keys_and_compression(self):
        self.create("keyed", compression_type="zstd")
        self.produce("keyed", "a:1\nb:2\na:3\n", "--reader-property", "parse.key=true", "--reader-property", "key.separator=:", "--compression-codec", "lz4")
        self.assertEqual(self.consume("keyed", 3, "--formatter-property", "print.key=true", "--formatter-property", "key.separator==", "--formatter-property", "print.offset=true"), ["Offset:0=a=1", "Offset:1=b=2", "Offset:2=a=3"])

    def test_topics(self):
        self.create("listed", 3, retention_ms=3600000, cleanup_policy="compact")
        self.assertIn("listed", lines(kafka.run("topics", *self.server, "--list")))
        described = kafka.run("topics", *self.server, "--describe", "--topic", "listed")
        self.assertRegex(described, r"Topic: listed\s+TopicId: \S{22}\s+PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: .*cleanup.policy=compact")
        self.assertEqual(len(re.findall(r"Partition: \d+\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)), 3)
        kafka.run("topics", *self.server, "--alter", "--topic", "listed", "--partitions", "5")
        self.assertIn("PartitionCount: 5", kafka.run("topics", *self.server, "--describe", "--topic", "listed"))
        kafka.run("topics", *self.server, "--delete", "--topic", "listed")
        self.assertNotIn("listed", lines(kafka.run("topics", *self.server, "--list")))
        again = kafka.outcome("topics", *self.server, "--describe", "--topic", "listed")
        self.assertNotEqual(again.status, 0)

    def test_configs(self):
        self.create("configured")
        entity = ("--entity-type", "topics", "--entity-name", "configured")
        kafka.run("configs", *self.server, "--alter", *entity, "--add-config", "retention.ms=1234,max.message.bytes=2000")
        described = kafka.run("configs", *self.server, "--describe", *entity)
        self.assertIn("retention.ms=1234", described)
        self.assertIn("DYNAMIC_TOPIC_CONFIG:retention.ms=1234", described)
        kafka.run("configs", *self.server, "--alter", *entity, "--delete-config", "retention.ms")
        described = kafka.run("configs", *self.server, "--describe", *entity)
        self.assertNotIn("retention.ms=1234", described)
        self.assertIn("max.message.bytes=2000", described)
        refused = kafka.outcome("configs", *self.server, "--alter", *entity, "--add-config", "retention.ms=-2")
        self.assertNotEqual(refused.status, 0)
        self.assertIn("Value must be at least -1", refused.stdout + refused.stderr)
        everything = kafka.run("configs", *self.server, "--describe", *entity, "--all")
        self.assertIn("segment.bytes=1073741824", everything)
        kafka.run("configs", *self.server, "--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "log.cleaner.threads=2")
        self.assertIn("log.cleaner.threads=2", kafka.run("configs", *self.server, "--describe", "--entity-type", "brokers", "--entity-default"))

    def test_minimum_timestamp(self):
        # kafka-topics --create refuses keys that it does not know itself; kafka-configs lets the broker judge.
        self.create("dated")
        entity = ("--entity-type", "topics", "--entity-name", "dated")
        kafka.run("configs", *self.server, "--alter", *entity, "--add-config", "log.retention.mintimestamp=1700000000000")
        self.assertIn("DYNAMIC_TOPIC_CONFIG:log.retention.mintimestamp=1700000000000", kafka.run("configs", *self.server, "--describe", *entity))
        self.assertEqual([log["min_timestamp"] for log in self.daemon.json("/api/v1/retention?topic=dated")["logs"]], [1700000000000])
        refused = kafka.outcome("configs", *self.server, "--alter", *entity, "--add-config", "log.retention.mintimestamp=-1")
        self.assertNotEqual(refused.status, 0)
        self.assertIn("Value must be at least 0", refused.stdout + refused.stderr)
        kafka.run("configs", *self.server, "--alter", *entity, "--delete-config", "log.retention.mintimestamp")
        self.assertNotIn("mintimestamp", kafka.run("configs", *self.server, "--describe", *entity))

    def test_get_offsets_and_delete_records(self):
        self.create("counted", 2)
        self.produce("counted", "".join(f"{n}\n" for n in range(50)), "--sync")
        def offsets(time):
            rows = lines(kafka.run("get-offsets", *self.server, "--topic", "counted", "--time", time))
            return {int(p): int(o) for _, p, o in (row.split(":") for row in rows)}
        self.assertEqual(sum(offsets("latest").values()), 50)
        self.assertEqual(sum(offsets("earliest").values()), 0)
        partition, end = max(offsets("latest").items(), key=lambda item: item[1])
        plan = os.path.join(self.daemon.directory, "delete.json")
        with open(plan, "w", encoding="utf-8") as f:
            f.write('{"partitions": [{"topic": "counted", "partition": %d, "offset": %d}], "version": 1}' % (partition, end - 1))
        answer = kafka.run("delete-records", *self.server, "--offset-json-file", plan)
        self.assertIn(f"low_watermark: {end - 1}", answer)
        self.assertEqual(offsets("earliest")[partition], end - 1)

    def test_log_dirs(self):
        self.create("measured")
        self.produce("measured", "x" * 1000 + "\n")
        answer = kafka.run("log-dirs", *self.server, "--describe", "--topic-list", "measured")
        self.assertIn(os.path.realpath(self.daemon.data), os.path.realpath(re.search(r'"logDir":"([^"]*)"', answer).group(1)))
        self.assertGreater(int(re.search(r'"size":(\d+)', answer).group(1)), 1000)

    def test_cluster_features_quorum(self):
        self.assertRegex(kafka.run("cluster", "cluster-id", *self.server), r"Cluster ID: \S{22}")
        self.assertIn("metadata.version", kafka.run("features", *self.server, "describe"))
        self.assertRegex(kafka.run("metadata-quorum", *self.server, "describe", "--status"), r"LeaderId:\s+1")


class TwoDirectories(unittest.TestCase):
    """kafka-reassign-partitions moves logs from one log directory to another."""

    def setUp(self):
        kafka.class_path()
        self.daemon = Tidemarkd()
        self.addCleanup(self.daemon.close)
        self.directories = [os.path.join(self.daemon.directory, name) for name in ("one", "two")]
        self.daemon.settings["log.dirs"] = ",".join(self.directories)
        self.daemon.start()
        self.server = ("--bootstrap-server", self.daemon.bootstrap)

    def directory_of(self, topic):
        """{partition: directory}, without copies that are on their way."""
        answer = kafka.run("log-dirs", *self.server, "--describe", "--topic-list", topic)
        shown = json.loads(next(line for line in lines(answer) if line.startswith("{")))
        return {int(p["partition"].rsplit("-", 1)[1]): d["logDir"] for broker in shown["brokers"] for d in broker["logDirs"] for p in d["partitions"] if not p["isFuture"]}

    def reassign(self, plan, step):
        return kafka.run("reassign-partitions", *self.server, "--reassignment-json-file", plan, step)

    def test_reassign_partitions(self):
        kafka.run("topics", *self.server, "--create", "--topic", "moved", "--partitions", "2", "--config", "segment.bytes=1048576")
        values = [f"{n} ".ljust(1000, "x") for n in range(5000)]
        kafka.run("console-producer", *self.server, "--topic", "moved", text="\n".join(values) + "\n")
        before = self.directory_of("moved")
        self.assertEqual(sorted(before.values()), sorted(self.directories))
        wanted = {p: next(d for d in self.directories if d != now) for p, now in before.items()}
        plan = os.path.join(self.daemon.directory, "plan.json")
        with open(plan, "w", encoding="utf-8") as f:
            json.dump({"version": 1, "partitions": [{"topic": "moved", "partition": p, "replicas": [1], "log_dirs": [d]} for p, d in wanted.items()]}, f)
        self.assertEqual(self.reassign(plan, "--execute").count("Successfully started moving log directory"), 2)
        def is_done():
            shown = self.reassign(plan, "--verify")
            return all(f"Reassignment of replica moved-{p}-1 completed successfully." in shown for p in wanted)
        until(is_done, "both replicas have moved", 60)
        self.assertEqual(self.directory_of("moved"), wanted)

        def consumed():
            return sorted(line for p in wanted for line in lines(kafka.run("console-consumer", *self.server, "--topic", "moved", "--partition", str(p), "--offset", "earliest", "--timeout-ms", "3000")))
        self.assertEqual(consumed(), sorted(values))
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        self.assertEqual(self.directory_of("moved"), wanted)
        self.assertEqual(consumed(), sorted(values))

        with open(plan, "w", encoding="utf-8") as f:
            json.dump({"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [1], "log_dirs": ["/no/such"]}]}, f)
        refused = kafka.outcome("reassign-partitions", *self.server, "--reassignment-json-file", plan, "--execute")
        self.assertIn("LogDirNotFoundException", refused.stdout + refused.stderr)
