// Writes what Apache Kafka's own definitions say of every configuration key: tests/unit/metadata/config_keys.txt.
//
//     java -cp '<kafka>/libs/*' ConfigKeys.java >../../unit/metadata/config_keys.txt

import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;

public class ConfigKeys {
    static void write(String scope, Map<String, ConfigDef.ConfigKey> keys, Map<String, String> modes) {
        for (var key : new TreeMap<>(keys).values()) {
            boolean none = key.defaultValue == null || key.defaultValue == ConfigDef.NO_DEFAULT_VALUE;
            System.out.println(String.join("\t", scope, key.name, key.type.toString(),
                none ? "null" : "=" + ConfigDef.convertToString(key.defaultValue, key.type),
                key.validator == null ? "" : key.validator.toString(), String.valueOf(key.internalConfig),
                modes.getOrDefault(key.name, "read-only")));
        }
    }

    public static void main(String[] arguments) {
        System.out.println("# By Apache Kafka 4.4.0: scope, key, type, default, valid values, internal, who may change it at run time.");
        var modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        var broker = new TreeMap<>(DynamicConfig.Broker.configKeys());   // those that only exist at run time
        broker.putAll(kafka.server.KafkaConfig.configDef().configKeys());
        write("broker", broker, modes);
        write("topic", org.apache.kafka.storage.internals.log.LogConfig.configKeys(), Map.of());
        write("group", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF.configKeys(), Map.of());
        write("client-metrics", org.apache.kafka.server.metrics.ClientMetricsConfigs.configDef().configKeys(), Map.of());
    }
}
