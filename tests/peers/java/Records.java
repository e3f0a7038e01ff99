import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes records to partition 0, or reads all that it has, with the settings that it is given; what goes wrong is its end. Or it writes
 * and prints what went wrong, a line for each error and its causes. Words: "write", "read" or "refusal", the topic, the settings as
 * NAME=VALUE.
 *
 * A record is a line, to be written on standard input, read on standard output: key, value and headers (NAME=VALUE), with blanks between
 * them, base64 but for names.
 */
final class Records {
    private static final String TOKENS = "sasl.oauthbearer.token.endpoint.url";

    private static Properties settings(String[] words) {
        Properties settings = new Properties();
        for (String word : List.of(words).subList(2, words.length)) {
            String[] pair = word.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        if (settings.containsKey(TOKENS)) {
            // Java asks nobody for tokens whom the process as a whole does not allow.
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", settings.getProperty(TOKENS));
        }
        return settings;
    }

    private static String encoded(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, String line) {
        String[] parts = line.split(" ");
        Base64.Decoder base64 = Base64.getDecoder();
        var record = new ProducerRecord<>(topic, 0, base64.decode(parts[0]), base64.decode(parts[1]));
        for (String part : List.of(parts).subList(2, parts.length)) {
            String[] pair = part.split("=", 2);
            record.headers().add(pair[0], base64.decode(pair[1]));
        }
        return record;
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        var headers = StreamSupport.stream(record.headers().spliterator(), false)
            .map(header -> header.key() + "=" + encoded(header.value()));
        return Stream.concat(Stream.of(encoded(record.key()), encoded(record.value())), headers).collect(Collectors.joining(" "));
    }

    private static void write(String topic, Properties settings) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line : lines()) {
                sent.add(producer.send(record(topic, line)));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
    }

    private static List<String> lines() throws IOException {
        try (var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            return in.lines().toList();
        }
    }

    private static void read(String topic, Properties settings) {
        var all = List.of(new TopicPartition(topic, 0));
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            long end = consumer.endOffsets(all).get(all.get(0));
            while (consumer.position(all.get(0)) < end) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> System.out.println(line(record)));
            }
        }
    }

    private static void refusal(String topic, Properties settings) {
        try {
            write(topic, settings);
        } catch (Exception thrown) {
            for (Throwable each = thrown; each != null; each = each.getCause()) {
                System.out.println(each);
            }
        }
    }

    public static void main(String[] words) throws Exception {
        switch (words[0]) {
            case "write" -> write(words[1], settings(words));
            case "read" -> read(words[1], settings(words));
            case "refusal" -> refusal(words[1], settings(words));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }
}
