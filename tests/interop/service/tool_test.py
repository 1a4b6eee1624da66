"""The operator's tool on a running daemon and on the files it leaves."""

import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import kafka_wire
from tidemarkd import Tidemarkd, program, until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from messages import Wire  # noqa: E402


def tool(*arguments):
    return subprocess.run([program("tidemark"), *arguments], capture_output=True, text=True, timeout=60)


class Tool(unittest.TestCase):
    def setUp(self):
        self.daemon = Tidemarkd({"log.cleaner.backoff.ms": 100})
        self.addCleanup(self.daemon.close)
        self.daemon.start()
        self.connection = kafka_wire.Connection(self.daemon.port)
        self.addCleanup(self.connection.close)
        self.assertEqual(self.connection.create_topic("facts", 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 1, "segment.ms": 100}), 0)
        now = int(time.time() * 1000)
        for n in range(5):
            # Timestamps further apart than segment.ms: a segment each.
            error, _ = self.connection.produce("facts", 0, kafka_wire.batch([(b"a", b"%d" % n), (b"b", b"\x00\x01")], now + n * 1000))
            self.assertEqual(error, 0)
        self.partition = os.path.join(self.daemon.data, "facts-0")

    def test_plan_and_clean(self):
        http = f"127.0.0.1:{self.daemon.http_port}"
        planned = tool("plan", "--http", http)
        self.assertEqual((planned.returncode, planned.stderr), (0, ""))
        self.assertIn("facts-0", planned.stdout)
        asked = tool("clean", "--admin-socket", self.daemon.admin_socket, "facts", "0")
        self.assertEqual((asked.returncode, asked.stderr), (0, ""))
        # The last segment is active and stays; below it the newest of each key is left.
        until(lambda: len(self.connection.read_all("facts", 0)) < 10, "the log has been cleaned")
        missing = tool("clean", "--admin-socket", self.daemon.admin_socket, "nothing", "0")
        self.assertEqual(missing.returncode, 2)
        self.assertIn("there is no log nothing-0", missing.stderr)

    def test_clean_waits_and_takes_all_partitions(self):
        done = tool("clean", "--admin-socket", self.daemon.admin_socket, "--http", f"127.0.0.1:{self.daemon.http_port}", "--wait", "--roll", "facts")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("facts-0: cleaned\n"), done.stdout)
        # With the active segment rolled, exactly the newest of each key is left.
        self.assertEqual([r[1:] for r in self.connection.read_all("facts", 0)], [(b"a", b"4"), (b"b", b"\x00\x01")])

    def test_clean_erases_what_delete_records_left(self):
        self.assertEqual(self.connection.create_topic("plain", 1, {"file.delete.delay.ms": 100}), 0)
        self.assertEqual(self.connection.produce("plain", 0, kafka_wire.batch([(b"k", b"secret"), (b"k", b"kept")], int(time.time() * 1000)))[0], 0)
        with Wire(self.daemon.port) as wire:
            deleted = wire.ask("DeleteRecords", 2, Topics=[{"Name": "plain", "Partitions": [{"PartitionIndex": 0, "Offset": 1}]}], TimeoutMs=10000)
        self.assertEqual([(p["LowWatermark"], p["ErrorCode"]) for p in deleted["Topics"][0]["Partitions"]], [(1, 0)])
        self.assertTrue(self.on_disk(b"secret"))
        done = tool("clean", "--admin-socket", self.daemon.admin_socket, "--wait", "--roll", "plain", "0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("plain-0: cleaned\n"), done.stdout)
        until(lambda: not self.on_disk(b"secret"), "the old file has gone")
        self.assertTrue(self.on_disk(b"kept"))
        trail = tool("audit", "--trail", self.daemon.data, "--topic", "plain")
        self.assertIn("records below the log start; 0 superseded, 0 tombstones, 0 expired, 1 erased", trail.stdout)

    def on_disk(self, text):
        """Whether a file of the topic `plain` holds it; files may go meanwhile."""
        for path in glob.glob(os.path.join(self.daemon.data, "plain-0", "*")):
            try:
                with open(path, "rb") as f:
                    if text in f.read():
                        return True
            except FileNotFoundError:
                pass
        return False

    def test_audit(self):
        arguments = ("audit", self.daemon.data, "--topic", "facts", "--key", "a")
        before = tool(*arguments)
        self.assertEqual((before.returncode, before.stderr), (0, ""), "without a lag there is no deadline")
        self.assertIn("1 values that stay, 4 on their way out, 0 held, 0 PAST", before.stdout)
        self.assertIn("superseded at offset 2", before.stdout)
        self.assertEqual(tool("clean", "--admin-socket", self.daemon.admin_socket, "--wait", "--roll", "facts", "0").returncode, 0)
        # The old files wait for file.delete.delay.ms, a minute.
        after = [json.loads(line) for line in tool(*arguments, "--json").stdout.splitlines()]
        self.assertEqual([t["offset"] for t in after if t["place"] == "live"], [8])
        self.assertEqual(sorted(t["offset"] for t in after if t["place"] != "live"), [0, 2, 4, 6, 8])
        for trace in after:
            if trace["place"] == "live":
                continue
            self.assertTrue(trace["file"].endswith(".log.deleted"), trace)
            self.assertLess(trace["gone"], time.time() * 1000 + 60_500)
        trail = tool("audit", "--trail", self.daemon.data, "--topic", "facts")
        self.assertEqual((trail.returncode, trail.stderr), (0, ""))
        self.assertIn("facts-0 0 to 10 cleaned", trail.stdout)
        self.assertIn("requested; 8 superseded", trail.stdout)
        self.assertEqual(tool("audit", self.daemon.data).returncode, 2, "no key was named")

    def test_what_retention_deletes_is_in_the_trail(self):
        now = int(time.time() * 1000)
        self.assertEqual(self.connection.create_topic("dated", 1, {"segment.ms": 100, "retention.ms": 3600000, "file.delete.delay.ms": 1000}), 0)
        for n in range(3):
            self.assertEqual(self.connection.produce("dated", 0, kafka_wire.batch([(None, b"x")], now - 7200000 + n * 1000))[0], 0)
        self.assertEqual(self.daemon.admin("POST", "/v1/retention")[0], 200)
        events = [json.loads(line) for line in tool("audit", "--trail", self.daemon.data, "--topic", "dated", "--json").stdout.splitlines()]
        self.assertEqual([(e["event"], e["from"], e["to"], e["rule"], e["limit"], e["largest_timestamp"]) for e in events],
                         [("deleted", n, n + 1, "retention.ms", 3600000, now - 7200000 + n * 1000) for n in range(3)])
        self.assertIn("dated-0 2 to 3 deleted", tool("audit", "--trail", self.daemon.data).stdout)

    def test_audit_sees_files_that_only_a_reader_has(self):
        name = os.path.join(self.partition, "00000000000000000000.log")
        with open(name, "rb"):
            self.daemon.stop()
            os.unlink(name)
            found = tool("audit", self.daemon.data, "--topic", "facts", "--key", "a")
            self.assertIn(f"{name} (process {os.getpid()})", found.stdout)
            self.assertIn("unlinked, still open", found.stdout)
        self.assertNotIn("still open", tool("audit", self.daemon.data, "--topic", "facts", "--key", "a").stdout)

    def test_plan_and_clean_of_a_directory_at_rest(self):
        locked = tool("clean", "--log-dir", self.daemon.data, "facts")
        self.assertEqual(locked.returncode, 1)
        self.assertIn("another process uses the log directory", locked.stderr)
        running = [line for line in tool("plan", "--cleaner", "--http", f"127.0.0.1:{self.daemon.http_port}").stdout.splitlines() if "facts-0" in line]
        self.assertEqual(self.daemon.stop(), 0)
        both = tool("plan", "--log-dir", self.daemon.data)
        self.assertEqual((both.returncode, both.stderr), (0, ""))
        self.assertIn("facts-0: cleanup.policy=compact, 400 bytes in 5 segments", both.stdout, "retention's part")
        at_rest = tool("plan", "--cleaner", "--log-dir", self.daemon.data)
        self.assertEqual([line for line in at_rest.stdout.splitlines() if "facts-0" in line], running, "the same decision")
        done = tool("clean", "--log-dir", self.daemon.data, "--roll", "facts")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("facts-0: cleaned", done.stdout)
        self.assertEqual(tool("verify", self.daemon.data).returncode, 0)
        self.assertTrue(os.path.exists(os.path.join(self.daemon.data, ".kafka_cleanshutdown")))
        self.daemon.start()
        connection = kafka_wire.Connection(self.daemon.port)
        self.addCleanup(connection.close)
        self.assertEqual([r[1:] for r in connection.read_all("facts", 0)], [(b"a", b"4"), (b"b", b"\x00\x01")])
        missing = tool("clean", "--log-dir", self.daemon.directory, "facts")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("no metadata log", missing.stderr)

    def test_status(self):
        answer = tool("status", "--admin-socket", self.daemon.admin_socket)
        self.assertEqual(answer.returncode, 0)
        self.assertIn("is serving: node 1 of cluster", answer.stdout)
        self.assertEqual(self.daemon.stop(), 0)
        answer = tool("status", "--admin-socket", self.daemon.admin_socket)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("no daemon at", answer.stderr)

    def test_confirm_clock(self):
        self.assertEqual(tool("confirm-clock", "--admin-socket", self.daemon.admin_socket).returncode, 0)

    def test_dump_and_verify(self):
        in_use = tool("verify", "--in-use", self.daemon.data)
        self.assertEqual(in_use.returncode, 0, in_use.stdout + in_use.stderr)
        self.assertEqual(self.daemon.stop(), 0)
        at_rest = tool("verify", self.daemon.data)
        self.assertEqual(at_rest.returncode, 0, at_rest.stdout + at_rest.stderr)
        self.assertIn("1 partitions", at_rest.stdout)

        shown = tool("dump", "--values", self.daemon.data)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for expected in ("key: a payload: 4", "key: b payload: \\x00\\x01", "TopicRecord", "PartitionRecord", "leader change", "topic_id:", "cluster.id=", "isvalid: true"):
            self.assertIn(expected, shown.stdout)
        lines = [json.loads(line) for line in tool("dump", "--values", "--json", self.partition).stdout.splitlines()]
        records = [line for line in lines if line["kind"] == "record"]
        self.assertIn(("a", "4"), [(r["key"], r.get("payload")) for r in records])
        self.assertIn(("b", "0001"), [(r["key"], r.get("payloadHex")) for r in records])
        self.assertTrue(all(line["isvalid"] for line in lines if line["kind"] == "batch"))

        log = sorted(glob.glob(os.path.join(self.partition, "*.log")))[0]
        with open(log, "r+b") as f:
            f.seek(70)
            f.write(b"\xff")
        self.assertIn("checksum", tool("dump", log).stderr)
        broken = tool("verify", self.daemon.data)
        self.assertEqual(broken.returncode, 1)
        self.assertIn("fault: ", broken.stdout)
        self.assertIn(os.path.basename(log), broken.stdout)

    def test_mistakes_of_the_caller(self):
        self.assertEqual(tool().returncode, 2)
        self.assertEqual(tool("dump", "/nonexistent").returncode, 2)
        self.assertEqual(tool("nonsense").returncode, 2)

    def test_what_is_no_log_directory_is_not_found_to_be_in_order(self):
        with tempfile.TemporaryDirectory() as directory:
            for command, why in (("verify",), "neither a log directory"), (("repair",), "no log directory"), (("repair", "--drop"), "no log directory"):
                answer = tool(*command, directory)
                self.assertEqual(answer.returncode, 1, command)
                self.assertIn(why, answer.stderr)
            self.assertEqual(os.listdir(directory), [])


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
