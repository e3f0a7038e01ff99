import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Sets levels of a broker's loggers (LOGGER=LEVEL), deletes others (LOGGER), and prints all that the broker has then, as LOGGER=LEVEL.
 * Words: the bootstrap server, the broker's id, the changes.
 */
final class LoggerLevels {
    public static void main(String[] words) throws Exception {
        ConfigResource loggers = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, words[1]);
        List<AlterConfigOp> changes = new ArrayList<>();
        for (String word : List.of(words).subList(2, words.length)) {
            String[] parts = word.split("=");
            boolean sets = parts.length == 2;
            ConfigEntry entry = new ConfigEntry(parts[0], sets ? parts[1] : null);
            changes.add(new AlterConfigOp(entry, sets ? AlterConfigOp.OpType.SET : AlterConfigOp.OpType.DELETE));
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", words[0]))) {
            if (!changes.isEmpty()) {
                admin.incrementalAlterConfigs(Map.of(loggers, changes)).all().get();
            }
            for (ConfigEntry entry : admin.describeConfigs(List.of(loggers)).all().get().get(loggers).entries()) {
                System.out.println(entry.name() + "=" + entry.value() + " " + entry.source());
            }
        }
    }
}
