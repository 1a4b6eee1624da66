import java.time.Duration;
import java.util.List;
import java.util.Map;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads partition 0 of a topic from its beginning: Reader BOOTSTRAP TOPIC. Prints each record's offset, and `at` the position. */
public class Reader {
    public static void main(String[] arguments) {
        var partition = new TopicPartition(arguments[1], 0);
        var settings = Map.<String, Object>of("bootstrap.servers", arguments[0], "enable.auto.commit", false, "fetch.max.wait.ms", 500);
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            while (true) {
                for (var record : consumer.poll(Duration.ofMillis(200))) System.out.println(record.offset());
                System.out.println("at " + consumer.position(partition));
            }
        }
    }
}
