#!/usr/bin/env python3
"""Random logs that Apache Kafka's own classes cleaned, cleaned once more here: every decision, count and byte has to be the same.

    tests/golden/fuzz.py [--seeds 500] [--first 1] [--cleans 5] [--keep DIRECTORY] [--golden-test PROGRAM]

Each seed is one case in golden form: a log, then some cleanings with appends and moves of the clock between. The oracle makes it
(TIDEMARK_SHARED/oracle, which needs a JDK and Maven), golden_test plays it with every difference from Kafka turned off. What
differs is kept in DIRECTORY. Exit code 77: there is no oracle.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def make(oracle, seed, cleans, directory):
    done = subprocess.run([oracle, "random", str(seed), directory, "--cleans", str(cleans)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"oracle, seed {seed}: {done.stderr or done.stdout}")


def play(golden_test, directory):
    """What golden_test has to say, and whether all was well."""
    done = subprocess.run([golden_test, directory], capture_output=True, text=True)
    # 77 would mean that nothing was found to play.
    return done.stdout + done.stderr, done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--cleans", type=int, default=5)
    parser.add_argument("--keep", default="golden-fuzz-failures")
    parser.add_argument("--golden-test", default=os.path.join(ROOT, "build", "release", "bin", "golden_test"))
    arguments = parser.parse_args()
    oracle = os.path.join(os.environ.get("TIDEMARK_SHARED", os.path.join(ROOT, "..", "shared")), "oracle", "oracle")
    if not os.access(oracle, os.X_OK) or not shutil.which("java"):
        print("SKIPPED: no oracle, or no Java to run it")
        return 77

    failed, actions = [], 0
    with tempfile.TemporaryDirectory(prefix="tidemark-golden-fuzz-") as work:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            case = os.path.join(work, f"random-{seed}")
            make(oracle, seed, arguments.cleans, case)
            text, well = play(arguments.golden_test, case)
            actions += sum(int(line.split()[2]) for line in text.splitlines() if line.startswith(("ok ", "FAIL ")))
            if not well:
                failed.append(seed)
                print(text, flush=True)
                shutil.copytree(case, os.path.join(arguments.keep, f"random-{seed}"), dirs_exist_ok=True)
            shutil.rmtree(case)
    print(f"{arguments.seeds} seeds from {arguments.first}, {actions} actions; {len(failed)} differ{': ' + ' '.join(map(str, failed)) if failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
