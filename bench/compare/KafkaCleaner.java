import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Apache Kafka's cleaner over partition directories, one after the other in one JVM, with the buffers of a broker with one cleaner
 * thread. A line of JSON for each: the processor time of the cleaning thread alone, so the collector's and the compiler's is a
 * gift; the first directories serve to warm up.
 */
public class KafkaCleaner {
    public static void main(String[] directories) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        for (String directory : directories)
            clean(new File(directory), scheduler);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void clean(File directory, KafkaScheduler scheduler) throws Exception {
        Map<String, String> settings = new HashMap<>();
        settings.put("cleanup.policy", "compact");
        settings.put("segment.bytes", String.valueOf(128 << 20));
        UnifiedLog log = UnifiedLog.create(directory, new LogConfig(settings), 0L, 0L, scheduler, new BrokerTopicStats(), Time.SYSTEM, 900000,
            new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(1), true, Optional.empty(), new ConcurrentHashMap<>(), false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        log.updateHighWatermark(log.logEndOffset());
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(134217728, "MD5"), 262144, 1048588, 0.9, new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM),
            Time.SYSTEM, partition -> { });
        LogToClean dirty = new LogToClean(log, 0, log.activeSegment().baseOffset(), false);
        var threads = ManagementFactory.getThreadMXBean();
        long began = threads.getCurrentThreadCpuTime();
        Map.Entry<Long, CleanerStats> result = cleaner.clean(dirty);
        double seconds = (threads.getCurrentThreadCpuTime() - began) / 1e9;
        CleanerStats stats = result.getValue();
        System.out.printf("{\"cpu_seconds\": %.3f, \"bytes_read\": %d, \"bytes_written\": %d, \"messages_read\": %d, \"messages_written\": %d, \"end_offset\": %d}%n",
            seconds, stats.bytesRead(), stats.bytesWritten(), stats.messagesRead(), stats.messagesWritten(), result.getKey());
        log.close();
    }
}
