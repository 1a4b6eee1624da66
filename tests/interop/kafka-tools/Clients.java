import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Clients that share a transactional id or a group, whose behaviour depends on what the broker tells each of them.
 * Arguments: bootstrap, names of scenarios. A line for each: "name: ok" or what went wrong; the status counts those.
 * Settings of the broker: transactions and ids that time out are looked for every 100 ms, ids expire after 2 s.
 */
public class Clients {
    interface Scenario { void run() throws Exception; }

    static final Map<String, Scenario> scenarios = new LinkedHashMap<>();
    static String bootstrap;
    static Admin admin;

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    static void until(String what, BooleanSupplier holds) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!holds.getAsBoolean()) {
            check(System.nanoTime() < end, "not within a minute: " + what);
            Thread.sleep(10);
        }
    }

    static Properties settings(Object... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < more.length; i += 2) settings.put((String) more[i], String.valueOf(more[i + 1]));
        return settings;
    }

    static String topic(String name, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        return name;
    }

    // --- transactions ------------------------------------------------------------------------------------------------

    static KafkaProducer<String, String> begun(String id, Object... more) {
        Properties settings = settings(more);
        settings.put("transactional.id", id);
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        producer.beginTransaction();
        return producer;
    }

    static List<String> committed(String topic) {
        try (var consumer = new KafkaConsumer<>(settings("isolation.level", "read_committed", "auto.offset.reset", "earliest"), new StringDeserializer(), new StringDeserializer())) {
            var partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            List<String> values = new ArrayList<>();
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) values.add(record.value());
            }
            return values;
        }
    }

    static boolean isFenced(Throwable error) {
        for (; error != null; error = error.getCause()) {
            if (error instanceof ProducerFencedException || error instanceof InvalidProducerEpochException) return true;
        }
        return false;
    }

    static void fails(String what, Scenario call, Predicate<Throwable> as) throws Exception {
        try {
            call.run();
        } catch (Exception error) {
            check(as.test(error), what + " fails with " + error);
            return;
        }
        throw new AssertionError(what + " succeeds");
    }

    static TransactionState stateOf(String id) {
        try {
            return admin.describeTransactions(List.of(id)).description(id).get().state();
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    static void transactions() {
        scenarios.put("a second producer fences the first", () -> {
            String topic = topic("fenced", 1);
            ConsumerGroupMetadata group;
            try (var consumer = new KafkaConsumer<>(settings("group.id", "zombies"), new StringDeserializer(), new StringDeserializer())) {
                group = consumer.groupMetadata();
            }
            List<String> expected = new ArrayList<>();
            for (String call : List.of("send", "commit", "offsets", "abort")) {
                var first = begun(call);
                first.send(new ProducerRecord<>(topic, "first, " + call)).get();
                var second = begun(call);
                fails(call, () -> {
                    switch (call) {
                        case "send" -> first.send(new ProducerRecord<>(topic, "zombie")).get();
                        case "commit" -> first.commitTransaction();
                        case "offsets" -> first.sendOffsetsToTransaction(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1)), group);
                        default -> first.abortTransaction();
                    }
                }, Clients::isFenced);
                first.close(Duration.ZERO);
                second.send(new ProducerRecord<>(topic, "second, " + call)).get();
                second.commitTransaction();
                second.close();
                expected.add("second, " + call);
            }
            until("only the second ones' records are there", () -> committed(topic).equals(expected));
        });
        scenarios.put("a transaction that takes too long is over", () -> {
            String topic = topic("slow", 1);
            var slow = begun("slow", "transaction.timeout.ms", 500);
            slow.send(new ProducerRecord<>(topic, "late")).get();
            until("it is aborted", () -> stateOf("slow") == TransactionState.COMPLETE_ABORT);
            fails("its commit", slow::commitTransaction, KafkaException.class::isInstance);
            slow.close(Duration.ZERO);
            try (var again = begun("slow")) {
                again.send(new ProducerRecord<>(topic, "in time")).get();
                again.commitTransaction();
            }
            until("only the second one's record is there", () -> committed(topic).equals(List.of("in time")));
        });
        scenarios.put("an id that has expired begins anew", () -> {
            String topic = topic("idle", 1);
            var idle = begun("idle");
            idle.send(new ProducerRecord<>(topic, "before")).get();
            idle.commitTransaction();
            until("it has expired", () -> {
                try {
                    return admin.listTransactions().all().get().stream().map(TransactionListing::transactionalId).noneMatch("idle"::equals);
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            });
            // The producer is told that its id is nobody's; how it goes on is its own affair, or its application's.
            try {
                idle.beginTransaction();
                idle.send(new ProducerRecord<>(topic, "after")).get();
                idle.commitTransaction();
            } catch (Exception error) {
                idle.close(Duration.ZERO);
                idle = begun("idle");
                idle.send(new ProducerRecord<>(topic, "after")).get();
                idle.commitTransaction();
            }
            idle.close();
            until("both are there", () -> committed(topic).equals(List.of("before", "after")));
        });
    }

    // --- groups ------------------------------------------------------------------------------------------------------

    /** What the members of a group have done: each is on a thread of its own. */
    static final class Group {
        final String topic;
        final Map<TopicPartition, Member> owners = new ConcurrentHashMap<>();
        final Map<TopicPartition, Long> committed = new ConcurrentHashMap<>();
        final Set<String> read = ConcurrentHashMap.newKeySet();
        final List<String> wrong = Collections.synchronizedList(new ArrayList<>());

        Group(String topic, int partitions) throws Exception { this.topic = topic(topic, partitions); }

        boolean isWell() {
            check(wrong.isEmpty(), wrong.toString());
            return true;
        }
    }

    /** Commits what it has read; never reads what has been committed, or from a partition that another one has. */
    static final class Member extends Thread implements ConsumerRebalanceListener {
        final Group group;
        final AtomicInteger changes = new AtomicInteger();
        final KafkaConsumer<String, String> consumer;
        volatile boolean ended;

        Member(Group group, Object... options) {
            this.group = group;
            consumer = new KafkaConsumer<>(settings(options), new StringDeserializer(), new StringDeserializer());
            consumer.subscribe(List.of(group.topic), this);
            start();
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) changes.incrementAndGet();
            for (TopicPartition partition : partitions) {
                if (group.owners.putIfAbsent(partition, this) != null) group.wrong.add(partition + " is assigned twice");
            }
        }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            commit();
            onPartitionsLost(partitions);
        }

        @Override public void onPartitionsLost(Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) changes.incrementAndGet();
            for (TopicPartition partition : partitions) group.owners.remove(partition, this);
        }

        private void commit() {
            try {
                consumer.commitSync();
                for (TopicPartition partition : consumer.assignment()) group.committed.merge(partition, consumer.position(partition), Math::max);
            } catch (RebalanceInProgressException | CommitFailedException error) {
                // What was read is read again, by whoever gets the partition.
            }
        }

        @Override public void run() {
            try {
                while (!ended) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(20))) {
                        var partition = new TopicPartition(record.topic(), record.partition());
                        if (group.owners.get(partition) != this) group.wrong.add(partition + " is read by one that does not have it");
                        if (record.offset() < group.committed.getOrDefault(partition, 0L)) group.wrong.add(record.offset() + " of " + partition + " is read again");
                        group.read.add(record.value());
                    }
                    commit();
                }
                consumer.close();
            } catch (Exception error) {
                group.wrong.add(error.toString());
            } finally {
                group.owners.values().removeIf(this::equals);
            }
        }

        long held() { return group.owners.values().stream().filter(this::equals).count(); }

        void end() throws InterruptedException {
            ended = true;
            join();
        }
    }

    static Object[] options(String group, String protocol, Object... more) {
        List<Object> all = new ArrayList<>(List.of("group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest", "enable.auto.commit", false));
        if (protocol.equals("classic")) all.addAll(List.of("session.timeout.ms", 10000, "heartbeat.interval.ms", 200, "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"));
        all.addAll(List.of(more));
        return all.toArray();
    }

    static void groups() {
        scenarios.put("a group changes its protocol and back while it reads", () -> {
            var group = new Group("upgraded", 4);
            int[] sent = {0};
            var members = new ArrayList<Member>();
            try (var producer = new KafkaProducer<>(settings(), new StringSerializer(), new StringSerializer())) {
                Scenario settle = () -> {
                    until("every partition has a member", () -> group.isWell() && group.owners.size() == 4);
                    for (int i = 0; i < 40; ++i) producer.send(new ProducerRecord<>(group.topic, i % 4, null, "" + sent[0]++));
                    producer.flush();
                    until("all is read", () -> group.isWell() && group.read.size() == sent[0]);
                };
                for (String protocol : List.of("classic", "consumer", "classic")) {
                    // One after the other comes for one that goes, as in a rolling restart.
                    for (int i = 0; i < 2; ++i) {
                        var newcomer = new Member(group, options("upgraded", protocol));
                        members.add(newcomer);
                        until("the " + protocol + " member has partitions, beside " + (members.size() - 1), () -> group.isWell() && newcomer.held() > 0);
                        settle.run();
                        if (members.size() > 2) {
                            members.remove(0).end();
                            settle.run();
                        }
                    }
                }
            } finally {
                for (Member member : members) member.end();
            }
            group.isWell();
        });
        for (String protocol : List.of("classic", "consumer")) {
            scenarios.put("a static member of the " + protocol + " protocol comes back unnoticed", () -> {
                var group = new Group("static-" + protocol, 2);
                var one = new Member(group, options(group.topic, protocol, "group.instance.id", "one"));
                var other = new Member(group, options(group.topic, protocol, "group.instance.id", "other"));
                until("both have a partition", () -> group.isWell() && one.held() == 1 && other.held() == 1);
                int before = other.changes.get();
                one.end();
                var again = new Member(group, options(group.topic, protocol, "group.instance.id", "one"));
                until("it is back", () -> group.isWell() && again.held() == 1);
                check(other.held() == 1 && other.changes.get() == before, "the other member saw it");
                again.end();
                other.end();
                group.isWell();
            });
        }
    }

    public static void main(String[] arguments) {
        bootstrap = arguments[0];
        admin = Admin.create(settings());
        transactions();
        groups();
        var wanted = arguments.length > 1 ? List.of(arguments).subList(1, arguments.length) : List.copyOf(scenarios.keySet());
        int failed = 0;
        for (String name : wanted) {
            try {
                scenarios.get(name).run();
                System.out.println(name + ": ok");
            } catch (Throwable error) {
                ++failed;
                System.out.println(name + ": " + error);
            }
        }
        System.exit(failed);
    }
}
