"""As much of Kafka's protocol as the tests need to see answers one by one: old, fixed-layout versions of a few requests.

The clients under tests/interop/clients judge the protocol; this only carries load and reads back what was acknowledged.
"""

import socket
import struct

PRODUCE, FETCH, LIST_OFFSETS, METADATA, CREATE_TOPICS, INIT_PRODUCER_ID, DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH, INCREMENTAL_ALTER_CONFIGS = 0, 1, 2, 3, 19, 22, 21, 23, 44
FIND_COORDINATOR, ADD_PARTITIONS_TO_TXN, END_TXN = 10, 24, 26


def _crc32c_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(n):
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n & ~0x7F:
        out.append((n & 0x7F) | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def read_varint(data, at):
    shift = value = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at


def batch(records, timestamp, producer_id=-1, epoch=-1, sequence=-1, transactional=False):
    """A record batch of magic 2; `records` are (key, value) pairs of bytes or None."""
    body = bytearray()
    for i, (key, value) in enumerate(records):
        record = b"\0" + varint(0) + varint(i)
        record += varint(-1) if key is None else varint(len(key)) + key
        record += varint(-1) if value is None else varint(len(value)) + value
        record += varint(0)
        body += varint(len(record)) + record
    after_crc = struct.pack(">hiqqqhii", 0x10 if transactional else 0, len(records) - 1, timestamp, timestamp, producer_id, epoch, sequence, len(records)) + bytes(body)
    return struct.pack(">qiibI", 0, len(after_crc) + 9, 0, 2, crc32c(after_crc)) + after_crc


def batches_of(data):
    """(base offset, next offset, attributes, producer id, bytes) of each whole batch."""
    at = 0
    while at + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        end = at + 12 + length
        if end > len(data):
            return
        attributes, last_delta = struct.unpack_from(">hi", data, at + 21)
        producer, = struct.unpack_from(">q", data, at + 43)
        yield base, base + last_delta + 1, attributes, producer, data[at:end]
        at = end


def records_of(data):
    """(offset, key, value) of each record in whole uncompressed batches; control batches are left out."""
    for base, _, attributes, _, whole in batches_of(data):
        assert attributes & 7 == 0, "compressed"
        if attributes & 0x20:
            continue
        count, = struct.unpack_from(">i", whole, 57)
        position = 61
        for _ in range(count):
            size, position = read_varint(whole, position)
            next_record = position + size
            position += 1
            _, position = read_varint(whole, position)
            delta, position = read_varint(whole, position)
            fields = []
            for _ in range(2):
                n, position = read_varint(whole, position)
                fields.append(None if n < 0 else bytes(whole[position:position + n]))
                position += max(n, 0)
            yield base + delta, fields[0], fields[1]
            position = next_record


def text(value):
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


class Connection:
    """One connection; requests may be sent ahead, answers come in order."""

    def __init__(self, port, host="127.0.0.1", timeout=30):
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation = 0

    def close(self):
        self.socket.close()

    def send(self, api, version, body):
        self.correlation += 1
        message = struct.pack(">hhi", api, version, self.correlation) + text("tidemark-test") + body
        self.socket.sendall(struct.pack(">i", len(message)) + message)
        return self.correlation

    def _exactly(self, n):
        data = bytearray()
        while len(data) < n:
            chunk = self.socket.recv(n - len(data))
            if not chunk:
                raise ConnectionError("closed")
            data += chunk
        return bytes(data)

    def receive(self):
        """(correlation id, body)."""
        size, = struct.unpack(">i", self._exactly(4))
        data = self._exactly(size)
        return struct.unpack_from(">i", data)[0], data[4:]

    def ask(self, api, version, body):
        sent = self.send(api, version, body)
        correlation, answer = self.receive()
        assert correlation == sent, (correlation, sent)
        return answer

    def metadata(self, topics=()):
        """{topic: error}; makes no topic."""
        body = struct.pack(">i", len(topics)) + b"".join(text(t) for t in topics) + b"\0"
        data = self.ask(METADATA, 4, body)
        at = 4
        brokers, = struct.unpack_from(">i", data, at)
        at += 4
        def string(at):
            n, = struct.unpack_from(">h", data, at)
            return (None, at + 2) if n < 0 else (data[at + 2:at + 2 + n].decode(), at + 2 + n)
        for _ in range(brokers):
            at += 4
            _, at = string(at)
            at += 4
            _, at = string(at)
        _, at = string(at)
        at += 4
        count, = struct.unpack_from(">i", data, at)
        at += 4
        result = {}
        for _ in range(count):
            error, = struct.unpack_from(">h", data, at)
            name, at = string(at + 2)
            at += 1
            partitions, = struct.unpack_from(">i", data, at)
            at += 4
            for _ in range(partitions):
                at += 10
                for _ in range(2):
                    n, = struct.unpack_from(">i", data, at)
                    at += 4 + 4 * n
            result[name] = error
        return result

    def create_topic(self, name, partitions=1, configs=None):
        configs = configs or {}
        body = struct.pack(">i", 1) + text(name) + struct.pack(">ihi", partitions, 1, 0)
        body += struct.pack(">i", len(configs)) + b"".join(text(k) + text(str(v)) for k, v in configs.items())
        data = self.ask(CREATE_TOPICS, 2, body + struct.pack(">ib", 30000, 0))
        n, = struct.unpack_from(">h", data, 8)
        error, = struct.unpack_from(">h", data, 10 + n)
        return error

    def init_producer_id(self):
        data = self.ask(INIT_PRODUCER_ID, 0, struct.pack(">hi", -1, 60000))
        _, error, producer_id, epoch = struct.unpack_from(">ihqh", data)
        assert error == 0, error
        return producer_id, epoch

    def init_transactions(self, transactional_id, timeout_ms):
        """(error, producer id, epoch); errors pass while the coordinator's topic is made."""
        self.ask(FIND_COORDINATOR, 1, text(transactional_id) + b"\1")
        return struct.unpack_from(">hqh", self.ask(INIT_PRODUCER_ID, 0, text(transactional_id) + struct.pack(">i", timeout_ms)), 4)

    def add_partition(self, transactional_id, producer_id, epoch, topic, partition):
        """AddPartitionsToTxn; the error."""
        body = text(transactional_id) + struct.pack(">qhi", producer_id, epoch, 1) + text(topic) + struct.pack(">ii", 1, partition)
        return struct.unpack_from(">h", self.ask(ADD_PARTITIONS_TO_TXN, 0, body), 4 + 4 + len(text(topic)) + 4 + 4)[0]

    def end_transaction(self, transactional_id, producer_id, epoch, commit):
        """EndTxn; the error."""
        return struct.unpack_from(">h", self.ask(END_TXN, 0, text(transactional_id) + struct.pack(">qhb", producer_id, epoch, 1 if commit else 0)), 4)[0]

    def send_produce(self, topic, partition, records, acks=-1, transactional_id=None):
        whose = struct.pack(">h", -1) if transactional_id is None else text(transactional_id)
        return self.send(PRODUCE, 7, whose + struct.pack(">hii", acks, 30000, 1) + text(topic) + struct.pack(">iii", 1, partition, len(records)) + records)

    @staticmethod
    def produced(data):
        """(error, base offset) of the only partition in a Produce answer."""
        n, = struct.unpack_from(">h", data, 4)
        _, error, base = struct.unpack_from(">ihq", data, 6 + n + 4)
        return error, base

    def produce(self, topic, partition, records, acks=-1, transactional_id=None):
        self.send_produce(topic, partition, records, acks, transactional_id)
        return self.produced(self.receive()[1])

    def produce_told_why(self, topic, partition, records):
        """Produce 8: (error, [(index, message)] of the records at fault, message)."""
        body = struct.pack(">hhii", -1, -1, 30000, 1) + text(topic) + struct.pack(">iii", 1, partition, len(records)) + records
        data = self.ask(PRODUCE, 8, body)
        def string(at):
            n, = struct.unpack_from(">h", data, at)
            return (None, at + 2) if n < 0 else (data[at + 2:at + 2 + n].decode(), at + 2 + n)
        at = 4 + len(text(topic)) + 4
        _, error, _, _, _, count = struct.unpack_from(">ihqqqi", data, at)
        at += 34
        wrong = []
        for _ in range(count):
            index, = struct.unpack_from(">i", data, at)
            message, at = string(at + 4)
            wrong.append((index, message))
        return error, wrong, string(at)[0]

    def fetch(self, topic, partition, offset, max_bytes=1 << 20, wait_ms=0, min_bytes=1):
        """(error, high watermark, bytes of batches)."""
        body = struct.pack(">iiiib", -1, wait_ms, min_bytes, max_bytes, 0) + struct.pack(">i", 1) + text(topic) + struct.pack(">iiqi", 1, partition, offset, max_bytes)
        data = self.ask(FETCH, 4, body)
        n, = struct.unpack_from(">h", data, 8)
        at = 10 + n + 4
        _, error, high_watermark, _, aborted = struct.unpack_from(">ihqqi", data, at)
        at += 26 + 16 * max(aborted, 0)
        size, = struct.unpack_from(">i", data, at)
        return error, high_watermark, data[at + 4:at + 4 + max(size, 0)]

    def list_offset(self, topic, partition, timestamp):
        """(error, timestamp, offset); -2 is the earliest, -1 the latest."""
        data = self.ask(LIST_OFFSETS, 1, struct.pack(">ii", -1, 1) + text(topic) + struct.pack(">iiq", 1, partition, timestamp))
        n, = struct.unpack_from(">h", data, 4)
        _, error, found, offset = struct.unpack_from(">ihqq", data, 6 + n + 4)
        return error, found, offset

    def alter_topic(self, topic, key, value):
        """IncrementalAlterConfigs: SET, or DELETE for None; the error."""
        operation = struct.pack(">b", 0 if value is not None else 1)
        body = struct.pack(">ib", 1, 2) + text(topic) + struct.pack(">i", 1) + text(key) + operation + (text(str(value)) if value is not None else struct.pack(">h", -1)) + b"\0"
        return struct.unpack_from(">h", self.ask(INCREMENTAL_ALTER_CONFIGS, 0, body), 8)[0]

    def delete_records(self, topic, partition, offset):
        """(error, low watermark); -1 is the high watermark."""
        data = self.ask(DELETE_RECORDS, 0, struct.pack(">i", 1) + text(topic) + struct.pack(">iiqi", 1, partition, offset, 30000))
        n, = struct.unpack_from(">h", data, 8)
        _, low, error = struct.unpack_from(">iqh", data, 10 + n + 4)
        return error, low

    def fetch_many(self, topic, offsets, max_bytes=1 << 20, wait_ms=0):
        """One request for several partitions: {partition: (error, bytes)}."""
        body = struct.pack(">iiiib", -1, wait_ms, 1, 50 << 20, 0) + struct.pack(">i", 1) + text(topic) + struct.pack(">i", len(offsets))
        body += b"".join(struct.pack(">iqi", partition, offset, max_bytes) for partition, offset in offsets.items())
        data = self.ask(FETCH, 4, body)
        n, = struct.unpack_from(">h", data, 8)
        at, answers = 10 + n + 4, {}
        for _ in offsets:
            partition, error, _, _, aborted, = struct.unpack_from(">ihqqi", data, at)
            at += 26 + 16 * max(aborted, 0)
            size, = struct.unpack_from(">i", data, at)
            answers[partition] = error, data[at + 4:at + 4 + max(size, 0)]
            at += 4 + max(size, 0)
        return answers

    def end_of_epoch(self, topic, partition, epoch):
        """(error, epoch, end offset): of the largest epoch that is not above `epoch`."""
        body = struct.pack(">i", 1) + text(topic) + struct.pack(">iiii", 1, partition, -1, epoch)
        data = self.ask(OFFSET_FOR_LEADER_EPOCH, 2, body)
        n, = struct.unpack_from(">h", data, 8)
        error, _, found, end = struct.unpack_from(">hiiq", data, 10 + n + 4)
        return error, found, end

    def read_all(self, topic, partition):
        """Every record from the log's start to its high watermark: [(offset, key, value)]."""
        _, _, offset = self.list_offset(topic, partition, -2)
        records = []
        while True:
            error, high_watermark, data = self.fetch(topic, partition, offset)
            assert error == 0, error
            if offset >= high_watermark:
                return records
            before = offset
            for record in records_of(data):
                if record[0] >= offset:
                    records.append(record)
            last, length = None, 0
            at = 0
            while at + 61 <= len(data):
                base, length = struct.unpack_from(">qi", data, at)
                if at + 12 + length > len(data):
                    break
                last = base + struct.unpack_from(">i", data, at + 23)[0]
                at += 12 + length
            offset = last + 1 if last is not None else high_watermark
            assert offset > before
