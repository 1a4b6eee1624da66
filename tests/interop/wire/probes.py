"""Requests whose answers Apache Kafka 4.4 and tidemarkd must agree about.

Each probe is a generator over a broker; it yields (label, answer). recorded.json holds what Kafka answered;
`answers_test.py --record PORT` writes it anew from a broker at that port.
"""

import gzip
import struct
import time

from messages import ZERO_ID, batch

PROBES = {}
UNKNOWN_ID = bytes(range(1, 17))
NOW = int(time.time() * 1000)


def probe(function):
    PROBES[function.__name__] = function
    return function


def without(value, *names):
    """Leaves out fields that differ from one broker to the next."""
    if isinstance(value, list):
        return [without(v, *names) for v in value]
    if isinstance(value, dict):
        return {k: without(v, *names) for k, v in value.items() if k not in names}
    return value


def by_name(answer, list_, name="Name"):
    """Where the order says nothing."""
    return {**answer, list_: sorted((e for e in answer[list_] if e.get(name) not in OUR_CONFIGS), key=lambda e: (e.get(name) or "", repr(e)))}


OUR_CONFIGS = {"log.retention.mintimestamp", "log.retention.mintimestamp.fallback"}


def own_configs_left_out(answer):
    """An answer to CreateTopics without the configs that Kafka has not."""
    topics = [{**t, "Configs": [c for c in t["Configs"] if c["Name"] not in OUR_CONFIGS]} if t.get("Configs") else t for t in answer["Topics"]]
    return by_name({**answer, "Topics": topics}, "Topics")


def compressed(codec, records=((b"k", b"v"),), pack=gzip.compress, **values):
    plain = batch(records, **values)
    header, body = bytearray(plain[:61]), pack(plain[61:])
    struct.pack_into(">h", header, 21, codec)
    from kafka_wire import crc32c
    struct.pack_into(">i", header, 8, 49 + len(body))
    struct.pack_into(">I", header, 17, crc32c(bytes(header[21:]) + body))
    return bytes(header) + body


# --- 2 ApiVersions -----------------------------------------------------------------------------------------------------

@probe
def api_versions(b):
    for name, version in (("", "1"), ("a b", "1"), ("-x", "1"), ("x-", "1"), ("x", ""), ("a.b-c", "1.0"), ("x", "1 ")):
        answer = b.ask("ApiVersions", 3, ClientSoftwareName=name, ClientSoftwareVersion=version)
        yield f"software {name!r} {version!r}", (answer["ErrorCode"], bool(answer["ApiKeys"]))
    for cluster, node in ((None, 1), ("x", -1), ("x", 1), ("x", 7), ("", 1)):
        answer = b.ask("ApiVersions", 5, ClientSoftwareName="a", ClientSoftwareVersion="1", ClusterId=cluster, NodeId=node)
        yield f"cluster {cluster} node {node}", (answer["ErrorCode"], bool(answer["ApiKeys"]))
    answer = b.ask("ApiVersions", 0)
    yield "produce", [k for k in answer["ApiKeys"] if k["ApiKey"] == 0]
    served = {k["ApiKey"]: (k["MinVersion"], k["MaxVersion"]) for k in answer["ApiKeys"]}
    yield "ranges", {str(k): served[k] for k in b.served if k in served}
    with b.wire() as wire:
        wire.raw(bytes.fromhex("0000000b" "0012" "0063" "00000007" "0000" "00"))
        yield "version 99", [v.hex() if isinstance(v, bytes) else v for v in wire.receive_raw()]
        yield "and then 0", wire.ask("ApiVersions", 0)["ErrorCode"]


# --- 6 Metadata --------------------------------------------------------------------------------------------------------

@probe
def metadata(b):
    name, id_ = b.topic(2)
    def shown(answer):
        answer = without(answer, "Brokers", "ClusterId", "ControllerId")
        return by_name(answer, "Topics")
    for v in range(14):
        values = {} if v < 4 else {"AllowAutoTopicCreation": False}
        yield f"v{v} named", shown(b.ask("Metadata", v, Topics=[{"Name": name}], **values))
        if v >= 1:
            yield f"v{v} empty", shown(b.ask("Metadata", v, Topics=[], **values))
        everything = b.ask("Metadata", v, Topics=[] if v == 0 else None, **values)
        yield f"v{v} all", name in [t["Name"] for t in everything["Topics"]]
        if v >= 4:
            for bad in ("no-such", "", ".", "..", "a/b", "a b", "x" * 250, "ü", "a\0b", "__cluster_metadata"):
                yield f"v{v} {bad[:20]!r}", shown(b.ask("Metadata", v, Topics=[{"Name": bad}], **values))
        yield f"v{v} twice", shown(b.ask("Metadata", v, Topics=[{"Name": name}, {"Name": name}], **values))
    for v in (10, 11):
        yield f"v{v} id", shown(b.ask("Metadata", v, Topics=[{"TopicId": id_, "Name": name}], AllowAutoTopicCreation=False))
        yield f"v{v} null name", shown(b.ask("Metadata", v, Topics=[{"TopicId": id_, "Name": None}], AllowAutoTopicCreation=False))
    for v in (12, 13):
        yield f"v{v} id", shown(b.ask("Metadata", v, Topics=[{"TopicId": id_, "Name": None}]))
        yield f"v{v} unknown id", shown(b.ask("Metadata", v, Topics=[{"TopicId": UNKNOWN_ID, "Name": None}]))
        yield f"v{v} id and other's name", shown(b.ask("Metadata", v, Topics=[{"TopicId": id_, "Name": None}, {"Name": "no-such"}]))
        yield f"v{v} id with name", shown(b.ask("Metadata", v, Topics=[{"TopicId": id_, "Name": "no-such"}]))
        yield f"v{v} id twice", shown(b.ask("Metadata", v, Topics=[{"TopicId": id_, "Name": None}] * 2))
    for v in (8, 9, 10, 13):
        values = {"IncludeTopicAuthorizedOperations": True, **({"IncludeClusterAuthorizedOperations": True} if v <= 10 else {})}
        yield f"v{v} operations", shown(b.ask("Metadata", v, Topics=[{"Name": name}], **values))


@probe
def auto_create(b):
    for v in (3, 4, 13):
        name = b.name()
        answer = without(b.ask("Metadata", v, Topics=[{"Name": name}], **({"AllowAutoTopicCreation": True} if v >= 4 else {})), "Brokers", "ClusterId")
        yield f"v{v} first", answer["Topics"]
        end = time.monotonic() + 20
        while b.ask("Metadata", 4, Topics=[{"Name": name}], AllowAutoTopicCreation=False)["Topics"][0]["ErrorCode"] and time.monotonic() < end:
            time.sleep(0.01)
        yield f"v{v} later", b.ask("Metadata", 4, Topics=[{"Name": name}], AllowAutoTopicCreation=False)["Topics"]
    name, _ = b.topic()
    yield "colliding", b.ask("Metadata", 4, Topics=[{"Name": name.replace("-", ".")}], AllowAutoTopicCreation=True)["Topics"]
    yield "illegal", b.ask("Metadata", 4, Topics=[{"Name": "a/b"}], AllowAutoTopicCreation=True)["Topics"]


@probe
def describe_topic_partitions(b):
    one, _ = b.topic(3)
    two, _ = b.topic(2)
    def ask(topics, limit=2000, cursor=None):
        return b.ask("DescribeTopicPartitions", 0, Topics=[{"Name": t} for t in topics], ResponsePartitionLimit=limit, Cursor=cursor)
    yield "both", ask([two, one])
    yield "unknown and illegal", ask([one, "no-such", "a/b"])
    for limit in (-1, 0, 1, 2, 3, 4, 5):
        yield f"limit {limit}", ask([two, one], limit)
    yield "cursor", ask([one, two], 2000, {"TopicName": one, "PartitionIndex": 1})
    yield "cursor in second", ask([one, two], 2000, {"TopicName": two, "PartitionIndex": 1})
    yield "cursor beyond", ask([one, two], 2000, {"TopicName": one, "PartitionIndex": 7})
    yield "cursor elsewhere", ask([one, two], 2000, {"TopicName": "zzz", "PartitionIndex": 0})
    yield "cursor negative", ask([one, two], 2000, {"TopicName": one, "PartitionIndex": -1})
    yield "twice", ask([one, one])


