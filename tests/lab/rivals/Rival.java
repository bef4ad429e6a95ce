import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.RecordChangeEvent;
import io.debezium.engine.format.ChangeEventFormat;
import io.debezium.engine.format.Json;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Debezium's embedded engine with a sink of one file.
 *
 * <p>java Rival PROPERTIES events FILE [MILLISECONDS] appends each event as a line, unbuffered, before it
 * is marked as processed, and takes so long over it; java Rival PROPERTIES count ROWS counts rows of the
 * cheapest format and prints the CPU time and clock at the first and at the last one. The end of its
 * input is an orderly stop. What the engine says at its end is printed as a line that begins with DONE.
 */
public final class Rival {
    private static volatile long seen;

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (InputStream file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        DebeziumEngine<?> engine =
                arguments[1].equals("count")
                        ? counting(properties, Long.parseLong(arguments[2]))
                        : writing(properties, arguments[2], arguments.length > 3 ? Long.parseLong(arguments[3]) : 0);
        ExecutorService thread = Executors.newSingleThreadExecutor();
        thread.execute(engine);
        System.out.println("STARTED");
        while (System.in.read() >= 0) {}
        engine.close();
        thread.shutdown();
        System.exit(0);
    }

    private static DebeziumEngine<?> writing(Properties properties, String path, long milliseconds) throws Exception {
        PrintStream sink = new PrintStream(new FileOutputStream(path, true), true, "UTF-8");
        return DebeziumEngine.create(Json.class)
                .using(properties)
                .notifying(
                        (events, committer) -> {
                            for (ChangeEvent<String, String> event : events) {
                                if (event.value() != null) {
                                    sink.print(System.currentTimeMillis() + "\t" + event.value() + "\n");
                                }
                                if (milliseconds > 0) Thread.sleep(milliseconds);
                                committer.markProcessed(event);
                            }
                            committer.markBatchFinished();
                        })
                .using(Rival::ended)
                .build();
    }

    private static DebeziumEngine<?> counting(Properties properties, long rows) {
        return DebeziumEngine.create(ChangeEventFormat.of(Connect.class))
                .using(properties)
                .notifying(
                        (events, committer) -> {
                            for (RecordChangeEvent<SourceRecord> event : events) {
                                if (event.record().value() != null && ++seen == 1) tell("FIRST");
                                if (seen == rows) tell("LAST");
                                committer.markProcessed(event);
                            }
                            committer.markBatchFinished();
                        })
                .using(Rival::ended)
                .build();
    }

    private static void tell(String what) {
        com.sun.management.OperatingSystemMXBean system =
                (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        System.out.println(what + " " + system.getProcessCpuTime() / 1e9 + " " + System.nanoTime() / 1e9);
    }

    private static void ended(boolean success, String message, Throwable error) {
        System.out.println("DONE " + success + " " + message);
        if (error != null) error.printStackTrace(System.out);
    }
}
