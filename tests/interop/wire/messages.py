"""Every request and answer of protocol/schemas/messages.schema as plain dicts, and connections that speak them.

A field that a dict leaves out has its default. What the schema's own codecs do wrong would not show here: the protocol
tests compare those with Apache Kafka's. These are for what a broker answers.
"""

import os
import re
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "service"))

import kafka_wire  # noqa: E402
from tidemarkd import ROOT, Tidemarkd, until  # noqa: E402,F401

NUMBERS = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}
ZERO_ID = bytes(16)


class Range:
    def __init__(self, text):
        if text == "none":
            self.first, self.last = 0, -1
        else:
            first, _, last = text.partition("-")
            self.first = int(first.rstrip("+"))
            self.last = 32767 if text.endswith("+") else int(last or first)

    def __contains__(self, version):
        return self.first <= version <= self.last


class Field:
    def __init__(self, words):
        self.name, self.type, self.versions = words[0], words[1], Range(words[2])
        self.null, self.tag, self.tagged, self.default = Range("none"), None, Range("none"), None
        for word in words[3:]:
            key, _, value = word.partition("=")
            if key == "null":
                self.null = Range(value)
            elif key == "tag":
                number, _, versions = value.partition(":")
                self.tag, self.tagged = int(number), Range(versions)
            elif key == "default":
                self.default = value
        self.fields = []

    def may_be_null(self, struct_, version):
        """Whether a structure has a mark in front; the elements of an array never have."""
        return struct_ == self.type and version in self.null

    def absent(self):
        """The value that a reader assumes."""
        type_ = self.type
        if self.default == "null":
            return None
        if type_.startswith("[]"):
            return []
        if type_ == "bool":
            return self.default == "true"
        if type_ in NUMBERS:
            return float(self.default or 0) if type_ == "float64" else int(self.default or "0", 0)
        if type_ == "string":
            return self.default or ""
        if type_ in ("bytes", "records"):
            return b""
        if type_ == "uuid":
            return ZERO_ID
        return None


class Message:
    def __init__(self, words):
        self.kind, self.name = words[:2]
        settings = dict(word.partition("=")[::2] for word in words[2:])
        self.key = int(settings.get("key", -1))
        self.versions, self.flexible = Range(settings["versions"]), Range(settings.get("flexible", "none"))
        self.fields, self.structs = [], {}


