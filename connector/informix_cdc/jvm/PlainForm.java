package informixcdc;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.arrow.flatbuf.RecordBatch;
import org.apache.arrow.vector.BigIntVector;
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
 * The form of one table, of raw records, and of several tables in former releases.
 *
 * <p>Rule: a row is a row. Texts of which there are few are dictionaries; what all rows of a
 * transaction share is the last column, run-end encoded.
 */
record PlainForm(ArrowFileReader segment, StructType rows) implements StoredForm {
  static StoredForm of(ArrowFileReader segment, StructType rows, List<String> delivered)
      throws IOException {
    if (!delivered.equals(List.of(rows.fieldNames()))) {
      throw new IOException("the segment's columns differ from the stream's");
    }
    return new PlainForm(segment, rows);
  }

  @Override
  public long rowsIn(RecordBatch block) {
    return block.length();
  }

  @Override
  public Column[] columns(int first, int end) throws IOException {
    VectorSchemaRoot root = segment.getVectorSchemaRoot();
    RunEndEncodedVector runs = transactions();
    int[] run = runOfEachRow((IntVector) runs.getRunEndsVector(), first, end);
    StructVector shared = (StructVector) runs.getValuesVector();
    Column[] columns = new Column[rows.length()];
    for (int place = 0; place < columns.length; place++) {
      StructField field = rows.fields()[place];
      FieldVector vector = shared.getChild(field.name(), FieldVector.class);
      columns[place] =
          vector == null
              ? own(StoredForm.present(root.getVector(field.name()), field.name()), field, first, end)
              : Column.picked(run, Column.of(vector, field.dataType(), 0));
    }
    return columns;
  }

  @Override
  public long[] commits(int first, int end) throws IOException {
    RunEndEncodedVector runs = transactions();
    var values = ((StructVector) runs.getValuesVector()).getChild(COMMIT, BigIntVector.class);
    int[] run = runOfEachRow((IntVector) runs.getRunEndsVector(), first, end);
    return Arrays.stream(run).mapToLong(values::get).toArray();
  }

  private RunEndEncodedVector transactions() throws IOException {
    List<FieldVector> stored = segment.getVectorSchemaRoot().getFieldVectors();
    return (RunEndEncodedVector) stored.get(stored.size() - 1);
  }

  private Column own(FieldVector vector, StructField field, int first, int end) throws IOException {
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
