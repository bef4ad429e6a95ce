import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Runs Debezium's embedded engine, and prints every event's value as the engine makes it, a line each.
 *
 * Rule: standard input holds the engine's properties, then a line "run"; when it ends, the engine is closed.
 */
public final class DebeziumStream {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private DebeziumStream() {}

    /** Prints events until standard input ends. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
            .using(properties(input))
            .notifying(DebeziumStream::print)
            .using(DebeziumStream::completed)
            .build();
        ExecutorService thread = Executors.newSingleThreadExecutor();
        thread.execute(engine);
        while (input.readLine() != null) {
            continue;
        }
        engine.close();
        thread.shutdown();
        System.exit(0);
    }

    private static Properties properties(BufferedReader input) throws java.io.IOException {
        Properties made = new Properties();
        for (String line = input.readLine(); line != null && !line.equals("run"); line = input.readLine()) {
            int equals = line.indexOf('=');
            made.setProperty(line.substring(0, equals), line.substring(equals + 1));
        }
        return made;
    }

    private static void print(ChangeEvent<String, String> event) {
        printLine("{\"topic\":\"" + event.destination() + "\",\"value\":" + event.value() + "}");
    }

    private static void completed(boolean success, String message, Throwable error) {
        String said = String.valueOf(message).replaceAll("[\\\\\"\\s]+", " ");
        String cause = error == null ? "" : String.valueOf(error.getCause()).replaceAll("[\\\\\"\\s]+", " ");
        printLine("{\"completed\":" + success + ",\"message\":\"" + said + "\",\"cause\":\"" + cause + "\"}");
    }

    private static void printLine(String line) {
        synchronized (OUT) {
            OUT.println(line);
            OUT.flush();
        }
    }
}
