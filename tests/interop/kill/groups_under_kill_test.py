"""kill -9 while members of groups of both protocols commit offsets, and producers commit them in their transactions.

After each kill no committed offset is behind one that was acknowledged, or ahead of all that were sent; offsets and records
of a transaction are there together or not at all; and in every group every partition is committed again within the session
timeout, though members go without a word now and then. The environment has ROUNDS (5) and SEED.
"""

import os
import random
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "service"), os.path.join(HERE, "..", "wire")]
from messages import Wire  # noqa: E402
from tidemarkd import Tidemarkd, until  # noqa: E402
from transactions import Client, Producer, Refused, ask_again, committed_offsets, read_committed  # noqa: E402

TOPIC, PARTITIONS, MEMBERS, GROUPS, PRODUCERS = "t", 6, 3, 2, 2
SESSION_MS = 3000
# What a restart and a rebalance may take beside the session timeout, on a machine that is busy with other things.
MARGIN_MS = 3000
UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCE, MEMBER_ID_REQUIRED = 25, 22, 27, 79


class Progress:
    """What was sent and what was acknowledged of one group: each commit of a partition is one more than the one before."""

    def __init__(self, group):
        self.group, self.lock = group, threading.Lock()
        self.sent, self.acknowledged, self.acknowledged_at = dict.fromkeys(range(PARTITIONS), 0), dict.fromkeys(range(PARTITIONS), 0), dict.fromkeys(range(PARTITIONS), 0.0)

    def next(self, partition):
        with self.lock:
            self.sent[partition] += 1
            return self.sent[partition]

    def done(self, partition, offset):
        with self.lock:
            self.acknowledged[partition] = max(self.acknowledged[partition], offset)
            self.acknowledged_at[partition] = time.monotonic()


class Lost(Exception):
    """The member has to begin anew, as itself or as another."""


class Member(threading.Thread):
    """A consumer that consumes nothing. What differs between the protocols is how it gets its partitions."""

    def __init__(self, progress, port, seed):
        super().__init__(daemon=True)
        self.progress, self.port, self.dice, self.ended = progress, port, random.Random(seed), threading.Event()
        self.id, self.epoch, self.failure = "", 0, None

    def run(self):
        try:
            while not self.ended.is_set():
                try:
                    with Wire(self.port, timeout=10) as wire:
                        self.ask(wire, "FindCoordinator", 4, lambda a: a["Coordinators"][0]["ErrorCode"], KeyType=0, CoordinatorKeys=[self.progress.group])
                        while not self.ended.is_set():
                            self.consume(wire)
                except (Lost, OSError):
                    if self.dice.random() < 0.05:   # it dies, and somebody else comes
                        self.begin()
                    time.sleep(0.01)
        except Exception as error:   # pylint: disable=broad-except
            self.failure = error
            raise

    def ask(self, wire, name, version, error_of, **values):
        try:
            return ask_again(wire, name, version, error_of, **values)
        except Refused as refused:
            raise Lost(str(refused)) from refused

    def commit(self, wire, partitions, version):
        for partition in partitions:
            offset = self.progress.next(partition)
            answer = wire.ask("OffsetCommit", version, GroupId=self.progress.group, GenerationIdOrMemberEpoch=self.epoch, MemberId=self.id,
                              Topics=[{"Name": TOPIC, "Partitions": [{"PartitionIndex": partition, "CommittedOffset": offset, "CommittedMetadata": ""}]}])
            error = answer["Topics"][0]["Partitions"][0]["ErrorCode"]
            if error:
                raise Lost(f"commit: {error}")
            self.progress.done(partition, offset)


