import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's own Java clients, for Apache Kafka and for pylog, over the one partition of a topic. */
final class KafkaSide {
    /** What a record of 200 bytes without a key takes in a batch, and a batch without records. */
    private static final int RECORD_BYTES = 209;
    private static final int BATCH_BYTES = 61;
    private static final int BUFFERED_BYTES = 4 << 20;
    /** The paper: every consumer may prefetch up to 200 kB, or 1,000 messages. */
    private static final int PREFETCHED_BYTES = 200_000;
    private static final int POLLED_MESSAGES = 1_000;

    private KafkaSide() {
    }

    private static Properties settings(String address) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        return settings;
    }

    static final class Producer implements Sender {
        private final String address;
        private final String topic;
        private final KafkaProducer<byte[], byte[]> producer;
        private volatile Exception failed;

        Producer(String address, String topic, int batch, boolean acknowledged) {
            this.address = address;
            this.topic = topic;
            Properties settings = settings(address);
            settings.put("acks", acknowledged ? "1" : "0");
            settings.put("enable.idempotence", "false");
            // Room for one batch of that many records; with 0 the client makes no batches.
            settings.put("batch.size", batch == 1 ? "0" : String.valueOf(BATCH_BYTES + batch * RECORD_BYTES + RECORD_BYTES / 2));
            // Little beside what is sent, so that little is left to send when all was handed over.
            settings.put("buffer.memory", String.valueOf(BUFFERED_BYTES));
            settings.put("linger.ms", batch == 1 ? "0" : "5");
            producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
            producer.partitionsFor(topic);
        }

        @Override
        public void send(byte[] value) {
            producer.send(new ProducerRecord<>(topic, 0, null, value), (metadata, error) -> {
                if (error != null) {
                    failed = error;
                }
            });
        }

        @Override
        public void finish(long sent) throws Exception {
            producer.flush();
            if (failed != null) {
                throw failed;
            }
            // Without acknowledgements a flush only says that all was written into a socket.
            TopicPartition partition = new TopicPartition(topic, 0);
            try (KafkaConsumer<byte[], byte[]> asking =
                    new KafkaConsumer<>(settings(address), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                long deadline = System.nanoTime() + 60_000_000_000L;
                while (asking.endOffsets(List.of(partition)).get(partition) < sent) {
                    if (System.nanoTime() > deadline) {
                        throw new IllegalStateException("some of " + sent + " records did not arrive in " + topic);
                    }
                    Thread.sleep(1);
                }
            }
        }

        @Override
        public void discard() {
            // Topics are made and deleted around the programs.
        }

        @Override
        public double meanBatch() {
            return producer.metrics().entrySet().stream()
                .filter(metric -> metric.getKey().group().equals("producer-metrics") && metric.getKey().name().equals("records-per-request-avg"))
                .mapToDouble(metric -> ((Number) metric.getValue().metricValue()).doubleValue())
                .sum();
        }

        @Override
        public void close() {
            producer.close();
        }
    }

    static final class Consumer implements Receiver {
        private final KafkaConsumer<byte[], byte[]> consumer;

        Consumer(String address, String topic) {
            Properties settings = settings(address);
            settings.put("group.id", "of-" + topic);
            settings.put("enable.auto.commit", "true");
            settings.put("fetch.max.bytes", String.valueOf(PREFETCHED_BYTES));
            settings.put("max.partition.fetch.bytes", String.valueOf(PREFETCHED_BYTES));
            settings.put("max.poll.records", String.valueOf(POLLED_MESSAGES));
            consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            consumer.position(partition);
            // The first commit finds the coordinator, and makes its topic.
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(0)));
        }

        @Override
        public void receive(long messages) {
            long left = messages;
            while (left > 0) {
                left -= consumer.poll(Duration.ofSeconds(1)).count();
            }
        }

        @Override
        public void close() {
            consumer.close();
        }
    }
}
