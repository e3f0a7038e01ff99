import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Java's clients with a schema registry: a schema is registered and looked up over HTTP, values are written as Confluent's serializer
 * writes them, by Apache Avro, and read again. Arguments: servers, registry, topic. Prints what became of each record.
 */
public class JavaAvro {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HttpClient HTTP = HttpClient.newHttpClient();
    static final Schema WRITER = new Schema.Parser().parse(
        "{\"type\":\"record\",\"name\":\"Person\",\"fields\":[{\"name\":\"name\",\"type\":\"string\"},{\"name\":\"age\",\"type\":\"int\"}]}");

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0], registry = arguments[1], topic = arguments[2];
        String body = JSON.writeValueAsString(Map.of("schema", WRITER.toString()));
        int id = JSON.readTree(http(HttpRequest.newBuilder(URI.create(registry + "/subjects/" + topic + "-value/versions"))
            .header("Content-Type", "application/vnd.schemaregistry.v1+json")
            .POST(HttpRequest.BodyPublishers.ofString(body)))).get("id").asInt();
        write(servers, topic, List.of(value(id, "Ada", 36), value(id, "Grace", 85)));
        write(servers, topic, List.of(value(id, "Lost", 1), "text".getBytes()));
        write(servers, topic, List.of(value(id, "Edsger", 72)));
        read(servers, registry, topic);
    }

    static String http(HttpRequest.Builder request) throws Exception {
        return HTTP.send(request.build(), BodyHandlers.ofString()).body();
    }

    static byte[] value(int id, String name, int age) throws Exception {
        GenericRecord person = new GenericData.Record(WRITER);
        person.put("name", name);
        person.put("age", age);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(0);
        out.write(ByteBuffer.allocate(4).putInt(id).array());
        var encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<GenericRecord>(WRITER).write(person, encoder);
        encoder.flush();
        return out.toByteArray();
    }

    /** Writes the values as one batch. */
    static void write(String servers, String topic, List<byte[]> values) throws Exception {
        Properties given = new Properties();
        given.put("bootstrap.servers", servers);
        given.put("linger.ms", 200);
        try (var producer = new KafkaProducer<>(given, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<?>> sent = new ArrayList<>();
            for (byte[] value : values) sent.add(producer.send(new ProducerRecord<>(topic, value)));
            for (Future<?> each : sent) {
                try {
                    each.get();
                    System.out.println("written");
                } catch (ExecutionException error) {
                    System.out.println(error.getCause().getClass().getSimpleName() + ": " + error.getCause().getMessage());
                }
            }
        }
    }

    static void read(String servers, String registry, String topic) throws Exception {
        Properties given = new Properties();
        given.put("bootstrap.servers", servers);
        try (var consumer = new KafkaConsumer<>(given, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    ByteBuffer value = ByteBuffer.wrap(record.value());
                    if (value.get() != 0) throw new IllegalStateException("no magic byte");
                    String found = http(HttpRequest.newBuilder(URI.create(registry + "/schemas/ids/" + value.getInt())));
                    Schema writer = new Schema.Parser().parse(JSON.readTree(found).get("schema").asText());
                    var decoder = DecoderFactory.get().binaryDecoder(value.array(), 5, value.remaining(), null);
                    System.out.println(new GenericDatumReader<GenericRecord>(writer).read(null, decoder));
                }
            }
        }
    }
}
