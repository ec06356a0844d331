import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs the main methods of Kafka's command line tools one after another in one JVM.
 *
 * Each line on standard input holds, parted by U+001F: the file to read as standard input, the files to write
 * standard output and error to, the class, and its arguments. The answer is a line "exit CODE" on standard output.
 */
public final class ToolHost {
    /** Unwinds a tool that asked to end the JVM. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /** The exit code that the tool asked for first; some catch the exception and then ask for another. */
    private static Integer asked;

    private static final List<Runnable> HOOKS = new ArrayList<>();

    private ToolHost() {}

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        // The console producer sends what it still holds in a hook, so the hooks run when their tool ends.
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            answers.println("exit " + run(line.split("\u001f", -1)));
            answers.flush();
        }
    }

    private static int run(String[] fields) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        InputStream in = System.in;
        try (InputStream toolIn = new FileInputStream(fields[0]);
                PrintStream toolOut = open(fields[1]);
                PrintStream toolErr = open(fields[2])) {
            System.setIn(toolIn);
            System.setOut(toolOut);
            System.setErr(toolErr);
            int code = call(fields[3], Arrays.copyOfRange(fields, 4, fields.length));
            HOOKS.forEach(Runnable::run);
            return code;
        } finally {
            HOOKS.clear();
            System.setIn(in);
            System.setOut(out);
            System.setErr(err);
        }
    }

    private static void end(int code) {
        if (asked == null) {
            asked = code;
        }
        throw new Ended();
    }

    private static int call(String name, String[] arguments) throws ReflectiveOperationException {
        asked = null;
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            if (asked == null) {
                e.getCause().printStackTrace();
                return 70;
            }
        }
        return asked == null ? 0 : asked;
    }

    private static PrintStream open(String path) throws Exception {
        return new PrintStream(new BufferedOutputStream(new FileOutputStream(path), 1 << 16), false, "UTF-8");
    }
}
