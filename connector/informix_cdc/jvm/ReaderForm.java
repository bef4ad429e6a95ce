package informixcdc;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import org.apache.spark.sql.types.StructType;

/**
 * What a reader makes of stored changes: the options of its query, as a partition names them.
 *
 * @param isFlat whether rows have the columns of one table, not a struct for each of several
 */
record ReaderForm(
    String shape,
    boolean emitsTruncates,
    boolean hasBeforeImages,
    boolean hasTableEvents,
    boolean isFlat,
    String server) {
  static ReaderForm of(JsonNode form) {
    return new ReaderForm(
        form.required("shape").textValue(),
        form.required("truncate").textValue().equals("emit"),
        form.required("before_image").booleanValue(),
        form.required("table_events").booleanValue(),
        form.required("is_flat").booleanValue(),
        form.required("server").textValue());
  }

  /** Return whether an update is one row, which has the place of its second image. */
  boolean joinsImages() {
    return !shape.equals("rows");
  }

  /** Return whether a change of a kind becomes a row. */
  boolean delivers(int kind) {
    if (kind == ChangeGroup.BEFORE) {
      return hasBeforeImages && !joinsImages();
    }
    return kind == ChangeGroup.TRUNCATE ? emitsTruncates : kind < ChangeGroup.TRUNCATE || hasTableEvents;
  }

  /** Return the change with the row before each event; -1 where the event does not show it. */
  int[] imagesBefore(ChangeGroup group, int[] events) {
    return Arrays.stream(events).map(event -> imageBefore(group.kind(event), event)).toArray();
  }

  private int imageBefore(int kind, int event) {
    if (kind == ChangeGroup.AFTER) {
      return hasBeforeImages ? event - 1 : -1;
    }
    return kind == ChangeGroup.DELETE ? event : -1;
  }

  /** Return the change with the row after each event; -1 where there is none. */
  int[] imagesAfter(ChangeGroup group, int[] events) {
    return Arrays.stream(events)
        .map(
            event -> {
              int kind = group.kind(event);
              return kind == ChangeGroup.DELETE || kind == ChangeGroup.TRUNCATE ? -1 : event;
            })
        .toArray();
  }

  /** Return what makes rows of this form with these columns. */
  Shape shapeOf(StructType rows) {
    return switch (shape) {
      case "rows" -> new RowShape(this, rows);
      case "json" -> new JsonShape(this, rows);
      case "envelope" -> new EnvelopeShape(this, rows);
      default -> throw new IllegalArgumentException("rows of shape=" + shape + " are read in Python");
    };
  }

  /** Makes the columns of rows. */
  interface Shape {
    /**
     * Return the rows of some changes of a group.
     *
     * @throws IllegalArgumentException the group has other columns than Spark was promised
     */
    Column[] columns(ChangeGroup group, int[] chosen);
  }
}
