"""Apache Kafka 4.4's programs, resolved by Maven once into ${XDG_CACHE_HOME:-~/.cache}/tidemark-tests."""

import atexit
import base64
import collections
import hashlib
import os
import select
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "service"), os.path.join(HERE, "..", "wire")]
import kafka_wire  # noqa: E402
from tidemarkd import free_ports, until  # noqa: E402

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "tidemark-tests", "kafka-4.4.0")

TOOLS = {
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "org.apache.kafka.tools.ConfigCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "log-compaction-tester": "org.apache.kafka.tools.LogCompactionTester",
    "connect": "org.apache.kafka.connect.cli.ConnectDistributed",
    "server": "kafka.Kafka",
    "session": os.path.join(HERE, "Session.java"),
    "streams": os.path.join(HERE, "Streams.java"),
    "clients": os.path.join(HERE, "Clients.java"),
}


def class_path():
    """The jars; fetched when those of this pom.xml are not there yet."""
    pom = os.path.join(HERE, "pom.xml")
    with open(pom, "rb") as f:
        wanted = hashlib.sha256(f.read()).hexdigest()
    lib, complete = os.path.join(CACHE, "lib"), os.path.join(CACHE, "complete")
    if not os.path.exists(complete) or open(complete, encoding="utf-8").read() != wanted:
        os.makedirs(lib, exist_ok=True)
        shutil.copy(pom, os.path.join(CACHE, "pom.xml"))
        subprocess.run(["mvn", "-q", "-B", "-f", os.path.join(CACHE, "pom.xml"), "dependency:copy-dependencies", f"-DoutputDirectory={lib}"], check=True)
        with open(complete, "w", encoding="utf-8") as f:
            f.write(wanted)
    return os.path.join(lib, "*")


def compiled(source, directory):
    """Compiles a class for command()'s `classes`."""
    subprocess.run(["javac", "-cp", class_path(), "-d", directory, os.path.join(HERE, source)], check=True)
    return directory


def command(tool, *arguments, classes=None):
    """For a process of its own. `classes`: a directory of more of them."""
    # Most of them live for seconds: a quick start is worth more than fast code.
    quick = [] if tool == "server" else ["-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    settings = os.path.join(HERE, "log4j2.yaml")
    return ["java", "-Xmx512m", "-XX:+UseSerialGC", *quick, f"-Dlog4j2.configurationFile={settings}", "-cp", ":".join(filter(None, (classes, class_path()))), TOOLS[tool], *arguments]


Outcome = collections.namedtuple("Outcome", "status stdout stderr")
_session = None


def outcome(tool, *arguments, text="", timeout=120):
    """What a tool did that ends by itself. All of them run in one Java machine (Session.java)."""
    global _session   # pylint: disable=global-statement
    if _session is None:
        _session = subprocess.Popen(command("session"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        atexit.register(_session.kill)
    words = (TOOLS[tool], text, *arguments)
    _session.stdin.write(b" ".join(base64.b64encode(word.encode()) for word in words) + b"\n")
    _session.stdin.flush()
    # Answers are one line each, and nothing comes unasked: whatever can be read begins this one's.
    if not select.select([_session.stdout], [], [], timeout)[0]:
        _session.kill()
        _session.wait()
        _session = None
        raise AssertionError(f"{tool} {' '.join(arguments)} has not ended within {timeout} s")
    status, *texts = _session.stdout.readline().split(b" ")
    return Outcome(int(status), *(base64.b64decode(t).decode() for t in texts))


def run(tool, *arguments, text="", timeout=120):
    """Standard output of a tool; its errors are shown when it fails."""
    done = outcome(tool, *arguments, text=text, timeout=timeout)
    if done.status != 0:
        raise AssertionError(f"{tool} {' '.join(arguments)} ended with {done.status}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Broker:
    """Apache Kafka itself, a broker with its controller, over a data directory that tidemarkd has made."""

    def __init__(self, data, scratch):
        self.port, controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        properties = os.path.join(scratch, "server.properties")
        self.log_path = os.path.join(scratch, "kafka.log")
        with open(properties, "w", encoding="utf-8") as f:
            f.write(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.check.interval.ms=3600000
log.cleaner.backoff.ms=3600000
""")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command("server", properties), stdout=log, stderr=log)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-6000:]

    def wait_for(self, partitions):
        """Until it leads these (topic, partition)."""
        def serving():
            if self.process.poll() is not None:
                raise AssertionError(f"Kafka ended:\n{self.log()}")
            try:
                connection = kafka_wire.Connection(self.port)
                errors = connection.metadata(sorted({topic for topic, _ in partitions}))
                ready = set(errors.values()) == {0} and all(connection.list_offset(t, p, -1)[0] == 0 for t, p in partitions)
                connection.close()
                return ready
            except OSError:
                return False
        until(serving, "Kafka serves the copy", 90)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def close(self):
        self.process.kill()
        self.process.wait()
