"""Where an answer may differ from Kafka's, and why."""

import fnmatch

# Path of the answer's field → the reason. What stands here is not what Kafka answers; everything else is.
KNOWN = [
    ("/create_topics/249 */0/Name", "holds the number of the run"),
    ("/create_topics/collide with each other/*", "two names that collide in one request: Kafka makes both"),
    ("/create_topics/timeout *", "the topic is there at once, so that no time is too short"),
    ("/describe_configs/broker, some/0/Configs/[16]/*", "Kafka's file gave it its node.id"),
    ("/elections/unknown type/*", "the error is at the top only"),
    ("/idempotence/producers/Topics/2/Partitions/0/ActiveProducers/?/ProducerEpoch", "ours stand in the order of their ids, Kafka's in a hash table's"),
    ("/fetch_sessions/after its deletion*", "a deleted topic's id is unknown to us; Kafka remembers its name in the session"),
    ("/fetch_sizes/*limit* -*", "negative limits count as 0; Kafka fails"),
    ("/list_offsets/end of -2 *", "no epoch is below -1"),
    ("/list_offsets/*current -2/*", "every negative epoch means: not known"),
    ("/list_offsets/epoch -2/*", "every negative epoch means: not known"),
    ("/produce/no partitions/*", "an empty list is answered by an empty list"),
    ("/produce_bad_batches/*of nothing*", "data that cannot be decompressed are an invalid record, not our fault"),
    ("/produce_bad_batches/gzip cut*", "data that cannot be decompressed are an invalid record, not our fault"),
    ("/produce_bad_batches/length 2147483647*", "a batch cut short, however large it claims to be"),
    ("/produce_bad_batches/record ten byte varint/*", "an invalid record, not our fault"),
    ("/quorum/v? both/*", "each partition is answered by itself"),
    ("/quorum/v2/Nodes", "no controller listener is configured"),
]


def reason(path, ours, kafkas):
    """The reason, or None if there is none."""
    if path.startswith("/api_versions/ranges/") and ours == "(missing)":
        return "not served; what is served has Kafka's versions"
    for pattern, why in KNOWN:
        if fnmatch.fnmatchcase(path, pattern):
            return why
    return None
