import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group that does what it is told, with explicit acknowledgements. Words: servers, group, topic, NAME=VALUE settings.
 *
 * A command is a line on standard input: "poll MS" until there are records or the time is over; "accept", "release", "reject" or
 * "renew" and a partition and an offset; "commit"; "close". Each is answered with lines, the last of which is "done".
 */
final class ShareMember {
    private final Map<String, ConsumerRecord<String, String>> held = new HashMap<>();
    private final KafkaShareConsumer<String, String> consumer;

    private ShareMember(String[] words) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("group.id", words[1]);
        settings.put("share.acknowledgement.mode", "explicit");
        for (int at = 3; at < words.length; at++) {
            String[] pair = words[at].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(words[2]));
    }

    private void poll(long ms) {
        long until = System.nanoTime() + ms * 1_000_000;
        int count = 0;
        do {
            for (var record : consumer.poll(Duration.ofMillis(100))) {
                held.put(record.partition() + " " + record.offset(), record);
                System.out.println("record " + record.partition() + " " + record.offset() + " "
                    + record.deliveryCount().map(Object::toString).orElse("none") + " " + record.value());
                count++;
            }
        } while (count == 0 && System.nanoTime() < until);
    }

    private void commit() {
        consumer.commitSync().forEach((partition, failed) -> System.out.println("committed " + partition.partition() + " "
            + failed.map(error -> error.getClass().getSimpleName()).orElse("ok")));
    }

    private void obey(String[] words) {
        switch (words[0]) {
            case "poll" -> poll(Long.parseLong(words[1]));
            case "commit" -> commit();
            case "close" -> consumer.close();
            default -> consumer.acknowledge(held.get(words[1] + " " + words[2]), AcknowledgeType.valueOf(words[0].toUpperCase()));
        }
    }

    public static void main(String[] words) throws Exception {
        ShareMember member = new ShareMember(words);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                member.obey(line.split(" "));
            } catch (RuntimeException failed) {
                System.out.println("failed " + failed.getClass().getSimpleName() + " " + failed.getMessage());
            }
            System.out.println("done");
            if (line.equals("close")) {
                return;
            }
        }
    }
}
