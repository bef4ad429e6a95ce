import com.informix.jdbc.IfxSmartBlob;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Blob;
import java.sql.Clob;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Does with JDBC what a line of standard input says, and prints what came of it.
 *
 * Rule: a line is a verb and its arguments, separated by tabs; each is answered by one line of JSON. An
 * exception is an answer too, and the conversation goes on.
 */
public final class Conversation {
    /** What is done for a verb; the first element of `line` is the verb. */
    private interface Verb {
        Object run(Conversation on, String... line) throws Exception;
    }

    private static final Map<String, Verb> VERBS = new TreeMap<>();

    static {
        VERBS.put("connect", (on, line) -> on.connect(line));
        VERBS.put("close", (on, line) -> on.close());
        VERBS.put("execute", (on, line) -> on.execute(line[1], 0));
        VERBS.put("timed", (on, line) -> on.execute(line[2], Integer.parseInt(line[1])));
        VERBS.put("cancelled", (on, line) -> on.cancelled(Long.parseLong(line[1]), line[2]));
        VERBS.put("bound", (on, line) -> on.bound(line));
        VERBS.put("batch", (on, line) -> on.batch(line));
        VERBS.put("scroll", (on, line) -> on.scroll(line));
        VERBS.put("interleaved", (on, line) -> on.interleaved(line));
        VERBS.put("autocommit", (on, line) -> on.quiet(c -> c.setAutoCommit(Boolean.parseBoolean(line[1]))));
        VERBS.put("commit", (on, line) -> on.quiet(Connection::commit));
        VERBS.put("rollback", (on, line) -> on.quiet(Connection::rollback));
        VERBS.put("savepoint", (on, line) -> on.savepoints.put(line[1], on.connection.setSavepoint(line[1])));
        VERBS.put("rollback to", (on, line) -> on.quiet(c -> c.rollback(on.savepoints.get(line[1]))));
        VERBS.put("release", (on, line) -> on.quiet(c -> c.releaseSavepoint(on.savepoints.get(line[1]))));
        VERBS.put("isolation", (on, line) -> on.isolation(Integer.parseInt(line[1])));
        VERBS.put("valid", (on, line) -> on.connection.isValid(Integer.parseInt(line[1])));
        VERBS.put("metadata", (on, line) -> on.metadata(line));
        VERBS.put("large objects", (on, line) -> on.largeObjects(line[1]));
        VERBS.put("lo tell", (on, line) -> new IfxSmartBlob(on.connection).IfxLoTell(Integer.parseInt(line[1])));
        VERBS.put("lo read", (on, line) -> on.loRead(Integer.parseInt(line[1]), Integer.parseInt(line[2])));
    }

    private final Map<String, Savepoint> savepoints = new HashMap<>();
    private Connection connection;