class ClassicMember(Member):
    def begin(self):
        self.id, self.epoch = "", -1

    def consume(self, wire):
        group = {"GroupId": self.progress.group}
        while True:
            joined = wire.ask("JoinGroup", 9, **group, SessionTimeoutMs=SESSION_MS, RebalanceTimeoutMs=SESSION_MS, MemberId=self.id, ProtocolType="test", Protocols=[{"Name": "p", "Metadata": b""}])
            if joined["ErrorCode"] == MEMBER_ID_REQUIRED:
                self.id = joined["MemberId"]
            elif joined["ErrorCode"] == UNKNOWN_MEMBER:
                self.begin()
            elif joined["ErrorCode"]:
                raise Lost(f"join: {joined['ErrorCode']}")
            else:
                break
        self.id, self.epoch = joined["MemberId"], joined["GenerationId"]
        ids = [member["MemberId"] for member in joined["Members"]]
        shares = [{"MemberId": id_, "Assignment": bytes(range(n, PARTITIONS, len(ids)))} for n, id_ in enumerate(ids)]
        claim = {**group, "GenerationId": self.epoch, "MemberId": self.id}
        synced = wire.ask("SyncGroup", 5, **claim, ProtocolType="test", ProtocolName="p", Assignments=shares)
        if synced["ErrorCode"]:
            return self.look(synced["ErrorCode"])
        while not self.ended.is_set():
            if error := wire.ask("Heartbeat", 4, **claim)["ErrorCode"]:
                return self.look(error)
            self.commit(wire, synced["Assignment"], 8)
            self.ended.wait(0.005)
        return None

    def look(self, error):
        if error in (UNKNOWN_MEMBER, ILLEGAL_GENERATION):
            self.begin()
        elif error != REBALANCE:
            raise Lost(f"{error}")


class ConsumerMember(Member):
    """KIP-848."""

    def begin(self):
        self.id, self.epoch = f"{self.dice.randrange(1 << 64):022d}", 0

    def consume(self, wire):
        if not self.id:
            self.begin()
        owned, told = {}, False
        self.epoch = 0
        while not self.ended.is_set():
            answer = wire.ask("ConsumerGroupHeartbeat", 1, GroupId=self.progress.group, MemberId=self.id, MemberEpoch=self.epoch, RebalanceTimeoutMs=SESSION_MS,
                              **({} if told else {"SubscribedTopicNames": [TOPIC]}), TopicPartitions=[{"TopicId": id_, "Partitions": sorted(p)} for id_, p in owned.items() if p])
            if answer["ErrorCode"]:   # fenced, unknown, loading: from the beginning
                raise Lost(f"heartbeat: {answer['ErrorCode']}")
            self.epoch, told = answer["MemberEpoch"], True
            if answer["Assignment"] is not None:
                owned = {t["TopicId"]: set(t["Partitions"]) for t in answer["Assignment"]["TopicPartitions"]}
            self.commit(wire, [p for partitions in owned.values() for p in partitions], 9)
            self.ended.wait(0.005)


class TransactionalOffsets(Client):
    """In each transaction: a record with the next number, and the same number as an offset of a group."""

    def __init__(self, number, port, seed):
        super().__init__(port, (Refused,))
        self.id, self.dice = f"offsets-{number}", random.Random(seed)
        self.partition, self.acknowledged, self.sent = number % PARTITIONS, 0, 0

    def work(self, wire):
        producer = Producer(wire, self.id)
        while not self.stopped():
            self.sent += 1
            producer.send(TOPIC, self.partition, [(self.id.encode(), b"%d" % self.sent)])
            producer.send_offsets(self.id, {(TOPIC, self.partition): self.sent})
            commit = self.dice.random() < 0.8
            producer.end(commit)
            if commit:
                self.acknowledged = self.sent


