"""kill -9 while transactional producers of both protocols commit and abort over several partitions.

After each kill every transaction is all or nothing for a reader of committed records: what was acknowledged as committed is
there in every partition, what was not ended or was aborted is nowhere, and where the answer was lost it is one of the two.
The last stable offset reaches the end of every log: no transaction hangs. The environment has ROUNDS (5) and SEED.
"""

import os
import random
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "service"), os.path.join(HERE, "..", "wire")]
import kafka_wire  # noqa: E402
from messages import Wire  # noqa: E402
from tidemarkd import Tidemarkd, until  # noqa: E402
from transactions import AGAIN, Client, read_committed  # noqa: E402

TOPIC, PARTITIONS, WRITERS = "t", 4, 4


class Fenced(Exception):
    pass


class Writer(Client):
    """One transactional id. Every record is the number of its transaction."""

    def __init__(self, number, port, seed, new_protocol):
        super().__init__(port, (Fenced,))   # an earlier self of this id was still at work
        self.id, self.dice, self.new_protocol = f"writer-{number}", random.Random(seed), new_protocol
        self.next = number * 1_000_000
        self.committed, self.undecided, self.partitions_of = set(), set(), {}

    def ask(self, wire, name, version, error_of, **values):
        while True:
            answer = wire.ask(name, version, **values)
            error = error_of(answer)
            if error == 0:
                return answer
            if error not in AGAIN:
                raise Fenced(f"{self.id}: {name} {error}")
            if self.pause.is_set():
                raise Fenced("pause")
            time.sleep(0.005)

    def work(self, wire):
        self.ask(wire, "FindCoordinator", 4, lambda a: a["Coordinators"][0]["ErrorCode"], KeyType=1, CoordinatorKeys=[self.id])
        begun = self.ask(wire, "InitProducerId", 4, lambda a: a["ErrorCode"], TransactionalId=self.id, TransactionTimeoutMs=60000)
        producer, epoch = begun["ProducerId"], begun["ProducerEpoch"]
        sequences = dict.fromkeys(range(PARTITIONS), 0)
        while not self.stopped():
            number, self.next = self.next, self.next + 1
            partitions = self.dice.sample(range(PARTITIONS), self.dice.randint(1, PARTITIONS))
            self.partitions_of[number] = set(partitions)
            if not self.new_protocol:
                self.ask(wire, "AddPartitionsToTxn", 3, lambda a: max(p["PartitionErrorCode"] for t in a["ResultsByTopicV3AndBelow"] for p in t["ResultsByPartition"]),
                         V3AndBelowTransactionalId=self.id, V3AndBelowProducerId=producer, V3AndBelowProducerEpoch=epoch,
                         V3AndBelowTopics=[{"Name": TOPIC, "Partitions": partitions}])
            for partition in partitions:
                records = kafka_wire.batch([(b"k", str(number).encode())], int(time.time() * 1000), producer, epoch, sequences[partition], transactional=True)
                self.ask(wire, "Produce", 12 if self.new_protocol else 11, lambda a: a["Responses"][0]["PartitionResponses"][0]["ErrorCode"],
                         TransactionalId=self.id, Acks=-1, TimeoutMs=10000,
                         TopicData=[{"Name": TOPIC, "PartitionData": [{"Index": partition, "Records": records}]}])
                sequences[partition] += 1
            commit = self.dice.random() < 0.7
            if commit:
                self.undecided.add(number)
            ended = self.ask(wire, "EndTxn", 5 if self.new_protocol else 4, lambda a: a["ErrorCode"],
                             TransactionalId=self.id, ProducerId=producer, ProducerEpoch=epoch, Committed=commit)
            if commit:
                self.undecided.discard(number)
                self.committed.add(number)
            if self.new_protocol and (ended["ProducerId"], ended["ProducerEpoch"]) != (producer, epoch):
                producer, epoch = ended["ProducerId"], ended["ProducerEpoch"]
                sequences = dict.fromkeys(range(PARTITIONS), 0)


class TransactionsUnderKill(unittest.TestCase):
    def test_no_transaction_is_half_visible(self):
        rounds = int(os.environ.get("ROUNDS", "5"))
        seed = int(os.environ.get("SEED", str(random.randrange(1 << 32))))
        print(f"seed {seed}", flush=True)
        dice = random.Random(seed)
        daemon = Tidemarkd({"transaction.state.log.num.partitions": 5, "log.segment.bytes": 1 << 20})
        self.addCleanup(daemon.close)
        daemon.start()
        with Wire(daemon.port) as wire:
            created = wire.ask("CreateTopics", 7, Topics=[{"Name": TOPIC, "NumPartitions": PARTITIONS, "ReplicationFactor": 1}], timeoutMs=30000)
            self.assertEqual(created["Topics"][0]["ErrorCode"], 0)
        self.writers = [Writer(n, daemon.port, seed + n, new_protocol=n % 2 == 0) for n in range(WRITERS)]
        for writer in self.writers:
            writer.start()
        self.addCleanup(lambda: [w.ended.set() for w in self.writers])
        for number in range(rounds):
            before, more = self.ended(), dice.randrange(1, 60)
            until(lambda: self.ended() > before + more, f"round {number}: transactions end", 60)
            time.sleep(dice.uniform(0, 0.03))
            daemon.kill()
            daemon.start()
            self.check(daemon)
        for writer in self.writers:
            writer.ended.set()
            writer.join(30)
        self.assertEqual(daemon.stop(), 0)
        print(f"{rounds} kills, {self.ended()} transactions committed, {sum(len(w.undecided) for w in self.writers)} whose answer was lost", flush=True)

    def ended(self):
        for writer in self.writers:
            if writer.failure:
                raise writer.failure
        return sum(len(w.committed) for w in self.writers)

    def check(self, daemon):
        for writer in self.writers:
            writer.pause.set()
        for writer in self.writers:
            self.assertTrue(writer.idle.wait(60), writer.id)
        with Wire(daemon.port) as wire:
            # What an ended process left open is aborted by the next one of its id.
            for writer in self.writers:
                self.fence(wire, writer.id)
            seen = {}
            for partition in range(PARTITIONS):
                def settled():
                    self.records, stable, high = read_committed(wire, TOPIC, partition)   # pylint: disable=cell-var-from-loop
                    return stable == high
                until(settled, f"partition {partition}: every transaction is decided", 30)
                numbers = [int(value) for _, _, value in self.records]
                self.assertEqual(len(numbers), len(set(numbers)), f"partition {partition}: a record twice")
                for number in numbers:
                    seen.setdefault(number, set()).add(partition)
        for writer in self.writers:
            for number, partitions in writer.partitions_of.items():
                there = seen.pop(number, set())
                if number in writer.committed:
                    self.assertEqual(there, partitions, f"transaction {number} was committed")
                elif number in writer.undecided:
                    self.assertIn(there, (set(), partitions), f"transaction {number} is half there")
                else:
                    self.assertEqual(there, set(), f"transaction {number} was never committed")
        self.assertEqual(seen, {})
        for writer in self.writers:
            writer.pause.clear()

    @staticmethod
    def fence(wire, id_):
        def done():
            return wire.ask("InitProducerId", 4, TransactionalId=id_, TransactionTimeoutMs=60000)["ErrorCode"] == 0
        until(done, f"{id_} begins anew", 30)


if __name__ == "__main__":
    unittest.main(verbosity=2)
