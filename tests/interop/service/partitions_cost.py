"""What many partitions cost a daemon: creation, and a look of retention at all of them when nothing is due, with clients at work.

    partitions_cost.py [--partitions 10000] [--looks 20] [--cpu-max 0.05]

Every partition holds a record. The look is asked for over admin.socket, so that its processor time is that of one thread (schedstat, in nanoseconds);
what the answer alone costs is measured as well and taken off. Meanwhile a client produces to one of the partitions with acks=1.
"""

import argparse
import os
import statistics
import sys
import threading
import time

import kafka_wire
from tidemarkd import Tidemarkd

PER_TOPIC = 100


def thread_seconds(pid):
    """Processor time of each thread."""
    times = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="utf-8") as file:
            times[thread] = int(file.read().split()[0]) / 1e9
    return times


def busiest(pid, action):
    """The largest share of processor time that one thread took for the action."""
    before = thread_seconds(pid)
    action()
    after = thread_seconds(pid)
    return max(after[t] - before.get(t, 0) for t in after)


def fill(port, topics):
    connection = kafka_wire.Connection(port, timeout=600)
    batch = kafka_wire.batch([(b"key", b"value" * 10)], int(time.time() * 1000))
    for topic in topics:
        for partition in range(PER_TOPIC):
            connection.send_produce(topic, partition, batch)
        for _ in range(PER_TOPIC):
            error, _ = connection.produced(connection.receive()[1])
            assert error == 0, error
    connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--looks", type=int, default=20)
    parser.add_argument("--cpu-max", type=float, default=None)
    arguments = parser.parse_args()

    with Tidemarkd({"log.retention.check.interval.ms": 3_600_000, "log.initial.task.delay.ms": 3_600_000, "metrics.per.partition.enable": "false"}) as daemon:
        pid = daemon.process.pid
        connection = kafka_wire.Connection(daemon.port, timeout=600)
        topics = [f"a-topic-of-usual-length-{n}" for n in range(arguments.partitions // PER_TOPIC)]
        begin = time.monotonic()
        for topic in topics:
            assert connection.create_topic(topic, PER_TOPIC, {"retention.ms": 86_400_000, "retention.bytes": 1 << 30, "log.retention.mintimestamp": 1}) == 0
        print(f"{arguments.partitions} partitions created in {time.monotonic() - begin:.1f} s")
        begin = time.monotonic()
        fill(daemon.port, topics)
        print(f"a record for each in {time.monotonic() - begin:.1f} s, acknowledged by acks=all")

        def look():
            status, _ = daemon.admin("POST", "/v1/retention?topic=none")
            assert status == 200, status

        def answer():
            status, _ = daemon.get("/api/v1/retention?topic=none")
            assert status == 200, status

        look()   # the first one reads what later ones remember
        answers = [busiest(pid, answer) for _ in range(arguments.looks)]
        alone = [busiest(pid, look) for _ in range(arguments.looks)]

        stop = threading.Event()

        def produce(into):
            with_own = kafka_wire.Connection(daemon.port)
            while not stop.is_set():
                begin = time.perf_counter()
                error, _ = with_own.produce(topics[0], 0, kafka_wire.batch([(b"k", b"v")], int(time.time() * 1000)), acks=1)
                into.append(time.perf_counter() - begin)
                assert error == 0, error
                time.sleep(0.001)
            with_own.close()

        def latency_beside(work):
            stop.clear()
            latencies = []
            thread = threading.Thread(target=produce, args=(latencies,))
            thread.start()
            end = time.monotonic() + 5
            while time.monotonic() < end:
                work()
            stop.set()
            thread.join()
            latencies.sort()
            return latencies[len(latencies) // 2] * 1000, latencies[len(latencies) * 99 // 100] * 1000, latencies[-1] * 1000

        quiet = latency_beside(lambda: time.sleep(0.05))
        busy = latency_beside(look)
        deleted = sum(value for series, value in daemon.metrics().items() if series.startswith("tidemark_retention_deleted_segments_total"))
        assert deleted == 0, "something was due"
        begin = time.monotonic()
        status = daemon.stop(600)
        print(f"stopped with {status} in {time.monotonic() - begin:.1f} s")

    cost = statistics.median(alone) - statistics.median(answers)
    print(f"a look at {arguments.partitions} partitions of which nothing is due: {cost * 1000:.1f} ms of processor time"
          f" (median of {arguments.looks}; {statistics.median(alone) * 1000:.1f} with the answer, which alone takes {statistics.median(answers) * 1000:.1f})")
    for name, (median, p99, longest) in (("alone", quiet), ("while one look follows the other", busy)):
        print(f"produce, acks=1, {name}: p50 {median:.2f} ms, p99 {p99:.2f} ms, longest {longest:.2f} ms")
    if arguments.cpu_max is not None and cost > arguments.cpu_max:
        print(f"missed: at most {arguments.cpu_max * 1000:.0f} ms were allowed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
