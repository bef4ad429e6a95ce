import com.informix.jdbcx.IfxDataSource;
import com.informix.stream.api.IfmxStreamRecord;
import com.informix.stream.cdc.IfxCDCEngine;
import com.informix.stream.cdc.records.IfxCDCBeginTransactionRecord;
import com.informix.stream.cdc.records.IfxCDCCommitTransactionRecord;
import com.informix.stream.cdc.records.IfxCDCErrorRecord;
import com.informix.stream.cdc.records.IfxCDCOperationRecord;
import com.informix.stream.cdc.records.IfxCDCTruncateRecord;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Captures tables with IBM's change-stream client, and prints every record that it gives.
 *
 * Rule: arguments are the URL, the manner (one: getRecord, many: getRecords), how many records a read may
 * bring (0: the client's own default), the sequence number to begin at, the seconds of the session's timeout,
 * the bytes of a read, and tables as db:owner.table=column,column. It ends when standard input does.
 */
public final class ChangeStream {
    private static volatile boolean stopping;

    private ChangeStream() {}

    /** Prints records until standard input ends. */
    public static void main(String[] arguments) throws Exception {
        IfxCDCEngine engine = engine(arguments);
        engine.init();
        Json.print(Json.map("ready", true));
        Thread input = new Thread(ChangeStream::waitForEnd);
        input.setDaemon(true);
        input.start();
        try {
            while (!stopping) {
                records(engine, arguments[1]).forEach(ChangeStream::print);
            }
        } finally {
            engine.close();
        }
        Json.print(Json.map("closed", true));
        System.exit(0);
    }

    private static IfxCDCEngine engine(String... arguments) throws Exception {
        IfxCDCEngine.Builder builder = new IfxCDCEngine.Builder(new IfxDataSource(arguments[0]));
        builder.sequenceId(Long.parseLong(arguments[3])).timeout(Integer.parseInt(arguments[4]));
        builder.buffer(Integer.parseInt(arguments[5]));
        if (!arguments[2].equals("0")) {  // 1.1.3 has no such setting
            builder.getClass().getMethod("maxRecords", int.class).invoke(builder, Integer.parseInt(arguments[2]));
        }
        for (int at = 6; at < arguments.length; at++) {
            String[] tableAndColumns = arguments[at].split("=");
            builder.watchTable(tableAndColumns[0], tableAndColumns[1].split(","));
        }
        return builder.build();
    }

    @SuppressWarnings("unchecked")
    private static List<IfmxStreamRecord> records(IfxCDCEngine engine, String manner) throws Exception {
        if (manner.equals("many")) {  // nor has it this
            return (List<IfmxStreamRecord>) engine.getClass().getMethod("getRecords").invoke(engine);
        }
        List<IfmxStreamRecord> one = new ArrayList<>();
        IfmxStreamRecord record = engine.getRecord();
        if (record != null) {
            one.add(record);
        }
        return one;
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (java.io.IOException ended) {
            // as good as an end
        }
        stopping = true;
    }

    private static void print(IfmxStreamRecord record) {
        Map<String, Object> facts = Json.map("type", record.getType().name(), "label", record.getLabel(),
            "transaction", record.getTransactionId(), "sequence", record.getSequenceId());
        try {
            addFacts(record, facts);
        } catch (Throwable thrown) {
            facts.put("error", Json.error(thrown));
        }
        Json.print(facts);
    }

    private static void addFacts(IfmxStreamRecord record, Map<String, Object> facts) throws Exception {
        if (record instanceof IfxCDCOperationRecord) {
            facts.put("data", values(((IfxCDCOperationRecord) record).getData()));
        } else if (record instanceof IfxCDCBeginTransactionRecord) {
            facts.put("user", ((IfxCDCBeginTransactionRecord) record).getUserId());
            facts.put("time", ((IfxCDCBeginTransactionRecord) record).getTime());
        } else if (record instanceof IfxCDCCommitTransactionRecord) {
            facts.put("time", ((IfxCDCCommitTransactionRecord) record).getTime());
        } else if (record instanceof IfxCDCTruncateRecord) {
            facts.put("user", ((IfxCDCTruncateRecord) record).getUserId());
        } else if (record instanceof IfxCDCErrorRecord) {
            facts.put("number", ((IfxCDCErrorRecord) record).getError());
            facts.put("flags", ((IfxCDCErrorRecord) record).getFlags());
        }
    }

    /** The type of a value has another name in each version of the driver, and the same methods. */
    private static Map<String, Object> values(Map<String, ?> data) {
        Map<String, Object> texts = new LinkedHashMap<>();
        data.forEach((name, value) -> texts.put(name, text(value)));
        return texts;
    }

    private static Object text(Object value) {
        try {
            boolean isNull = (Boolean) value.getClass().getMethod("isNull").invoke(value);
            return isNull ? null : Values.text(value.getClass().getMethod("toObject").invoke(value));
        } catch (ReflectiveOperationException thrown) {
            return Json.map("error", Json.error(thrown.getCause() == null ? thrown : thrown.getCause()));
        }
    }
}
