"""kafka-transactions: every one of its actions, on transactions made over the wire."""

import re
import unittest

import kafka
import kafka_wire
from messages import Wire
from tidemarkd import Tidemarkd, until
from transactions import Producer, Refused, read_committed


def cells(text):
    """A tool's table as dicts."""
    lines = [re.split(r"\s*\t\s*|\s{2,}", line.strip()) for line in text.splitlines() if line.strip()]
    head = next((i for i, line in enumerate(lines) if line[0] in ("TransactionalId", "CoordinatorId", "ProducerId", "Topic")), None)
    return [] if head is None else [dict(zip(lines[head], line)) for line in lines[head + 1:]]


class Transactions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kafka.class_path()
        # Unverified, old producers can leave a transaction open that no coordinator knows.
        cls.daemon = Tidemarkd({"transaction.state.log.num.partitions": 5, "transaction.partition.verification.enable": "false"}).start()
        cls.addClassCleanup(cls.daemon.close)
        cls.wire = Wire(cls.daemon.port)
        cls.addClassCleanup(cls.wire.socket.close)
        connection = kafka_wire.Connection(cls.daemon.port)
        assert connection.create_topic("t", 2) == 0 and connection.create_topic("old", 1) == 0
        connection.close()

    def transactions(self, *arguments):
        return kafka.run("transactions", "--bootstrap-server", self.daemon.bootstrap, *arguments)

    def test_list_and_describe(self):
        producer = Producer(self.wire, "open")
        producer.send("t", 0, [(b"k", b"v")])
        producer.send("t", 1, [(b"k", b"v")])
        listed = {row["TransactionalId"]: row for row in cells(self.transactions("list"))}
        self.assertEqual((listed["open"]["ProducerId"], listed["open"]["TransactionState"]), (str(producer.producer), "Ongoing"))
        self.assertIn("open", self.transactions("list", "--duration-filter", "0"))
        self.assertNotIn("open", self.transactions("list", "--duration-filter", "3600000"))
        self.assertIn("open", self.transactions("list", "--transactional-id-pattern", "o.*n"))
        self.assertNotIn("open", self.transactions("list", "--transactional-id-pattern", "o"))
        described = cells(self.transactions("describe", "--transactional-id", "open"))[0]
        self.assertEqual(described["TransactionState"], "Ongoing")
        self.assertEqual(described["ProducerEpoch"], str(producer.epoch))
        self.assertEqual(described["TransactionTimeoutMs"], "60000")
        self.assertEqual(sorted(described["TopicPartitions"].split(",")), ["t-0", "t-1"])
        producers = {row["ProducerId"]: row for row in cells(self.transactions("describe-producers", "--topic", "t", "--partition", "0"))}
        self.assertEqual((producers[str(producer.producer)]["ProducerEpoch"], producers[str(producer.producer)]["LastSequence"]), (str(producer.epoch), "0"))
        self.assertNotEqual(producers[str(producer.producer)]["CurrentTransactionStartOffset"], "None")
        producer.end(commit=True)
        def state():
            return cells(self.transactions("describe", "--transactional-id", "open"))[0]["TransactionState"]
        until(lambda: state() == "CompleteCommit", "it is complete")
        producers = {row["ProducerId"]: row for row in cells(self.transactions("describe-producers", "--topic", "t", "--partition", "0"))}
        self.assertEqual(producers[str(producer.producer)]["CurrentTransactionStartOffset"], "None")
        unknown = kafka.outcome("transactions", "--bootstrap-server", self.daemon.bootstrap, "describe", "--transactional-id", "nobody")
        self.assertNotEqual(unknown.status, 0)

    def test_hanging_transactions_are_found_and_aborted(self):
        producer = Producer(self.wire, "hanging")
        hour_ago = 3_600_000
        now = self.daemon_now()
        start = producer.send("old", 0, [(b"k", b"v")], version=10, timestamp=now - hour_ago)
        self.assertEqual(read_committed(self.wire, "old", 0)[0], [])
        found = cells(self.transactions("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "15"))
        self.assertEqual([(row["Topic"], row["Partition"], row["ProducerId"], row["StartOffset"]) for row in found], [("old", "0", str(producer.producer), str(start))])
        self.assertEqual(len(cells(self.transactions("find-hanging", "--topic", "old", "--max-transaction-timeout", "15"))), 1)
        self.transactions("abort", "--topic", "old", "--partition", "0", "--start-offset", str(start))
        records, stable, high = read_committed(self.wire, "old", 0)
        self.assertEqual((records, stable), ([], high))
        self.assertEqual(cells(self.transactions("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "15")), [])

    @staticmethod
    def daemon_now():
        import time   # pylint: disable=import-outside-toplevel
        return int(time.time() * 1000)

    def test_force_terminate(self):
        producer = Producer(self.wire, "forced")
        producer.send("t", 0, [(b"k", b"forced")])
        self.transactions("forceTerminateTransaction", "--transactionalId", "forced")
        def state():
            return cells(self.transactions("describe", "--transactional-id", "forced"))[0]["TransactionState"]
        until(lambda: state() in ("CompleteAbort", "Empty"), "it is aborted")
        with self.assertRaises(Refused):
            producer.end(commit=True)
        self.assertNotIn(b"forced", [value for _, _, value in read_committed(self.wire, "t", 0)[0]])