@probe
def describe_cluster(b):
    for v in (0, 1, 2):
        yield f"v{v}", without(b.ask("DescribeCluster", v), "Brokers", "ClusterId")
        yield f"v{v} operations", without(b.ask("DescribeCluster", v, IncludeClusterAuthorizedOperations=True), "Brokers", "ClusterId")
    for kind in (0, 2, 3, -1):
        yield f"type {kind}", b.ask("DescribeCluster", 1, EndpointType=kind)
    yield "fenced", len(b.ask("DescribeCluster", 2, IncludeFencedBrokers=True)["Brokers"])


# --- 7 Produce ---------------------------------------------------------------------------------------------------------

@probe
def produce(b):
    name, id_ = b.topic(2)
    good = batch()
    for v in range(3, 13):
        yield f"v{v}", b.produce(name, good, version=v)
    def by_id(id_):
        return b.ask("Produce", 13, Acks=-1, TimeoutMs=1000, TopicData=[{"TopicId": id_, "PartitionData": [{"Index": 0, "Records": good}]}])["Responses"]
    yield "by id", by_id(id_)
    yield "unknown id", by_id(UNKNOWN_ID)
    yield "zero id", by_id(ZERO_ID)
    for acks in (2, -2, 127):
        yield f"acks {acks}", b.produce(name, good, acks=acks)
        yield f"acks {acks} to an unknown topic", b.produce("no-such", good, acks=acks)
        yield f"acks {acks} of garbage", b.produce(name, b"garbage", acks=acks)
        yield f"acks {acks} v3", b.produce(name, good, acks=acks, version=3)
    for topic, partition in (("no-such", 0), ("a/b", 0), ("", 0), (name, 2), (name, -1), (name, 2**31 - 1)):
        yield f"{topic if topic != name else 'topic'} {partition}", b.produce(topic, good, partition)
        yield f"{topic if topic != name else 'topic'} {partition} v3", b.produce(topic, good, partition, version=3)
    yield "no topics", b.ask("Produce", 9, Acks=-1, TimeoutMs=1000, TopicData=[])
    yield "no partitions", b.ask("Produce", 9, Acks=-1, TimeoutMs=1000, TopicData=[{"Name": name, "PartitionData": []}])
    yield "partition twice", b.ask("Produce", 9, Acks=-1, TimeoutMs=1000, TopicData=[
        {"Name": name, "PartitionData": [{"Index": 1, "Records": good}, {"Index": 1, "Records": batch([(b"a", b"b"), (b"c", b"d")])}]}])["Responses"]
    yield "its end", b.list_offset(name, -1, 1)
    two = b.ask("Produce", 9, Acks=-1, TimeoutMs=1000, TopicData=[
        {"Name": name, "PartitionData": [{"Index": 1, "Records": good}, {"Index": 7, "Records": good}]}, {"Name": "no-such", "PartitionData": [{"Index": 0, "Records": good}]}])
    yield "some fail", without([sorted(t["PartitionResponses"], key=lambda p: p["Index"]) for t in sorted(two["Responses"], key=lambda t: t["Name"])])
    yield "timeout 0", b.ask("Produce", 9, Acks=-1, TimeoutMs=0, TopicData=[{"Name": name, "PartitionData": [{"Index": 0, "Records": good}]}])["Responses"][0]["PartitionResponses"][0]["ErrorCode"]
    yield "timeout -5", b.ask("Produce", 9, Acks=-1, TimeoutMs=-5, TopicData=[{"Name": name, "PartitionData": [{"Index": 0, "Records": good}]}])["Responses"][0]["PartitionResponses"][0]["ErrorCode"]
    yield "txn id, plain batch", b.produce(name, good, TransactionalId="t")
    yield "transactional without id", b.produce(name, batch(attributes=0x10, producer=(1, 0, 0)))


@probe
def produce_bad_batches(b):
    name, _ = b.topic()
    good = batch()
    cut = lambda n: good[:n]
    cases = {
        "empty": b"", "1 byte": b"\0", "11 bytes": cut(11), "12 bytes": cut(12), "16 bytes": cut(16), "17 bytes": cut(17), "60 bytes": cut(60),
        "one short": good[:-1], "two": good + good, "tail": good + b"\0", "tail of 12": good + good[:12], "tail of 30": good + good[:30],
        "magic 0": batch(magic=0), "magic 1": batch(magic=1), "magic 3": batch(magic=3), "magic -1": batch(magic=-1),
        "crc": batch(crc=1), "base 1": batch(base=1), "base -1": batch(base=-1), "count 2": batch(count=2), "count 0": batch(count=0), "count -1": batch(count=-1),
        "no records": batch([]), "last delta 5": batch(last_delta=5), "last delta -1": batch(last_delta=-1),
        "control": batch(attributes=0x20), "id without sequence": batch(producer=(5, 0, -1)), "sequence without id": batch(producer=(-1, -1, 5)),
        "id without epoch": batch(producer=(5, -1, 0)), "negative id": batch(producer=(-7, 0, 0)),
        "codec 5": batch(attributes=5), "codec 6": batch(attributes=6), "codec 7": batch(attributes=7),
        "gzip of nothing": batch(attributes=1), "snappy of nothing": batch(attributes=2), "lz4 of nothing": batch(attributes=3), "zstd of nothing": batch(attributes=4),
        "unused attributes": batch(attributes=0x7F80 & ~0x40), "horizon bit": batch(attributes=0x40), "time type bit": batch(attributes=8),
        "gzip": compressed(1), "gzip, count 2": compressed(1, count=2, last_delta=1), "gzip cut": compressed(1, pack=lambda d: gzip.compress(d)[:-9]),
        "gzip with a tail": compressed(1, pack=lambda d: gzip.compress(d + b"tail")),
    }
    short = bytearray(good)
    struct.pack_into(">i", short, 8, 13)
    cases["length 13"] = bytes(short)
    for n in (0, -1, 48, 2**31 - 1, -2**31):
        struct.pack_into(">i", short, 8, n)
        cases[f"length {n}"] = bytes(short)
    for label, data in cases.items():
        yield label, b.produce(name, data)
        yield label + " v3", b.produce(name, data, version=3)["ErrorCode"]
    # Records that lie about their own lengths.
    def record(body, **values):
        whole = bytearray(batch([], **values)[:61]) + body
        struct.pack_into(">i", whole, 8, len(whole) - 12)
        struct.pack_into(">i", whole, 23, 0)
        struct.pack_into(">i", whole, 57, 1)
        from kafka_wire import crc32c
        struct.pack_into(">I", whole, 17, crc32c(bytes(whole[21:])))
        return bytes(whole)
    good_record = good[61:]
    for label, body in {"good": good_record, "with a tail": good_record + b"\0", "cut": good_record[:-1], "length 0": b"\0" + good_record[1:], "length -1": b"\1" + good_record[1:],
                        "length huge": b"\xfe\xff\xff\xff\x0f" + good_record[1:], "ten byte varint": b"\xff" * 10 + good_record, "delta offset 1": good_record[:3] + b"\2" + good_record[4:],
                        "delta offset -1": good_record[:3] + b"\1" + good_record[4:], "key length huge": good_record[:4] + b"\xfe\xff\xff\xff\x0f" + good_record[5:],
                        "key length -2": good_record[:4] + b"\3" + good_record[5:], "headers -1": good_record[:-1] + b"\1", "headers 1 without": good_record[:-1] + b"\2",
                        "headers many": good_record[:-1] + b"\x7e", "empty": b""}.items():
        yield "record " + label, b.produce(name, record(body))
    yield "end", b.list_offset(name, -1)


