import java.math.BigDecimal;
import java.sql.Date;
import java.sql.JDBCType;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Values between JDBC and lines of text.
 *
 * Rule: a value is sent as kind=text, and comes back as the text of the object that the driver gives for
 * it: a decimal in plain notation, bytes in hex.
 */
final class Values {
    /** Sets a parameter from its text. */
    private interface Setter {
        void set(PreparedStatement statement, int place, String text) throws SQLException;
    }

    private static final Map<String, Setter> SETTERS = Map.ofEntries(
        Map.entry("short", (s, i, text) -> s.setShort(i, Short.parseShort(text))),
        Map.entry("int", (s, i, text) -> s.setInt(i, Integer.parseInt(text))),
        Map.entry("long", (s, i, text) -> s.setLong(i, Long.parseLong(text))),
        Map.entry("decimal", (s, i, text) -> s.setBigDecimal(i, new BigDecimal(text))),
        Map.entry("double", (s, i, text) -> s.setDouble(i, Double.parseDouble(text))),
        Map.entry("float", (s, i, text) -> s.setFloat(i, Float.parseFloat(text))),
        Map.entry("boolean", (s, i, text) -> s.setBoolean(i, Boolean.parseBoolean(text))),
        Map.entry("string", PreparedStatement::setString),
        Map.entry("date", (s, i, text) -> s.setDate(i, Date.valueOf(text))),
        Map.entry("timestamp", (s, i, text) -> s.setTimestamp(i, Timestamp.valueOf(text))),
        Map.entry("null", (s, i, text) -> s.setNull(i, JDBCType.valueOf(text).getVendorTypeNumber())));

    private Values() {}

    /** Sets parameter `place` from kind=text. */
    static void bind(PreparedStatement statement, int place, String kindAndText) throws SQLException {
        int equals = kindAndText.indexOf('=');
        SETTERS.get(kindAndText.substring(0, equals)).set(statement, place, kindAndText.substring(equals + 1));
    }

    /** Returns the value's text, or null. */
    static Object text(Object value) {
        if (value instanceof BigDecimal) {
            return ((BigDecimal) value).toPlainString();
        }
        if (value instanceof byte[]) {
            return java.util.HexFormat.of().formatHex((byte[]) value);
        }
        return value == null ? null : value.toString();
    }

    /** Returns the present row of a result. */
    static List<Object> row(ResultSet result) throws SQLException {
        List<Object> values = new ArrayList<>();
        for (int place = 1; place <= result.getMetaData().getColumnCount(); place++) {
            values.add(text(result.getObject(place)));
        }
        return values;
    }

    /** Returns the rows that are left. */
    static List<Object> rows(ResultSet result) throws SQLException {
        List<Object> rows = new ArrayList<>();
        while (result.next()) {
            rows.add(row(result));
        }
        return rows;
    }

    /** Returns what the driver says of the columns. */
    static List<Object> columns(ResultSetMetaData described) throws SQLException {
        List<Object> columns = new ArrayList<>();
        for (int place = 1; place <= described.getColumnCount(); place++) {
            columns.add(Json.map("name", described.getColumnName(place), "type", described.getColumnTypeName(place),
                "precision", described.getPrecision(place), "scale", described.getScale(place),
                "nullable", described.isNullable(place)));
        }
        return columns;
    }
}
