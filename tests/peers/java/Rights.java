import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/**
 * Makes users (user:NAME=PASSWORD), deletes them (no-user:NAME), sets quotas (quota:USER=BYTES, quota: for the default user) and removes
 * them (no-quota:USER), and prints all users and quotas that the broker has then. Words: the bootstrap server, the changes.
 */
final class Rights {
    private static final ScramMechanism MECHANISM = ScramMechanism.SCRAM_SHA_512;
    private static final String QUOTA = "producer_byte_rate";

    public static void main(String[] words) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", words[0]))) {
            for (String word : List.of(words).subList(1, words.length)) {
                String[] parts = word.split("[:=]", -1);
                switch (parts[0]) {
                    case "user" -> admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
                        parts[1], new ScramCredentialInfo(MECHANISM, 4096), parts[2]))).all().get();
                    case "no-user" -> admin.alterUserScramCredentials(List.of(
                        new UserScramCredentialDeletion(parts[1], MECHANISM))).all().get();
                    case "quota" -> quota(admin, parts[1], Double.valueOf(parts[2]));
                    case "no-quota" -> quota(admin, parts[1], null);
                    default -> throw new IllegalArgumentException(word);
                }
            }
            new TreeMap<>(admin.describeUserScramCredentials().all().get()).forEach((name, user) ->
                System.out.println("user " + name + " " + user.credentialInfos()));
            List<String> quotas = new ArrayList<>();
            admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((entity, values) ->
                quotas.add("quota " + entity.entries() + " " + new TreeMap<>(values)));
            quotas.stream().sorted().forEach(System.out::println);
        }
    }

    private static void quota(Admin admin, String user, Double value) throws Exception {
        Map<String, String> entity = new HashMap<>();
        entity.put(ClientQuotaEntity.USER, user.isEmpty() ? null : user);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(entity), List.of(new ClientQuotaAlteration.Op(QUOTA, value))))).all().get();
    }
}
