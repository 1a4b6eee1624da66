"""kill -9 under load, again and again: what acks=all acknowledged is read back once, in order.

An idempotent producer with several batches in flight writes counting numbers. The daemon is killed at a random moment and
started again on the same directory; the producer sends again, with the same sequence numbers, whatever was not answered.
The rounds and the seed come from the environment: ROUNDS (20), SEED.
"""

import os
import random
import struct
import threading
import time
import unittest

import kafka_wire
from tidemarkd import Tidemarkd, until

RECORDS_PER_BATCH = 20


class Producer(threading.Thread):
    """Lives through the kills. Batch n holds the numbers from n × RECORDS_PER_BATCH on, its first sequence number too."""

    def __init__(self, port, topic, in_flight):
        super().__init__(daemon=True)
        self.port, self.topic, self.in_flight = port, topic, in_flight
        self.producer = None
        self.acknowledged = 0          # batches
        self.up = threading.Event()    # the daemon serves
        self.stopping = False
        self.resent = 0
        self.error = None

    def records(self, n):
        first = n * RECORDS_PER_BATCH
        values = [(b"key-%d" % (i % 7), b"%d" % i) for i in range(first, first + RECORDS_PER_BATCH)]
        return kafka_wire.batch(values, int(time.time() * 1000), *self.producer, sequence=first)

    def run(self):
        try:
            sent_before = 0
            while True:
                self.up.wait()
                try:
                    connection = kafka_wire.Connection(self.port)
                    if self.producer is None:
                        self.producer = connection.init_producer_id()
                    self.resent += sent_before - self.acknowledged
                    sent = self.acknowledged
                    while True:
                        while sent - self.acknowledged < self.in_flight and not self.stopping:
                            connection.send_produce(self.topic, 0, self.records(sent))
                            sent += 1
                            sent_before = max(sent_before, sent)
                        if sent == self.acknowledged:
                            return
                        error, base = connection.produced(connection.receive()[1])
                        # 46 is DUPLICATE_SEQUENCE_NUMBER: older than the five batches that are remembered, but there.
                        if error not in (0, 46):
                            raise AssertionError(f"batch {self.acknowledged} was answered with error {error}")
                        if error == 0 and base != self.acknowledged * RECORDS_PER_BATCH:
                            raise AssertionError(f"batch {self.acknowledged} is at offset {base}")
                        self.acknowledged += 1
                except OSError:
                    self.up.clear() if not self.stopping else time.sleep(0.01)
        except Exception as error:  # shown by the test
            self.error = error


class KillMinusNine(unittest.TestCase):
    def test_several_batches_in_flight(self):
        self.kill_and_look(in_flight=5, settings={})

    def test_segments_roll_all_the_time(self):
        # A snapshot remembers one batch of each producer (as Kafka's does): with more in flight over a roll, the ones before
        # it could not be recognised when they are sent again.
        self.kill_and_look(in_flight=1, settings={"log.segment.bytes": 1 << 20, "log.roll.ms": 50, "log.index.interval.bytes": 512})

    def kill_and_look(self, in_flight, settings):
        rounds = int(os.environ.get("ROUNDS", "20"))
        seed = int(os.environ.get("SEED", str(random.randrange(1 << 32))))
        print(f"seed {seed}", flush=True)
        dice = random.Random(seed)
        daemon = Tidemarkd(settings)
        self.addCleanup(daemon.close)
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        self.assertEqual(connection.create_topic("counted"), 0)
        connection.close()
        producer = Producer(daemon.port, "counted", in_flight)
        producer.up.set()
        producer.start()
        for number in range(rounds):
            before = producer.acknowledged
            # So that none of those in flight now was in the log before the last start: a start writes a snapshot.
            until(lambda: producer.error or producer.acknowledged > before + 2 * in_flight, "batches are acknowledged")
            time.sleep(dice.uniform(0.0, 0.4))
            producer.up.clear()
            daemon.kill()
            acknowledged = producer.acknowledged
            self.assertIsNone(producer.error)
            daemon.start()
            connection = kafka_wire.Connection(daemon.port)
            there = connection.read_all("counted", 0)
            connection.close()
            numbers = [int(value) for _, _, value in there]
            self.assertEqual(numbers, list(range(len(numbers))), f"round {number}: in order, each once")
            self.assertEqual([offset for offset, _, _ in there], numbers)
            self.assertGreaterEqual(len(numbers), acknowledged * RECORDS_PER_BATCH, f"round {number}: an acknowledged record is missing")
            producer.up.set()
        producer.stopping = True
        producer.join(30)
        self.assertFalse(producer.is_alive())
        self.assertIsNone(producer.error)
        connection = kafka_wire.Connection(daemon.port)
        numbers = [int(value) for _, _, value in connection.read_all("counted", 0)]
        # What was in flight when the producer stopped may be there too, in its place.
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreaterEqual(len(numbers), producer.acknowledged * RECORDS_PER_BATCH)
        print(f"{rounds} kills, {len(numbers)} records, {producer.resent} batches sent again", flush=True)
        self.assertEqual(daemon.stop(), 0)


class LostTail(unittest.TestCase):
    """An unclean stop that lost records raises the leader epoch, so that whoever had read them notices (D10, B61)."""

    def produce(self, connection, count):
        for _ in range(count):
            error, _ = connection.produce("t", 0, kafka_wire.batch([(b"k", b"v" * 100)], int(time.time() * 1000)))
            self.assertEqual(error, 0)

    def epochs(self, connection):
        """Leader epoch of every batch."""
        _, _, data = connection.fetch("t", 0, 0)
        epochs, at = [], 0
        while at < len(data):
            length, epoch = struct.unpack_from(">ii", data, at + 8)
            epochs.append(epoch)
            at += 12 + length
        return epochs

    def again(self, daemon):
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        self.addCleanup(connection.close)
        return connection

    def test_epochs_rise_with_what_was_lost_and_never_fall(self):
        daemon = Tidemarkd()
        self.addCleanup(daemon.close)
        connection = self.again(daemon)
        self.assertEqual(connection.create_topic("t"), 0)
        self.produce(connection, 4)

        daemon.kill()
        connection = self.again(daemon)
        self.produce(connection, 1)
        self.assertEqual(self.epochs(connection), [0] * 5, "nothing was lost")

        daemon.kill()
        active = os.path.join(daemon.data, "t-0", "00000000000000000000.log")
        os.truncate(active, os.path.getsize(active) - 10)
        connection = self.again(daemon)
        self.assertEqual(connection.end_of_epoch("t", 0, 0), (0, 0, 4), "whoever was at offset 5 is told so")
        self.produce(connection, 1)
        self.assertEqual(self.epochs(connection), [0] * 4 + [1])
        self.assertEqual(connection.end_of_epoch("t", 0, 1), (0, 1, 5))

        self.assertEqual(daemon.stop(), 0)
        connection = self.again(daemon)
        self.produce(connection, 1)
        self.assertEqual(self.epochs(connection), [0] * 4 + [1] * 2, "a clean stop loses nothing")

        daemon.kill()
        os.truncate(active, 0)
        connection = self.again(daemon)
        self.produce(connection, 1)
        self.assertEqual(self.epochs(connection), [2], "the epoch is above all that there were, though the log knows none")
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