@probe
def produce_configs(b):
    compact, _ = b.topic(cleanup_policy="compact")
    yield "null key", b.produce(compact, batch([(None, b"v")]))
    yield "null key v7", b.produce(compact, batch([(None, b"v")]), version=7)
    yield "mixed", b.produce(compact, batch([(b"k", b"v"), (None, b"v"), (None, b"w"), (None, b"x"), (None, b"x")]))
    yield "empty key", b.produce(compact, batch([(b"", b"v")]))
    yield "end", b.list_offset(compact, -1)
    small, _ = b.topic(max_message_bytes=100)
    yield "large", b.produce(small, batch([(b"k", bytes(200))]))
    yield "just right", b.produce(small, batch([(b"k", bytes(100 - 70))]))
    yield "one more", b.produce(small, batch([(b"k", bytes(101 - 69))]))
    tiny, _ = b.topic(segment_bytes=1048576, max_message_bytes=10000000)
    yield "larger than a segment", b.produce(tiny, batch([(b"k", bytes(1100000))]))
    now = int(time.time() * 1000)
    times, _ = b.topic(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=3600000)
    yield "old", without(b.produce(times, batch(timestamp=5)), "RecordErrors")
    yield "future", without(b.produce(times, batch(timestamp=now + 7200000)), "RecordErrors")
    yield "now", b.produce(times, batch(timestamp=now))
    default, _ = b.topic()
    yield "far future", without(b.produce(default, batch(timestamp=now + 2 * 3600000)), "RecordErrors")
    yield "time 0", b.produce(default, batch(timestamp=0))
    yield "time -1", b.produce(default, batch(timestamp=-1))
    yield "time -2", b.produce(default, batch(timestamp=-2))
    yield "max time a lie", b.produce(default, batch(timestamps=[1000, 5000, 3000], records=[(b"k", b"v")] * 3, max_timestamp=999999))
    yield "stored", struct.unpack_from(">q", b.fetch(default, 2)["Records"], 35) if len(b.fetch(default, 2)["Records"]) > 61 else None
    append, _ = b.topic(message_timestamp_type="LogAppendTime")
    yield "append time", b.produce(append, batch())["LogAppendTimeMs"] > now - 60000
    recompress, _ = b.topic(compression_type="gzip")
    yield "recompress", b.produce(recompress, batch())
    yield "stored codec", b.fetch(recompress, 0)["Records"][22] & 7
    for topic in ("__consumer_offsets", "__transaction_state", "__cluster_metadata"):
        yield topic, b.produce(topic, batch())["ErrorCode"] in (3, 17)


@probe
def idempotence(b):
    name, _ = b.topic()
    pid = b.ask("InitProducerId", 4, TransactionalId=None, TransactionTimeoutMs=1000, ProducerId=-1, ProducerEpoch=-1)
    yield "init", without(pid, "ProducerId")
    p = pid["ProducerId"]
    send = lambda epoch, sequence, n=1, timestamp=NOW: b.produce(name, batch([(b"k", b"v")] * n, timestamp, producer=(p, epoch, sequence)))
    yield "unknown id starts at 7", send(0, 7)
    yield "gap", send(0, 9)
    yield "next", send(0, 8)
    for s in range(9, 15):
        yield f"sequence {s}", send(0, s)
    yield "duplicate", without(send(0, 12), "LogAppendTimeMs")
    yield "too old a duplicate", send(0, 7)
    yield "duplicate of another size", send(0, 12, 2)
    yield "epoch 1 at 3", send(1, 3)
    yield "epoch 1 at 0", send(1, 0)
    yield "lower epoch", send(0, 15)
    yield "epoch 1 at 1", send(1, 1)
    q = p + 500
    wrap = lambda s, n=1: b.produce(name, batch([(b"k", b"v")] * n, producer=(q, 0, s)))
    yield "near the end", wrap(2**31 - 2, 3)
    yield "wrapped", wrap(1)
    yield "wrapped wrong", wrap(5)
    for v in range(7):
        values = {} if v < 3 else {"ProducerId": -1, "ProducerEpoch": -1}
        if v == 6:
            continue
        yield f"init v{v}", without(b.ask("InitProducerId", v, TransactionalId=None, TransactionTimeoutMs=1000, **values), "ProducerId")
    for id_, epoch in ((5, -1), (-1, 5), (5, 5)):
        yield f"init with {id_} {epoch}", without(b.ask("InitProducerId", 4, TransactionalId=None, TransactionTimeoutMs=1000, ProducerId=id_, ProducerEpoch=epoch), "ProducerId")
    yield "init with an empty id", b.ask("InitProducerId", 4, TransactionalId="", TransactionTimeoutMs=1000, ProducerId=-1, ProducerEpoch=-1)
    described = b.ask("DescribeProducers", 0, Topics=[{"Name": name, "PartitionIndexes": [0, 4, -1]}, {"Name": "no-such", "PartitionIndexes": [0]}, {"Name": "a/b", "PartitionIndexes": [0]}])
    for topic in described["Topics"]:
        for partition in topic["Partitions"]:
            partition["ActiveProducers"].sort(key=lambda a: a["ProducerId"])
    yield "producers", without(by_name(described, "Topics"), "ProducerId", "LastTimestamp")
    yield "no producers", b.ask("DescribeProducers", 0, Topics=[])


# --- 8 Fetch -----------------------------------------------------------------------------------------------------------

def fetched(part):
    return {**part, "Records": None if part["Records"] is None else len(part["Records"])}


def fetch_topics(answer):
    """The partitions by themselves: in which order and under how many headings they come says nothing."""
    partitions = [{**{k: t[k] for k in ("Topic", "TopicId") if k in t}, **fetched(p)} for t in answer["Responses"] for p in t["Partitions"]]
    return {**without(answer, "Responses"), "Partitions": sorted(partitions, key=lambda p: (p.get("Topic", ""), p.get("TopicId", b"") == UNKNOWN_ID, p["PartitionIndex"]))}


