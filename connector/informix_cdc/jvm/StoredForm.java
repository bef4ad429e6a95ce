package informixcdc;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.arrow.flatbuf.RecordBatch;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.apache.spark.sql.types.StructType;

/**
 * How rows lie in a segment, and how columns of delivered ones come out of it.
 *
 * <p>Rule: the schema's metadata says which form it is; one that is not known here is refused. The
 * forms are written by `shapes/` of the client, and read in Python by the spool.
 */
interface StoredForm {
  String DELIVERED = "informix_cdc.delivered";
  String FORM = "informix_cdc.form";
  String COMMIT = "_commit_version";
  String FORM_VERSION = "informix_cdc.form_version";
  ObjectMapper JSON = new ObjectMapper();

  /** Return how many rows a block has. */
  long rowsIn(RecordBatch block);

  /** Return the rows `first` to `end` of the block that is loaded. */
  Column[] columns(int first, int end) throws IOException;

  /** Return the commit of each of these rows, also where it is not among their columns. */
  long[] commits(int first, int end) throws IOException;

  /**
   * Return the form of an opened segment.
   *
   * @throws IOException it is not known, or its columns are not those that Spark was promised
   */
  static StoredForm of(ArrowFileReader segment, StructType rows) throws IOException {
    Map<String, String> metadata = segment.getVectorSchemaRoot().getSchema().getCustomMetadata();
    if (metadata == null || !metadata.containsKey(DELIVERED)) {
      throw new IOException("the file is not a segment: its schema names no columns");
    }
    List<String> delivered = Arrays.asList(JSON.readValue(metadata.get(DELIVERED), String[].class));
    String form = metadata.getOrDefault(FORM, "plain") + metadata.getOrDefault(FORM_VERSION, "");
    return switch (form) {
      case "plain" -> PlainForm.of(segment, rows, delivered);
      case "grouped1" -> GroupedForm.of(segment, rows, delivered, metadata);
      default -> throw new IOException("the segment's form, " + form + ", is unknown to this jar");
    };
  }

  /** Return the column of a vector, or say that the segment lacks it. */
  static FieldVector present(FieldVector found, String name) throws IOException {
    if (found == null) {
      throw new IOException("column " + name + " is not in the segment");
    }
    return found;
  }
}
