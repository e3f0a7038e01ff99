/**
 * One producer: SYSTEM ADDRESS NAME WARM_UP MESSAGES BYTES BATCH ACKNOWLEDGED DISCARDED.
 *
 * First sends WARM_UP messages to NAME-warm, so that Java has compiled what is measured, then MESSAGES to NAME, and prints the seconds until the
 * broker had them, and the messages in one request on average.
 */
final class Produce {
    private Produce() {
    }

    public static void main(String[] words) throws Exception {
        long warmUp = Long.parseLong(words[3]);
        run(words, words[2] + "-warm", warmUp);
        System.out.println(run(words, words[2], Long.parseLong(words[4])));
    }

    private static String run(String[] words, String name, long messages) throws Exception {
        byte[] value = new byte[Integer.parseInt(words[5])];
        java.util.Arrays.fill(value, (byte) 'x');
        try (Sender sender = Systems.sender(words[0], words[1], name, Integer.parseInt(words[6]), Boolean.parseBoolean(words[7]))) {
            long started = System.nanoTime();
            for (long sent = 0; sent < messages; sent++) {
                sender.send(value);
            }
            sender.finish(messages);
            double all = secondsSince(started);
            if (Boolean.parseBoolean(words[8])) {
                sender.discard();
            }
            return all + " " + sender.meanBatch();
        }
    }

    private static double secondsSince(long started) {
        return (System.nanoTime() - started) / 1e9;
    }
}
