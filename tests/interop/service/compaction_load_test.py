"""A million messages with a tenth of deletes through a compacted topic: every key has its last value, and the log got smaller."""

import json
import os
import subprocess
import unittest

from tidemarkd import Tidemarkd, program

MESSAGES = int(os.environ.get("TIDEMARK_COMPACTION_MESSAGES", "1000000"))
SETTINGS = {"log.cleaner.backoff.ms": 200, "log.segment.delete.delay.ms": 500, "durability": "page-cache"}


def bytes_of(directory):
    return sum(entry.stat().st_size for entry in os.scandir(directory) if entry.name.endswith(".log"))


class CompactionUnderLoad(unittest.TestCase):
    def check(self, codec, *flags):
        with Tidemarkd(SETTINGS) as daemon:
            load = os.environ.get("TIDEMARK_LOAD") or program("tidemark_load")
            configs = ["cleanup.policy=compact", "segment.bytes=1048576", "min.cleanable.dirty.ratio=0.05", "delete.retention.ms=0"]
            command = [load, "compact", "--broker", daemon.bootstrap, "--messages", str(MESSAGES), "--partitions", "4", "--codec", codec, "--left-max", "0.3", *flags]
            done = subprocess.run(command + [f for c in configs for f in ("--config", c)], capture_output=True, text=True, timeout=900)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            result = json.loads(done.stdout)
            self.assertAlmostEqual(result["deletes"] / MESSAGES, 0.1, delta=0.01)
            self.assertLess(result["left"], 0.3 * MESSAGES)
            self.assertGreaterEqual(result["left"], result["living"])
            cleaned = sum(v for s, v in daemon.metrics().items() if s.startswith("tidemark_cleaner_removed_records_total"))
            # What is being deleted counts as long as its file is there; what clients see is what was read.
            print(f"{codec}: {result}, {cleaned:.0f} records removed by the cleaner, {sum(bytes_of(os.path.join(daemon.data, f'compacted-{p}')) for p in range(4))} bytes left", flush=True)
            self.assertGreater(cleaned, 0.5 * MESSAGES)

    def test_uncompressed(self):
        self.check("none", "--seed", "1")

    def test_compressed(self):
        self.check("lz4", "--seed", "2")


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
