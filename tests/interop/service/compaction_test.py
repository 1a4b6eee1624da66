"""Data leaves on time, seen by clients: compaction by its deadline, idle or busy."""

import os
import socket
import struct
import threading
import time
import unittest

import kafka_wire
from tidemarkd import Tidemarkd, until

NUM_LATE = "kafka_log_logcleaner_num_logs_compacted_by_max_compaction_lag"
MAX_DELAY = "kafka_log_logcleaner_max_delay_after_max_compaction_lag"
FAST = {"log.cleaner.backoff.ms": 100, "log.retention.check.interval.ms": 200, "log.initial.task.delay.ms": 0, "log.segment.delete.delay.ms": 100}


def now_ms():
    return int(time.time() * 1000)


def put(connection, topic, pairs, timestamp=None):
    error, _ = connection.produce(topic, 0, kafka_wire.batch(pairs, timestamp if timestamp is not None else now_ms()))
    assert error == 0, error


class Compaction(unittest.TestCase):
    LAG = 1500

    def topic(self, daemon):
        connection = kafka_wire.Connection(daemon.port)
        self.addCleanup(connection.close)
        # A dirty ratio of 1 is never exceeded: only the deadline starts a cleaning.
        configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 1, "max.compaction.lag.ms": self.LAG, "delete.retention.ms": 0, "segment.ms": 3600000}
        self.assertEqual(connection.create_topic("facts", 1, configs), 0)
        return connection

    def test_an_idle_topic_is_compacted_after_its_lag_and_the_gauges_return_to_zero(self):
        with Tidemarkd(FAST) as daemon:
            connection = self.topic(daemon)
            for value in range(10):
                put(connection, "facts", [(b"a", b"%d" % value), (b"b", b"%d" % value)])
            put(connection, "facts", [(b"b", None)])
            begin = time.monotonic()
            self.assertEqual(len(connection.read_all("facts", 0)), 21)
            until(lambda: connection.read_all("facts", 0)[0][2] == b"9", "only the last values are left", 30)
            self.assertGreaterEqual(time.monotonic() - begin, self.LAG / 1000 - 0.5, "not before the lag is over")
            # The tombstone's own horizon passes with the cleaning that first saw it (delete.retention.ms=0).
            until(lambda: [r[1:] for r in connection.read_all("facts", 0)] == [(b"a", b"9")], "the tombstone is gone too", 30)
            until(lambda: daemon.metrics()[NUM_LATE] == 0 and daemon.metrics()[MAX_DELAY] == 0, "nothing is late any more")

    def test_a_busy_topic_is_compacted_while_it_is_read(self):
        with Tidemarkd(FAST) as daemon:
            self.topic(daemon)
            stopping = threading.Event()
            latest = {}
            failures = []

            def write():
                connection = kafka_wire.Connection(daemon.port)
                n = 0
                while not stopping.is_set():
                    pairs = [(b"k%d" % (n % 50), b"%d" % n)]
                    put(connection, "facts", pairs)
                    latest.update(pairs)
                    n += 1

            def read():
                connection = kafka_wire.Connection(daemon.port)
                while not stopping.is_set():
                    records = connection.read_all("facts", 0)
                    offsets = [r[0] for r in records]
                    if offsets != sorted(set(offsets)):
                        failures.append("offsets out of order")

            threads = [threading.Thread(target=f) for f in (write, read, read)]
            for thread in threads:
                thread.start()
            try:
                until(lambda: any(v > 0 for s, v in daemon.metrics().items() if s.startswith("tidemark_cleaner_cleanings_total")), "a cleaning has happened", 40)
            finally:
                stopping.set()
                for thread in threads:
                    thread.join()
            self.assertEqual(failures, [])
            connection = kafka_wire.Connection(daemon.port)
            end = connection.list_offset("facts", 0, -1)[2]
            until(lambda: len(connection.read_all("facts", 0)) < end, "records have been compacted away", 30)
            last = {}
            for _, key, value in connection.read_all("facts", 0):
                last[key] = value
            self.assertEqual(last, latest, "every key's last value is there")

    def test_records_without_a_key_are_refused_and_old_ones_go(self):
        """KAFKA-4808, KAFKA-7332."""
        invalid_record = 87
        with Tidemarkd(FAST) as daemon:
            connection = self.topic(daemon)
            for pairs, index in (([(None, b"v")], 0), ([(b"k", b"1"), (b"l", b"2"), (None, b"3")], 2)):
                error, wrong, message = connection.produce_told_why("facts", 0, kafka_wire.batch(pairs, now_ms()))
                self.assertEqual((error, [i for i, _ in wrong]), (invalid_record, [index]))
                self.assertTrue(wrong[0][1] and message, "it is said why")
            self.assertEqual(connection.read_all("facts", 0), [], "nothing of the batches was taken")
            put(connection, "facts", [(b"", b"the empty key is one")])
            self.assertEqual(connection.read_all("facts", 0), [(0, b"", b"the empty key is one")])

            configs = {"cleanup.policy": "delete", "min.cleanable.dirty.ratio": 1, "max.compaction.lag.ms": self.LAG, "segment.ms": 3600000}
            self.assertEqual(connection.create_topic("events", 1, configs), 0)
            put(connection, "events", [(None, b"1"), (b"k", b"2"), (None, b"3")])
            self.assertEqual(connection.alter_topic("events", "cleanup.policy", "compact"), 0)
            until(lambda: connection.read_all("events", 0) == [(1, b"k", b"2")], "those without a key are gone", 30)
            until(lambda: daemon.metrics()['tidemark_cleaner_removed_records_total{reason="no_key"}'] == 2, "they were counted")

    def test_a_reader_that_does_not_read_keeps_no_deleted_segment(self):
        """D26: what was erased is not kept by an answer that nobody takes."""
        closed = 'tidemark_connections_closed_total{reason="holds_deleted_segment"}'
        with Tidemarkd({**FAST, "log.segment.delete.delay.ms": 500}) as daemon:
            def open_without_a_name():
                descriptors = f"/proc/{daemon.process.pid}/fd"
                found = []
                for name in os.listdir(descriptors):
                    try:
                        target = os.readlink(os.path.join(descriptors, name))
                    except FileNotFoundError:
                        continue   # closed meanwhile
                    if ".log" in target and target.endswith("(deleted)"):
                        found.append(target)
                return found

            connection = self.topic(daemon)
            batch = kafka_wire.batch([(b"a", os.urandom(900_000))], now_ms())
            for _ in range(20):
                self.assertEqual(connection.produce("facts", 0, batch)[0], 0)
            slow = kafka_wire.Connection(daemon.port)
            self.addCleanup(slow.close)
            slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            most = 40 << 20
            slow.send(kafka_wire.FETCH, 4, struct.pack(">iiiib", -1, 0, 1, most, 0) + struct.pack(">i", 1) + kafka_wire.text("facts") + struct.pack(">iiqi", 1, 0, 0, most))
            self.assertEqual(daemon.metrics()[closed], 0)
            until(lambda: daemon.metrics()[closed] == 1, "the connection is closed", 30)
            until(lambda: not open_without_a_name(), "nobody keeps the bytes", 30)
            with self.assertRaises(OSError):
                slow.receive()
            self.assertEqual([r[0] for r in connection.read_all("facts", 0)], [19], "others are served")

    def test_a_late_log_shows_in_both_gauges(self):
        # Without a cleaner thread that gets to work nothing is compacted in time; the throttle stands in for a slow disk.
        with Tidemarkd({**FAST, "log.cleaner.io.max.bytes.per.second": 2000}) as daemon:
            connection = self.topic(daemon)
            for value in range(40):
                put(connection, "facts", [(b"a", b"%d" % value + b"x" * 500)])
            until(lambda: daemon.metrics()[NUM_LATE] >= 1 and daemon.metrics()[MAX_DELAY] > 0, "the log is late", 30)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
