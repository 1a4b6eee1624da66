"""tidemarkd from outside: starts, serves, shows its numbers, obeys signals, stops cleanly and comes back with everything."""

import json
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import kafka_wire
from tidemarkd import ROOT, Tidemarkd, program, until


def run(*arguments, **options):
    return subprocess.run([program(), *arguments], capture_output=True, text=True, timeout=60, **options)


def now_ms():
    return int(time.time() * 1000)


def put(connection, topic, values, partition=0, keys=None):
    keys = keys or [None] * len(values)
    error, base = connection.produce(topic, partition, kafka_wire.batch([(k, v) for k, v in zip(keys, values)], now_ms()))
    assert error == 0, error
    return base


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def file(self, text):
        path = os.path.join(self.directory.name, "t.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_version(self):
        answer = run("--version")
        self.assertEqual(answer.returncode, 0)
        self.assertRegex(answer.stdout, r"^tidemarkd \d+\.\d+\.\d+")

    def test_check_config_names_every_mistake_with_its_place(self):
        path = self.file("log.dirs: /a\nlog.clener.threads: 1\nlog:\n  segment.bytes: 12\nlisteners: SSL://:9093\n")
        answer = run("--check-config", path)
        self.assertEqual(answer.returncode, 2)
        self.assertIn(f"{path}:2:1: there is no setting log.clener.threads; did you mean log.cleaner.threads?", answer.stderr)
        self.assertIn(f"{path}:4:18: Invalid value 12 for configuration log.segment.bytes", answer.stderr)
        self.assertIn("only PLAINTEXT is offered yet", answer.stderr)

    def test_check_config_accepts_a_good_file(self):
        answer = run("--check-config", self.file("log.dirs: /a\nlog.retention.ms: 7d\n"))
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))

    def test_print_config_reads_back(self):
        path = self.file("log.dirs: /a\nlog.retention.ms: 7d\n")
        printed = run("--config", path, "--set", "listeners=PLAINTEXT://127.0.0.1:1", "--print-config")
        self.assertEqual(printed.returncode, 0)
        self.assertRegex(printed.stdout, r"(?m)^log\.retention\.ms: 604800000 .*t\.yaml:2$")
        self.assertRegex(printed.stdout, r"(?m)^listeners: .* --set$")
        self.assertEqual(run("--check-config", self.file(printed.stdout)).returncode, 0)

    def test_unknown_flags_and_files(self):
        self.assertEqual(run("--nonsense").returncode, 2)
        self.assertEqual(run("--config", "/nonexistent").returncode, 2)


