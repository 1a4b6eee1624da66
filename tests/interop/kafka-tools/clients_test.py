"""Kafka's own clients where they meet: fenced producers, a group that changes its protocol, static members (Clients.java)."""

import subprocess
import unittest

import kafka
from tidemarkd import Tidemarkd


class Clients(unittest.TestCase):
    def test_scenarios(self):
        kafka.class_path()
        daemon = Tidemarkd({"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3,
                            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100, "transactional.id.expiration.ms": 2000,
                            "transaction.remove.expired.transaction.cleanup.interval.ms": 100, "group.consumer.min.heartbeat.interval.ms": 200, "group.consumer.heartbeat.interval.ms": 200,
                            "group.consumer.min.session.timeout.ms": 10000, "group.consumer.session.timeout.ms": 10000})
        self.addCleanup(daemon.close)
        daemon.start()
        done = subprocess.run(kafka.command("clients", daemon.bootstrap), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-4000:])
        self.assertEqual(daemon.stop(), 0)
