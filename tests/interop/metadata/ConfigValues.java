// Asks Apache Kafka's own definitions what they say of configuration values: reads "scope <tab> key <tab> value" lines
// (scope topic, broker, group or client-metrics; "\t" and "\n" escaped), writes each with "ok" and the value as Kafka
// prints it, or "error" and the text. Its output for config_values.in is tests/unit/metadata/config_values.txt:
//
//     java -cp '<kafka>/libs/*' ConfigValues.java <config_values.in >../../unit/metadata/config_values.txt

import java.io.*;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;

public class ConfigValues {
    static String escape(String s) {
        return s.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, ConfigDef> scopes = Map.of(
            "broker", kafka.server.KafkaConfig.configDef(),
            "topic", org.apache.kafka.storage.internals.log.LogConfig.configDefCopy(),
            "group", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF,
            "client-metrics", org.apache.kafka.server.metrics.ClientMetricsConfigs.configDef());
        var in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        var out = new PrintStream(System.out, true, "UTF-8");
        for (String line; (line = in.readLine()) != null; ) {
            if (line.isEmpty() || line.startsWith("#")) continue;
            String[] part = line.split("\t", -1);
            String value = part[2].replace("\\t", "\t").replace("\\n", "\n");
            ConfigDef.ConfigKey key = scopes.get(part[0]).configKeys().get(part[1]);
            String answer;
            try {
                // As a broker does: a definition drops repeated words of a list before it validates.
                Object parsed = new ConfigDef().define(key).parse(Map.of(key.name, value)).get(key.name);
                answer = "ok\t" + escape(String.valueOf(ConfigDef.convertToString(parsed, key.type)));
            } catch (ConfigException e) {
                answer = "error\t" + escape(e.getMessage());
            }
            out.println(line + "\t" + answer);
        }
    }
}
