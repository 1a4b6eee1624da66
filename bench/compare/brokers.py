"""Apache Kafka 4.4 and tidemarkd as the comparison starts them: each alone, on free ports, in a directory of its own."""

import os
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "interop", "service"), os.path.join(ROOT, "tests", "interop", "kafka-tools")]
import kafka  # noqa: E402
from tidemarkd import free_ports, program  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS:"))


class Broker:
    """start() execs and returns at once; `started_ns` is the monotonic time just before."""

    name = ""

    def __init__(self, directory):
        self.directory = directory
        self.data = os.path.join(directory, "data")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        self.log_path = os.path.join(directory, "log")
        self.port, self.other_port = free_ports(2)
        self.process = None
        self.started_ns = 0

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def command(self):
        raise NotImplementedError

    def start(self):
        with open(self.log_path, "ab") as log:
            self.started_ns = time.monotonic_ns()
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        return self

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(300)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class Tidemark(Broker):
    name = "Tidemark"

    def __init__(self, directory, settings=None):
        super().__init__(directory)
        self.settings = settings or {}

    def command(self):
        settings = {
            "log.dirs": self.data,
            "listeners": f"PLAINTEXT://{self.address}",
            "http.listener": f"127.0.0.1:{self.other_port}",
            "admin.socket": os.path.join(self.directory, "admin.socket"),
            **self.settings,
        }
        return [program(), *(part for key, value in settings.items() for part in ("--set", f"{key}={value}"))]


class Kafka(Broker):
    """A single node in KRaft mode with the heap and collector of Kafka's own start script."""

    name = "Kafka"

    def __init__(self, directory, settings=None):
        super().__init__(directory)
        self.properties = os.path.join(directory, "server.properties")
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.other_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.other_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            **(settings or {}),
        }
        with open(self.properties, "w", encoding="utf-8") as f:
            f.writelines(f"{key}={value}\n" for key, value in settings.items())
        format_it = self.java("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", self.properties)
        done = subprocess.run(format_it, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"formatting Kafka's directory failed:\n{done.stdout}{done.stderr}")

    @staticmethod
    def java(main, *arguments):
        lib = os.environ.get("KAFKA_LIB")
        class_path = os.path.join(lib, "*") if lib else kafka.class_path()
        settings = os.path.join(os.path.dirname(kafka.__file__), "log4j2.yaml")
        collector = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]
        return ["java", "-Xms1G", "-Xmx1G", "-server", *collector, "-Djava.awt.headless=true", f"-Dlog4j2.configurationFile={settings}", "-cp", class_path, main, *arguments]

    def command(self):
        return self.java("kafka.Kafka", self.properties)
