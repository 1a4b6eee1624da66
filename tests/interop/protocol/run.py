#!/usr/bin/env python3
"""Compares the codecs with Apache Kafka's own, in both directions.

    run.py PROGRAM DIR      PROGRAM is protocol_interop, DIR holds Kafka's jars, the compiled Judge and the messages

Ours writes random messages, Kafka reads and rewrites them; Kafka makes random messages, ours reads and rewrites them.
Every byte must be the same. TIDEMARK_TEST_SEED repeats a run, TIDEMARK_TEST_COUNT sets the messages per version.
"""

import os
import random
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def entries(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from(">h", data, at)
        name = data[at + 2 : at + 2 + size].decode()
        at += 2 + size
        version, size = struct.unpack_from(">hi", data, at)
        at += 6
        yield name, version, data[at : at + size]
        at += size


def compare(written, rewritten, direction):
    count = 0
    for before, after in zip(entries(written), entries(rewritten), strict=True):
        if before != after:
            sys.exit(f"{direction}: {before[0]} version {before[1]}\nbefore {before[2].hex()}\nafter  {after[2].hex()}")
        count += 1
    print(f"{direction}: {count} messages, all the same")


def compiled_judge(directory):
    """Its class path. The jars are fetched once per directory."""
    jars, classes = os.path.join(directory, "jars"), os.path.join(directory, "classes")
    ready = os.path.join(directory, "jars.ready")
    if not os.path.exists(ready):
        shutil.rmtree(jars, ignore_errors=True)
        subprocess.run(["mvn", "-q", "-B", "-f", os.path.join(HERE, "pom.xml"), "dependency:copy-dependencies", "-DoutputDirectory=" + jars],
                       check=True)
        open(ready, "w", encoding="utf-8").close()
    subprocess.run(["javac", "-d", classes, "-cp", os.path.join(jars, "*"), os.path.join(HERE, "Judge.java")], check=True)
    return classes + os.pathsep + os.path.join(jars, "*")


def main():
    program, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    seed = os.environ.get("TIDEMARK_TEST_SEED") or str(random.SystemRandom().randrange(2**32))
    count = os.environ.get("TIDEMARK_TEST_COUNT") or "30"
    print(f"seed {seed}", flush=True)
    judge = ["java", "-cp", compiled_judge(directory), "Judge"]
    ours, ours_by_kafka, kafkas, kafkas_by_us = (os.path.join(directory, name) for name in ["ours", "ours_by_kafka", "kafkas", "kafkas_by_us"])

    subprocess.run([program, "generate", seed, count, ours], check=True)
    subprocess.run([*judge, "rewrite", ours, ours_by_kafka], check=True)
    compare(ours, ours_by_kafka, "ours read by Kafka")

    subprocess.run([*judge, "generate", ours, seed, count, kafkas], check=True)
    subprocess.run([program, "rewrite", kafkas, kafkas_by_us], check=True)
    compare(kafkas, kafkas_by_us, "Kafka's read by us")

    tables = [sorted(subprocess.run([*command, "tables"], check=True, capture_output=True, text=True).stdout.splitlines()) for command in (judge, [program])]
    for line in sorted(set(tables[0]) ^ set(tables[1])):
        print(("Kafka only: " if line in tables[0] else "ours only:  ") + line)
    if tables[0] != tables[1]:
        sys.exit("the tables differ")
    print(f"tables: {len(tables[0])} lines, all the same")


if __name__ == "__main__":
    main()
