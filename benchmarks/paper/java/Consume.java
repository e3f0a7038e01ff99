/**
 * One consumer: SYSTEM ADDRESS NAME WARM_UP MESSAGES.
 *
 * First receives WARM_UP messages of NAME-warm, then MESSAGES of NAME from its beginning, and prints the seconds of the latter.
 */
final class Consume {
    private Consume() {
    }

    public static void main(String[] words) throws Exception {
        run(words, words[2] + "-warm", Long.parseLong(words[3]));
        System.out.println(run(words, words[2], Long.parseLong(words[4])));
    }

    private static double run(String[] words, String name, long messages) throws Exception {
        try (Receiver receiver = Systems.receiver(words[0], words[1], name)) {
            long started = System.nanoTime();
            receiver.receive(messages);
            return (System.nanoTime() - started) / 1e9;
        }
    }
}
