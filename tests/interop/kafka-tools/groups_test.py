"""Consumer groups as Kafka's own tools see and change them, and its verifiable clients in them."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import unittest

import kafka
import kafka_wire
from tidemarkd import Tidemarkd, until

BEGIN = 1_700_000_000_000   # of the records' timestamps, a second apart
RECORDS = 30                # in each partition


def rows(text):
    """A tool's table as dicts; a column that is empty in the heading's sense ("-") stays "-"."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    head = next((i for i, line in enumerate(lines) if line[0] in ("GROUP", "TOPIC")), None)
    if head is None:
        return []
    return [dict(zip(lines[head], line)) for line in lines[head + 1:] if line[0] not in ("GROUP", "TOPIC") and len(line) > 2]


class Verifiable:
    """One of Kafka's verifiable programs in a process of its own; what it says is a JSON object a line."""

    def __init__(self, tool, *arguments):
        self.process = subprocess.Popen(kafka.command(tool, *arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.events = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.events.append(json.loads(line))

    def named(self, name):
        return [event for event in self.events if event["name"] == name]

    def assigned(self):
        """Partitions that it has now."""
        held = set()
        for event in self.events:
            if event["name"] == "partitions_assigned":
                held |= {(p["topic"], p["partition"]) for p in event["partitions"]}
            elif event["name"] == "partitions_revoked":
                held -= {(p["topic"], p["partition"]) for p in event["partitions"]}
        return held

    def consumed(self):
        return sum(event["count"] for event in self.named("records_consumed"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.reader.join()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Groups(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kafka.class_path()
        cls.daemon = Tidemarkd({"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 5, "group.consumer.min.session.timeout.ms": 6000, "group.consumer.session.timeout.ms": 6000,
                                "group.consumer.min.heartbeat.interval.ms": 1000, "group.consumer.heartbeat.interval.ms": 1000}).start()
        cls.addClassCleanup(cls.daemon.close)
        cls.server = ("--bootstrap-server", cls.daemon.bootstrap)
        connection = kafka_wire.Connection(cls.daemon.port)
        assert connection.create_topic("in", 3, {"retention.ms": -1}) == 0
        for partition in range(3):
            for n in range(RECORDS):
                assert connection.produce("in", partition, kafka_wire.batch([(b"k", b"%d" % n)], BEGIN + n * 1000))[0] == 0
        connection.close()

    def groups(self, *arguments):
        return kafka.run("consumer-groups", *self.server, *arguments)

    def refused(self, *arguments):
        done = kafka.outcome("consumer-groups", *self.server, *arguments)
        return done.stdout + done.stderr

    def consumer(self, group, *arguments, protocol="classic"):
        options = ("--session-timeout", "6000") if protocol == "classic" else ()
        started = Verifiable("verifiable-consumer", *self.server, "--topic", "in", "--group-id", group, "--group-protocol", protocol, "--reset-policy", "earliest", *options, *arguments)
        self.addCleanup(started.close)
        return started

    def offsets(self, group):
        """{partition: committed offset} of the topic."""
        return {int(row["PARTITION"]): int(row["CURRENT-OFFSET"]) for row in rows(self.groups("--describe", "--group", group)) if row["TOPIC"] == "in" and row["CURRENT-OFFSET"] != "-"}

    def play_group(self, protocol):
        group = f"of-{protocol}"
        first, second = self.consumer(group, protocol=protocol), self.consumer(group, protocol=protocol)
        until(lambda: first.assigned() and second.assigned() and len(first.assigned() | second.assigned()) == 3, "the partitions are shared", 120)
        self.assertEqual(first.assigned() & second.assigned(), set())
        until(lambda: self.offsets(group) == {0: RECORDS, 1: RECORDS, 2: RECORDS}, "all is committed", 120)

        self.assertIn([group, protocol.capitalize(), "Stable"], [line.split()[:3] for line in self.list_with_type_and_state()])
        self.assertIn(group, self.groups("--list", "--state", "stable"))
        self.assertNotIn(group, self.groups("--list", "--state", "empty"))
        self.assertIn(group, self.groups("--list", "--type", protocol))
        lag = rows(self.groups("--describe", "--group", group, "--offsets"))
        self.assertEqual([(row["LOG-END-OFFSET"], row["LAG"]) for row in lag], [(str(RECORDS), "0")] * 3)
        members = rows(self.groups("--describe", "--group", group, "--members", "--verbose"))
        self.assertEqual(sorted(int(row["#PARTITIONS"]) for row in members), [1, 2])
        state = rows(self.groups("--describe", "--group", group, "--state", "--verbose"))
        self.assertEqual(len(state), 1)
        self.assertIn("Stable", state[0].values())
        self.assertIn("2", state[0].values())

        self.assertRegex(self.refused("--delete", "--group", group), r"(?i)not empty")
        self.assertRegex(self.refused("--reset-offsets", "--group", group, "--topic", "in", "--to-earliest", "--execute"), r"(?i)inactive")
        self.assertRegex(self.refused("--delete-offsets", "--group", group, "--topic", "in:0"), r"(?i)subscribed")

        # One dies without a word: its partitions go to the other when its session is over.
        first.close()
        until(lambda: len(second.assigned()) == 3, "the other has everything", 60)
        second.stop()
        self.assertTrue(second.named("shutdown_complete"))
        self.assertTrue(all(event["success"] for event in second.named("offsets_committed")))
        until(lambda: self.list_state(group) == "Empty", "the group is empty", 60)
        self.assertEqual(self.offsets(group), {0: RECORDS, 1: RECORDS, 2: RECORDS})
        self.groups("--delete", "--group", group)
        self.assertNotIn(group, self.groups("--list").split())

    def list_with_type_and_state(self):
        return self.groups("--list", "--type", "--state").splitlines()

    def list_state(self, group):
        return next((line.split()[-1] for line in self.groups("--list", "--state").splitlines() if line.split()[:1] == [group]), None)

    def test_classic_group(self):
        self.play_group("classic")

    def test_consumer_group(self):
        self.play_group("consumer")

    def reset(self, group, *how, execute="--execute"):
        """{partition: new offset}, as the tool says."""
        topic = () if {"--from-file", "--topic"} & set(how) else ("--topic", "in")
        done = rows(self.groups("--reset-offsets", "--group", group, *topic, *how, execute))
        return {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in done}

    def test_reset_offsets(self):
        group, everywhere = "reset", lambda offset: {0: offset, 1: offset, 2: offset}
        self.assertEqual(self.reset(group, "--to-offset", "7"), everywhere(7))
        self.assertEqual(self.offsets(group), everywhere(7))
        self.assertEqual(self.reset(group, "--to-latest", execute="--dry-run"), everywhere(RECORDS))
        self.assertEqual(self.offsets(group), everywhere(7))
        for how, expected in ((("--shift-by", "5"), 12), (("--shift-by", "-2"), 10), (("--shift-by", "1000"), RECORDS), (("--to-current",), RECORDS), (("--to-earliest",), 0),
                              (("--to-datetime", time.strftime("%Y-%m-%dT%H:%M:%S.500", time.gmtime(BEGIN // 1000 + 11))), 12), (("--to-latest",), RECORDS), (("--by-duration", "P10000D"), 0), (("--to-offset", "1000"), RECORDS)):
            self.assertEqual(self.reset(group, *how), everywhere(expected), how)
            self.assertEqual(self.offsets(group), everywhere(expected), how)
        plan = os.path.join(self.daemon.directory, "reset.csv")
        with open(plan, "w", encoding="utf-8") as f:
            f.write("in,0,3\nin,2,4\n")
        self.assertEqual(self.reset(group, "--from-file", plan), {0: 3, 2: 4})
        self.assertEqual(self.offsets(group), {0: 3, 1: RECORDS, 2: 4})
        exported = self.groups("--reset-offsets", "--group", group, "--all-topics", "--to-current", "--export")
        self.assertEqual(sorted(exported.split()), ["in,0,3", f"in,1,{RECORDS}", "in,2,4"])
        self.assertEqual(self.reset(group, "--topic", "in:1", "--to-offset", "9"), {1: 9})

        self.assertIn("Successful", self.groups("--delete-offsets", "--group", group, "--topic", "in:1"))
        self.assertEqual(self.offsets(group), {0: 3, 2: 4})
        self.groups("--delete", "--group", group)
        self.assertRegex(self.refused("--describe", "--group", group), r"(?i)does not exist|not found")
        self.assertRegex(self.refused("--delete", "--group", group), r"(?i)not found|does not exist")

    def test_regular_expressions(self):
        self.assertIn("The regular expression `in.*` is valid.", self.groups("--validate-regex", "in.*"))
        self.assertIn("not valid", self.refused("--validate-regex", "in[").replace("invalid", "not valid"))
        consumed = kafka.run("console-consumer", *self.server, "--include", "i[nm]", "--group", "by-pattern", "--command-property", "auto.offset.reset=earliest", "--max-messages", str(3 * RECORDS), "--timeout-ms", "30000")
        self.assertEqual(len(consumed.split()), 3 * RECORDS)

    def test_console_consumer_goes_on_where_it_was(self):
        for protocol in ("classic", "consumer"):
            def consume(count):
                return kafka.run("console-consumer", *self.server, "--topic", "in", "--group", f"console-{protocol}", "--from-beginning", "--command-property", f"group.protocol={protocol}",   # pylint: disable=cell-var-from-loop
                                 "--max-messages", str(count), "--timeout-ms", "30000").split()
            values = consume(10) + consume(RECORDS) + consume(3 * RECORDS - 10 - RECORDS)
            self.assertEqual(sorted(map(int, values)), sorted(list(range(RECORDS)) * 3), protocol)
            self.assertEqual(self.offsets(f"console-{protocol}"), {0: RECORDS, 1: RECORDS, 2: RECORDS})

    def test_verifiable_producer(self):
        producer = Verifiable("verifiable-producer", *self.server, "--topic", "verified", "--max-messages", "500", "--acks", "-1", "--value-prefix", "7")
        self.addCleanup(producer.close)
        producer.process.wait(60)
        producer.reader.join()
        self.assertEqual([(event["sent"], event["acked"]) for event in producer.named("tool_data")], [(500, 500)])
        self.assertEqual(producer.named("producer_send_error"), [])

    def test_groups_of_every_kind_are_listed(self):
        self.reset("any", "--to-offset", "1")
        listed = kafka.run("groups", *self.server, "--list")
        self.assertRegex(listed, re.compile(r"^any\s+Classic", re.MULTILINE))
        for word in ("share", "streams"):
            self.assertNotRegex(kafka.run("groups", *self.server, "--list", "--group-type", word), r"(?m)^any\s")
