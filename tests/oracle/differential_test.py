#!/usr/bin/env python3
"""Random logs, in both directions: what Apache Kafka's storage classes make is read the same by ours, and what ours make is read the same by them.

For each seed the oracle (`oracle random`) writes a case: a log, and appends, cleanings, deletions, a crash with a damaged tail.

 1. golden_test plays the case: every action on what Kafka left before it, and the whole build on our own append path. Decisions,
    offsets, producers, lookups and every byte of every file are the same, in parity.
 2. golden_make plays the whole script with our defaults. `oracle dump` shows the same batches and records that we see there,
    `oracle recover` opens it after a clean stop and, made anew and killed, after a crash: nothing is cut, and offsets and
    producers are those that we had.

    tests/oracle/differential_test.py [--seeds 200] [--first 1] [--cleans 5] [--parity] [--keep DIRECTORY] [--bin DIRECTORY]

--parity leaves the second half out, which costs several virtual machines a seed: cleanings by the hundred. What differs is kept. Exit code 77: there is no oracle (TIDEMARK_SHARED/oracle, which needs a JDK and Maven).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("TIDEMARK_SHARED", os.path.join(ROOT, "..", "shared"))
ORACLE = os.path.join(SHARED, "oracle", "oracle")
RANDOM_LOGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "random_logs.java")
BLOCK = 25   # seeds whose cases one virtual machine makes, and that are on the disk at the same time


class Different(Exception):
    pass


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise Different(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-6000:]}{done.stderr[-2000:]}")
    return done.stdout


def ask(*command):
    return json.loads(run(*command))


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


def judge_dump(made, directory):
    dump = ask(ORACLE, "dump", directory)
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


def judge_recovery(made, directory, script, flags):
    expiration = int(json.load(open(script)).get("config", {}).get("producer.id.expiration.ms", 86400000))
    found = ask(ORACLE, "recover", directory, "--now", str(made["now"]), "--script", script, *flags)
    if "failed" in found:
        raise Different(f"Kafka does not open it: {found['failed']}")
    expect_equal("what Kafka cut", [], found["truncated"])
    for key, value in made["result"].items():
        expect_equal(key, value, found["result"][key])
    expect_equal("segments", sorted(s["baseOffset"] for s in made["segments"]), found["result"]["segments"])
    expect_equal("producers", producers_of(made["producers"], made["now"], expiration), producers_of(found["producers"], made["now"], expiration))
    judge_dump(made, directory)


def class_path():
    """The oracle's, which it says when asked for its settings; builds it on first use."""
    shown = subprocess.run([ORACLE], capture_output=True, text=True, env={**os.environ, "ORACLE_JAVA_OPTS": "-XshowSettings:properties"}).stderr.splitlines()
    begin = next(i for i, line in enumerate(shown) if "java.class.path = " in line)
    entries = [shown[begin].split(" = ")[1]]
    for line in shown[begin + 1:]:
        if " = " in line:
            break
        entries.append(line.strip())
    return os.pathsep.join(entries)


def make_cases(first, count, directory, arguments):
    run("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx768m", "-Duser.language=en", "-Duser.country=US", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8",
        "-cp", arguments.class_path, RANDOM_LOGS, str(first), str(count), directory, str(arguments.cleans))


def judge_seed(seed, directory, arguments):
    """How many actions were played the same."""
    case = os.path.join(directory, f"random-{seed}")
    script = os.path.join(case, "script.json")
    played = run(os.path.join(arguments.bin, "golden_test"), "--parity", case)
    for end in [] if arguments.parity else [[], ["--crash"]]:
        ours = os.path.join(directory, f"ours-{seed}" + "".join(end))
        made = ask(os.path.join(arguments.bin, "golden_make"), *end, case, ours)
        judge_dump(made, partition_in(ours))
        judge_recovery(made, partition_in(ours), script, [] if end else ["--clean"])
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
    if shutil.which("java") is None or not os.access(ORACLE, os.X_OK):
        print("SKIPPED: needs a JDK and the oracle in " + os.path.abspath(SHARED))
        return 77
    arguments.class_path = class_path()
    begin, failed, actions = time.monotonic(), [], 0
    end = arguments.first + arguments.seeds
    for block in range(arguments.first, end, BLOCK):
        with tempfile.TemporaryDirectory(prefix="tidemark-oracle-") as directory:
            seeds = range(block, min(block + BLOCK, end))
            make_cases(block, len(seeds), directory, arguments)
            for seed in seeds:
                try:
                    actions += judge_seed(seed, directory, arguments)
                except Different as e:
                    failed.append(seed)
                    print(f"seed {seed}: {e}", flush=True)
                    for name in os.listdir(directory):
                        if str(seed) in name.split("-"):
                            shutil.copytree(os.path.join(directory, name), os.path.join(arguments.keep, name), dirs_exist_ok=True)
    print(f"{arguments.seeds} seeds from {arguments.first}, {actions} actions, {time.monotonic() - begin:.0f} s; {len(failed)} differ{': ' if failed else ''}"
          + " ".join(map(str, failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
