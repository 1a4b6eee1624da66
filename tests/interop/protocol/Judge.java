import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Kafka's side of the comparison.
 *
 *   rewrite IN OUT              reads every message of IN with Kafka's classes and writes it again
 *   generate IN SEED COUNT OUT  COUNT random messages for each message and version of IN, made from Kafka's schemas;
 *                               fails if IN lacks a version that Kafka has
 *   tables                      prints the APIs and error codes
 *
 * Files hold entries: name (int16 length), int16 version, bytes (int32 length).
 */
public final class Judge {
    private record Entry(String name, short version, byte[] bytes) {}

    private static final String[] PATTERNS = {
        "org.apache.kafka.common.message.%sData",
        "org.apache.kafka.common.message.%s",
        "org.apache.kafka.common.metadata.%s",
        "org.apache.kafka.coordinator.group.generated.%s",
        "org.apache.kafka.coordinator.transaction.generated.%s",
        "org.apache.kafka.coordinator.share.generated.%s",
    };

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "rewrite" -> rewrite(args[1], args[2]);
            case "generate" -> generate(args[1], Long.parseLong(args[2]), Integer.parseInt(args[3]), args[4]);
            case "tables" -> tables();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static Class<?> classOf(String name) {
        for (String pattern : PATTERNS) {
            try {
                return Class.forName(String.format(pattern, name));
            } catch (ClassNotFoundException e) {
                // the next one
            }
        }
        throw new IllegalArgumentException("Kafka has no message " + name);
    }

