import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs tools of Apache Kafka one after the other in one Java process, each as if the process were its own: its words, its standard
 * input and output, its exit code, its hooks at the end, and its static fields as they are at a start.
 *
 * A request on standard input is the number of words, the words (the main class first) and what the tool reads; the answer on standard
 * output is the exit code and what the tool printed to each of its two outputs. Words and texts are lengths and bytes.
 */
final class Tools {
    /** Ends the tool where it would have ended the process. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1;

        Exited() {
            super(null, null, false, false);
        }
    }

    /** Loads the classes of the tools anew, for their static fields; all others are those of this process. */
    private static final class Anew extends URLClassLoader {
        Anew(URL tools) {
            super(new URL[] {tools}, Tools.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools.") || name.startsWith("org.apache.kafka.tools.api.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? findClass(name) : loaded;
            }
        }
    }

    /** How Kafka ends a process, by the name that the class has in one release or another. */
    private static final List<String> EXITS =
        List.of("org.apache.kafka.common.utils.Exit", "org.apache.kafka.common.utils.internals.Exit");

    private final List<Runnable> hooks = new ArrayList<>();
    private Integer status;

    private Tools() throws ReflectiveOperationException {
        for (String name : EXITS) {
            try {
                Class<?> exit = Class.forName(name);
                set(exit, "setExitProcedure", "Procedure");
                set(exit, "setHaltProcedure", "Procedure");
                set(exit, "setShutdownHookAdder", "ShutdownHookAdder");
            } catch (ClassNotFoundException otherRelease) {
                continue;
            }
        }
    }

    private void set(Class<?> exit, String setter, String kind) throws ReflectiveOperationException {
        Class<?> asked = Class.forName(exit.getName() + "$" + kind);
        Object answer = Proxy.newProxyInstance(asked.getClassLoader(), new Class<?>[] {asked}, (proxy, method, words) -> {
            if (words[0] instanceof Integer code) {
                exit(code);
            }
            hooks.add((Runnable) words[1]);
            return null;
        });
        exit.getMethod(setter, asked).invoke(null, answer);
    }

    private void exit(int code) {
        status = status == null ? code : status;
        throw new Exited();
    }

    private int run(String main, String[] words) throws IOException {
        status = null;
        hooks.clear();
        try (Anew loader = new Anew(Class.forName(main).getProtectionDomain().getCodeSource().getLocation())) {
            Thread.currentThread().setContextClassLoader(loader);
            var method = Class.forName(main, true, loader).getDeclaredMethod("main", String[].class);
            method.setAccessible(true);
            try {
                method.invoke(null, (Object) words);
            } catch (InvocationTargetException thrown) {
                if (!(thrown.getCause() instanceof Exited)) {
                    thrown.getCause().printStackTrace();
                    status = status == null ? 1 : status;
                }
            }
            hooks.forEach(Runnable::run);
        } catch (ReflectiveOperationException wrong) {
            wrong.printStackTrace();
            status = 1;
        }
        return status == null ? 0 : status;
    }

    private static String text(DataInputStream in) throws IOException {
        return new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8);
    }

    private static void put(DataOutputStream out, ByteArrayOutputStream printed) throws IOException {
        out.writeInt(printed.size());
        printed.writeTo(out);
    }

    public static void main(String[] none) throws Exception {
        Tools all = new Tools();
        InputStream keyboard = System.in;
        DataInputStream in = new DataInputStream(keyboard);
        DataOutputStream out = new DataOutputStream(System.out);
        while (true) {
            int count;
            try {
                count = in.readInt();
            } catch (EOFException end) {
                // Threads that a tool left behind do not hold the process up.
                Runtime.getRuntime().halt(0);
                return;
            }
            String main = text(in);
            String[] words = new String[count - 1];
            for (int at = 0; at < words.length; at++) {
                words[at] = text(in);
            }
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(in.readNBytes(in.readInt())));
            System.setOut(new PrintStream(printed, true));
            System.setErr(new PrintStream(errors, true));
            int code = all.run(main, words);
            System.out.flush();
            System.err.flush();
            out.writeInt(code);
            put(out, printed);
            put(out, errors);
            out.flush();
        }
    }
}