def _load():
    messages, message, stack = {}, None, []
    with open(os.path.join(ROOT, "protocol", "schemas", "messages.schema"), encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            depth = (len(line) - len(line.lstrip())) // 2
            if depth == 0:
                message = messages[words[1]] = Message(words)
                stack = [message.fields]
                continue
            del stack[depth:]
            if words[0] == "struct":
                stack.append(message.structs.setdefault(words[1], []))
                continue
            field = Field(words)
            stack[-1].append(field)
            if field.type.lstrip("[]") in message.structs and not field.fields:
                field.fields = message.structs[field.type.lstrip("[]")]
            stack.append(field.fields)
    for message in messages.values():   # a struct may stand behind its users
        def link(fields):
            for field in fields:
                bare = field.type.replace("[]", "")
                if not field.fields and bare in message.structs:
                    field.fields = message.structs[bare]
                elif field.fields is not message.structs.get(bare):
                    link(field.fields)
        link(message.fields)
        for fields in message.structs.values():
            link(fields)
    return messages


MESSAGES = _load()
REQUESTS = {m.name[:-len("Request")]: m for m in MESSAGES.values() if m.kind == "request"}
ANSWERS = {m.key: m for m in MESSAGES.values() if m.kind == "response"}


def uvarint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _length(n, compact, wide):
    if compact:
        return uvarint(n + 1)
    return struct.pack(">i" if wide else ">h", n)


def _write_value(field, type_, value, version, compact):
    if type_.startswith("[]"):
        if value is None:
            return _length(-1, compact, True)
        return _length(len(value), compact, True) + b"".join(_write_value(field, type_[2:], v, version, compact) for v in value)
    if type_ in NUMBERS:
        return struct.pack(NUMBERS[type_], value)
    if type_ == "uuid":
        return value
    if type_ in ("string", "bytes", "records"):
        if value is None:
            return _length(-1, compact, type_ != "string")
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        return _length(len(data), compact, type_ != "string") + data
    body = _write_fields(field.fields, value or {}, version, compact)
    return (b"\x01" + body if value is not None else b"\xff") if field.may_be_null(type_, version) else body


def _write_fields(fields, values, version, compact):
    unknown = set(values) - {f.name for f in fields}
    assert not unknown, unknown
    out, tags = b"", {}
    for field in fields:
        value = values[field.name] if field.name in values else field.absent()
        if field.tag is not None and version in field.tagged:
            if field.name in values:
                tags[field.tag] = _write_value(field, field.type, value, version, compact)
        elif version in field.versions:
            out += _write_value(field, field.type, value, version, compact)
    if compact:
        out += uvarint(len(tags)) + b"".join(uvarint(t) + uvarint(len(v)) + v for t, v in sorted(tags.items()))
    return out


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        assert 0 <= n <= len(self.data) - self.at, f"{n} bytes wanted, {len(self.data) - self.at} there"
        self.at += n
        return self.data[self.at - n:self.at]

    def uvarint(self):
        shift = value = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def length(self, compact, wide):
        if compact:
            return self.uvarint() - 1
        return struct.unpack(">i" if wide else ">h", self.take(4 if wide else 2))[0]

    def value(self, field, type_, version, compact):
        if type_.startswith("[]"):
            n = self.length(compact, True)
            return None if n < 0 else [self.value(field, type_[2:], version, compact) for _ in range(n)]
        if type_ in NUMBERS:
            return struct.unpack(NUMBERS[type_], self.take(struct.calcsize(NUMBERS[type_])))[0]
        if type_ == "uuid":
            return self.take(16)
        if type_ in ("string", "bytes", "records"):
            n = self.length(compact, type_ != "string")
            if n < 0:
                return None
            return self.take(n).decode() if type_ == "string" else self.take(n)
        if field.may_be_null(type_, version) and self.take(1) == b"\xff":
            return None
        return self.fields(field.fields, version, compact)

    def fields(self, fields, version, compact):
        values, tagged = {}, {}
        for field in fields:
            if field.tag is not None and version in field.tagged:
                tagged[field.tag] = field
                values[field.name] = field.absent()
            elif version in field.versions:
                values[field.name] = self.value(field, field.type, version, compact)
        for _ in range(self.uvarint() if compact else 0):
            tag, size = self.uvarint(), self.uvarint()
            end = self.at + size
            if tag in tagged:
                values[tagged[tag].name] = self.value(tagged[tag], tagged[tag].type, version, compact)
                assert self.at == end, f"tag {tag} of {size} bytes"
            self.at = end
        return values


def write_request(name, version, correlation=1, client="tidemark-test", **values):
    """A whole request with its header, without the size in front."""
    message = REQUESTS[name]
    compact = version in message.flexible
    id_ = struct.pack(">h", -1) if client is None else kafka_wire.text(client)
    header = struct.pack(">hhi", message.key, version, correlation) + id_ + (b"\0" if compact else b"")
    return header + _write_fields(message.fields, values, version, compact)


def read_answer(name, version, data):
    """The fields of an answer without size and correlation id."""
    message = ANSWERS[REQUESTS[name].key]
    compact = version in message.flexible
    reader = _Reader(data)
    if compact and name != "ApiVersions":
        assert reader.take(1) == b"\0", "tags in the answer's header"
    values = reader.fields(message.fields, version, compact)
    assert reader.at == len(data), f"{len(data) - reader.at} bytes behind the answer"
    return values


def framed(message):
    return struct.pack(">i", len(message)) + message


class Wire:
    """A connection on which any request can be sent, well-formed or not. A context manager."""

    def __init__(self, port, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def raw(self, data):
        self.socket.sendall(data)

    def send(self, name, version, **values):
        self.correlation += 1
        self.raw(framed(write_request(name, version, self.correlation, **values)))
        return self.correlation

    def exactly(self, n):
        data = bytearray()
        while len(data) < n:
            try:
                chunk = self.socket.recv(min(n - len(data), 1 << 20))
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise ConnectionError("closed")
            data += chunk
        return bytes(data)

    def receive_raw(self):
        """(correlation id, what follows)."""
        data = self.exactly(struct.unpack(">i", self.exactly(4))[0])
        return struct.unpack_from(">i", data)[0], data[4:]

    def receive(self, name, version, correlation=None):
        got, data = self.receive_raw()
        assert correlation is None or got == correlation, (got, correlation)
        return read_answer(name, version, data)

    def ask(self, name, version, **values):
        return self.receive(name, version, self.send(name, version, **values))

    def is_closed(self, seconds=5):
        """Whether the peer closes within the time, without a byte more."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(30)

    def is_silent(self, seconds):
        """Whether neither an answer nor the end comes within the time."""
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
            return False
        except TimeoutError:
            return True
        except ConnectionResetError:
            return False
        finally:
            self.socket.settimeout(30)


def batch(records=((b"k", b"v"),), timestamp=1_700_000_000_000, *, base=0, magic=2, attributes=0, timestamps=None, max_timestamp=None,
          producer=(-1, -1, -1), count=None, last_delta=None, crc=None):
    """A record batch, in which any header field can be wrong."""
    body = b""
    first = timestamps[0] if timestamps else timestamp
    for i, (key, value) in enumerate(records):
        delta = timestamps[i] - first if timestamps else 0
        record = b"\0" + kafka_wire.varint(delta) + kafka_wire.varint(i)
        for part in (key, value):
            record += kafka_wire.varint(-1) if part is None else kafka_wire.varint(len(part)) + part
        record += b"\0"
        body += kafka_wire.varint(len(record)) + record
    n = len(records)
    largest = max_timestamp if max_timestamp is not None else max(timestamps or [timestamp])
    after = struct.pack(">hiqqqhii", attributes, n - 1 if last_delta is None else last_delta, first, largest, *producer, n if count is None else count) + body
    return struct.pack(">qiibI", base, len(after) + 9, 0, magic, kafka_wire.crc32c(after) if crc is None else crc) + after


class Broker:
    """tidemarkd in a directory of its own; or, to find out what is right, another broker at $TIDEMARK_WIRE_PORT."""

    def __init__(self, settings=None):
        port = os.environ.get("TIDEMARK_WIRE_PORT")
        self.daemon = None if port else Tidemarkd(settings).start()
        self.port = int(port) if port else self.daemon.port
        self._names = 0
        self.prefix = f"w{os.getpid()}"

    def close(self):
        if self.daemon:
            self.daemon.close()

    def settle(self):
        """Kafka's broker shows a moment later what its controller has done; tidemarkd at once."""
        if not self.daemon:
            time.sleep(0.3)

    def wire(self):
        return Wire(self.port)

    def ask(self, name, version, **values):
        with self.wire() as wire:
            return wire.ask(name, version, **values)

    def name(self):
        self._names += 1
        return f"{self.prefix}-{self._names}"

    def topic(self, partitions=1, **configs):
        """(name, id) of a new topic; underscores in the names of configs stand for dots."""
        name = self.name()
        answer = self.ask(
            "CreateTopics", 7, timeoutMs=30000,
            Topics=[{"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1,
                     "Configs": [{"Name": k.replace("_", "."), "Value": str(v)} for k, v in configs.items()]}])["Topics"][0]
        assert answer["ErrorCode"] == 0, answer
        self.wait_for_partitions(name, partitions)
        return name, answer["TopicId"]

    def wait_for_partitions(self, name, count):
        """Kafka's broker learns of what its controller has done a moment later."""
        until(lambda: all(self.list_offset(name, -1, p)[0] == 0 for p in range(count)), f"{name} has {count} partitions")

    def produce(self, topic, records, partition=0, acks=-1, version=9, **values):
        """The partition's answer."""
        answer = self.ask("Produce", version, Acks=acks, TimeoutMs=10000,
                          TopicData=[{"Name": topic, "PartitionData": [{"Index": partition, "Records": records}]}], **values)
        return answer["Responses"][0]["PartitionResponses"][0]

    def fetch(self, topic, offset, partition=0, version=12, **values):
        """The partition's answer; capital names are the request's fields, partition_* the partition's."""
        part = {"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20}
        part.update({k[len("partition_"):]: values.pop(k) for k in list(values) if k.startswith("partition_")})
        values = {"MaxWaitMs": 0, "MinBytes": 1, "MaxBytes": 1 << 20, **values}
        answer = self.ask("Fetch", version, Topics=[{"Topic": topic, "Partitions": [part]}], **values)
        return answer["Responses"][0]["Partitions"][0]

    def list_offset(self, topic, timestamp, partition=0, version=7, isolation=0, epoch=-1):
        """(error, timestamp, offset, epoch)."""
        answer = self.ask("ListOffsets", version, ReplicaId=-1, IsolationLevel=isolation, TimeoutMs=0, Topics=[
            {"Name": topic, "Partitions": [{"PartitionIndex": partition, "CurrentLeaderEpoch": epoch, "Timestamp": timestamp}]}])
        part = answer["Topics"][0]["Partitions"][0]
        return part["ErrorCode"], part["Timestamp"], part["Offset"], part["LeaderEpoch"]


def shown(value):
    """For messages of failed tests: without the noise of bytes."""
    return re.sub(r"b'[^']{60,}'", "b'…'", repr(value))
