"""A producer of transactions, what a reader of committed records sees, and how far groups have come: over a messages.Wire."""

import threading
import time

import kafka_wire
from messages import Wire

# Errors after which the same request is sent again: coordinator loading, not available, not this one, concurrent transactions, a
# partition whose log is not there yet.
AGAIN = {3, 6, 14, 15, 16, 19, 51}


class Refused(Exception):
    pass


def ask_again(wire, name, version, error_of, seconds=30, **values):
    """The answer without an error; Refused by an error that does not pass."""
    end = time.monotonic() + seconds
    while True:
        answer = wire.ask(name, version, **values)
        error = error_of(answer)
        if error == 0:
            return answer
        if error not in AGAIN or time.monotonic() > end:
            raise Refused(f"{name}: {error}")
        time.sleep(0.005)


def find_coordinator(wire, key_type, key):
    """Key types: 0 for groups, 1 for transactions. Waits until its topic is there."""
    ask_again(wire, "FindCoordinator", 4, lambda a: a["Coordinators"][0]["ErrorCode"], KeyType=key_type, CoordinatorKeys=[key])


class Client(threading.Thread):
    """A thread that works on a connection of its own, again after each end of it, until `ended`; `idle` while it is told to `pause`."""

    def __init__(self, port, expected):
        super().__init__(daemon=True)
        self.port, self.expected, self.failure = port, (OSError, *expected), None
        self.pause, self.idle, self.ended = threading.Event(), threading.Event(), threading.Event()

    def stopped(self):
        return self.ended.is_set() or self.pause.is_set()

    def work(self, wire):
        """Until stopped(). It may end by one of the expected exceptions: the daemon was killed, say."""
        raise NotImplementedError

    def run(self):
        try:
            while not self.ended.is_set():
                if self.pause.is_set():
                    self.idle.set()
                    time.sleep(0.01)
                    continue
                self.idle.clear()
                try:
                    with Wire(self.port, timeout=10) as wire:
                        self.work(wire)
                except self.expected:
                    time.sleep(0.02)
        except Exception as error:   # pylint: disable=broad-except
            self.failure = error
            raise
        finally:
            self.idle.set()


class Producer:
    """One transactional id, in the protocol of transaction.version 2 (KIP-890). Its last transaction begins with what it sends first."""

    def __init__(self, wire, id_, timeout_ms=60000):
        self.wire, self.id = wire, id_
        find_coordinator(wire, 1, id_)
        begun = ask_again(wire, "InitProducerId", 4, lambda a: a["ErrorCode"], TransactionalId=id_, TransactionTimeoutMs=timeout_ms)
        self._is(begun)

    def _is(self, answer):
        self.producer, self.epoch = answer["ProducerId"], answer["ProducerEpoch"]
        self.sequences = {}

    def send(self, topic, partition, records, version=12, timestamp=None):
        """Version 11 and below need their partition added before. The base offset."""
        sequence = self.sequences.get((topic, partition), 0)
        batch = kafka_wire.batch(records, int(time.time() * 1000) if timestamp is None else timestamp, self.producer, self.epoch, sequence, transactional=True)
        answer = ask_again(self.wire, "Produce", version, lambda a: a["Responses"][0]["PartitionResponses"][0]["ErrorCode"], TransactionalId=self.id, Acks=-1, TimeoutMs=10000,
                           TopicData=[{"Name": topic, "PartitionData": [{"Index": partition, "Records": batch}]}])
        self.sequences[topic, partition] = sequence + len(records)
        return answer["Responses"][0]["PartitionResponses"][0]["BaseOffset"]

    def send_offsets(self, group, offsets):
        """{(topic, partition): offset}, of nobody in particular."""
        topics = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append({"PartitionIndex": partition, "CommittedOffset": offset, "CommittedMetadata": ""})
        find_coordinator(self.wire, 0, group)
        ask_again(self.wire, "TxnOffsetCommit", 5, lambda a: max(p["ErrorCode"] for t in a["Topics"] for p in t["Partitions"]), TransactionalId=self.id, GroupId=group,
                  ProducerId=self.producer, ProducerEpoch=self.epoch, MemberId="", Topics=[{"Name": t, "Partitions": p} for t, p in topics.items()])

    def end(self, commit):
        self._is(ask_again(self.wire, "EndTxn", 5, lambda a: a["ErrorCode"], TransactionalId=self.id, ProducerId=self.producer, ProducerEpoch=self.epoch, Committed=commit))


def read_committed(wire, topic, partition):
    """([(offset, key, value)], the last stable offset, the high watermark)."""
    offset, records = 0, []
    while True:
        answer = wire.ask("Fetch", 12, MaxWaitMs=0, MinBytes=0, MaxBytes=1 << 24, IsolationLevel=1,
                          Topics=[{"Topic": topic, "Partitions": [{"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 22}]}])
        got = answer["Responses"][0]["Partitions"][0]
        assert got["ErrorCode"] == 0, got["ErrorCode"]
        aborted = sorted((a["FirstOffset"], a["ProducerId"]) for a in got["AbortedTransactions"] or [])
        aborting, start = set(), offset
        for base, after, attributes, producer, data in kafka_wire.batches_of(got["Records"] or b""):
            offset = after
            while aborted and aborted[0][0] <= base:
                aborting.add(aborted.pop(0)[1])
            if attributes & 0x20:
                aborting.discard(producer)
            elif not (attributes & 0x10 and producer in aborting):
                records += kafka_wire.records_of(data)
        if offset == start:
            return records, got["LastStableOffset"], got["HighWatermark"]


def committed_offsets(wire, group, require_stable=False):
    """{(topic, partition): offset} of a group; with an error instead of an offset, its number, negative."""
    answer = ask_again(wire, "OffsetFetch", 8, lambda a: a["Groups"][0]["ErrorCode"], Groups=[{"GroupId": group, "Topics": None}], RequireStable=require_stable)["Groups"][0]
    return {(t["Name"], p["PartitionIndex"]): -p["ErrorCode"] or p["CommittedOffset"] for t in answer["Topics"] for p in t["Partitions"]}