@probe
def fetch(b):
    name, id_ = b.topic(2)
    for _ in range(3):
        b.produce(name, batch([(b"k", b"v")] * 3))
    for v in range(4, 13):
        yield f"v{v}", fetched(b.fetch(name, 0, version=v))
    def by_id(id_, v, partition=0, offset=0, **more):
        return fetch_topics(b.ask("Fetch", v, MaxWaitMs=0, MinBytes=1, MaxBytes=1 << 20, Topics=[{"TopicId": id_, "Partitions": [{"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1000, **more}]}]))
    for v in range(13, 19):
        yield f"v{v}", by_id(id_, v)
        yield f"v{v} unknown id", by_id(UNKNOWN_ID, v)
        yield f"v{v} zero id", by_id(ZERO_ID, v)
        yield f"v{v} partition 9", by_id(id_, v, 9)
        yield f"v{v} old epoch", without(by_id(id_, v, CurrentLeaderEpoch=-1), "x")
    for v in (4, 11, 12):
        for offset in (-1, -2, 9, 10, 2**63 - 1, -2**63, 4):
            for isolation in (0, 1):
                yield f"v{v} at {offset} isolation {isolation}", fetched(b.fetch(name, offset, version=v, IsolationLevel=isolation))
        yield f"v{v} no-such", fetched(b.fetch("no-such", 0, version=v))
        yield f"v{v} illegal", fetched(b.fetch("a/b", 0, version=v))
        yield f"v{v} partition -1", fetched(b.fetch(name, 0, partition=-1, version=v))
        yield f"v{v} isolation 1", fetched(b.fetch(name, 0, version=v, IsolationLevel=1))
        yield f"v{v} replica 7", fetched(b.fetch(name, 0, version=v, ReplicaId=7))
        yield f"v{v} replica -2", fetched(b.fetch(name, 0, version=v, ReplicaId=-2))
    for isolation in (2, -1, 127):
        for v in (4, 12):
            yield f"v{v} isolation {isolation}", fetch_topics(b.ask("Fetch", v, MaxWaitMs=0, MinBytes=1, MaxBytes=1000, IsolationLevel=isolation, Topics=[{"Topic": name, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]}]))
    for epoch in (-1, 0, 1, 100, -2):
        yield f"leader epoch {epoch}", fetched(b.fetch(name, 0, partition_CurrentLeaderEpoch=epoch))
        yield f"leader epoch {epoch} out of range", fetched(b.fetch(name, 100, partition_CurrentLeaderEpoch=epoch))
    for epoch in (-1, 0, 1, 5, -2):
        for offset in (0, 4, 9, 10, 100, -1):
            yield f"last epoch {epoch} at {offset}", fetched(b.fetch(name, offset, partition_LastFetchedEpoch=epoch))
    yield "last epoch on an empty log", fetched(b.fetch(name, 0, partition=1, partition_LastFetchedEpoch=0))
    yield "no topics", fetch_topics(b.ask("Fetch", 12, MaxWaitMs=0, MinBytes=1, MaxBytes=1000, Topics=[]))
    yield "no partitions", fetch_topics(b.ask("Fetch", 12, MaxWaitMs=0, MinBytes=1, MaxBytes=1000, Topics=[{"Topic": name, "Partitions": []}]))
    yield "partition twice", fetch_topics(b.ask("Fetch", 12, MaxWaitMs=0, MinBytes=1, MaxBytes=1000, Topics=[{"Topic": name, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}, {"Partition": 0, "FetchOffset": 3, "PartitionMaxBytes": 1000}]}]))
    yield "partition twice v4", fetch_topics(b.ask("Fetch", 4, MaxWaitMs=0, MinBytes=1, MaxBytes=1000, Topics=[{"Topic": name, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}, {"Partition": 0, "FetchOffset": 3, "PartitionMaxBytes": 1000}]}]))
    yield "unsorted", fetch_topics(b.ask("Fetch", 12, MaxWaitMs=0, MinBytes=1, MaxBytes=1000, Topics=[
        {"Topic": name, "Partitions": [{"Partition": 1, "FetchOffset": 0, "PartitionMaxBytes": 1000}]}, {"Topic": "no-such", "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]},
        {"Topic": name, "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]}]))


@probe
def fetch_sizes(b):
    name, _ = b.topic(4)
    size = len(batch([(b"k", bytes(1000))]))
    yield "size", size
    for partition, n in ((0, 3), (1, 0), (2, 3), (3, 1)):
        for _ in range(n):
            b.produce(name, batch([(b"k", bytes(1000))]), partition)
    def ask(parts, v=12, **values):
        values = {"MaxWaitMs": 0, "MinBytes": 1, "MaxBytes": 1 << 20, **values}
        answer = b.ask("Fetch", v, Topics=[{"Topic": name, "Partitions": [{"Partition": p, "FetchOffset": o, "PartitionMaxBytes": m} for p, o, m in parts]}], **values)
        return sorted((p["PartitionIndex"], p["ErrorCode"], len(p["Records"])) for t in answer["Responses"] for p in t["Partitions"])
    for limit in (-1, 0, 1, size - 1, size, size + 1, 2 * size, 2 * size + 7, 3 * size, 1 << 20, 2**31 - 1, -2**31):
        yield f"partition limit {limit}", ask([(0, 0, limit)])
        yield f"request limit {limit}", ask([(0, 0, 1 << 20)], MaxBytes=limit)
        yield f"partition limits {limit}", ask([(1, 0, limit), (0, 0, limit), (2, 0, limit), (3, 0, limit)])
        yield f"request limit {limit} of all", ask([(1, 0, 1 << 20), (0, 1, 1 << 20), (2, 0, 1 << 20), (3, 0, 1 << 20)], MaxBytes=limit)
    yield "error first", ask([(9, 0, 1), (0, 77, 1), (2, 0, 1), (3, 0, 1)])
    yield "same partition many times", ask([(0, 0, 1)] * 5)
    for wait, least in ((0, 1), (100, 0), (100, -5), (100, 1), (100, 10**6), (-1, 10**6), (1, 10**6)):
        yield f"wait {wait} for {least}", ask([(0, 0, 1 << 20)], MaxWaitMs=wait, MinBytes=least)
        yield f"wait {wait} for {least} at the end", ask([(1, 0, 1 << 20)], MaxWaitMs=wait, MinBytes=least)


@probe
def fetch_waits(b):
    """How long an answer takes: at once, or the whole wait of 700 ms."""
    name, id_ = b.topic(3)
    b.produce(name, batch())
    def took(parts, v=12, topic=name, **values):
        values = {"MaxWaitMs": 700, "MinBytes": 1, "MaxBytes": 1 << 20, **values}
        with b.wire() as wire:
            start = time.monotonic()
            wire.ask("Fetch", v, Topics=[{"Topic": topic, "Partitions": [{"Partition": p, "FetchOffset": o, "PartitionMaxBytes": 1 << 20, **m} for p, o, m in parts]}] if parts is not None else [], **values)
            return "waits" if time.monotonic() - start > 0.5 else "at once"
    yield "data", took([(0, 0, {})])
    yield "end", took([(0, 1, {})])
    yield "too little", took([(0, 0, {})], MinBytes=10**6)
    yield "least more than the limit", took([(0, 0, {})], MinBytes=10**6, MaxBytes=10)
    yield "least 0", took([(1, 0, {})], MinBytes=0)
    yield "least -1", took([(1, 0, {})], MinBytes=-1)
    yield "limit 0", took([(1, 0, {})], MaxBytes=0)
    yield "out of range", took([(1, 0, {}), (0, 99, {})])
    yield "unknown partition only", took([(9, 0, {})])
    yield "unknown partition too", took([(9, 0, {}), (1, 0, {})])
    yield "unknown topic", took([(0, 0, {})], topic="no-such")
    yield "epoch", took([(1, 0, {}), (0, 0, {"CurrentLeaderEpoch": 7})])
    yield "diverging", took([(0, 5, {"LastFetchedEpoch": 0})])
    yield "nothing", took(None)
    yield "bad isolation", took([(1, 0, {})], IsolationLevel=3)


@probe
def fetch_sessions(b):
    name, id_ = b.topic(3)
    other, other_id = b.topic(1)
    part = lambda p, o=0, **m: {"Partition": p, "FetchOffset": o, "PartitionMaxBytes": 1 << 20, **m}
    ids = {}
    def ask(session, epoch, topics, v=12, forgotten=(), **values):
        values = {"MaxWaitMs": 0, "MinBytes": 1, "MaxBytes": 1 << 20, **values}
        answer = b.ask("Fetch", v, SessionId=ids.get(session, session), SessionEpoch=epoch, Topics=topics, ForgottenTopicsData=list(forgotten), **values)
        real = answer["SessionId"]
        if real and real not in ids.values():
            ids[f"S{len(ids)}"] = real
        answer["SessionId"] = next((k for k, i in ids.items() if i == real), 0)
        return fetch_topics(answer)
    yield "full, no session", ask(0, -1, [{"Topic": name, "Partitions": [part(0)]}])
    yield "create", ask(0, 0, [{"Topic": name, "Partitions": [part(0), part(1), part(2)]}, {"Topic": "no-such", "Partitions": [part(0)]}])
    yield "nothing new", ask("S0", 1, [])
    b.produce(name, batch(), 1)
    yield "records", ask("S0", 2, [])
    yield "records again", ask("S0", 3, [])
    yield "moved on", ask("S0", 4, [{"Topic": name, "Partitions": [part(1, 1)]}])
    yield "moved on, nothing", ask("S0", 5, [])
    yield "wrong epoch", ask("S0", 5, [])
    yield "wrong epoch, higher", ask("S0", 9, [])
    yield "still alive", ask("S0", 6, [])
    yield "v13 on a session of names", ask("S0", 7, [], v=13)
    yield "after that", ask("S0", 7, [])
    yield "out of range in a session", ask("S0", 8, [{"Topic": name, "Partitions": [part(2, 50)]}])
    yield "out of range again", ask("S0", 9, [])
    b.produce(name, batch(), 0)
    b.produce(name, batch(), 1)
    yield "two with records", ask("S0", 10, [])
    b.produce(name, batch(), 1)
    yield "order", ask("S0", 11, [])
    yield "forget", ask("S0", 12, [], forgotten=[{"Topic": name, "Partitions": [0, 2]}, {"Topic": "no-such", "Partitions": [0]}])
    yield "forget what is not there", ask("S0", 13, [{"Topic": name, "Partitions": [part(1, 3)]}], forgotten=[{"Topic": "other", "Partitions": [0]}])
    yield "forget the last", ask("S0", 14, [], forgotten=[{"Topic": name, "Partitions": [1]}])
    yield "gone", ask("S0", 15, [])
    yield "unknown", ask(12345, 1, [])
    yield "zero", ask(0, 1, [])
    yield "unknown, full", ask(12345, 0, [{"Topic": name, "Partitions": [part(0)]}])
    yield "again on itself", ask("S1", 0, [{"Topic": name, "Partitions": [part(1)]}])
    yield "the old one", ask("S1", 1, [])
    yield "close", ask("S2", -1, [{"Topic": name, "Partitions": [part(1)]}])
    yield "closed", ask("S2", 1, [])
    yield "create of nothing", ask(0, 0, [])
    yield "negative epoch", ask(0, -2, [{"Topic": name, "Partitions": [part(0)]}])
    ids_topics = [{"TopicId": id_, "Partitions": [part(0), part(1)]}, {"TopicId": UNKNOWN_ID, "Partitions": [part(0)]}]
    yield "create by id", ask(0, 0, ids_topics, v=13)
    last = sorted(ids)[-1]
    yield "by id, nothing new", ask(last, 1, [], v=13)
    yield "by id, v12", ask(last, 2, [], v=12)
    yield "by id, after", ask(last, 2, [], v=13)
    yield "close with no partitions", ask(last, -1, [], v=13)
    yield "closed by id", ask(last, 3, [], v=13)
    for e in (2**31 - 1, -2**31):
        yield f"epoch {e}", ask(0, e, [{"Topic": name, "Partitions": [part(0)]}])
    yield "other topic deleted", ask(0, 0, [{"TopicId": other_id, "Partitions": [part(0)]}], v=13)
    last = sorted(ids)[-1]
    b.ask("DeleteTopics", 6, Topics=[{"Name": other, "TopicId": ZERO_ID}], TimeoutMs=10000)
    time.sleep(0.5)
    yield "after its deletion", ask(last, 1, [], v=13)
    yield "after its deletion again", ask(last, 2, [], v=13)


# --- 9 ListOffsets, epochs ---------------------------------------------------------------------------------------------

def in_one(topics):
    return [p for t in topics for p in t["Partitions"]]


@probe
def list_offsets(b):
    name, _ = b.topic(2)
    b.produce(name, batch([(b"k", b"v")] * 3, timestamps=[100, 200, 300]))
    b.produce(name, batch([(b"k", b"v")] * 2, timestamps=[250, 400]))
    b.produce(name, compressed(1, [(b"k", b"v")] * 3, timestamps=[500, 900, 900]))
    for v in range(1, 12):
        for t in (-1, -2, -3, -4, -5, -6, -7, -100, -2**63, 0, 100, 150, 200, 201, 300, 301, 400, 401, 500, 501, 900, 901, 2**63 - 1):
            yield f"v{v} {t}", b.list_offset(name, t, version=v) if v >= 4 else b.ask("ListOffsets", v, ReplicaId=-1, IsolationLevel=0, Topics=[{"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": t}]}])["Topics"]
    for t in (-1, -2, -3, -4, -5, -6, 0, 5):
        yield f"empty {t}", b.list_offset(name, t, 1, version=11)
    for v in (1, 4, 11):
        for topic, partition in (("no-such", 0), ("a/b", 0), (name, 5), (name, -1)):
            yield f"v{v} {topic if topic != name else 'topic'} {partition}", b.ask("ListOffsets", v, ReplicaId=-1, Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": partition, "Timestamp": -1}]}])["Topics"]
    for epoch in (-2, -1, 0, 1, 50):
        yield f"epoch {epoch}", b.list_offset(name, -1, epoch=epoch)
    yield "twice", b.ask("ListOffsets", 7, ReplicaId=-1, Topics=[{"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}, {"PartitionIndex": 0, "Timestamp": -2}]}])["Topics"]
    yield "topic twice", in_one(b.ask("ListOffsets", 7, ReplicaId=-1, Topics=[{"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}, {"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": -2}]}])["Topics"])
    yield "nothing", b.ask("ListOffsets", 7, ReplicaId=-1, Topics=[])
    yield "isolation 1", b.list_offset(name, -1, isolation=1)
    yield "isolation 5", b.list_offset(name, -1, isolation=5)
    yield "isolation -1", b.list_offset(name, -1, isolation=-1)
    for v in (2, 3, 4):
        for epoch in (-1, 0, 1, -2, 100):
            for current in (-1, 0, 3, -2):
                yield f"end of {epoch} v{v} current {current}", b.ask("OffsetForLeaderEpoch", v, **({"ReplicaId": -1} if v >= 3 else {}), Topics=[{"Topic": name, "Partitions": [{"Partition": 0, "LeaderEpoch": epoch, "CurrentLeaderEpoch": current}]}])["Topics"]
        yield f"end in an empty log v{v}", b.ask("OffsetForLeaderEpoch", v, Topics=[{"Topic": name, "Partitions": [{"Partition": 1, "LeaderEpoch": 0, "CurrentLeaderEpoch": -1}]}])["Topics"]
        for topic, partition in (("no-such", 0), ("a/b", 0), (name, 9)):
            yield f"end of {topic if topic != name else 'topic'} {partition} v{v}", b.ask("OffsetForLeaderEpoch", v, Topics=[{"Topic": topic, "Partitions": [{"Partition": partition, "LeaderEpoch": 0, "CurrentLeaderEpoch": -1}]}])["Topics"]


# --- 10 topic administration -------------------------------------------------------------------------------------------

@probe
def create_topics(b):
    def ask(topics, v=7, validate=False, **values):
        return own_configs_left_out(b.ask("CreateTopics", v, Topics=topics, validateOnly=validate, **{"timeoutMs": 30000, **values}))
    short = lambda a: [{**t, "Configs": len(t["Configs"]) if t.get("Configs") else t.get("Configs")} for t in a["Topics"]]
    topic = lambda name=None, n=1, r=1, a=(), **c: {"Name": b.name() if name is None else name, "NumPartitions": n, "ReplicationFactor": r,
                                                    "Assignments": [{"PartitionIndex": i, "BrokerIds": list(x)} for i, x in a], "Configs": [{"Name": k.replace("_", "."), "Value": v} for k, v in c.items()]}
    for v in range(2, 8):
        yield f"v{v}", short(ask([topic()], v))
        yield f"v{v} defaults", short(ask([topic(n=-1, r=-1)], v))
    yield "configs", ask([topic(retention_ms="5000", cleanup_policy="compact,delete")])
    for n in (0, -2, -2**31, 10001):
        yield f"partitions {n}", short(ask([topic(n=n)]))
    for r in (0, -2, 2, 32767, -32768):
        yield f"replicas {r}", short(ask([topic(r=r)]))
    yield "partitions 0, replicas 0", short(ask([topic(n=0, r=0)]))
    for name in ("", ".", "..", "a/b", "../x", "x" * 250, "a b", "ü", "a\0b", "a:b", "\n", "__cluster_metadata"):
        yield f"name {name[:9]!r}", short(ask([topic(name)]))
    name = b.name()
    yield "249 characters", short(ask([topic((name + "y" * 249)[:249])]))
    yield "249 deleted", b.ask("DeleteTopics", 6, Topics=[{"Name": (name + "y" * 249)[:249], "TopicId": ZERO_ID}], TimeoutMs=10000)["Responses"]
    yield "twice", short(ask([topic(name), topic(name)]))
    yield "thrice and another", short(ask([topic(name), topic(name), topic(), topic(name)]))
    yield "once", short(ask([topic(name)]))
    yield "exists", short(ask([topic(name)]))
    yield "exists, bad partitions", short(ask([topic(name, n=0)]))
    yield "exists, bad config", short(ask([topic(name, nonsense="1")]))
    yield "collides", short(ask([topic(name.replace("-", "."))])) + short(ask([topic(name.replace("-", "_"))]))
    pair = b.name()
    yield "collide with each other", sorted(t["ErrorCode"] for t in ask([topic(pair + ".a"), topic(pair + "_a")])["Topics"])
    yield "count with assignment", short(ask([topic(n=1, r=-1, a=[(0, [1])])])) + short(ask([topic(n=-1, r=1, a=[(0, [1])])]))
    for label, a in {"good": [(0, [1]), (1, [1])], "gap": [(0, [1]), (2, [1])], "from 1": [(1, [1])], "negative": [(-1, [1])], "twice": [(0, [1]), (0, [1])], "no brokers": [(0, [])],
                     "broker twice": [(0, [1, 1])], "unknown broker": [(0, [9])], "broker -1": [(0, [-1])], "lengths": [(0, [1]), (1, [1, 9])]}.items():
        yield f"assignment {label}", short(ask([topic(n=-1, r=-1, a=a)]))
    for key, value in (("nonsense", "1"), ("retention.ms", "x"), ("retention.ms", "-2"), ("retention.ms", None), ("cleanup.policy", "bogus"), ("cleanup.policy", ""), ("segment.bytes", "13"), ("segment.bytes", "2147483648"),
                       ("min.insync.replicas", "0"), ("compression.type", "brotli"), ("preallocate", "yes"), ("retention.ms", " 5 "), ("cleanup.policy", "compact,compact"), ("unclean.leader.election.enable", "TRUE"),
                       ("min.cleanable.dirty.ratio", "1.5"), ("min.cleanable.dirty.ratio", "NaN"), ("max.message.bytes", "-1"), ("", "x"), ("segment.ms", "0"), ("message.timestamp.type", "createtime"),
                       ("remote.storage.enable", "true"), ("message.format.version", "3.0"), ("compression.gzip.level", "0"), ("compression.gzip.level", "-1"), ("compression.zstd.level", "23"), ("compression.lz4.level", "18"),
                       ("index.interval.bytes", "-1"), ("file.delete.delay.ms", "-1"), ("delete.retention.ms", "-1"), ("flush.messages", "0"), ("retention.bytes", "-2"), ("max.compaction.lag.ms", "0"),
                       ("leader.replication.throttled.replicas", "x"), ("leader.replication.throttled.replicas", "*"), ("message.timestamp.before.max.ms", "-1"), ("local.retention.ms", "-3"), ("cleanup.policy", "delete, compact"),
                       ("segment.index.bytes", "3"), ("segment.jitter.ms", "-1"), ("min.compaction.lag.ms", "-1")):
        t = topic()
        t["Configs"] = [{"Name": key, "Value": value}]
        yield f"config {key}={value}", short(ask([t]))
    yield "lags contradict", short(ask([topic(min_compaction_lag_ms="100", max_compaction_lag_ms="50")]))
    t = topic()
    t["Configs"] = [{"Name": "retention.ms", "Value": "1"}, {"Name": "retention.ms", "Value": "7"}]
    yield "same config twice", [[c["Value"] for c in x["Configs"] if c["Name"] == "retention.ms"] for x in ask([t])["Topics"]]
    ghost = b.name()
    yield "validate", short(ask([topic(ghost)], validate=True))
    yield "not made", b.ask("Metadata", 4, Topics=[{"Name": ghost}], AllowAutoTopicCreation=False)["Topics"]
    yield "validate bad", short(ask([topic(ghost, n=0)], validate=True))
    yield "nothing", ask([])
    for t in (0, -1):
        yield f"timeout {t}", short(ask([topic()], timeoutMs=t))
    yield "some fail", short(ask([topic(), topic(n=0), topic("a/b")]))


@probe
def delete_topics(b):
    name, id_ = b.topic()
    for v in range(1, 6):
        yield f"v{v} unknown", b.ask("DeleteTopics", v, TopicNames=["no-such"], TimeoutMs=10000)["Responses"]
        yield f"v{v}", b.ask("DeleteTopics", v, TopicNames=[b.topic()[0]], TimeoutMs=10000)["Responses"]
    ask = lambda *topics: sorted(b.ask("DeleteTopics", 6, Topics=[{"Name": n, "TopicId": i} for n, i in topics], TimeoutMs=10000)["Responses"], key=repr)
    yield "unknown name", ask(("no-such", ZERO_ID))
    yield "unknown id", ask((None, UNKNOWN_ID))
    yield "both", ask((name, id_))
    yield "neither", ask((None, ZERO_ID))
    yield "illegal", ask(("a/b", ZERO_ID)) + ask(("", ZERO_ID))
    yield "name twice", ask((name, ZERO_ID), (name, ZERO_ID))
    yield "id twice", ask((None, id_), (None, id_))
    yield "name and its id", ask((name, ZERO_ID), (None, id_))
    yield "unknown twice", ask(("no-such", ZERO_ID), ("no-such", ZERO_ID))
    yield "nothing", ask()
    yield "by id", ask((None, id_))
    yield "again", ask((None, id_)) + ask((name, ZERO_ID))
    yield "v4 twice", b.ask("DeleteTopics", 4, TopicNames=["x", "x"], TimeoutMs=10000)["Responses"]


@probe
def create_partitions(b):
    name, _ = b.topic(2)
    def ask(*topics, v=3, validate=False):
        return sorted(b.ask("CreatePartitions", v, Topics=[{"Name": n, "Count": c, "Assignments": a if a is None else [{"BrokerIds": x} for x in a]} for n, c, a in topics], TimeoutMs=10000, ValidateOnly=validate)["Results"], key=repr)
    for count in (2, 1, 0, -1):
        yield f"count {count}", ask((name, count, None))
    yield "too many", ask((name, 20000, None))
    yield "unknown", ask(("no-such", 3, None)) + ask(("a/b", 3, None)) + ask(("", 3, None))
    for label, a in {"too few": [], "too many": [[1], [1]], "bad broker": [[9]], "twice": [[1, 1]], "no broker": [[]], "two replicas": [[1, 2]]}.items():
        yield label, ask((name, 3, a))
    yield "topic twice", ask((name, 3, None), (name, 4, None))
    yield "validate", ask((name, 3, None), validate=True) + ask((name, 1, None), validate=True)
    yield "still 2", len(b.ask("Metadata", 4, Topics=[{"Name": name}])["Topics"][0]["Partitions"])
    yield "good", ask((name, 3, None))
    yield "good with assignment", ask((name, 4, [[1]]))
    for v in range(4):
        yield f"v{v}", ask((name, 5 + v, None), v=v)
    b.wait_for_partitions(name, 8)
    yield "now", len(b.ask("Metadata", 4, Topics=[{"Name": name}])["Topics"][0]["Partitions"])
    yield "nothing", ask()
    yield "produce to the last", b.produce(name, batch(), 7)


@probe
def delete_records(b):
    name, _ = b.topic(2)
    for _ in range(2):
        b.produce(name, batch([(b"k", b"v")] * 10))
    def ask(offset, partition=0, topic=name, v=2):
        return b.ask("DeleteRecords", v, Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": partition, "Offset": offset}]}], TimeoutMs=10000)["Topics"]
    yield "beyond", ask(21)
    yield "-2", ask(-2)
    for v in range(3):
        yield f"to 4 v{v}", ask(4, v=v)
    yield "below", ask(1)
    yield "earliest", b.list_offset(name, -2)
    yield "fetch at 4", fetched(b.fetch(name, 4))
    yield "fetch at 3", fetched(b.fetch(name, 3))
    yield "by time", b.list_offset(name, 0)
    yield "all", ask(-1)
    yield "after all", ask(20) + ask(0)
    yield "by time after all", b.list_offset(name, 0)
    yield "max time after all", b.list_offset(name, -3)
    yield "earliest after all", b.list_offset(name, -2)
    yield "unknown", ask(0, 9) + ask(0, 0, "no-such") + ask(0, 0, "a/b") + ask(0, -1)
    yield "empty log", ask(0, 1) + ask(-1, 1) + ask(1, 1)
    yield "nothing", b.ask("DeleteRecords", 2, Topics=[], TimeoutMs=1000)
    yield "no partitions", b.ask("DeleteRecords", 2, Topics=[{"Name": name, "Partitions": []}], TimeoutMs=1000)
    compact, _ = b.topic(cleanup_policy="compact")
    yield "compacted", ask(0, 0, compact)
    both, _ = b.topic(cleanup_policy="compact,delete")
    yield "both", ask(0, 0, both)
    none, _ = b.topic(cleanup_policy="")
    yield "no policy", ask(0, 0, none)
    yield "partition twice", b.ask("DeleteRecords", 2, Topics=[{"Name": both, "Partitions": [{"PartitionIndex": 0, "Offset": 0}, {"PartitionIndex": 0, "Offset": 1}]}], TimeoutMs=1000)["Topics"]
    yield "timeout 0", b.ask("DeleteRecords", 2, Topics=[{"Name": both, "Partitions": [{"PartitionIndex": 0, "Offset": 0}]}], TimeoutMs=0)["Topics"]


# --- 11 configurations -------------------------------------------------------------------------------------------------

@probe
def describe_configs(b):
    name, _ = b.topic(retention_ms="5000")
    def ask(kind, resource, keys=None, v=4, **values):
        results = b.ask("DescribeConfigs", v, Resources=[{"ResourceType": kind, "ResourceName": resource, "ConfigurationKeys": keys}], **values)["Results"]
        return [by_name(r, "Configs") for r in results]
    for v in range(1, 5):
        yield f"v{v} all of a topic", ask(2, name, v=v)
        yield f"v{v} synonyms", ask(2, name, ["retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes"], v=v, IncludeSynonyms=True)
    yield "empty keys", len(ask(2, name, [])[0]["Configs"])
    yield "unknown keys", ask(2, name, ["nonsense", "retention.ms"])
    yield "key twice", ask(2, name, ["retention.ms", "retention.ms"])
    for kind, resource in ((2, "no-such"), (2, "a/b"), (2, ""), (4, "7"), (4, "x"), (4, "-1"), (16, ""), (32, ""), (1, "x"), (99, "x"), (0, "x"), (-1, "x"), (8, "7"), (8, "x"), (8, "")):
        yield f"{kind} {resource!r}", ask(kind, resource)
    yield "16 metrics", ask(16, "metrics")
    yield "twice", b.ask("DescribeConfigs", 4, Resources=[{"ResourceType": 2, "ResourceName": name, "ConfigurationKeys": ["retention.ms"]}] * 2)
    yield "broker, some", ask(4, "1", ["log.retention.ms", "log.retention.hours", "num.partitions", "broker.id", "node.id", "log.cleaner.threads", "message.max.bytes", "ssl.keystore.password", "nonsense", "auto.create.topics.enable"], IncludeSynonyms=True)
    yield "cluster default", ask(4, "")
    yield "nothing", b.ask("DescribeConfigs", 4, Resources=[])
    yield "documentation", [bool(c["Documentation"]) for c in ask(2, name, ["retention.ms"], IncludeDocumentation=True)[0]["Configs"]]


@probe
def alter_configs(b):
    name, _ = b.topic()
    def ask(*resources, validate=False, v=1):
        answer = b.ask("IncrementalAlterConfigs", v, Resources=[{"ResourceType": k, "ResourceName": n, "Configs": [{"Name": c, "ConfigOperation": o, "Value": x} for c, o, x in cs]} for k, n, cs in resources], ValidateOnly=validate)
        return sorted(answer["Responses"], key=repr)
    def value(key, topic=name):
        b.settle()
        return [(c["Value"], c["ConfigSource"]) for c in b.ask("DescribeConfigs", 4, Resources=[{"ResourceType": 2, "ResourceName": topic, "ConfigurationKeys": [key]}])["Results"][0]["Configs"]]
    def one(key, op, x, **values):
        return ask((2, name, [(key, op, x)]), **values), value(key) if key else None
    for v in (0, 1):
        yield f"set v{v}", one("retention.ms", 0, "1000", v=v)
    yield "set equal", one("retention.ms", 0, "1000")
    yield "validate", one("retention.ms", 0, "2000", validate=True)
    yield "validate bad", one("retention.ms", 0, "x", validate=True)
    yield "delete", one("retention.ms", 1, None)
    yield "delete again", one("retention.ms", 1, None)
    yield "delete with value", one("retention.ms", 1, "5")
    yield "delete unknown", one("nonsense", 1, None)
    yield "set unknown", one("nonsense", 0, "1")
    yield "set bad", one("retention.ms", 0, "-5")
    yield "null", [one("cleanup.policy", op, None)[0] for op in (0, 2, 3)]
    yield "append", one("cleanup.policy", 2, "compact")
    yield "append again", one("cleanup.policy", 2, "compact")
    yield "append two", one("cleanup.policy", 2, "delete,compact")
    yield "subtract", one("cleanup.policy", 3, "delete")
    yield "subtract absent", one("cleanup.policy", 3, "delete")
    yield "subtract all", one("cleanup.policy", 3, "compact")
    yield "append bogus", one("cleanup.policy", 2, "bogus")
    yield "append to a number", one("retention.ms", 2, "1")
    yield "subtract from a number", one("retention.ms", 3, "1")
    yield "append unknown", one("nonsense", 2, "1")
    yield "unknown op", [one("retention.ms", op, "1") for op in (4, -1)]
    yield "empty key", one("", 0, "1")
    yield "key twice", ask((2, name, [("retention.ms", 0, "1"), ("retention.ms", 1, None)]))
    yield "resource twice", ask((2, name, [("retention.ms", 0, "1")]), (2, name, [("segment.ms", 0, "1")]))
    yield "one bad, one good", ask((2, name, [("retention.ms", 0, "777"), ("segment.ms", 0, "x")]), (2, b.topic()[0], [("retention.ms", 0, "5")]))
    yield "nothing of it", value("retention.ms")
    yield "contradiction", ask((2, name, [("min.compaction.lag.ms", 0, "100"), ("max.compaction.lag.ms", 0, "50")]))
    yield "no ops", ask((2, name, []))
    yield "no resources", ask()
    for kind, resource in ((2, "no-such"), (2, "a/b"), (2, ""), (1, "x"), (99, "x"), (0, "x"), (4, "7"), (4, "x")):
        yield f"{kind} {resource!r}", ask((kind, resource, [("retention.ms", 0, "1")]))
    yield "broker, not dynamic", ask((4, "1", [("broker.id", 0, "3")])) + ask((4, "1", [("num.partitions", 0, "3")]))
    yield "broker, bad value", ask((4, "1", [("log.retention.ms", 0, "x")])) + ask((4, "", [("log.retention.ms", 0, "x")]))
    yield "broker, out of range", ask((4, "1", [("log.cleaner.threads", 0, "-1")]))
    yield "broker, per-broker key on all", ask((4, "", [("listeners", 0, "PLAINTEXT://:1")]))
    yield "broker, unknown key", ask((4, "1", [("some.one.elses", 0, "1")])) + ask((4, "1", [("some.one.elses", 1, None)]))
    yield "broker, good", ask((4, "1", [("log.retention.ms", 0, "123456")])) + ask((4, "", [("log.retention.ms", 0, "654321")]))
    def wait_for(wanted):
        end = time.monotonic() + 10
        while value("retention.ms") != wanted and time.monotonic() < end:
            time.sleep(0.01)
        return value("retention.ms")
    yield "seen by the topic", wait_for([("123456", 2)])
    yield "synonyms", b.ask("DescribeConfigs", 4, Resources=[{"ResourceType": 2, "ResourceName": name, "ConfigurationKeys": ["retention.ms"]}], IncludeSynonyms=True)["Results"]
    yield "broker's synonyms", b.ask("DescribeConfigs", 4, Resources=[{"ResourceType": 4, "ResourceName": "1", "ConfigurationKeys": ["log.retention.ms"]}, {"ResourceType": 4, "ResourceName": "", "ConfigurationKeys": None}], IncludeSynonyms=True)["Results"]
    yield "away again", ask((4, "1", [("log.retention.ms", 1, None)])) + ask((4, "", [("log.retention.ms", 1, None)]))
    yield "min.insync.replicas", ask((4, "1", [("min.insync.replicas", 0, "1")])) + ask((4, "", [("min.insync.replicas", 1, None)]))
    yield "default again", wait_for([("604800000", 5)])
    yield "logger, bad level", ask((8, "1", [("root", 0, "LOUD")]))
    yield "logger, unknown", ask((8, "1", [("no.such.logger", 0, "INFO")]))
    yield "logger, append", ask((8, "1", [("root", 2, "INFO")]))
    yield "logger, other broker", ask((8, "7", [("root", 0, "INFO")]))
    yield "metrics", ask((16, "m", [("nonsense", 0, "1")])) + ask((16, "m", [("interval.ms", 0, "x")])) + ask((16, "", [("interval.ms", 0, "1000")]))
    yield "group", ask((32, "", [("consumer.session.timeout.ms", 0, "50000")])) + ask((32, "g", [("consumer.session.timeout.ms", 0, "1")])) + ask((32, "g", [("nonsense", 0, "1")]))
    def legacy(kind, resource, configs, validate=False, v=2):
        return b.ask("AlterConfigs", v, Resources=[{"ResourceType": kind, "ResourceName": resource, "Configs": [{"Name": n, "Value": x} for n, x in configs]}], ValidateOnly=validate)["Responses"]
    for v in range(3):
        yield f"legacy v{v}", legacy(2, name, [("retention.ms", "9"), ("segment.ms", "8")], v=v), value("cleanup.policy")
    yield "legacy replaces", legacy(2, name, [("retention.ms", "10")]), value("segment.ms")
    yield "legacy validate", legacy(2, name, [], True), value("retention.ms")
    yield "legacy null", legacy(2, name, [("retention.ms", None)]), value("retention.ms")
    yield "legacy bad", legacy(2, name, [("retention.ms", "x")]), legacy(2, name, [("nonsense", "x")])
    yield "legacy twice in one", legacy(2, name, [("retention.ms", "1"), ("retention.ms", "2")]), value("retention.ms")
    yield "legacy empty", legacy(2, name, []), value("retention.ms")
    yield "legacy unknown", legacy(2, "no-such", []) + legacy(99, "x", []) + legacy(2, "a/b", [])


@probe
def list_config_resources(b):
    name, _ = b.topic()
    for types in ([], [2], [4], [8], [16], [32], [2, 4]):
        answer = b.ask("ListConfigResources", 1, ResourceTypes=types)
        kinds = sorted({r["ResourceType"] for r in answer["ConfigResources"]})
        yield f"{types}", (answer["ErrorCode"], [k for k in kinds if k in (2, 4, 8)], name in [r["ResourceName"] for r in answer["ConfigResources"]])
    for types in ([1], [99], [-1], [2, 99], [0]):
        yield f"{types}", b.ask("ListConfigResources", 1, ResourceTypes=types)
    yield "v0", b.ask("ListConfigResources", 0)["ErrorCode"]


# --- 12, 13 ------------------------------------------------------------------------------------------------------------

@probe
def log_dirs(b):
    name, _ = b.topic(2)
    b.produce(name, batch())
    for v in range(1, 6):
        answer = b.ask("DescribeLogDirs", v, Topics=[{"Topic": name, "Partitions": [0, 1, 9]}, {"Topic": "no-such", "Partitions": [0]}])
        for topic in answer["Results"][0]["Topics"]:
            topic["Partitions"].sort(key=lambda p: p["PartitionIndex"])
        yield f"v{v}", without(answer, "LogDir", "TotalBytes", "UsableBytes")
        if v >= 4:
            yield f"v{v} space", [r["TotalBytes"] > r["UsableBytes"] > 0 for r in answer["Results"]]
    yield "no topics", without(b.ask("DescribeLogDirs", 4, Topics=[]), "LogDir", "TotalBytes", "UsableBytes")
    yield "everything", name in [t["Name"] for t in b.ask("DescribeLogDirs", 4, Topics=None)["Results"][0]["Topics"]]
    directory = b.ask("DescribeLogDirs", 4, Topics=[])["Results"][0]["LogDir"]
    def alter(path, topic=name, partition=0, v=2):
        return b.ask("AlterReplicaLogDirs", v, Dirs=[{"Path": path, "Topics": [{"Name": topic, "Partitions": [partition]}]}])["Results"]
    yield "same", alter(directory)
    yield "other", alter("/no/such")
    yield "relative", alter("data")
    yield "unknown partition", alter(directory, partition=9)
    yield "unknown topic", alter(directory, "no-such-topic-at-all")
    yield "none", b.ask("AlterReplicaLogDirs", 2, Dirs=[])


@probe
def elections(b):
    name, _ = b.topic(2)
    def elect(topics, kind=0, v=2):
        return b.ask("ElectLeaders", v, **({"ElectionType": kind} if v else {}), TopicPartitions=topics, TimeoutMs=10000)
    for v in range(3):
        yield f"v{v}", elect([{"Topic": name, "Partitions": [0, 9]}, {"Topic": "no-such", "Partitions": [0]}], v=v)
    yield "unclean", elect([{"Topic": name, "Partitions": [0]}], 1)
    yield "unknown type", elect([{"Topic": name, "Partitions": [0]}], 5)
    yield "all", [t["PartitionResult"] for t in elect(None)["ReplicaElectionResults"] if t["Topic"] == name]
    yield "none", elect([])
    def reassign(partition, replicas, topic=name, v=0):
        return b.ask("AlterPartitionReassignments", v, TimeoutMs=10000, Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": partition, "Replicas": replicas}]}])
    for label, replicas in {"self": [1], "other": [7], "both": [1, 7], "empty": [], "repeated": [1, 1], "cancel": None, "negative": [-1]}.items():
        yield f"reassign {label}", reassign(0, replicas)
    yield "reassign v1", reassign(0, [1], v=1)
    yield "reassign unknown", reassign(9, [1]), reassign(0, [1], "no-such"), reassign(9, None)
    yield "reassign nothing", b.ask("AlterPartitionReassignments", 0, TimeoutMs=1000, Topics=[])
    yield "list", b.ask("ListPartitionReassignments", 0, TimeoutMs=1000, Topics=None), b.ask("ListPartitionReassignments", 0, TimeoutMs=1000, Topics=[{"Name": name, "PartitionIndexes": [0, 9]}]), b.ask("ListPartitionReassignments", 0, TimeoutMs=1000, Topics=[])


@probe
def quorum(b):
    def ask(v, *topics):
        answer = b.ask("DescribeQuorum", v, Topics=[{"TopicName": t, "Partitions": [{"PartitionIndex": p} for p in ps]} for t, ps in topics])
        return without(answer, "LogEndOffset", "HighWatermark", "LeaderEpoch", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Host", "Port", "ReplicaDirectoryId")
    for v in range(3):
        yield f"v{v}", ask(v, ("__cluster_metadata", [0]))
        yield f"v{v} other partition", ask(v, ("__cluster_metadata", [1]))
        yield f"v{v} other topic", ask(v, ("other", [0]))
        yield f"v{v} nothing", ask(v)
        yield f"v{v} both", ask(v, ("__cluster_metadata", [0, 1]))


@probe
def features(b):
    if b.daemon and 57 not in b.served:
        return
    def ask(v, *updates, validate=False):
        return b.ask("UpdateFeatures", v, timeoutMs=10000, **({"ValidateOnly": validate} if v else {}), FeatureUpdates=[{"Feature": f, "MaxVersionLevel": l, **({"UpgradeType": t} if v else {"AllowDowngrade": t == 2})} for f, l, t in updates])
    for v in range(3):
        yield f"v{v} none", ask(v)
        yield f"v{v} unknown", ask(v, ("nonsense", 1, 1))
        yield f"v{v} same", ask(v, ("group.version", 1, 1))
        yield f"v{v} too high", ask(v, ("group.version", 9, 1))
        yield f"v{v} lower", ask(v, ("metadata.version", 20, 1))
    yield "type 0", ask(1, ("group.version", 1, 0))
    yield "type 9", ask(1, ("group.version", 1, 9))
    yield "negative", ask(1, ("group.version", -1, 1))
    yield "twice", ask(1, ("group.version", 1, 1), ("group.version", 1, 1))


@probe
def what_one_node_has_not(b):
    """APIs that an unsecured broker answers without having the thing itself."""
    filter_ = dict(ResourceTypeFilter=1, ResourceNameFilter=None, PatternTypeFilter=1, PrincipalFilter=None, HostFilter=None, Operation=1, PermissionType=1)
    for v in (1, 2, 3):
        yield f"DescribeAcls v{v}", b.ask("DescribeAcls", v, **filter_)
        yield f"CreateAcls v{v}", b.ask("CreateAcls", v, Creations=[dict(ResourceType=2, ResourceName="x", ResourcePatternType=3, Principal="User:a", Host="*", Operation=2, PermissionType=3)])
        yield f"DeleteAcls v{v}", b.ask("DeleteAcls", v, Filters=[filter_])
    yield "SaslHandshake", b.ask("SaslHandshake", 1, Mechanism="PLAIN")
    for v in range(3):
        yield f"SaslAuthenticate v{v}", b.ask("SaslAuthenticate", v, AuthBytes=b"x")
    yield "DescribeClientQuotas", b.ask("DescribeClientQuotas", 1, Components=[], Strict=False)
    yield "DescribeUserScramCredentials", b.ask("DescribeUserScramCredentials", 0, Users=None)
