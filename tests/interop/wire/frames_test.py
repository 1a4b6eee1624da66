#!/usr/bin/env python3
"""What comes in over a socket: frames cut anywhere, lies about sizes, garbage, peers that never read, many connections."""

import fcntl
import os
import random
import select
import socket
import struct
import termios
import threading
import time
import unittest

from messages import REQUESTS, Broker, batch, framed, until, write_request
from transactions import ask_again, find_coordinator

MEBIBYTE = 1 << 20


def memory(broker):
    """Resident bytes."""
    with open(f"/proc/{broker.daemon.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def descriptors(broker):
    return len(os.listdir(f"/proc/{broker.daemon.process.pid}/fd"))


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = Broker()
        cls.served = {k["ApiKey"]: (k["MinVersion"], k["MaxVersion"]) for k in cls.broker.ask("ApiVersions", 0)["ApiKeys"]}
        cls.topic, cls.id = cls.broker.topic()

    @classmethod
    def tearDownClass(cls):
        cls.broker.close()

    def lives(self):
        self.assertEqual(self.broker.ask("ApiVersions", 0)["ErrorCode"], 0)

    def closed_by(self, data):
        with self.broker.wire() as wire:
            wire.raw(data)
            return wire.is_closed()

    def test_sizes(self):
        for size in (-1, -2**31, 0, 1, 3, 7, 104857601, 2**31 - 1):
            with self.subTest(size=size):
                self.assertTrue(self.closed_by(struct.pack(">i", size) + bytes(max(0, min(size, 100)))))
        self.lives()

    def test_headers(self):
        good = write_request("Metadata", 12, Topics=[])
        for key, version in ((9999, 0), (-1, 0), (1, 3), (1, 19), (2, 0), (0, 2), (0, 0), (0, 14), (3, 14), (22, 6), (3, -1), (18, -1), (71, 0), (4, 0), (6, 8), (62, 0), (-2**15, 2**15 - 1)):
            with self.subTest(key=key, version=version):
                with self.broker.wire() as wire:
                    wire.raw(framed(struct.pack(">hh", key, version) + good[4:]))
                    if key == 18:
                        self.assertEqual(wire.receive_raw()[1][:2], b"\0\x23")
                    else:
                        self.assertTrue(wire.is_closed())
        for label, data in {"client id longer than the frame": struct.pack(">hhih", 3, 1, 1, 500), "negative client id": struct.pack(">hhih", 3, 1, 1, -2) + bytes(4),
                            "no tags": struct.pack(">hhih", 3, 12, 1, -1), "more tags than bytes": struct.pack(">hhih", 3, 12, 1, -1) + b"\xff\xff\xff\xff\x0f",
                            "tag longer than the frame": struct.pack(">hhih", 3, 12, 1, -1) + b"\1\0\xff\xff\xff\xff\x07", "endless varint": struct.pack(">hhih", 3, 12, 1, -1) + b"\xff" * 20}.items():
            with self.subTest(label):
                self.assertTrue(self.closed_by(framed(data)))
        self.lives()

    def test_what_is_more_than_needed(self):
        with self.broker.wire() as wire:
            plain = write_request("Metadata", 9, 5, Topics=[])
            wire.raw(framed(plain + b"left over"))
            self.assertEqual(wire.receive("Metadata", 9, 5)["Topics"], [])
            # Unknown tags behind the header's client id and behind the body.
            header = struct.pack(">hhih", 3, 9, 6, -1) + b"\x02\x05\x01x\x7f\x00"
            wire.raw(framed(header + plain[len(write_request("Metadata", 9, 5, Topics=[])) - 5:-1] + b"\x01\x09\x03abc"))
            self.assertEqual(wire.receive("Metadata", 9, 6)["Topics"], [])
            for client in (None, "", "x" * 32767, "ü\0"):
                wire.raw(framed(write_request("Metadata", 9, 7, client=client, Topics=[])))
                self.assertEqual(wire.receive("Metadata", 9, 7)["Topics"], [])

    def test_null_lists_and_empty_ones(self):
        """Of a group's offsets a null list of topics asks for all, an empty one for none (KAFKA-10606); where a version has no null, the connection ends."""
        with self.broker.wire() as wire:
            find_coordinator(wire, 0, "lists")
            partitions = [{"PartitionIndex": 0, "CommittedOffset": 5}]
            ask_again(wire, "OffsetCommit", 8, lambda a: a["Topics"][0]["Partitions"][0]["ErrorCode"], GroupId="lists", GenerationIdOrMemberEpoch=-1, MemberId="", Topics=[{"Name": self.topic, "Partitions": partitions}])
            for version in range(2, 8):
                for topics, count in ((None, 1), ([], 0)):
                    answer = wire.ask("OffsetFetch", version, GroupId="lists", Topics=topics)
                    self.assertEqual((answer["ErrorCode"], len(answer["Topics"])), (0, count), version)
            for version in range(8, 11):
                answer = wire.ask("OffsetFetch", version, Groups=[{"GroupId": g, "Topics": t} for g, t in (("lists", None), ("of-nobody", None), ("lists", []))])
                self.assertEqual([(g["ErrorCode"], len(g["Topics"])) for g in answer["Groups"]], [(0, 1), (0, 0), (0, 0)], version)
            self.assertEqual(wire.ask("CreateTopics", 7, Topics=[], timeoutMs=1000)["Topics"], [])
        for key, version, before in ((9, 0, b"\0\1g"), (9, 1, b"\0\1g"), (3, 0, b"")):
            with self.subTest(key=key, version=version):
                self.assertTrue(self.closed_by(framed(struct.pack(">hhih", key, version, 1, -1) + before + struct.pack(">i", -1))))
        self.lives()

    def test_split_at_every_byte(self):
        message = framed(write_request("Metadata", 12, 1, Topics=[{"Name": self.topic}])) + framed(write_request("ApiVersions", 0, 2))
        for at in range(1, len(message)):
            with self.broker.wire() as wire:
                wire.raw(message[:at])
                # The rest only after the first part has been read: its answer, or all of it out of our buffer.
                until(lambda: _unread(wire.socket) == 0, "the first part has arrived")
                wire.raw(message[at:])
                self.assertEqual(wire.receive("Metadata", 12, 1)["Topics"][0]["ErrorCode"], 0, at)
                self.assertEqual(wire.receive("ApiVersions", 0, 2)["ErrorCode"], 0, at)
        with self.broker.wire() as wire:
            for byte in message:
                wire.raw(bytes([byte]))
            wire.receive("Metadata", 12, 1)
            wire.receive("ApiVersions", 0, 2)

    def test_cut_and_broken_bodies_of_every_request(self):
        """Every served request and version: cut short, with every length replaced by lies, with bytes flipped. Nothing but
        an answer or a closed connection may come of it, and no memory."""
        seed = random.SystemRandom().randrange(2**32)
        dice = random.Random(seed)
        before = memory(self.broker)
        harmless = {name: r for name, r in REQUESTS.items() if r.key in self.served}
        lies = [struct.pack(">i", n) for n in (2**31 - 1, -1, -2, 2**24)] + [b"\xff\xff\xff\xff\x07", b"\xff" * 5, b"\xff" * 10, b"\x80\x80\x80\x08", b"\x7f\xff"]
        sent = 0
        for name, request in harmless.items():
            first, last = self.served[request.key]
            for version in {max(first, request.versions.first), last, dice.randint(max(first, request.versions.first), last)}:
                values = _filled(request, version, dice)
                whole = write_request(name, version, **values)
                start = 8 + 2 + len("tidemark-test")
                if len(whole) == start:
                    continue
                broken = [whole[:dice.randrange(start, len(whole) + 1)] for _ in range(3)]
                for _ in range(12):
                    at = dice.randrange(start, len(whole))
                    lie = dice.choice(lies)
                    broken.append(whole[:at] + lie + whole[at + len(lie):])
                    broken.append(whole[:at] + lie + whole[at + 1:])
                    broken.append(whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1:])
                for message in broken:
                    with self.broker.wire() as wire:
                        wire.socket.settimeout(20)
                        wire.raw(framed(message))
                        wire.socket.shutdown(socket.SHUT_WR)
                        try:
                            while wire.socket.recv(65536):
                                pass
                        except ConnectionResetError:
                            pass
                        except TimeoutError:
                            self.fail(f"seed {seed}: {name} {version} neither answered nor closed: {message.hex()}")
                    sent += 1
            self.assertIsNone(self.broker.daemon.process.poll(), f"seed {seed}: died of {name}")
        self.lives()
        self.assertLess(memory(self.broker) - before, 60 * MEBIBYTE, f"seed {seed}, {sent} requests")
        print(f"{sent} broken requests: {(memory(self.broker) - before) / MEBIBYTE:.1f} MiB more", flush=True)

    def test_announced_but_never_sent(self):
        """1,000 connections that announce 100 MiB each and send one byte (case B70)."""
        def one():
            s = socket.create_connection(("127.0.0.1", self.broker.port))
            s.sendall(struct.pack(">i", 100 * MEBIBYTE) + b"\0")
            return s
        warm = [one() for _ in range(1000)]   # what connections themselves cost, and the allocator's pools
        until(lambda: descriptors(self.broker) > 1000, "they are accepted")
        for s in warm:
            s.close()
        until(lambda: descriptors(self.broker) < 300, "the connections are closed")
        idle = [socket.create_connection(("127.0.0.1", self.broker.port)) for _ in range(1000)]
        until(lambda: descriptors(self.broker) > 1000, "they are accepted")
        before = memory(self.broker)
        for s in idle:
            s.sendall(struct.pack(">i", 100 * MEBIBYTE) + b"\0")
        until(lambda: all(_unread(s) == 0 for s in idle), "all is read")
        self.lives()
        growth = memory(self.broker) - before
        for s in idle:
            s.close()
        print(f"1000 announcements of 100 MiB: {growth / MEBIBYTE:.2f} MiB more", flush=True)
        self.assertLess(growth, 8 * MEBIBYTE)
        until(lambda: descriptors(self.broker) < 300, "the connections are closed")

    def test_a_large_frame_grows_as_it_comes(self):
        before = memory(self.broker)
        with self.broker.wire() as wire:
            wire.raw(struct.pack(">i", 100 * MEBIBYTE) + struct.pack(">hhi", 3, 1, 1) + bytes(MEBIBYTE))
            self.lives()
            self.assertLess(memory(self.broker) - before, 10 * MEBIBYTE)

    def test_half_open(self):
        with self.broker.wire() as wire:   # we say no more, but listen
            wire.send("Metadata", 12, Topics=[])
            wire.send("ApiVersions", 0)
            wire.socket.shutdown(socket.SHUT_WR)
            wire.receive("Metadata", 12, 1)
            wire.receive("ApiVersions", 0, 2)
            self.assertTrue(wire.is_closed())
        with self.broker.wire() as wire:   # a fetch that waits is no reason to keep a peer that has gone
            wire.send("Fetch", 12, MaxWaitMs=600000, MinBytes=1, MaxBytes=1000, Topics=[{"Topic": self.topic, "Partitions": [{"Partition": 0, "FetchOffset": self.broker.list_offset(self.topic, -1)[2], "PartitionMaxBytes": 1000}]}])
            wire.socket.shutdown(socket.SHUT_WR)
            wire.receive("Fetch", 12, 1)
            self.assertTrue(wire.is_closed())
        with self.broker.wire() as wire:   # half a frame, and the end
            wire.raw(framed(write_request("Metadata", 12, Topics=[]))[:-3])
            wire.socket.shutdown(socket.SHUT_WR)
            self.assertTrue(wire.is_closed())

    def test_pipelined(self):
        """Answers in the order of the requests, none for acks=0 (case B66)."""
        topic, _ = self.broker.topic()
        with self.broker.wire() as wire:
            part = [{"Topic": topic, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]}]
            data = lambda acks: dict(Acks=acks, TimeoutMs=1000, TopicData=[{"Name": topic, "PartitionData": [{"Index": 0, "Records": batch()}]}])
            start = time.monotonic()
            wire.send("Fetch", 12, MaxWaitMs=1000, MinBytes=10**6, MaxBytes=10**6, Topics=part)
            wire.send("Produce", 9, **data(-1))
            wire.send("Metadata", 12, Topics=[])
            wire.send("ApiVersions", 0)
            wire.send("Produce", 9, **data(0))
            wire.send("ListOffsets", 7, ReplicaId=-1, Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Timestamp": 0}]}])
            wire.send("ListOffsets", 7, ReplicaId=-1, Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}])
            wire.send("Produce", 9, **data(1))
            wire.receive("Fetch", 12, 1)
            self.assertGreater(time.monotonic() - start, 0.9)
            self.assertEqual(wire.receive("Produce", 9, 2)["Responses"][0]["PartitionResponses"][0]["BaseOffset"], 0)
            wire.receive("Metadata", 12, 3)
            wire.receive("ApiVersions", 0, 4)
            self.assertEqual(wire.receive("ListOffsets", 7, 6)["Topics"][0]["Partitions"][0]["ErrorCode"], 0)
            self.assertEqual(wire.receive("ListOffsets", 7, 7)["Topics"][0]["Partitions"][0]["Offset"], 2)
            self.assertEqual(wire.receive("Produce", 9, 8)["Responses"][0]["PartitionResponses"][0]["BaseOffset"], 2)

    def test_acks_0(self):
        topic, _ = self.broker.topic()
        data = lambda name, records=batch(): dict(Acks=0, TimeoutMs=1000, TopicData=[{"Name": name, "PartitionData": [{"Index": 0, "Records": records}]}])
        for label, values in {"unknown topic": data("no-such"), "garbage": data(topic, b"garbage"), "crc": data(topic, batch(crc=1))}.items():
            with self.subTest(label), self.broker.wire() as wire:
                wire.send("Metadata", 12, Topics=[])
                wire.send("Produce", 9, **values)
                wire.send("ApiVersions", 0)
                wire.receive("Metadata", 12, 1)
                self.assertTrue(wire.is_closed())
        for version in range(3, 13):
            with self.broker.wire() as wire:
                wire.send("Produce", version, **data(topic))
                wire.send("ApiVersions", 0)
                wire.receive("ApiVersions", 0, 2)
        with self.broker.wire() as wire:   # sent, and gone at once
            for _ in range(100):
                wire.send("Produce", 9, **data(topic))
        until(lambda: self.broker.list_offset(topic, -1)[2] == 110, "all that was sent is there")

    def test_a_thousand_small_requests_in_one_piece(self):
        with self.broker.wire() as wire:
            wire.raw(b"".join(framed(write_request("ApiVersions", 0, n)) for n in range(1000)))
            for n in range(1000):
                wire.receive("ApiVersions", 0, n)

    def test_peers_that_never_read(self):
        """They ask for much and take nothing: what waits for them is bounded."""
        topic, _ = self.broker.topic()
        self.broker.produce(topic, batch([(b"k", bytes(900_000))]))
        before = memory(self.broker)
        stuck = []
        for i in range(12):
            wire = self.broker.wire()
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.socket.setblocking(False)
            if i % 4:
                message = framed(write_request("Fetch", 12, MaxWaitMs=0, MinBytes=1, MaxBytes=10**8, Topics=[{"Topic": topic, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 10**8}]}]))
            else:
                message = framed(write_request("DescribeConfigs", 4, IncludeSynonyms=True, IncludeDocumentation=True, Resources=[{"ResourceType": 4, "ResourceName": "1", "ConfigurationKeys": None}] * 10))
            stuck.append((wire, message * 100))
        moving = True
        while moving:
            moving = False
            for i, (wire, left) in enumerate(stuck):
                try:
                    n = wire.socket.send(left) if left else 0
                except BlockingIOError:
                    n = 0
                if n:
                    stuck[i] = (wire, left[n:])
                    moving = True
            if not moving:
                waited = time.monotonic() + 1
                while time.monotonic() < waited and not moving:   # until nobody takes more for a second
                    self.lives()
                    moving = any(left and _writable(wire.socket) for wire, left in stuck)
        growth = memory(self.broker) - before
        print(f"12 peers that never read: {growth / MEBIBYTE:.1f} MiB more", flush=True)
        for wire, _ in stuck:
            wire.socket.close()
        self.assertLess(growth, 12 * 25 * MEBIBYTE)
        until(lambda: memory(self.broker) - before < max(growth / 2, 40 * MEBIBYTE), "the memory comes back")
        self.lives()

    def test_many_connections_that_come_and_go(self):
        before = descriptors(self.broker)
        def storm(n):
            for i in range(n):
                s = socket.create_connection(("127.0.0.1", self.broker.port))
                if i % 4 == 1:
                    s.sendall(framed(write_request("ApiVersions", 0)))
                elif i % 4 == 2:
                    s.sendall(b"\0\0")
                elif i % 4 == 3:   # with a reset
                    s.sendall(framed(write_request("ApiVersions", 0)))
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
        threads = [threading.Thread(target=storm, args=(500,)) for _ in range(4)]
        start = time.monotonic()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.lives()
        print(f"2000 connections in {time.monotonic() - start:.2f} s", flush=True)
        until(lambda: descriptors(self.broker) <= before + 5, "no descriptor is left behind")

    def test_waiting_fetches_leave_nothing_behind(self):
        topic, _ = self.broker.topic()
        before = descriptors(self.broker)
        wires = []
        for _ in range(300):
            wire = self.broker.wire()
            wire.send("Fetch", 12, MaxWaitMs=2**31 - 1, MinBytes=1, MaxBytes=1000, Topics=[{"Topic": topic, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]}])
            wires.append(wire)
        name = next(n for n in self.broker.daemon.metrics() if "fetches_waiting" in n or "waiting_fetches" in n or ("fetch" in n and "wait" in n))
        until(lambda: self.broker.daemon.metrics()[name] == 300, "all wait")
        for wire in wires[:150]:
            wire.socket.close()
        until(lambda: self.broker.daemon.metrics()[name] == 150, "those that left are forgotten")
        self.broker.produce(topic, batch())
        for wire in wires[150:]:
            self.assertGreater(len(wire.receive("Fetch", 12)["Responses"][0]["Partitions"][0]["Records"]), 0)
            wire.socket.close()
        until(lambda: descriptors(self.broker) <= before + 5, "no descriptor is left behind")


