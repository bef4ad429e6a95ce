package informixcdc;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.UncheckedIOException;

/**
 * The little that is read in the JVM of an offset or a limit, and added to it.
 *
 * <p>Rule: `checkpoints/informix_checkpoints/offsets/offsets.py` describes the keys. Spark compares
 * offsets as texts: what is added here is written as Python writes it, at its place, the end.
 */
final class OffsetText {
  private static final ObjectMapper JSON = new ObjectMapper();

  private OffsetText() {}

  /** Tell whether an offset is a position, not the constant before the stream has begun. */
  static boolean isStarted(String offset) {
    return !parsed(offset).required("stream").textValue().isEmpty();
  }

  /** Tell whether an offset records a data loss, which Spark's checkpoint must hold. */
  static boolean isLost(String offset) {
    return parsed(offset).hasNonNull("lost");
  }

  /** Return the offset with a transaction that is delivered in part, and all before it whole. */
  static String with(CutTransaction cut, String offset) {
    if (parsed(offset).has("cut")) { // of a transaction that lies before this one, or is the same
      offset = offset.substring(0, offset.lastIndexOf(", \"cut\"")) + "}";
    }
    return offset.substring(0, offset.length() - 1) + ", \"cut\": [" + cut.commit() + ", " + cut.rows() + "]}";
  }

  /** Return an offset's cut as the batch before has left it; null if it has none. */
  static CutTransaction cutOf(String offset) {
    JsonNode cut = parsed(offset).get("cut");
    return cut == null
        ? null
        : new CutTransaction(cut.required(0).longValue(), cut.required(1).longValue());
  }

  /** Return how many snapshot chunks lie below an offset. */
  static long chunks(String offset) {
    return parsed(offset).required("chunk").longValue();
  }

  /** Return the limit of a batch as Python gives it, with fewer rows: by that it knows this mode. */
  static String smallLimit(String limit, long most) {
    ObjectNode small = (ObjectNode) parsed(limit);
    long rows = small.required("max_rows").longValue();
    return small.put("max_rows", Math.max(1, Math.min(rows - 1, most))).toString();
  }

  private static JsonNode parsed(String offset) {
    try {
      return JSON.readTree(offset);
    } catch (JsonProcessingException reason) {
      throw new UncheckedIOException(reason);
    }
  }
}
