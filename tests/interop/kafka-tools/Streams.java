import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * A Kafka Streams application with exactly_once_v2: of each key in `in` it keeps how many values there were and a sum that
 * depends on their order, and writes both to `out` at each value. The store is in memory, so after a start it is what its
 * changelog says. Arguments: bootstrap, directory. Ends with its standard input.
 */
public class Streams {
    static final String STORE = "history";

    static final class History implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;

        @Override public void init(ProcessorContext<String, String> context) {
            this.context = context;
            store = context.getStateStore(STORE);
        }

        @Override public void process(Record<String, String> record) {
            String before = store.get(record.key());
            String[] parts = (before == null ? "0 0" : before).split(" ");
            long count = Long.parseLong(parts[0]) + 1;
            long sum = (Long.parseLong(parts[1]) * 31 + Long.parseLong(record.value())) % 1_000_000_007L;
            String now = count + " " + sum;
            store.put(record.key(), now);
            context.forward(record.withValue(now));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "streams");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 50);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        settings.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 500);

        StreamsBuilder builder = new StreamsBuilder();
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(STORE), Serdes.String(), Serdes.String()).withCachingDisabled().withLoggingEnabled(Map.of()));
        builder.<String, String>stream("in").process(History::new, STORE).to("out");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(e -> {
            System.err.println("a thread is replaced: " + e);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.err.println(before + " -> " + now));
        streams.start();
        while (System.in.read() >= 0) {}
        System.exit(streams.close(Duration.ofSeconds(30)) ? 0 : 1);
    }
}
