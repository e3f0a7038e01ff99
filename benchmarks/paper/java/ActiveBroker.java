import java.io.File;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;
import org.apache.activemq.store.kahadb.disk.journal.Journal.JournalDiskSyncStrategy;

/** An ActiveMQ Classic broker over KahaDB, which leaves syncs to the kernel: FOLDER PORT. Ends with its process. */
final class ActiveBroker {
    private ActiveBroker() {
    }

    public static void main(String[] words) throws Exception {
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(new File(words[0]));
        store.setJournalDiskSyncStrategy(JournalDiskSyncStrategy.NEVER.name());
        BrokerService broker = new BrokerService();
        broker.setBrokerName("paper");
        broker.setDataDirectory(words[0]);
        broker.setUseJmx(false);
        broker.setSchedulerSupport(false);
        broker.setPersistenceAdapter(store);
        broker.addConnector("tcp://127.0.0.1:" + words[1]);
        broker.start();
        broker.waitUntilStopped();
    }
}