class Serving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Tidemarkd().start()
        cls.addClassCleanup(cls.daemon.close)

    def connect(self):
        connection = kafka_wire.Connection(self.daemon.port)
        self.addCleanup(connection.close)
        return connection

    def test_records_come_back(self):
        connection = self.connect()
        self.assertEqual(connection.create_topic("back", 2), 0)
        put(connection, "back", [b"one", b"two"], keys=[b"k", None])
        put(connection, "back", [b"three"])
        self.assertEqual(connection.read_all("back", 0), [(0, b"k", b"one"), (1, None, b"two"), (2, None, b"three")])
        self.assertEqual(connection.read_all("back", 1), [])

    @unittest.skipIf(shutil.which("kcat") is None, "kcat is not installed")
    def test_an_older_librdkafka_compresses(self):
        """KAFKA-18659: it asks whether Produce 0 is served, and quietly leaves compression out where it is not."""
        connection = self.connect()
        for codec, name in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
            self.assertEqual(connection.create_topic(f"packed-{name}"), 0)
            subprocess.run(["kcat", "-P", "-b", self.daemon.bootstrap, "-t", f"packed-{name}", "-z", name, "-X", "linger.ms=100"], input=b"compressible compressible\n" * 500, check=True, timeout=60)
            _, _, data = connection.fetch(f"packed-{name}", 0, 0)
            attributes, = struct.unpack_from(">h", data, 21)
            self.assertEqual(attributes & 7, codec, name)

    def test_metrics_pass_promtool_and_follow_the_topics(self):
        connection = self.connect()
        connection.create_topic("counted")
        put(connection, "counted", [b"x"] * 7)
        status, text = self.daemon.get("/metrics")
        self.assertEqual(status, 200)
        series = self.daemon.metrics()
        self.assertEqual(series['tidemark_log_end_offset{topic="counted",partition="0"}'], 7)
        self.assertEqual(series['tidemark_topic_records_in_total{topic="counted"}'], 7)
        self.assertEqual(series["kafka_log_logcleaner_num_logs_compacted_by_max_compaction_lag"], 0)
        self.assertEqual(series["kafka_log_logcleaner_max_delay_after_max_compaction_lag"], 0)
        self.assertGreater(series["process_resident_memory_bytes"], 1 << 20)
        self.assertTrue(any(s.startswith('tidemark_request_duration_seconds_bucket{api="Produce"') for s in series))
        self.assertFalse([name for name, value in series.items() if math.isnan(value)])
        promtool = shutil.which("promtool")
        self.assertIsNotNone(promtool, "promtool is in Debian's package prometheus")
        checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_every_metric_is_explained(self):
        connection = self.connect()
        connection.create_topic("explained")
        connection.create_topic("compacted", 1, {"cleanup.policy": "compact"})
        put(connection, "explained", [b"x"])
        with open(os.path.join(ROOT, "docs", "operating.md"), encoding="utf-8") as file:
            document = file.read()
        families = [line.split()[2] for line in self.daemon.get("/metrics")[1].splitlines() if line.startswith("# TYPE ")]
        self.assertGreater(len(families), 80)
        self.assertEqual([name for name in families if f"`{name}" not in document], [])

    def test_series_of_a_topic_that_comes_and_goes(self):
        """Scraped all the time: what is deleted is gone and stays so, what is made again begins anew, and no number is none."""
        connection = self.connect()
        stop, wrong, scrapes = threading.Event(), [], 0
        gone = {}    # generation → when its deletion was answered

        def scrape():
            nonlocal scrapes
            while not stop.wait(0.02):
                deleted = set(gone)
                series = self.daemon.metrics()
                scrapes += 1
                wrong.extend(f"{s} is not a number" for s, value in series.items() if math.isnan(value))
                wrong.extend(f"{s} came back" for s in series for generation in deleted if f'topic="churn-{generation}"' in s)

        thread = threading.Thread(target=scrape)
        thread.start()
        try:
            for generation in range(12):
                topic = f"churn-{generation}"
                self.assertEqual(connection.create_topic(topic, 2, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01, "segment.ms": 50}), 0)
                put(connection, topic, [b"1", b"2"], keys=[b"k", b"k"])
                self.daemon.admin("POST", f"/v1/clean?topic={topic}&partition=0&roll=yes")
                until(lambda t=topic: any(f'topic="{t}"' in s for s in self.daemon.metrics()), "the topic shows")
                connection.ask(20, 1, struct.pack(">i", 1) + kafka_wire.text(topic) + struct.pack(">i", 30000))
                until(lambda t=topic: not any(f'topic="{t}"' in s for s in self.daemon.metrics()), "it is gone")
                gone[generation] = True
                connection.fetch(topic, 0, 0)    # a late one
                until(lambda seen=scrapes: scrapes > seen + 1, "it was scraped again, from beginning to end")
        finally:
            stop.set()
            thread.join()
        self.assertGreater(scrapes, 12)
        self.assertEqual(wrong, [])
        self.assertEqual(connection.create_topic("churn-0"), 0)
        self.assertEqual(self.daemon.metrics()['tidemark_log_end_offset{topic="churn-0",partition="0"}'], 0, "a new one of the name begins anew")

    def test_series_of_a_deleted_topic_vanish(self):
        connection = self.connect()
        connection.create_topic("passing")
        put(connection, "passing", [b"x"])
        self.assertIn('tidemark_log_end_offset{topic="passing",partition="0"}', self.daemon.metrics())
        body = struct.pack(">i", 1) + kafka_wire.text("passing") + struct.pack(">i", 30000)
        connection.ask(20, 1, body)
        until(lambda: not any('topic="passing"' in s for s in self.daemon.metrics()), "the series of the deleted topic are gone")
        connection.fetch("passing", 0, 0)
        self.assertFalse([s for s in self.daemon.metrics() if 'topic="passing"' in s], "a late fetch revives nothing")

    def test_health(self):
        self.assertEqual(self.daemon.get("/healthz")[0], 200)
        self.assertEqual(self.daemon.get("/readyz")[0], 200)
        status, text = self.daemon.get("/")
        self.assertEqual(status, 200)
        self.assertIn("/metrics", text)
        self.assertEqual(self.daemon.get("/nothing")[0], 404)

    def test_json_api(self):
        connection = self.connect()
        connection.create_topic("shown", 2, {"retention.ms": 5000})
        put(connection, "shown", [b"x"] * 3, partition=1)
        topics = self.daemon.json("/api/v1/topics")["topics"]
        shown = next(t for t in topics if t["name"] == "shown")
        self.assertEqual((shown["partitions"], shown["configs"]), (2, {"retention.ms": "5000"}))
        partitions = self.daemon.json("/api/v1/topics/shown")["partitions"]
        self.assertEqual([p["log_end_offset"] for p in partitions], [0, 3])
        self.assertEqual(self.daemon.get("/api/v1/topics/none")[0], 404)
        self.assertEqual(self.daemon.json("/api/v1/broker")["node_id"], 1)
        self.assertIn("logs", self.daemon.json("/api/v1/cleaner"))
        self.assertIn("logs", self.daemon.json("/api/v1/retention"))

    def test_admin_socket(self):
        status, body = self.daemon.admin("GET", "/v1/status")
        self.assertEqual(status, 200)
        self.assertEqual(json.loads(body)["state"], "serving")
        self.assertEqual(self.daemon.admin("GET", "/v1/repair")[0], 405, "what changes something wants POST")
        self.assertEqual(os.stat(self.daemon.admin_socket).st_mode & 0o777, 0o660)
        # The door that reads has none of it.
        self.assertEqual(self.daemon.get("/v1/status")[0], 404)

    def test_the_log_says_what_to_try(self):
        log = self.daemon.log()
        self.assertIn(f"kcat -b {self.daemon.bootstrap}", log)
        self.assertIn(f"http://127.0.0.1:{self.daemon.http_port}/metrics", log)


