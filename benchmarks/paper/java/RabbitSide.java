import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.MessageProperties;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;

/** RabbitMQ's own Java client over one durable classic queue; messages are persistent. */
final class RabbitSide {
    /** Messages that may be on the way unconfirmed. */
    private static final int WINDOW = 1_000;

    private RabbitSide() {
    }

    private static Connection connected(String address) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(address.substring(0, address.lastIndexOf(':')));
        factory.setPort(Integer.parseInt(address.substring(address.lastIndexOf(':') + 1)));
        return factory.newConnection();
    }

    static final class Publisher implements Sender {
        private final String queue;
        private final boolean acknowledged;
        private final Connection connection;
        private final Channel channel;
        private final Semaphore window = new Semaphore(WINDOW);
        private final ConcurrentNavigableMap<Long, Boolean> open = new ConcurrentSkipListMap<>();
        private volatile boolean refused;

        Publisher(String address, String queue, boolean acknowledged) throws Exception {
            this.queue = queue;
            this.acknowledged = acknowledged;
            connection = connected(address);
            channel = connection.createChannel();
            channel.queueDeclare(queue, true, false, false, null);
            if (acknowledged) {
                channel.confirmSelect();
                channel.addConfirmListener(this::confirmed, (tag, multiple) -> refused = true);
            }
        }

        private void confirmed(long tag, boolean multiple) {
            if (!multiple) {
                open.remove(tag);
                window.release();
                return;
            }
            var done = open.headMap(tag, true);
            int count = 0;
            while (done.pollFirstEntry() != null) {
                count++;
            }
            window.release(count);
        }

        @Override
        public void send(byte[] value) throws Exception {
            if (acknowledged) {
                window.acquire();
                open.put(channel.getNextPublishSeqNo(), true);
            }
            channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, value);
        }

        @Override
        public void finish(long sent) throws Exception {
            if (acknowledged) {
                window.acquire(WINDOW);
            }
            // What the channel sent is taken in order, then the close is answered; the queue may be a little behind its channel.
            channel.close();
            try (Channel asking = connection.createChannel()) {
                while (asking.messageCount(queue) < sent) {
                    Thread.sleep(1);
                }
            }
            if (refused) {
                throw new IllegalStateException("RabbitMQ refused a message");
            }
        }

        @Override
        public void discard() throws Exception {
            try (Channel deleting = connection.createChannel()) {
                deleting.queueDelete(queue);
            }
        }

        @Override
        public double meanBatch() {
            return 1;
        }

        @Override
        public void close() throws Exception {
            connection.close();
        }
    }

    static final class Consumer implements Receiver {
        private final String queue;
        private final Connection connection;
        private final Channel channel;

        Consumer(String address, String queue) throws Exception {
            this.queue = queue;
            connection = connected(address);
            channel = connection.createChannel();
        }

        @Override
        public void receive(long messages) throws Exception {
            CountDownLatch all = new CountDownLatch(1);
            channel.basicConsume(queue, true, new DefaultConsumer(channel) {
                private long received;

                @Override
                public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
                    received++;
                    if (received == messages) {
                        all.countDown();
                    }
                }
            });
            all.await();
        }

        @Override
        public void close() throws Exception {
            connection.close();
        }
    }
}
