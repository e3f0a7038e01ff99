import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

/** Prints the names of all settings that Apache Kafka's clients know. */
final class ClientSettings {
    public static void main(String[] none) {
        ConsumerConfig.configNames().forEach(System.out::println);
        ProducerConfig.configNames().forEach(System.out::println);
        AdminClientConfig.configNames().forEach(System.out::println);
    }
}