class Stopping(unittest.TestCase):
    def test_sigterm_leaves_a_clean_marker_and_everything_comes_back(self):
        daemon = Tidemarkd()
        self.addCleanup(daemon.close)
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        connection.create_topic("kept", 3, {"cleanup.policy": "compact"})
        for partition in range(3):
            put(connection, "kept", [b"%d" % partition] * 5, partition, keys=[b"%d" % i for i in range(5)])
        self.assertEqual(daemon.stop(), 0)
        self.assertTrue(os.path.exists(os.path.join(daemon.data, ".kafka_cleanshutdown")))
        self.assertFalse(os.path.exists(daemon.admin_socket))
        daemon.start()
        connection = kafka_wire.Connection(daemon.port)
        for partition in range(3):
            self.assertEqual(len(connection.read_all("kept", partition)), 5)
        topics = daemon.json("/api/v1/topics")["topics"]
        self.assertEqual(next(t for t in topics if t["name"] == "kept")["configs"], {"cleanup.policy": "compact"})
        self.assertEqual(daemon.stop(), 0)

    def test_a_start_shows_how_far_it_is(self):
        with tempfile.TemporaryDirectory() as directory, Tidemarkd({"message.max.bytes": 1 << 20}, directory=directory) as daemon:
            connection = kafka_wire.Connection(daemon.port)
            self.assertEqual(connection.create_topic("large"), 0)
            batch = kafka_wire.batch([(b"k", bytes(900_000))], now_ms())
            for _ in range(300):
                self.assertEqual(connection.produce("large", 0, batch, acks=1)[0], 0)
            daemon.kill()
            daemon.start(ready=False)   # and reads the whole log
            seen, left = set(), set()
            def is_ready():
                self.assertIsNone(daemon.process.poll(), daemon.log()[-2000:])
                status, text = daemon.get("/readyz")
                seen.add((status, text))
                left.update(line.split()[-1] for line in daemon.get("/metrics")[1].splitlines() if line.startswith("tidemark_log_directory_loading_logs"))
                return status == 200
            until(is_ready, "tidemarkd is ready")
            self.assertIn((503, "loading, 1 logs to go\n"), seen)
            self.assertEqual(left, {"0", "1"})
            self.assertEqual(kafka_wire.Connection(daemon.port).list_offset("large", 0, -1)[2], 300)

    def test_a_waiting_fetch_is_answered_when_the_daemon_stops(self):
        with Tidemarkd() as daemon:
            connection = kafka_wire.Connection(daemon.port)
            connection.create_topic("waited")
            body = struct.pack(">iiiib", -1, 25000, 1, 1 << 20, 0) + struct.pack(">i", 1) + kafka_wire.text("waited") + struct.pack(">iiqi", 1, 0, 0, 1 << 20)
            connection.send(kafka_wire.FETCH, 4, body)
            until(lambda: daemon.metrics().get("tidemark_fetches_waiting", 0) == 1, "the fetch waits")
            begin = time.monotonic()
            daemon.signal(signal.SIGTERM)
            correlation, _ = connection.receive()
            self.assertEqual(correlation, connection.correlation)
            self.assertEqual(daemon.process.wait(30), 0)
            self.assertLess(time.monotonic() - begin, 10)

    def test_the_directory_has_one_owner(self):
        with Tidemarkd() as daemon:
            second = Tidemarkd(directory=daemon.directory)
            second.log_path += ".second"
            second.start(ready=False)
            self.addCleanup(second.close)
            self.assertEqual(second.process.wait(30), 1)
            self.assertIn("lock", second.log())

    def test_sigint_stops_too(self):
        with Tidemarkd() as daemon:
            daemon.signal(signal.SIGINT)
            self.assertEqual(daemon.process.wait(30), 0)


