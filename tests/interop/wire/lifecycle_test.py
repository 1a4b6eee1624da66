#!/usr/bin/env python3
"""Topics that go while they are used, and data directories that are not as they were left."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from messages import ZERO_ID, Broker, Tidemarkd, batch, until


class Topics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = Broker()

    @classmethod
    def tearDownClass(cls):
        cls.broker.close()

    def delete(self, name):
        answer = self.broker.ask("DeleteTopics", 6, Topics=[{"Name": name, "TopicId": ZERO_ID}], TimeoutMs=10000)
        self.assertEqual(answer["Responses"][0]["ErrorCode"], 0)

    def test_deleted_while_a_fetch_waits(self):
        name, id_ = self.broker.topic()
        with self.broker.wire() as by_name, self.broker.wire() as by_id:
            part = [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]
            by_name.send("Fetch", 12, MaxWaitMs=60000, MinBytes=1, MaxBytes=1000, Topics=[{"Topic": name, "Partitions": part}])
            by_id.send("Fetch", 13, MaxWaitMs=60000, MinBytes=1, MaxBytes=1000, Topics=[{"TopicId": id_, "Partitions": part}])
            self.assertTrue(by_id.is_silent(0.3))
            start = time.monotonic()
            self.delete(name)
            self.assertEqual(by_name.receive("Fetch", 12)["Responses"][0]["Partitions"][0]["ErrorCode"], 3)
            self.assertEqual(by_id.receive("Fetch", 13)["Responses"][0]["Partitions"][0]["ErrorCode"], 100)
            self.assertLess(time.monotonic() - start, 10)

    def test_deleted_and_made_again_under_load(self):
        name, first = self.broker.topic(2)
        stop, codes = threading.Event(), set()
        def load(partition):
            with self.broker.wire() as wire:
                while not stop.is_set():
                    answer = wire.ask("Produce", 9, Acks=-1, TimeoutMs=1000, TopicData=[{"Name": name, "PartitionData": [{"Index": partition, "Records": batch()}]}])
                    codes.add(answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"])
                    answer = wire.ask("Fetch", 12, MaxWaitMs=0, MinBytes=1, MaxBytes=1000, Topics=[{"Topic": name, "Partitions": [{"Partition": partition, "FetchOffset": 0, "PartitionMaxBytes": 1000}]}])
                    codes.add(answer["Responses"][0]["Partitions"][0]["ErrorCode"])
        threads = [threading.Thread(target=load, args=(p,)) for p in (0, 1)]
        for t in threads:
            t.start()
        ids = {first}
        for _ in range(20):
            self.delete(name)
            answer = self.broker.ask("CreateTopics", 7, Topics=[{"Name": name, "NumPartitions": 2, "ReplicationFactor": 1}], timeoutMs=10000)["Topics"][0]
            self.assertEqual(answer["ErrorCode"], 0, answer)
            ids.add(answer["TopicId"])
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(len(ids), 21)
        self.assertLessEqual(codes, {0, 1, 3})
        old = self.broker.ask("Fetch", 13, MaxWaitMs=0, MinBytes=1, MaxBytes=1000, Topics=[{"TopicId": first, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]}])
        self.assertEqual(old["Responses"][0]["Partitions"][0]["ErrorCode"], 100)

    def test_names(self):
        before = set(os.listdir(self.broker.daemon.data))
        outside = set(os.listdir(self.broker.daemon.directory))
        for name in ("", ".", "..", "../x", "a/b", "a\0b", "x" * 250, "ü", "a b"):
            answer = self.broker.ask("CreateTopics", 7, Topics=[{"Name": name, "NumPartitions": 1, "ReplicationFactor": 1}], timeoutMs=10000)["Topics"][0]
            self.assertEqual(answer["ErrorCode"], 17, name)
            answer = self.broker.ask("Metadata", 12, Topics=[{"Name": name}], AllowAutoTopicCreation=True)["Topics"][0]
            self.assertEqual(answer["ErrorCode"], 17, name)
        self.assertEqual(set(os.listdir(self.broker.daemon.data)), before)
        self.assertEqual(set(os.listdir(self.broker.daemon.directory)), outside)
        long = "y" * 249
        self.assertEqual(self.broker.ask("CreateTopics", 7, Topics=[{"Name": long, "NumPartitions": 1, "ReplicationFactor": 1}], timeoutMs=10000)["Topics"][0]["ErrorCode"], 0)
        self.assertEqual(self.broker.produce(long, batch())["ErrorCode"], 0)
        self.delete(long)
        self.assertNotIn(long + "-0", os.listdir(self.broker.daemon.data))


class Directories(unittest.TestCase):
    """A daemon is stopped or killed, its files are changed, and it starts again, or says why not."""

    def setUp(self):
        self.broker = Broker()
        self.addCleanup(self.broker.close)
        self.topic, self.id = self.broker.topic()
        for _ in range(3):
            self.assertEqual(self.broker.produce(self.topic, batch([(b"k", b"v" * 100)] * 3))["ErrorCode"], 0)
        self.partition = os.path.join(self.broker.daemon.data, self.topic + "-0")

    def restart(self, change, clean=True):
        (self.broker.daemon.stop if clean else self.broker.daemon.kill)()
        change()
        self.broker.daemon.start()

    def all_there(self):
        self.assertEqual(self.broker.list_offset(self.topic, -1)[2], 9)
        self.assertGreater(len(self.broker.fetch(self.topic, 0)["Records"]), 900)
        self.assertEqual(self.broker.produce(self.topic, batch())["BaseOffset"], 9)

    def refuses(self, *words):
        self.broker.daemon.start(ready=False)
        self.assertNotEqual(self.broker.daemon.process.wait(60), 0)
        log = self.broker.daemon.log()
        for word in words:
            self.assertIn(word, log[-3000:])

    def write(self, path, data):
        with open(path, "wb") as file:
            file.write(data)

    def test_checkpoints_of_garbage(self):
        names = [n for n in os.listdir(self.broker.daemon.data) if n.endswith("checkpoint")]
        def change():
            for name in {*names, *(n for n in os.listdir(self.broker.daemon.data) if n.endswith("checkpoint"))}:
                self.write(os.path.join(self.broker.daemon.data, name), b"\xff\0garbage\n7\n")
            self.write(os.path.join(self.partition, "leader-epoch-checkpoint"), b"")
        self.restart(change)
        self.all_there()

    def test_indexes_gone(self):
        def change():
            for name in os.listdir(self.partition):
                if name.endswith(("index", ".snapshot")):
                    os.unlink(os.path.join(self.partition, name))
        self.restart(change)
        self.all_there()

    def test_torn_tail(self):
        def change():
            with open(os.path.join(self.partition, "0" * 20 + ".log"), "ab") as log:
                log.write(batch([(b"k", b"v" * 1000)], base=9)[:500])
        self.restart(change, clean=False)
        self.all_there()

    def test_foreign_things(self):
        def change():
            os.makedirs(os.path.join(self.broker.daemon.data, "holiday pictures"))
            os.makedirs(os.path.join(self.broker.daemon.data, "lost+found"))
            self.write(os.path.join(self.broker.daemon.data, "README"), b"hello")
            os.makedirs(os.path.join(self.broker.daemon.data, "a.b-0." + "0" * 32 + "-delete"))
            self.write(os.path.join(self.partition, "0" * 19 + "7.log.deleted"), b"x")
        self.restart(change)
        self.all_there()
        self.assertTrue(os.path.exists(os.path.join(self.broker.daemon.data, "holiday pictures")))
        until(lambda: not any(n.endswith("-delete") for n in os.listdir(self.broker.daemon.data)), "leftovers are removed", 90)

    def test_meta_properties(self):
        path = os.path.join(self.broker.daemon.data, "meta.properties")
        self.broker.daemon.stop()
        with open(path, "rb") as file:
            good = file.read()
        for bad in (b"", b"garbage", good.replace(b"node.id=1", b"node.id=7"), good.replace(b"version=1", b"version=9")):
            with self.subTest(bad=bad):
                self.write(path, bad)
                self.refuses("meta.properties")
        self.write(path, good)
        self.broker.daemon.start()
        self.all_there()

    def test_the_first_answer_is_complete(self):
        """Clients remember what they were told at first: whoever connects as soon as it is possible sees everything."""
        names = [self.topic, *(self.broker.topic(20)[0] for _ in range(5))]
        ask_versions = lambda wire: wire.ask("ApiVersions", 3, ClientSoftwareName="a", ClientSoftwareVersion="1")["ApiKeys"]
        with self.broker.wire() as wire:
            served = ask_versions(wire)
        def first(wire):
            self.assertEqual(ask_versions(wire), served)
            topics = wire.ask("Metadata", 12, Topics=None)["Topics"]
            self.assertLessEqual(set(names), {t["Name"] for t in topics})
            self.assertEqual({p["ErrorCode"] for t in topics for p in t["Partitions"]}, {0})
            offsets = wire.ask("ListOffsets", 7, ReplicaId=-1, Topics=[{"Name": n, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]} for n in names])["Topics"]
            self.assertEqual({(t["Name"], t["Partitions"][0]["ErrorCode"], t["Partitions"][0]["Offset"]) for t in offsets}, {(n, 0, 9 if n == self.topic else 0) for n in names})
            return True
        def connected():
            try:
                with self.broker.wire() as wire:
                    return first(wire)
            except ConnectionRefusedError:
                return False
        for end in (self.broker.daemon.stop, self.broker.daemon.kill) * 2:
            end()
            self.broker.daemon.start(ready=False)
            until(connected, "somebody listens")

    def test_topic_ids_that_are_missing(self):
        """Old versions of Kafka wrote none into their directories: the metadata knows them, and they are written."""
        path = os.path.join(self.partition, "partition.metadata")
        with open(path, "rb") as file:
            good = file.read()
        for left in (None, b"", b"version: 0\n", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"):
            with self.subTest(left=left):
                self.restart(lambda: os.unlink(path) if left is None else self.write(path, left))
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), good)
                by_name, by_id = {"Topic": self.topic}, {"TopicId": self.id}
                for version, which in ((12, by_name), (13, by_id), (12, by_name), (18, by_id)):
                    answer = self.broker.ask("Fetch", version, MaxWaitMs=0, MinBytes=1, MaxBytes=1 << 20, Topics=[{**which, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20}]}])
                    self.assertGreater(len(answer["Responses"][0]["Partitions"][0]["Records"]), 900)
                self.assertEqual(self.broker.ask("Metadata", 12, Topics=[{"Name": self.topic}])["Topics"][0]["TopicId"], self.id)
        self.all_there()

    def test_dynamic_configs_stay(self):
        answer = self.broker.ask("IncrementalAlterConfigs", 1, Resources=[
            {"ResourceType": 2, "ResourceName": self.topic, "Configs": [{"Name": "retention.ms", "ConfigOperation": 0, "Value": "123456789"}]},
            {"ResourceType": 4, "ResourceName": "", "Configs": [{"Name": "log.cleaner.backoff.ms", "ConfigOperation": 0, "Value": "12345"}]}])
        self.assertEqual([r["ErrorCode"] for r in answer["Responses"]], [0, 0])
        self.restart(lambda: None, clean=False)
        answer = self.broker.ask("DescribeConfigs", 4, Resources=[{"ResourceType": 2, "ResourceName": self.topic, "ConfigurationKeys": ["retention.ms"]}, {"ResourceType": 4, "ResourceName": "1", "ConfigurationKeys": ["log.cleaner.backoff.ms"]}])
        self.assertEqual([(c["Value"], c["ConfigSource"]) for r in answer["Results"] for c in r["Configs"]], [("123456789", 1), ("12345", 3)])
        self.all_there()

    def test_two_daemons_on_one_directory(self):
        other = Tidemarkd(directory=self.broker.daemon.directory)
        other.admin_socket = other.settings["admin.socket"] = other.admin_socket + "2"
        other.log_path += "2"
        other.start(ready=False)
        self.assertNotEqual(other.process.wait(60), 0)
        self.all_there()

    def test_the_epoch_never_goes_back(self):
        epochs = [self.broker.list_offset(self.topic, -1)[3]]
        for clean in (True, False, True, False):
            self.restart(lambda: None, clean)
            self.broker.produce(self.topic, batch())
            epochs.append(self.broker.list_offset(self.topic, -1)[3])
            self.assertEqual(self.broker.ask("Metadata", 12, Topics=[{"Name": self.topic}])["Topics"][0]["Partitions"][0]["LeaderEpoch"], epochs[-1])
        self.assertEqual(epochs, sorted(epochs))


@unittest.skipIf(os.geteuid() != 0, "a file system is mounted")
class FullDisk(unittest.TestCase):
    def small_disk(self, ext4=False, **settings):
        """(broker, its data directory) on a file system of 64 MiB; an ext4 keeps 5 % of it for root."""
        directory = tempfile.mkdtemp(prefix="tidemark-full-")
        data = os.path.join(directory, "data")
        os.makedirs(data)
        mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", data]
        if ext4:
            image = os.path.join(directory, "image")
            with open(image, "wb") as file:
                file.truncate(64 << 20)
            if not shutil.which("mkfs.ext4") or subprocess.run(["mkfs.ext4", "-q", "-m", "5", image], capture_output=True, check=False).returncode:
                self.skipTest("no ext4 here")
            mount = ["mount", "-o", "loop", image, data]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            self.skipTest("no mounts here")
        self.addCleanup(shutil.rmtree, directory, True)
        self.addCleanup(subprocess.run, ["umount", "-l", data], check=False)
        broker = Broker.__new__(Broker)
        broker.daemon = Tidemarkd(settings, directory=directory)
        broker.daemon.start()
        broker.port, broker._names, broker.prefix = broker.daemon.port, 0, "full"
        self.addCleanup(broker.close)
        return broker, data

    def fill(self, broker, topic, most=200):
        """Batches that were acknowledged before the disk was full."""
        large = batch([(b"k", bytes(500_000))], int(time.time() * 1000))   # young enough for retention
        for acknowledged in range(most):
            answer = broker.produce(topic, large)
            if answer["ErrorCode"]:
                self.assertEqual(answer["ErrorCode"], 56, answer)
                return acknowledged
        return most

    def test_what_expires_makes_room(self):
        """Case B48: killed on a full disk it starts, serves fetches, deletes what is expired and takes appends again, all by itself;
        a cleaning that needs room for a copy waits until then, and says so."""
        broker, _ = self.small_disk(**{"log.retention.check.interval.ms": 500, "log.cleaner.backoff.ms": 500, "log.initial.task.delay.ms": 0})
        compacted, _ = broker.topic(cleanup_policy="compact", segment_bytes=5 << 20, min_cleanable_dirty_ratio=1)
        self.assertEqual(self.fill(broker, compacted, 45), 45)
        topic, _ = broker.topic(segment_bytes=1 << 20, file_delete_delay_ms=100)
        self.assertGreater(self.fill(broker, topic), 10)
        broker.daemon.kill()
        broker.daemon.start()
        self.assertLess(self.fill(broker, topic), 10)   # what the kill left to itself, the reserve perhaps
        for name in topic, compacted:
            self.assertGreater(len(broker.fetch(name, 0)["Records"]), 500_000)
        available = next(v for k, v in broker.daemon.metrics().items() if k.startswith("tidemark_log_directory_available_bytes"))
        self.assertLess(available, 2 << 20)

        def alter(name, key, value):
            answer = broker.ask("IncrementalAlterConfigs", 1, Resources=[{"ResourceType": 2, "ResourceName": name, "Configs": [{"Name": key, "ConfigOperation": 0, "Value": value}]}])
            self.assertEqual(answer["Responses"][0]["ErrorCode"], 0, answer)

        alter(compacted, "min.cleanable.dirty.ratio", "0")
        until(lambda: "not cleaned, for lack of room" in broker.daemon.log(), "the cleaner says that it has no room", 60)
        before = broker.list_offset(topic, -1)[2]
        alter(topic, "retention.ms", "1")
        until(lambda: broker.list_offset(topic, -2)[2] == before, "what has expired goes", 60)
        until(lambda: self.fill(broker, compacted, 10) == 10, "appends resume", 60)
        self.assertEqual(broker.daemon.stop(), 0)

    def test_a_full_disk_refuses_appends_and_heals(self):
        """Case B48, D12: fetches go on; after room is made, appends do too."""
        broker, data = self.small_disk()
        topic, _ = broker.topic()
        acknowledged = self.fill(broker, topic)
        self.assertGreater(acknowledged, 20)
        self.assertEqual(broker.list_offset(topic, -1)[2], acknowledged)
        fetched = broker.fetch(topic, 0)
        self.assertGreater(len(fetched["Records"]), 500_000, fetched)
        self.assertEqual(broker.ask("Metadata", 12, Topics=[{"Name": topic}])["Topics"][0]["ErrorCode"], 0)
        broker.daemon.kill()   # and a start on the full disk
        broker.daemon.start()
        self.assertEqual(broker.list_offset(topic, -1)[2], acknowledged)
        fetched = broker.fetch(topic, 0)
        self.assertGreater(len(fetched["Records"]), 500_000, fetched)
        self.assertEqual(subprocess.run(["mount", "-o", "remount,size=128m", data], check=False).returncode, 0)
        until(lambda: broker.produce(topic, batch(timestamp=int(time.time() * 1000)))["ErrorCode"] == 0, "appends resume", 60)
        self.assertEqual(broker.daemon.stop(), 0)

    def test_offsets_are_committed_where_root_alone_has_room(self):
        """D12: what the reserve left is there for a daemon that runs as root, though nobody else could write."""
        broker, data = self.small_disk(ext4=True, **{"offsets.topic.num.partitions": 1})
        topic, _ = broker.topic()
        self.assertGreater(self.fill(broker, topic), 20)
        self.assertEqual(os.statvfs(data).f_bavail, 0)
        smaller = batch([(b"k", bytes(50_000))], int(time.time() * 1000))
        until(lambda: broker.produce(topic, smaller)["ErrorCode"] == 56, "producers have got what is theirs")

        def commit():
            self.assertIn(broker.ask("FindCoordinator", 4, CoordinatorKeys=["g"])["Coordinators"][0]["ErrorCode"], (0, 15))
            answer = broker.ask("OffsetCommit", 8, GroupId="g", Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 7, "CommittedMetadata": ""}]}])
            return answer["Topics"][0]["Partitions"][0]["ErrorCode"] == 0

        until(commit, "the offset is committed")
        self.assertEqual(broker.produce(topic, smaller)["ErrorCode"], 56)
        self.assertEqual(broker.daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
