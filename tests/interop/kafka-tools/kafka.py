"""Apache Kafka 4.4's programs, resolved by Maven once into ${XDG_CACHE_HOME:-~/.cache}/tidemark-tests."""

import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "tidemark-tests", "kafka-4.4.0")

TOOLS = {
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "org.apache.kafka.tools.ConfigCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "server": "kafka.Kafka",
}


def class_path():
    """The jars; fetched when they are not there yet."""
    lib = os.path.join(CACHE, "lib")
    if not os.path.exists(os.path.join(CACHE, "complete")):
        os.makedirs(lib, exist_ok=True)
        shutil.copy(os.path.join(HERE, "pom.xml"), os.path.join(CACHE, "pom.xml"))
        subprocess.run(["mvn", "-q", "-B", "-f", os.path.join(CACHE, "pom.xml"), "dependency:copy-dependencies", f"-DoutputDirectory={lib}"], check=True)
        with open(os.path.join(CACHE, "complete"), "w", encoding="utf-8"):
            pass
    return os.path.join(lib, "*")


def command(tool, *arguments):
    # Small and quick to start: these programs live for a second.
    quick = [] if tool == "server" else ["-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    settings = os.path.join(HERE, "log4j2.yaml")
    return ["java", "-Xmx512m", "-XX:+UseSerialGC", *quick, f"-Dlog4j2.configurationFile={settings}", "-cp", class_path(), TOOLS[tool], *arguments]


def run(tool, *arguments, text="", check=True, timeout=120):
    """Standard output of a tool; its errors are shown when it fails."""
    done = subprocess.run(command(tool, *arguments), input=text, capture_output=True, text=True, timeout=timeout)
    if check and done.returncode != 0:
        raise AssertionError(f"{tool} {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