class Reloading(unittest.TestCase):
    def test_sighup_takes_over_what_may_change_and_keeps_what_is_wrong_away(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "t.yaml")

            def write(text):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)

            write("log.retention.ms: 1h\n")
            daemon = Tidemarkd(config=path)
            self.addCleanup(daemon.close)
            daemon.start()
            connection = kafka_wire.Connection(daemon.port)
            connection.create_topic("t")

            def retention():
                return daemon.json("/api/v1/retention")["logs"][0]["retention_ms"]

            self.assertEqual(retention(), 3600000)
            write("log.retention.ms: 2h\n")
            daemon.signal(signal.SIGHUP)
            until(lambda: retention() == 7200000, "the new retention holds")
            # DescribeConfigs shows what holds: resource type 2, one key.
            body = struct.pack(">ib", 1, 2) + kafka_wire.text("t") + struct.pack(">i", 1) + kafka_wire.text("retention.ms") + b"\0"
            until(lambda: kafka_wire.text("7200000") in connection.ask(32, 1, body), "and is shown")
            write("log.retention.ms: 3h\nnonsense: 1\n")
            daemon.signal(signal.SIGHUP)
            until(lambda: "everything stays as it is" in daemon.log(), "the mistake is reported")
            self.assertEqual(retention(), 7200000)
            self.assertEqual(daemon.stop(), 0)

    def test_dynamic_settings_over_the_wire_survive_a_restart(self):
        with Tidemarkd() as daemon:
            connection = kafka_wire.Connection(daemon.port)
            connection.create_topic("t")

            def alter(kind, name, key, value):
                body = struct.pack(">ib", 1, kind) + kafka_wire.text(name) + struct.pack(">i", 1) + kafka_wire.text(key) + b"\0" + kafka_wire.text(value) + b"\0"
                data = kafka_wire.Connection(daemon.port).ask(44, 0, body)
                self.assertEqual(struct.unpack_from(">h", data, 8)[0], 0, data)

            alter(2, "t", "retention.ms", "12345")
            alter(4, "", "log.cleaner.backoff.ms", "777")
            self.assertEqual(daemon.stop(), 0)
            daemon.start()
            self.assertEqual(daemon.json("/api/v1/retention")["logs"][0]["retention_ms"], 12345)
            self.assertEqual(daemon.json("/api/v1/cleaner")["backoff_ms"], 777)


class Notifying(unittest.TestCase):
    """As systemd sees it: a datagram socket named by NOTIFY_SOCKET."""

    def test_ready_watchdog_reloading_stopping(self):
        with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            path = os.path.join(directory, "notify")
            notify.bind(path)
            notify.settimeout(30)
            daemon = Tidemarkd()
            self.addCleanup(daemon.close)
            # The watchdog's variables are for one process, which is known only after it has started: an exec keeps the pid.
            environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000000"}
            daemon.start(environment=environment)

            def message_with(word):
                while True:
                    text = notify.recv(4096).decode()
                    if word in text:
                        return text

            self.assertIn("STATUS=", message_with("READY=1"))
            message_with("WATCHDOG=1")
            message_with("WATCHDOG=1")
            daemon.signal(signal.SIGHUP)
            message_with("RELOADING=1")
            message_with("READY=1")
            daemon.signal(signal.SIGTERM)
            message_with("STOPPING=1")
            self.assertEqual(daemon.process.wait(30), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
