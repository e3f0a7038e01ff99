import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactions of one producer, each begun as soon as the one before is committed, with one record to each partition: the number of
 * the transaction. Words: servers, transactional id, topic, partitions, transactions. Prints the transactions per second; ends with
 * the first error that is not retriable.
 */
final class BackToBack {
    public static void main(String[] words) throws Exception {
        String topic = words[2];
        int partitions = Integer.parseInt(words[3]);
        int transactions = Integer.parseInt(words[4]);
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, words[0]);
        settings.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, words[1]);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            long begun = System.nanoTime();
            for (int number = 0; number < transactions; number++) {
                producer.beginTransaction();
                for (int partition = 0; partition < partitions; partition++) {
                    producer.send(new ProducerRecord<>(topic, partition, null, Integer.toString(number)));
                }
                producer.commitTransaction();
            }
            System.out.printf("%.1f%n", transactions * 1e9 / (System.nanoTime() - begun));
        }
    }
}
