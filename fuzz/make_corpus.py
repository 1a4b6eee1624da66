"""Seeds for the fuzz targets, from the golden data of Apache Kafka's own classes: fuzz/make_corpus.py SHARED DIRECTORY.

Makes DIRECTORY/<target>/ with the input that each target reads (its .cpp says how it is laid out): batches of every format
and codec, the index files, snapshots and checkpoints of SHARED/golden, the metadata records of SHARED/golden-metadata. Not
kept in version control: it takes a second to make.
"""

import glob
import hashlib
import itertools
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "interop", "service"))
import kafka_wire  # noqa: E402

LOG_BYTES_MAX = 8192  # of a seed: small inputs are tried more often
CHOICES = (0x00, 0xC1, 0xB2, 0x70)  # of record_fuzz: origin, codec, compaction, timestamp type


def entries(log):
    """The batches or messages of a log file."""
    at = 0
    while at + 17 <= len(log):
        size, = struct.unpack_from(">i", log, at + 8)
        if size < 14 or at + 12 + size > len(log):
            return
        yield log[at:at + 12 + size]
        at += 12 + size


def payload(entry):
    """(codec, magic, stream) of a compressed batch or wrapper."""
    magic = entry[16]
    if magic >= 2:
        return entry[22] & 7, 2, entry[61:]
    at = 18 if magic == 0 else 26
    key, = struct.unpack_from(">i", entry, at)
    return entry[17] & 7, magic, entry[at + 8 + max(key, 0):]


def values(entry):
    """The records' values of an uncompressed batch of format 2."""
    count, = struct.unpack_from(">i", entry, 57)
    at = 61
    for _ in range(count):
        size, at = kafka_wire.read_varint(entry, at)
        end = at + size
        at += 1                                  # attributes
        for _ in range(2):                       # timestamp and offset delta
            _, at = kafka_wire.read_varint(entry, at)
        for field in "key", "value":
            size, at = kafka_wire.read_varint(entry, at)
            if field == "value" and size > 0:
                yield entry[at:at + size]
            at += max(size, 0)
        at = end


def metadata_seeds(golden_metadata):
    for path in sorted(glob.glob(os.path.join(golden_metadata, "*", "**", "__cluster_metadata-0", "*"), recursive=True)):
        if not path.endswith((".log", ".checkpoint")):
            continue
        with open(path, "rb") as file:
            log = file.read()
        for entry in entries(log):
            if entry[16] == 2 and entry[22] & 0x27 == 0:     # neither compressed nor control
                for value in values(entry):
                    yield "protocol", b"\xff\xff\x00" + value


def seeds(golden):
    """(target, content) for all of the golden data."""
    for path in sorted(glob.glob(os.path.join(golden, "*", "*", "*", "*.log"))):
        with open(path, "rb") as file:
            log = file.read()
        for entry in entries(log):
            codec, magic, stream = payload(entry)
            yield "record", bytes([CHOICES[len(entry) % len(CHOICES)]]) + entry
            if 1 <= codec <= 4:
                yield "decompress", bytes([codec - 1 + 4 * magic]) + stream
        if len(log) <= LOG_BYTES_MAX:
            index, times = (open(path[:-4] + kind, "rb").read() if os.path.exists(path[:-4] + kind) else b"" for kind in (".index", ".timeindex"))
            offsets, stamps = min(len(index.rstrip(b"\0")) // 8 + 1, 255), min(len(times.rstrip(b"\0")) // 12 + 1, 255)
            for flags in (3, 7, 11, 15):
                yield "storage_open", bytes([flags, offsets, stamps]) + index[:8 * offsets].ljust(8 * offsets, b"\0") + times[:12 * stamps].ljust(12 * stamps, b"\0") + log
    for pattern in "*/*/*/*.snapshot", "*/*/*/*.txnindex", "*/*/*/leader-epoch-checkpoint", "*/*/*/partition.metadata", "*/*/*-checkpoint", "*/*/.kafka_cleanshutdown":
        for path in sorted(glob.glob(os.path.join(golden, pattern))):
            with open(path, "rb") as file:
                yield "storage_files", file.read()
            yield "storage_files", os.path.basename(path).encode()
    for path in sorted(glob.glob(os.path.join(golden, "*", "*", "*"))):
        yield "storage_files", os.path.basename(path).encode()
    yield "storage_files", b"version=1\ncluster.id=abc\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAACQ\n"


def main():
    shared, target = sys.argv[1:]
    counts = {}
    for name, content in itertools.chain(seeds(os.path.join(shared, "golden")), metadata_seeds(os.path.join(shared, "golden-metadata"))):
        folder = os.path.join(target, name)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, hashlib.sha256(content).hexdigest()[:16])
        if not os.path.exists(path):
            counts[name] = counts.get(name, 0) + 1
            with open(path, "wb") as file:
                file.write(content)
    print(", ".join(f"{name}: {n} seeds" for name, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
