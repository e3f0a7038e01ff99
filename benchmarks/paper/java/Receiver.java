/** A consumer of one system. Not for several threads. */
interface Receiver extends AutoCloseable {
    /** Returns when that many messages were received. */
    void receive(long messages) throws Exception;
}
