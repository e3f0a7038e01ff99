import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job of Flink that copies the values of a topic into another, exactly once, until it is killed. Words: the brokers, both topics, the folder
 * of its checkpoints, and the checkpoint that it goes on from, if any.
 */
final class FlinkCopy {
    public static void main(String[] words) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "300ms");
        settings.setString("execution.checkpointing.dir", words[3]);
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("restart-strategy.type", "none");
        if (words.length > 4) {
            settings.setString("execution.state-recovery.path", words[4]);
        }
        var source = KafkaSource.<String>builder()
                .setBootstrapServers(words[0])
                .setTopics(words[1])
                .setGroupId("flink")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperty("isolation.level", "read_committed")
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        var sink = KafkaSink.<String>builder()
                .setBootstrapServers(words[0])
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic(words[2])
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("flink-copy")
                .setProperty("transaction.timeout.ms", "60000")
                .build();
        var job = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        job.fromSource(source, WatermarkStrategy.noWatermarks(), "source").sinkTo(sink);
        job.execute("copy");
    }
}
