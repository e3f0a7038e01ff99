import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.AsyncCallback;
import org.apache.activemq.command.ActiveMQDestination;

/** ActiveMQ's own Java client over one queue; messages are persistent and sent asynchronously. */
final class ActiveSide {
    /** Messages that may be on the way unacknowledged. */
    private static final int WINDOW = 1_000;
    private static final int PREFETCHED = 1_000;

    private ActiveSide() {
    }

    private static ActiveMQConnection connected(String address) throws JMSException {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("tcp://" + address);
        factory.setUseAsyncSend(true);
        factory.setWatchTopicAdvisories(false);
        factory.getPrefetchPolicy().setAll(PREFETCHED);
        return (ActiveMQConnection) factory.createConnection();
    }

    static final class Producer implements Sender, AsyncCallback {
        private final boolean acknowledged;
        private final ActiveMQConnection connection;
        private final Session session;
        private final Queue queue;
        private final ActiveMQMessageProducer producer;
        private final Semaphore window = new Semaphore(WINDOW);
        private volatile JMSException failed;

        Producer(String address, String queue, boolean acknowledged) throws JMSException {
            this.acknowledged = acknowledged;
            connection = connected(address);
            connection.start();
            session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            this.queue = session.createQueue(queue);
            producer = (ActiveMQMessageProducer) session.createProducer(this.queue);
            producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        }

        @Override
        public void onSuccess() {
            window.release();
        }

        @Override
        public void onException(JMSException error) {
            failed = error;
            window.release();
        }

        @Override
        public void send(byte[] value) throws Exception {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(value);
            if (acknowledged) {
                window.acquire();
                producer.send(message, this);
            } else {
                producer.send(message);
            }
        }

        @Override
        public void finish(long sent) throws Exception {
            if (acknowledged) {
                window.acquire(WINDOW);
            }
            // A request of the same connection, which the broker answers after all that came before it.
            session.createTemporaryQueue().delete();
            if (failed != null) {
                throw failed;
            }
        }

        @Override
        public void discard() throws JMSException {
            connection.destroyDestination((ActiveMQDestination) queue);
        }

        @Override
        public double meanBatch() {
            return 1;
        }

        @Override
        public void close() throws JMSException {
            connection.close();
        }
    }

    static final class Consumer implements Receiver {
        private final String queue;
        private final ActiveMQConnection connection;
        private final Session session;

        Consumer(String address, String queue) throws JMSException {
            this.queue = queue;
            connection = connected(address);
            session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        }

        @Override
        public void receive(long messages) throws Exception {
            CountDownLatch all = new CountDownLatch(1);
            long[] received = {0};
            session.createConsumer(session.createQueue(queue)).setMessageListener(message -> {
                received[0]++;
                if (received[0] == messages) {
                    all.countDown();
                }
            });
            connection.start();
            all.await();
        }

        @Override
        public void close() throws JMSException {
            connection.close();
        }
    }
}
