#!/usr/bin/env python3
"""tidemarkd's answers next to those of Apache Kafka 4.4, which are in recorded.json.

    answers_test.py                   the test
    answers_test.py --record PORT     asks a Kafka 4.4 at that port and writes recorded.json
    answers_test.py --show [PROBE]    prints every difference, the known ones too
"""

import json
import os
import sys

import differences
import probes
from messages import HERE, REQUESTS, ZERO_ID, Broker

RECORDED = os.path.join(HERE, "recorded.json")


def plain(value, prefix):
    """As JSON, without what differs from run to run."""
    if isinstance(value, bytes):
        if len(value) == 16:
            return "no id" if value == ZERO_ID else "an id"
        return value.hex()
    if isinstance(value, str):
        return value.replace(prefix, "w").replace(prefix.replace("-", "."), "w").replace(prefix.replace("-", "_"), "w")
    if isinstance(value, dict):
        return {k: plain(v, prefix) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, prefix) for v in value]
    return value


def ask_all(broker, wanted=None):
    answers = {}
    for name, probe in probes.PROBES.items():
        if wanted and name not in wanted:
            continue
        answers[name] = {}
        try:
            for label, answer in ((item[0], item[1] if len(item) == 2 else item[1:]) for item in probe(broker)):
                answers[name][label] = plain(answer, broker.prefix)
        except (ConnectionError, TimeoutError, AssertionError, LookupError, TypeError) as error:
            answers[name]["(stopped)"] = f"{type(error).__name__} {error} after {next(reversed(answers[name]), 'the start')}"
    return answers


TEXTS = ("ErrorMessage", "BatchIndexErrorMessage")   # are for people; nobody may depend on their words


def different(ours, kafkas, path=""):
    """(path, ours, Kafka's) of every leaf."""
    if path.endswith(TEXTS):
        return
    if isinstance(ours, dict) and isinstance(kafkas, dict):
        for key in sorted({*ours, *kafkas}):
            yield from different(ours.get(key, "(missing)"), kafkas.get(key, "(missing)"), f"{path}/{key}")
    elif isinstance(ours, list) and isinstance(kafkas, list) and len(ours) == len(kafkas):
        for i, (a, b) in enumerate(zip(ours, kafkas)):
            yield from different(a, b, f"{path}/{i}")
    elif ours != kafkas:
        yield path, ours, kafkas


def main():
    if sys.argv[1:2] == ["--record"]:
        os.environ["TIDEMARK_WIRE_PORT"] = sys.argv[2]
    broker = Broker()
    served = {k["ApiKey"] for k in broker.ask("ApiVersions", 0)["ApiKeys"]}
    broker.served = sorted(served & {r.key for r in REQUESTS.values()})
    try:
        if sys.argv[1:2] == ["--record"]:
            with open(RECORDED, "w", encoding="utf-8") as file:
                json.dump(ask_all(broker), file, indent=1, sort_keys=True, ensure_ascii=False)
                file.write("\n")
            return 0
        show = sys.argv[1:2] == ["--show"]
        with open(RECORDED, encoding="utf-8") as file:
            recorded = json.load(file)
        ours = ask_all(broker, sys.argv[2:])
    finally:
        broker.close()
    recorded = {name: recorded.get(name, {}) for name in ours}
    bad = compared = 0
    for path, our, kafkas in different(ours, recorded):
        reason = differences.reason(path, our, kafkas)
        bad += reason is None
        if reason is None or show:
            print(f"{path}\n    ours   {our}\n    Kafka  {kafkas}" + (f"\n    known: {reason}" if reason else ""))
    compared = sum(len(answers) for answers in ours.values())
    print(f"{compared} answers compared, {bad} differences unaccounted for")
    return 1 if bad or compared < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