    private static List<Entry> read(String path) throws IOException {
        List<Entry> entries = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(path)))) {
            while (in.available() > 0) {
                String name = in.readUTF();
                short version = in.readShort();
                entries.add(new Entry(name, version, in.readNBytes(in.readInt())));
            }
        }
        return entries;
    }

    private static void write(String path, List<Entry> entries) throws IOException {
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(path)))) {
            for (Entry entry : entries) {
                out.writeUTF(entry.name);
                out.writeShort(entry.version);
                out.writeInt(entry.bytes.length);
                out.write(entry.bytes);
            }
        }
    }

    private static byte[] rewritten(Entry entry) throws Exception {
        Message message = (Message) classOf(entry.name).getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(entry.bytes);
        message.read(new ByteBufferAccessor(buffer), entry.version);
        if (buffer.hasRemaining()) throw new IllegalStateException(buffer.remaining() + " bytes left");
        ByteBuffer out = MessageUtil.toByteBufferAccessor(message, entry.version).buffer();
        byte[] bytes = new byte[out.remaining()];
        out.get(bytes);
        return bytes;
    }

    private static void rewrite(String in, String out) throws Exception {
        List<Entry> entries = new ArrayList<>();
        for (Entry entry : read(in)) {
            try {
                entries.add(new Entry(entry.name, entry.version, rewritten(entry)));
            } catch (Exception e) {
                throw new IllegalStateException(entry.name + " version " + entry.version + ": " + HexFormat.of().formatHex(entry.bytes), e);
            }
        }
        write(out, entries);
    }

    private static void generate(String in, long seed, int count, String out) throws Exception {
        Map<String, TreeSet<Short>> versions = new LinkedHashMap<>();
        for (Entry entry : read(in)) versions.computeIfAbsent(entry.name, name -> new TreeSet<>()).add(entry.version);
        for (ApiMessageType type : ApiMessageType.values()) {
            for (Schema[] schemas : new Schema[][] {type.requestSchemas(), type.responseSchemas()}) {
                String name = type.name + (schemas == type.requestSchemas() ? "Request" : "Response");
                if (schemas.length > 0 && type.lowestSupportedVersion() <= type.highestSupportedVersion(true) && !versions.containsKey(name)) {
                    throw new IllegalStateException(name + " is missing");
                }
            }
        }
        Random random = new Random(seed);
        List<Entry> entries = new ArrayList<>();
        for (Map.Entry<String, TreeSet<Short>> message : versions.entrySet()) {
            Class<?> type = classOf(message.getKey());
            Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
            short lowest = type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
            short highest = type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
            TreeSet<Short> all = new TreeSet<>();
            for (short v = lowest; v <= highest; ++v) all.add(v);
            if (!message.getValue().equals(all)) throw new IllegalStateException(message.getKey() + ": " + message.getValue() + ", Kafka has " + all);
            for (short version : all) {
                for (int i = 0; i < count; ++i) {
                    Struct struct = (Struct) random(schemas[version], random, false);
                    ByteBuffer buffer = ByteBuffer.allocate(schemas[version].sizeOf(struct));
                    schemas[version].write(buffer, struct);
                    // The schemas write tagged fields that have their defaults; the message classes leave them out.
                    entries.add(new Entry(message.getKey(), version, rewritten(new Entry(message.getKey(), version, buffer.array()))));
                }
            }
        }
        write(out, entries);
    }

    private static Object random(Type type, Random random, boolean tagged) {
        // A null in a tagged field is written differently by Kafka's message classes than by its schemas.
        boolean struct = type instanceof Schema;
        if (type.isNullable() && !(struct && tagged) && random.nextInt(4) == 0) return null;
        if (type instanceof Schema schema) {
            Struct value = new Struct(schema);
            for (BoundField field : schema.fields()) value.set(field, random(field.def.type, random, false));
            return value;
        }
        if (type instanceof TaggedFields tags) return randomTags(tags, random);
        if (type.isArray()) {
            Object[] elements = new Object[random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(3)];
            for (int i = 0; i < elements.length; ++i) elements[i] = random(type.arrayElementType().get(), random, false);
            return elements;
        }
        return switch (type.toString()) {
            case "BOOLEAN" -> random.nextBoolean();
            case "INT8" -> (byte) random.nextInt();
            case "INT16" -> (short) (random.nextBoolean() ? random.nextInt() : random.nextInt(4) - 2);
            case "UINT16" -> random.nextInt(65536);
            case "INT32" -> random.nextBoolean() ? random.nextInt() : random.nextInt(4) - 2;
            case "UINT32" -> random.nextInt() & 0xffffffffL;
            case "INT64" -> random.nextBoolean() ? random.nextLong() : random.nextInt(4) - 2L;
            case "FLOAT64" -> random.nextGaussian();
            case "UUID" -> new Uuid(random.nextLong(), random.nextLong());
            case "STRING", "COMPACT_STRING", "NULLABLE_STRING", "COMPACT_NULLABLE_STRING" -> randomText(random);
            case "BYTES", "COMPACT_BYTES", "NULLABLE_BYTES", "COMPACT_NULLABLE_BYTES" -> ByteBuffer.wrap(randomBytes(random));
            case "RECORDS", "COMPACT_RECORDS", "NULLABLE_RECORDS", "COMPACT_NULLABLE_RECORDS" -> MemoryRecords.readableRecords(ByteBuffer.wrap(randomBytes(random)));
            default -> throw new IllegalArgumentException(type.toString());
        };
    }

    private static TreeMap<Integer, Object> randomTags(TaggedFields tags, Random random) {
        TreeMap<Integer, Object> values = new TreeMap<>();
        for (Map.Entry<Integer, Field> field : tags.fields().entrySet()) {
            if (random.nextBoolean()) values.put(field.getKey(), random(field.getValue().type, random, true));
        }
        // Unknown ones, beyond the tags that any version knows: Kafka's classes refuse a known tag in the wrong version.
        if (random.nextInt(4) == 0) {
            int tag = 20 + random.nextInt(200);
            values.put(tag, new RawTaggedField(tag, randomBytes(random)));
        }
        return values;
    }

    private static int randomSize(Random random) {
        return random.nextInt(30) == 0 ? 125 + random.nextInt(10) : random.nextInt(4) == 0 ? 0 : random.nextInt(12);
    }

    private static String randomText(Random random) {
        String[] pieces = {"a", "Z", "0", "-", ".", "é", "水", "🌊"};
        StringBuilder text = new StringBuilder();
        for (int size = randomSize(random); size > 0; --size) text.append(pieces[random.nextInt(pieces.length)]);
        return text.toString();
    }

    private static byte[] randomBytes(Random random) {
        byte[] bytes = new byte[randomSize(random)];
        random.nextBytes(bytes);
        return bytes;
    }

    private static void tables() {
        for (ApiMessageType type : ApiMessageType.values()) {
            short lowest = type.lowestSupportedVersion();
            short highest = type.highestSupportedVersion(false);
            if (lowest > type.highestSupportedVersion(true)) continue;  // removed
            StringBuilder line = new StringBuilder("api " + type.apiKey() + " " + type.name + " " + lowest + "-" + highest + " headers");
            for (short v = lowest; v <= highest; ++v) line.append(" ").append(type.requestHeaderVersion(v)).append("/").append(type.responseHeaderVersion(v));
            line.append(type.listeners().contains(ApiMessageType.ListenerType.BROKER) ? " broker" : "");
            line.append(type.listeners().contains(ApiMessageType.ListenerType.CONTROLLER) ? " controller" : "");
            System.out.println(line);
        }
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof org.apache.kafka.common.errors.RetriableException;
            System.out.println("error " + error.code() + " " + error.name() + (retriable ? " retriable" : ""));
        }
    }
}
