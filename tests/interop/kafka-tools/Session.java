import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Scanner;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs programs one after the other in one Java machine, since most of the time of a short one is the machine's start.
 *
 * In:  a line per program: main class, its standard input, its arguments; each in Base64, separated by blanks.
 * Out: a line: exit status, standard output, standard error, the texts in Base64.
 */
public class Session {
    /** Kafka's tools keep some of their state in static fields, so each run gets its own classes of them. */
    private static final class OwnTools extends ClassLoader {
        OwnTools() { super(Session.class.getClassLoader()); }

        @Override protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools.")) return super.loadClass(name, resolve);
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                if (loaded != null) return loaded;
                try (InputStream in = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
                    if (in == null) throw new ClassNotFoundException(name);
                    byte[] bytes = in.readAllBytes();
                    return defineClass(name, bytes, 0, bytes.length);
                } catch (java.io.IOException e) {
                    throw new ClassNotFoundException(name, e);
                }
            }
        }
    }

    private static final class Ended extends Error {
        Ended() { super(null, null, false, false); }
    }

    public static void main(String[] nothing) throws Exception {
        PrintStream answers = System.out;
        InputStream standardInput = System.in;
        PrintStream standardError = System.err;
        Scanner lines = new Scanner(standardInput, StandardCharsets.US_ASCII);
        while (lines.hasNextLine()) {
            List<String> words = new ArrayList<>();
            for (String word : lines.nextLine().split(" ", -1)) words.add(new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8));
            ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(words.get(1).getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int status = run(words.get(0), words.subList(2, words.size()).toArray(new String[0]));
            System.out.flush();
            System.err.flush();
            System.setErr(standardError);
            answers.println(status + " " + encoded(out) + " " + encoded(err));
            answers.flush();
        }
    }

    private static int run(String program, String[] arguments) {
        int[] status = {-1};   // of the first exit: what follows is only the program noticing that it has ended
        List<Runnable> hooks = new ArrayList<>();
        Exit.Procedure end = (code, message) -> {
            if (status[0] < 0) status[0] = code;
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        ClassLoader tools = new OwnTools();
        Thread.currentThread().setContextClassLoader(tools);
        try {
            tools.loadClass(program).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Ended)) {
                e.getCause().printStackTrace();
                if (status[0] < 0) status[0] = 1;
            }
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            status[0] = 1;
        }
        for (Runnable hook : hooks) {
            try {
                hook.run();
            } catch (Ended ended) {
                // It was about to end anyway.
            }
        }
        return Math.max(status[0], 0);
    }

    private static String encoded(ByteArrayOutputStream bytes) { return Base64.getEncoder().encodeToString(bytes.toByteArray()); }
}
