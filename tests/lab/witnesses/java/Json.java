import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One JSON object a line on standard output, for Python to read.
 *
 * Rule: null, booleans, numbers, lists and maps are JSON's own; all else is written as its text.
 */
final class Json {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Json() {}

    /** Returns a map of names and values in turn, in that order. */
    static Map<String, Object> map(Object... namesAndValues) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            made.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return made;
    }

    /** Prints an object as one line. */
    static synchronized void print(Map<String, ?> object) {
        StringBuilder text = new StringBuilder();
        write(text, object);
        OUT.println(text);
    }

    /** Returns the facts of an exception, and of what caused it. */
    static Map<String, Object> error(Throwable thrown) {
        Map<String, Object> facts = map("class", thrown.getClass().getName(), "message", thrown.getMessage());
        if (thrown instanceof java.sql.SQLException) {
            java.sql.SQLException refused = (java.sql.SQLException) thrown;
            facts.put("code", refused.getErrorCode());
            facts.put("state", refused.getSQLState());
            if (refused.getNextException() != null) {
                facts.put("next", error(refused.getNextException()));
            }
        }
        if (thrown.getCause() != null && thrown.getCause() != thrown) {
            facts.put("cause", error(thrown.getCause()));
        }
        return facts;
    }

    private static void write(StringBuilder text, Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long
                || value instanceof Short) {
            text.append(value);
        } else if (value instanceof Map) {
            writeAll(text, '{', ((Map<?, ?>) value).entrySet(), '}');
        } else if (value instanceof Map.Entry) {
            Map.Entry<?, ?> pair = (Map.Entry<?, ?>) value;
            quote(text, String.valueOf(pair.getKey()));
            text.append(':');
            write(text, pair.getValue());
        } else if (value instanceof List) {
            writeAll(text, '[', (List<?>) value, ']');
        } else {
            quote(text, value.toString());
        }
    }

    private static void writeAll(StringBuilder text, char begin, Iterable<?> values, char end) {
        text.append(begin);
        String separator = "";
        for (Object value : values) {
            text.append(separator);
            write(text, value);
            separator = ",";
        }
        text.append(end);
    }

    private static void quote(StringBuilder text, String value) {
        text.append('"');
        for (char sign : value.toCharArray()) {
            if (sign == '"' || sign == '\\') {
                text.append('\\').append(sign);
            } else if (sign < ' ' || sign > '~') {
                text.append(String.format("\\u%04x", (int) sign));
            } else {
                text.append(sign);
            }
        }
        text.append('"');
    }
}
