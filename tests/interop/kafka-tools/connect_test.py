"""A worker of Kafka Connect in distributed mode: its three compacted topics, its group, and what it carries."""

import json
import os
import subprocess
import unittest
import urllib.error
import urllib.request

import kafka
from tidemarkd import Tidemarkd, free_ports, until


class Worker:
    def __init__(self, directory, bootstrap, classes):
        self.port, = free_ports(1)
        self.log_path = os.path.join(directory, "connect.log")
        properties = os.path.join(directory, "connect.properties")
        with open(properties, "w", encoding="utf-8") as f:
            f.write(f"""bootstrap.servers={bootstrap}
group.id=connect
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
offset.flush.interval.ms=500
plugin.discovery=service_load
exactly.once.source.support=enabled
listeners=HTTP://127.0.0.1:{self.port}
""")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(kafka.command("connect", properties, classes=classes), stdout=log, stderr=log)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-6000:]

    def ask(self, method, path, body=None):
        """The answer; None when there is none, or the worker is not ready to give it."""
        if self.process.poll() is not None:
            raise AssertionError(f"the worker ended with {self.process.returncode}:\n{self.log()}")
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method, data=None if body is None else json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            if error.code in (404, 409, 500, 503):   # not known yet, rebalancing, a timeout inside, starting
                return None
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from error
        except OSError:
            return None

    def runs(self, name):
        status = self.ask("GET", f"/connectors/{name}/status")
        return bool(status) and status["connector"]["state"] == "RUNNING" and [t["state"] for t in status["tasks"]] == ["RUNNING"]

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def close(self):
        self.process.kill()
        self.process.wait()


class Connect(unittest.TestCase):
    def test_a_file_becomes_another(self):
        daemon = Tidemarkd({"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 5, "transaction.state.log.num.partitions": 5})
        self.addCleanup(daemon.close)
        daemon.start()
        source, sink = (os.path.join(daemon.directory, name) for name in ("source.txt", "sink.txt"))
        written = []

        def write(count):
            with open(source, "a", encoding="utf-8") as f:
                for _ in range(count):
                    written.append(f"line {len(written)}")
                    f.write(written[-1] + "\n")

        def wait(condition, what, seconds):
            try:
                until(condition, what, seconds)
            except AssertionError as error:
                raise AssertionError(f"{error}\n--- the worker's log\n{worker.log()}") from error

        def arrived():
            with open(sink, encoding="utf-8") as f:
                return f.read().splitlines()

        classes = kafka.compiled("AppInfoParser.java", os.path.join(daemon.directory, "classes"))
        write(100)
        worker = Worker(daemon.directory, daemon.bootstrap, classes)
        self.addCleanup(lambda: worker.close())   # pylint: disable=unnecessary-lambda
        configs = {
            "source": {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1", "file": source, "topic": "lines"},
            "sink": {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1", "file": sink, "topics": "lines"},
        }
        for name, config in configs.items():
            wait(lambda: worker.ask("PUT", f"/connectors/{name}/config", config), f"{name} is there", 120)   # pylint: disable=cell-var-from-loop
        wait(lambda: worker.runs("source") and worker.runs("sink"), "both run", 60)
        wait(lambda: os.path.exists(sink) and arrived() == written, "the lines arrive", 60)
        topics = {topic["name"]: topic for topic in daemon.json("/api/v1/topics")["topics"]}
        for name in ("connect-offsets", "connect-configs", "connect-status"):
            self.assertIn("cleanup.policy=compact", kafka.run("configs", "--bootstrap-server", daemon.bootstrap, "--describe", "--entity-type", "topics", "--entity-name", name), topics)

        # The daemon goes without a word and comes back: the worker goes on.
        daemon.kill()
        write(50)
        daemon.start()
        write(50)
        # The sink commits what it wrote at intervals, so lines may come twice; the source is exactly once.
        wait(lambda: arrived()[-1:] == written[-1:] and set(arrived()) == set(written), "the lines of after the restart arrive", 120)

        # Another worker finds connectors, offsets and states in the three topics.
        worker.stop()
        write(10)
        worker = Worker(daemon.directory, daemon.bootstrap, classes)
        wait(lambda: worker.runs("source") and worker.runs("sink"), "both run again", 120)
        wait(lambda: set(arrived()) == set(written), "the last lines arrive", 60)
        worker.stop()
        consumed = kafka.run("console-consumer", "--bootstrap-server", daemon.bootstrap, "--topic", "lines", "--from-beginning", "--isolation-level", "read_committed", "--max-messages", str(len(written)), "--timeout-ms", "20000")
        self.assertEqual(consumed.splitlines(), written)
        self.assertEqual(daemon.stop(), 0)
