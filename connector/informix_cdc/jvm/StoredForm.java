package informixcdc;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.flatbuf.RecordBatch;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.RunEndEncodedVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * How rows lie in a segment, and how columns of delivered ones come out of it.
 *
 * <p>Rule: the schema's metadata says which form it is; one that is not known here is refused. The
 * forms are written by `shapes/` of the client, and read in Python by `stored_rows.py` of the spool.
 */
interface StoredForm {
  String DELIVERED = "informix_cdc.delivered";
  String FORM = "informix_cdc.form";

  /** Return how many rows a block has. */
  long rowsIn(RecordBatch block);

  /** Return the rows `first` to `end` of the block that is loaded. */
  Column[] columns(int first, int end) throws IOException;

  /**
   * Return the form of an opened segment.
   *
   * @throws IOException it is not known, or its columns are not those that Spark was promised
   */
  static StoredForm of(ArrowFileReader segment, StructType rows) throws IOException {
    Map<String, String> said = segment.getVectorSchemaRoot().getSchema().getCustomMetadata();
    if (said == null || said.containsKey(FORM) || !said.containsKey(DELIVERED)) {
      throw new IOException("the segment's form is not known to this jar");
    }
    String[] delivered = new ObjectMapper().readValue(said.get(DELIVERED), String[].class);
    if (!List.of(delivered).equals(List.of(rows.fieldNames()))) {
      throw new IOException("the segment has other columns than the stream");
    }
    return new Plain(segment, rows);
  }

  /** A row is a row; texts of which there are few are dictionaries, the last column is run-end encoded. */
  record Plain(ArrowFileReader segment, StructType rows) implements StoredForm {
    @Override
    public long rowsIn(RecordBatch block) {
      return block.length();
    }

    @Override
    public Column[] columns(int first, int end) throws IOException {
      VectorSchemaRoot root = segment.getVectorSchemaRoot();
      List<FieldVector> stored = root.getFieldVectors();
      RunEndEncodedVector runs = (RunEndEncodedVector) stored.get(stored.size() - 1);
      int[] run = runOfEachRow((IntVector) runs.getRunEndsVector(), first, end);
      StructVector shared = (StructVector) runs.getValuesVector();
      Map<String, Column> found = new HashMap<>();
      for (StructField field : rows.fields()) {
        FieldVector vector = shared.getChild(field.name(), FieldVector.class);
        found.put(
            field.name(),
            vector == null
                ? own(root.getVector(field.name()), field, first, end)
                : Column.picked(run, Column.of(vector, field.dataType(), 0)));
      }
      return Arrays.stream(rows.fieldNames()).map(found::get).toArray(Column[]::new);
    }

    private Column own(FieldVector vector, StructField field, int first, int end)
        throws IOException {
      if (vector == null) {
        throw new IOException("column " + field.name() + " is not in the segment");
      }
      if (vector.getField().getDictionary() == null) {
        return Column.of(vector, field.dataType(), first);
      }
      long number = vector.getField().getDictionary().getId();
      Dictionary texts = segment.getDictionaryVectors().get(number);
      Column values = Column.of(texts.getVector(), DataTypes.StringType, 0);
      return Column.picked(places((IntVector) vector, first, end), values);
    }

    private static int[] runOfEachRow(IntVector ends, int first, int end) {
      int[] run = new int[end - first];
      for (int number = 0, row = first; row < end; number++) {
        for (int last = Math.min(ends.get(number), end); row < last; row++) {
          run[row - first] = number;
        }
      }
      return run;
    }

    private static int[] places(IntVector numbers, int first, int end) {
      int[] places = new int[end - first];
      for (int row = first; row < end; row++) {
        places[row - first] = numbers.isNull(row) ? -1 : numbers.get(row);
      }
      return places;
    }
  }
}