class Stopping(unittest.TestCase):
    def test_sigterm_under_load(self):
        """Everything that was acknowledged is there after the restart; waiting fetches are answered; the exit is clean."""
        broker = Broker()
        topic, _ = broker.topic(4)
        waiting = broker.wire()
        waiting.send("Fetch", 12, MaxWaitMs=600000, MinBytes=10**7, MaxBytes=10**7, Topics=[{"Topic": topic, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]}])
        acknowledged, stop = [0] * 4, threading.Event()
        def load(partition):
            try:
                with broker.wire() as wire:
                    while not stop.is_set():
                        for _ in range(10):
                            wire.send("Produce", 9, Acks=-1, TimeoutMs=1000, TopicData=[{"Name": topic, "PartitionData": [{"Index": partition, "Records": batch()}]}])
                        for _ in range(10):
                            if wire.receive("Produce", 9)["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0:
                                acknowledged[partition] += 1
            except (ConnectionError, OSError):
                pass
        threads = [threading.Thread(target=load, args=(p,)) for p in range(4)]
        for t in threads:
            t.start()
        until(lambda: min(acknowledged) > 100, "there is load")
        knocking = []
        def knock():
            while not stop.is_set():
                try:
                    knocking.append(socket.create_connection(("127.0.0.1", broker.port), 5))
                    if len(knocking) > 50:
                        knocking.pop(0).close()
                except OSError:
                    pass
        knocker = threading.Thread(target=knock)
        knocker.start()
        start = time.monotonic()
        status = broker.daemon.stop()
        took = time.monotonic() - start
        stop.set()
        for t in [*threads, knocker]:
            t.join()
        for s in knocking:
            s.close()
        self.assertEqual(status, 0, broker.daemon.log()[-3000:])
        try:
            waiting.receive("Fetch", 12, 1)
        except ConnectionError:
            self.fail("the waiting fetch was not answered")
        print(f"stopped under load in {took:.2f} s after {sum(acknowledged)} acknowledged batches", flush=True)
        broker.daemon.start()
        try:
            for p in range(4):
                self.assertGreaterEqual(broker.list_offset(topic, -1, p)[2], acknowledged[p])
        finally:
            broker.close()


def _unread(s):
    """Bytes that the peer's kernel has not acknowledged yet."""
    return struct.unpack("i", fcntl.ioctl(s.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0]


def _writable(s):
    return bool(select.select([], [s], [], 0)[1])


def _filled(request, version, dice):
    """A request with something in every field."""
    def value(field, type_):
        if type_.startswith("[]"):
            return [value(field, type_[2:]) for _ in range(dice.randint(1, 2))]
        if type_ == "bool":
            return dice.random() < 0.3
        if type_ in ("int8", "int16", "int32", "int64", "uint16", "uint32"):
            return dice.choice((0, 1, 1, 2, 5))
        if type_ == "float64":
            return 1.0
        if type_ == "uuid":
            return bytes(dice.randrange(256) for _ in range(16))
        if type_ == "string":
            return dice.choice(("", "x", "no-such-topic", "retention.ms"))
        if type_ in ("bytes", "records"):
            return batch()
        return members(field.fields)
    def members(fields):
        return {f.name: value(f, f.type) for f in fields if (version in f.versions or version in f.tagged)}
    values = members(request.fields)
    if "ValidateOnly" in values or "validateOnly" in values:
        values["ValidateOnly" if "ValidateOnly" in values else "validateOnly"] = True
    if "MaxWaitMs" in values:
        values["MaxWaitMs"] = 10
    return values


if __name__ == "__main__":
    unittest.main(verbosity=2)