class GroupsUnderKill(unittest.TestCase):
    def test_no_offset_goes_back_and_no_group_is_stuck(self):
        rounds = int(os.environ.get("ROUNDS", "5"))
        seed = int(os.environ.get("SEED", str(random.randrange(1 << 32))))
        print(f"seed {seed}", flush=True)
        dice = random.Random(seed)
        daemon = Tidemarkd({"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3, "group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000,
                            "group.consumer.min.session.timeout.ms": 1000, "group.consumer.session.timeout.ms": SESSION_MS, "group.consumer.min.heartbeat.interval.ms": 100,
                            "group.consumer.heartbeat.interval.ms": 500})
        self.addCleanup(daemon.close)
        daemon.start()
        with Wire(daemon.port) as wire:
            created = wire.ask("CreateTopics", 7, Topics=[{"Name": TOPIC, "NumPartitions": PARTITIONS, "ReplicationFactor": 1}], timeoutMs=30000)
            self.assertEqual(created["Topics"][0]["ErrorCode"], 0)
        self.groups = [Progress(f"{kind}-{n}") for kind in ("classic", "consumer") for n in range(GROUPS)]
        self.members = [(ClassicMember if progress.group.startswith("classic") else ConsumerMember)(progress, daemon.port, seed + 100 * i + n) for i, progress in enumerate(self.groups) for n in range(MEMBERS)]
        self.producers = [TransactionalOffsets(n, daemon.port, seed + 10000 + n) for n in range(PRODUCERS)]
        for thread in self.members + self.producers:
            thread.start()
        self.addCleanup(self.end)
        longest = self.all_go_on(time.monotonic())
        for number in range(rounds):
            before, more = self.commits(), dice.randrange(1, 400)
            until(lambda: self.commits() > before + more, f"round {number}: commits go on", 60)
            time.sleep(dice.uniform(0, 0.03))
            daemon.kill()
            acknowledged = [dict(progress.acknowledged) for progress in self.groups]
            ended = [producer.acknowledged for producer in self.producers]
            daemon.start()
            since = time.monotonic()
            self.check(daemon, acknowledged, ended)
            longest = max(longest, self.all_go_on(since))
        self.end()
        self.assertEqual(daemon.stop(), 0)
        print(f"{rounds} kills, {self.commits()} commits, {sum(p.acknowledged for p in self.producers)} transactions; every partition committed again after at most {longest:.1f} s", flush=True)

    def end(self):
        for thread in self.members + self.producers:
            thread.ended.set()
        for thread in self.members + self.producers:
            thread.join(30)

    def commits(self):
        for thread in self.members + self.producers:
            if thread.failure:
                raise thread.failure
        return sum(sum(progress.acknowledged.values()) for progress in self.groups)

    def all_go_on(self, since):
        """Seconds until every partition of every group has been committed anew."""
        def late():
            self.commits()
            return [(progress.group, p) for progress in self.groups for p, at in progress.acknowledged_at.items() if at < since]
        try:
            until(lambda: not late(), "every partition is committed again", (SESSION_MS + MARGIN_MS) / 1000)
        except AssertionError as error:
            raise AssertionError(f"{error}: {late()}") from error
        return time.monotonic() - since

    def check(self, daemon, acknowledged, ended):
        with Wire(daemon.port) as wire:
            for progress, before in zip(self.groups, acknowledged):
                found = committed_offsets(wire, progress.group)
                for partition in range(PARTITIONS):
                    offset = found.get((TOPIC, partition), 0)
                    self.assertGreaterEqual(offset, before[partition], f"{progress.group}-{partition} has gone back")
                    self.assertLessEqual(offset, progress.sent[partition], f"{progress.group}-{partition}: nobody sent that")
            for producer in self.producers:
                producer.pause.set()
            for producer, before in zip(self.producers, ended):
                self.assertTrue(producer.idle.wait(60), producer.id)
                Producer(wire, producer.id)   # what the kill left open is aborted
                def settled():
                    self.offset = committed_offsets(wire, producer.id, require_stable=True).get((TOPIC, producer.partition), 0)   # pylint: disable=cell-var-from-loop
                    self.records, stable, high = read_committed(wire, TOPIC, producer.partition)   # pylint: disable=cell-var-from-loop
                    return self.offset >= 0 and stable == high
                until(settled, f"{producer.id}: every transaction is decided", 30)
                numbers = [int(value) for _, key, value in self.records if key == producer.id.encode()]
                self.assertEqual(numbers, sorted(set(numbers)))
                self.assertGreaterEqual(self.offset, before, f"{producer.id} has gone back")
                self.assertEqual(self.offset, numbers[-1] if numbers else 0, f"{producer.id}: half a transaction")
                producer.pause.clear()


if __name__ == "__main__":
    unittest.main(verbosity=2)
