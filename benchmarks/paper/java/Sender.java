/** A producer of one system. Not for several threads. */
interface Sender extends AutoCloseable {
    /** Hands one message to the client, which may send it later; waits where the client is full. */
    void send(byte[] value) throws Exception;

    /** Returns when the broker has taken in all `sent` messages; fails when it refused one. */
    void finish(long sent) throws Exception;

    /** Deletes what was sent, unread, where that is a queue of its own. After `finish`. */
    void discard() throws Exception;

    /** How many messages went with one request, on average. */
    double meanBatch();
}