    /** Answers every line of standard input. */
    public static void main(String[] arguments) throws Exception {
        Class.forName("com.informix.jdbc.IfxDriver");
        Conversation conversation = new Conversation();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Json.print(conversation.answer(line.split("\t", -1)));
        }
    }

    private Map<String, Object> answer(String... line) {
        try {
            return Json.map("answer", VERBS.get(line[0]).run(this, line));
        } catch (Throwable thrown) {
            return Json.map("error", Json.error(thrown));
        }
    }

    private interface Act {
        void on(Connection connection) throws SQLException;
    }

    private Object quiet(Act act) throws SQLException {
        act.on(connection);
        return null;
    }

    private Object connect(String... line) throws SQLException {
        close();
        connection = DriverManager.getConnection(line[1], line[2], line[3]);
        DatabaseMetaData facts = connection.getMetaData();
        return Json.map("version", facts.getDatabaseProductVersion(), "driver", facts.getDriverVersion(),
            "autocommit", connection.getAutoCommit(), "transactions", facts.supportsTransactions());
    }

    private Object close() throws SQLException {
        if (connection != null) {
            Connection former = connection;
            connection = null;
            former.close();
        }
        return null;
    }

    private Object execute(String sql, int timeoutSeconds) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(timeoutSeconds);
            return outcome(statement, statement.execute(sql));
        }
    }

    private Object cancelled(long afterMilliseconds, String sql) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Thread canceller = new Thread(() -> cancelAfter(afterMilliseconds, statement));
            canceller.start();
            try {
                return outcome(statement, statement.execute(sql));
            } finally {
                canceller.join();
            }
        }
    }

    private static void cancelAfter(long milliseconds, Statement statement) {
        try {
            Thread.sleep(milliseconds);
            statement.cancel();
        } catch (InterruptedException | SQLException thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    private static Object outcome(Statement statement, boolean hasRows) throws SQLException {
        if (!hasRows) {
            return Json.map("count", statement.getUpdateCount());
        }
        try (ResultSet result = statement.getResultSet()) {
            return Json.map("columns", Values.columns(result.getMetaData()), "rows", Values.rows(result));
        }
    }

    private Object bound(String... line) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(line[1])) {
            bindAll(statement, Arrays.asList(line).subList(2, line.length));
            return outcome(statement, statement.execute());
        }
    }

    private static void bindAll(PreparedStatement statement, List<String> values) throws SQLException {
        for (int place = 1; place <= values.size(); place++) {
            Values.bind(statement, place, values.get(place - 1));
        }
    }

    /** Adds a row to a batch for every so many values as the first argument says. */
    private Object batch(String... line) throws SQLException {
        int width = Integer.parseInt(line[2]);
        try (PreparedStatement statement = connection.prepareStatement(line[1])) {
            for (int at = 3; at < line.length; at += width) {
                bindAll(statement, Arrays.asList(line).subList(at, at + width));
                statement.addBatch();
            }
            List<Object> counts = new ArrayList<>();
            Arrays.stream(statement.executeBatch()).forEach(counts::add);
            return counts;
        }
    }

    /** Moves a scroll cursor: next, previous, first, last, or the number of a row. */
    private Object scroll(String... line) throws SQLException {
        List<Object> seen = new ArrayList<>();
        try (Statement statement =
                    connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
                ResultSet result = statement.executeQuery(line[1])) {
            for (String move : Arrays.asList(line).subList(2, line.length)) {
                seen.add(moved(result, move) ? Values.row(result) : null);
            }
        }
        return seen;
    }

    private static boolean moved(ResultSet result, String move) throws SQLException {
        switch (move) {
            case "next": return result.next();
            case "previous": return result.previous();
            case "first": return result.first();
            case "last": return result.last();
            default: return result.absolute(Integer.parseInt(move));
        }
    }

    /** Reads two results in turn, a row of each: two cursors of one connection. */
    private Object interleaved(String... line) throws SQLException {
        List<Object> seen = new ArrayList<>();
        try (Statement one = connection.createStatement();
                Statement other = connection.createStatement();
                ResultSet left = one.executeQuery(line[1]);
                ResultSet right = other.executeQuery(line[2])) {
            while (left.next() & right.next()) {
                seen.add(Values.row(left));
                seen.add(Values.row(right));
            }
        }
        return seen;
    }

    private Object isolation(int level) throws SQLException {
        connection.setTransactionIsolation(level);
        return connection.getTransactionIsolation();
    }

    private Object metadata(String... line) throws SQLException {
        DatabaseMetaData facts = connection.getMetaData();
        String table = line.length > 2 ? line[2] : null;
        switch (line[1]) {
            case "tables": return named(facts.getTables(null, null, table, new String[] {"TABLE"}));
            case "columns": return named(facts.getColumns(null, null, table, "%"));
            case "primary keys": return named(facts.getPrimaryKeys(null, null, table));
            case "imported keys": return named(facts.getImportedKeys(null, null, table));
            case "index info": return named(facts.getIndexInfo(null, null, table, false, false));
            case "types": return named(facts.getTypeInfo());
            case "catalogs": return named(facts.getCatalogs());
            case "schemas": return named(facts.getSchemas());
            default: throw new IllegalArgumentException(line[1]);
        }
    }

    private static List<Object> named(ResultSet result) throws SQLException {
        List<Object> rows = new ArrayList<>();
        while (result.next()) {
            Map<String, Object> row = new TreeMap<>();
            for (int place = 1; place <= result.getMetaData().getColumnCount(); place++) {
                row.put(result.getMetaData().getColumnName(place).toLowerCase(), Values.text(result.getObject(place)));
            }
            rows.add(row);
        }
        result.close();
        return rows;
    }

    /** Returns the rows of a query of a BLOB and a CLOB: of each its length, its content, and all behind its first place. */
    private Object largeObjects(String sql) throws SQLException {
        List<Object> rows = new ArrayList<>();
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
            while (result.next()) {
                rows.add(Arrays.asList(shown(result.getBlob(1)), shown(result.getClob(2))));
            }
        }
        return rows;
    }

    private static Object shown(Blob blob) throws SQLException {
        if (blob == null) {
            return null;
        }
        int length = (int) blob.length();
        return Arrays.asList(blob.length(), Values.text(blob.getBytes(1, length)), Values.text(blob.getBytes(2, length)));
    }

    private static Object shown(Clob clob) throws SQLException {
        if (clob == null) {
            return null;
        }
        int length = (int) clob.length();
        return Arrays.asList(clob.length(), clob.getSubString(1, length), clob.getSubString(2, length));
    }

    private Object loRead(int descriptor, int bytes) throws SQLException {
        byte[] room = new byte[bytes];
        int count = new IfxSmartBlob(connection).IfxLoRead(descriptor, room, bytes);
        return Json.map("bytes", count, "hex", Values.text(Arrays.copyOf(room, Math.max(count, 0))));
    }
}
