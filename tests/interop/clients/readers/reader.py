"""Reads partition 0 of a topic from its beginning with a Python client: reader.py CLIENT BOOTSTRAP TOPIC.

Prints the offset of each record, and `at OFFSET` when the client says that its position is there.
"""

import asyncio
import sys


def kafka_python(bootstrap, topic):
    from kafka import KafkaConsumer, TopicPartition
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, fetch_max_wait_ms=500)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    while True:
        for records in consumer.poll(timeout_ms=200).values():
            for record in records:
                print(record.offset, flush=True)
        print("at", consumer.position(partition), flush=True)


def aiokafka(bootstrap, topic):
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def read():
        partition = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, fetch_max_wait_ms=500) as consumer:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            while True:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    for record in records:
                        print(record.offset, flush=True)
                print("at", await consumer.position(partition), flush=True)

    asyncio.run(read())


def confluent(bootstrap, topic):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "of-nobody", "enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 500})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while True:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            print("at", message.offset(), flush=True)
        else:
            print(message.offset(), flush=True)


if __name__ == "__main__":
    {"kafka-python": kafka_python, "aiokafka": aiokafka, "confluent-python": confluent}[sys.argv[1]](*sys.argv[2:])
