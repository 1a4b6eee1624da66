#!/usr/bin/env python3
"""Random logs, in both directions: what Apache Kafka's storage classes make is read the same by ours, and what ours make is read the same by them.

For each seed the oracle (what `oracle random` does) writes a case: a log, and appends, cleanings, deletions, a crash with a damaged tail.

 1. golden_test plays the case: every action on what Kafka left before it, and the whole build on our own append path. Decisions,
    offsets, producers, lookups and every byte of every file are the same, in parity.
 2. golden_make plays the whole script with our defaults. `oracle dump` shows the same batches and records that we see there,
    `oracle recover` opens it after a clean stop and, made anew and killed, after a crash: nothing is cut, and offsets and
    producers are those that we had.

    tests/oracle/differential_test.py [--seeds 200] [--first 1] [--cleans 5] [--parity] [--keep DIRECTORY] [--bin DIRECTORY]

--parity leaves the second half out: cleanings by the hundred. What differs is kept. Exit code 77: there is no oracle (TIDEMARK_SHARED/oracle, which needs a JDK and Maven).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHARED = os.environ.get("TIDEMARK_SHARED", os.path.join(ROOT, "..", "shared"))
ORACLE = os.path.join(SHARED, "oracle", "oracle")


class Different(Exception):
    pass


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise Different(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-6000:]}{done.stderr[-2000:]}")
    return done.stdout


def class_path():
    """The oracle's, which it says when asked for its settings; it builds itself on first use."""
    shown = subprocess.run([ORACLE], env=dict(os.environ, ORACLE_JAVA_OPTS="-XshowSettings:properties"), capture_output=True, text=True).stderr.splitlines()
    begin = next(i for i, line in enumerate(shown) if "java.class.path = " in line)
    paths = [shown[begin].split(" = ")[1]]
    for line in shown[begin + 1:]:
        if " = " in line:
            break
        paths.append(line.strip())
    return paths


class Oracle:
    """OracleServer.java: one JVM for all questions."""

    def __init__(self, directory):
        paths = class_path()
        subprocess.run(["javac", "-cp", ":".join(paths), "-d", directory, os.path.join(HERE, "OracleServer.java")], check=True)
        self.errors = open(os.path.join(directory, "errors"), "w")
        self.jvm = subprocess.Popen(["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx768m", "-Duser.language=en", "-Duser.country=US",
                                     "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-cp", ":".join([directory, *paths]), "daemon.oracle.OracleServer"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.jvm.stdin.close()
        self.jvm.wait()
        self.errors.close()

    def ask(self, command, directory, **more):
        self.jvm.stdin.write(json.dumps({"command": command, "directory": directory, **more}) + "\n")
        self.jvm.stdin.flush()
        answer = json.loads(self.jvm.stdout.readline())
        if "exception" in answer:
            raise Different(f"oracle {command}: {answer['exception']}")
        return answer


def expect_equal(what, ours, kafkas):
    if ours != kafkas:
        raise Different(f"{what}:\n   ours  {ours}\n   Kafka {kafkas}")


def partition_in(directory):
    return next(e.path for e in os.scandir(directory) if e.is_dir())


def batches_of(segments):
    """As both sides say it: {segment: [(position, size, last offset, magic, CRC, records)]}."""
    def record(r):
        return r["offset"], r["timestamp"], r["key"], r["value"]
    return {s["baseOffset"]: [(b["position"], b["size"], b["lastOffset"], b["magic"], b["crc"] & 0xFFFFFFFF, [record(r) for r in b["records"]]) for b in s["batches"]]
            for s in segments}


def producers_of(producers, now, expiration):
    """{id: state}, without those that a start forgets."""
    def last_sequence(p):
        return p["lastSequence"] if "lastSequence" in p else p["batches"][-1]["lastSeq"] if p["batches"] else -1
    return {p["producerId"]: (p["producerEpoch"], p["coordinatorEpoch"], p["lastTimestamp"], last_sequence(p), p["currentTxnFirstOffset"])
            for p in producers if p["currentTxnFirstOffset"] is not None or now - p["lastTimestamp"] < expiration}


def judge_dump(oracle, made, directory):
    dump = oracle.ask("dump", directory)
    for segment in dump["segments"]:
        if "trailingBytes" in segment or "error" in segment:
            raise Different(f"Kafka cannot read {segment['file']} to its end")
        for batch in segment["batches"]:
            if not batch.get("valid"):
                raise Different(f"Kafka finds {segment['file']} at {batch['position']} invalid")
    ours, kafkas = batches_of(made["segments"]), batches_of(dump["segments"])
    expect_equal("segments", sorted(ours), sorted(kafkas))
    for base, batches in ours.items():
        for mine, theirs in zip(batches, kafkas[base]):
            expect_equal(f"batch in segment {base}", mine, theirs)
        expect_equal(f"number of batches in segment {base}", len(batches), len(kafkas[base]))


def judge_recovery(oracle, made, directory, script, clean):
    expiration = int(json.load(open(script)).get("config", {}).get("producer.id.expiration.ms", 86400000))
    found = oracle.ask("recover", directory, script=script, args={"now": made["now"], "clean": clean})
    if "failed" in found:
        raise Different(f"Kafka does not open it: {found['failed']}")
    expect_equal("what Kafka cut", [], found["truncated"])
    for key, value in made["result"].items():
        expect_equal(key, value, found["result"][key])
    expect_equal("segments", sorted(s["baseOffset"] for s in made["segments"]), found["result"]["segments"])
    expect_equal("producers", producers_of(made["producers"], made["now"], expiration), producers_of(found["producers"], made["now"], expiration))
    judge_dump(oracle, made, directory)


def judge_seed(oracle, seed, directory, arguments):
    """How many actions were played the same."""
    case = os.path.join(directory, f"random-{seed}")
    script = os.path.join(case, "script.json")
    oracle.ask("random", case, seed=seed, cleans=arguments.cleans)
    played = run(os.path.join(arguments.bin, "golden_test"), "--parity", case)
    for end in [] if arguments.parity else [[], ["--crash"]]:
        ours = os.path.join(directory, "ours" + "".join(end))
        made = json.loads(run(os.path.join(arguments.bin, "golden_make"), *end, case, ours))
        judge_dump(oracle, made, partition_in(ours))
        judge_recovery(oracle, made, partition_in(ours), script, clean=not end)
    return sum(int(line.split()[-1]) for line in played.splitlines() if line.startswith("ok "))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--cleans", type=int, default=5)
    parser.add_argument("--parity", action="store_true")
    parser.add_argument("--keep", default="oracle-failures")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    arguments = parser.parse_args()
    if shutil.which("javac") is None or not os.access(ORACLE, os.X_OK):
        print("SKIPPED: needs a JDK and the oracle in " + os.path.abspath(SHARED))
        return 77
    begin, failed, actions = time.monotonic(), [], 0
    with tempfile.TemporaryDirectory(prefix="tidemark-oracle-") as classes, Oracle(classes) as oracle:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            with tempfile.TemporaryDirectory(prefix="tidemark-oracle-") as directory:
                try:
                    actions += judge_seed(oracle, seed, directory, arguments)
                except Different as e:
                    failed.append(seed)
                    print(f"seed {seed}: {e}", flush=True)
                    shutil.copytree(directory, os.path.join(arguments.keep, str(seed)), dirs_exist_ok=True)
    print(f"{arguments.seeds} seeds from {arguments.first}, {actions} actions, {time.monotonic() - begin:.0f} s; {len(failed)} differ{': ' if failed else ''}"
          + " ".join(map(str, failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
