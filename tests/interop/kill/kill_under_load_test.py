"""kill -9 while several idempotent producers write at full speed to many partitions and readers follow them.

tidemark_load verify does the writing and the judging: every number that acks=all acknowledged is there, once, in order, at the
offset it was acknowledged at. This test kills and restarts the daemon, and has everything read back after each kill.
The environment has the rounds and the seed: ROUNDS (5), SEED.
"""

import json
import os
import random
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
from tidemarkd import Tidemarkd, program, until  # noqa: E402


class Verify:
    """tidemark_load verify; one line of JSON for each order."""

    def __init__(self, bootstrap, seed, *flags):
        command = [os.environ.get("TIDEMARK_LOAD") or program("tidemark_load"), "verify", "--broker", bootstrap, "--seed", str(seed), *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, f"tidemark_load ended with {self.process.wait()}"
        answer = json.loads(line)
        assert not answer["complaints"], answer["complaints"]
        return answer

    def order(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.kill()
        self.process.communicate()


class KillUnderLoad(unittest.TestCase):
    def rounds_of(self, settings, partitions, *flags):
        rounds = int(os.environ.get("ROUNDS", "5"))
        seed = int(os.environ.get("SEED", str(random.randrange(1 << 32))))
        print(f"seed {seed}", flush=True)
        dice = random.Random(seed)
        daemon = Tidemarkd(settings)
        self.addCleanup(daemon.close)
        daemon.start()
        # A rate, since everything is read back after every kill.
        load = Verify(daemon.bootstrap, seed, "--partitions", str(partitions), "--rate", "200", *flags)
        self.addCleanup(load.close)
        for number in range(rounds):
            before = load.order("status")["batches"]
            # The load is back, for as long as chance wants.
            more = dice.randrange(1, 400)
            until(lambda: load.order("status")["batches"] > before + more, f"round {number}: batches are acknowledged", 60)
            time.sleep(dice.uniform(0, 0.02))
            daemon.kill()
            daemon.start()
            load.order("check")
        answer = load.order("stop")
        self.assertEqual(load.process.wait(30), 0)
        self.assertEqual(answer["read"], answer["acknowledged"], "the readers have seen each number once, too")
        self.assertEqual(daemon.stop(), 0)
        print(f"{rounds} kills, {answer['acknowledged']} records in {answer['batches']} batches, {answer['sent_again']} batches sent again", flush=True)

    def test_small_segments_are_rolled_all_the_time(self):
        self.rounds_of({"log.segment.bytes": 1 << 20, "log.index.interval.bytes": 512}, 8)

    def test_large_batches_in_many_partitions(self):
        self.rounds_of({}, 50, "--writers", "4", "--readers", "2", "--record-bytes", "1000", "--batch-records-max", "60")


if __name__ == "__main__":
    unittest.main(verbosity=2)
