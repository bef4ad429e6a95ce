package informixcdc;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Puts the rows of Python's reader into columns, for a batch of which others are read in columns.
 *
 * <p>Rule: slower than both, and right: an executor finds out that it cannot reach a file when Spark
 * has decided for the whole batch already.
 */
final class RowsAsColumns implements PartitionReader<ColumnarBatch> {
  private static final int MOST_VALUES = 1 << 18;
  private static final int FEWEST_ROWS = 16;
  private static final int MOST_ROWS = 4096;

  private final PartitionReader<InternalRow> rows;
  private final RowToColumnConverter converter;
  private final int mostRows;
  private final OnHeapColumnVector[] columns;
  private final ColumnarBatch batch;

  RowsAsColumns(PartitionReader<InternalRow> rows, StructType type) {
    this.rows = rows;
    converter = new RowToColumnConverter(type);
    mostRows = Math.max(FEWEST_ROWS, Math.min(MOST_ROWS, MOST_VALUES / leaves(type)));
    columns = OnHeapColumnVector.allocateColumns(mostRows, type);
    batch = new ColumnarBatch(columns);
  }

  private static int leaves(DataType type) {
    int count = 1;
    if (type instanceof StructType rows) {
      for (StructField field : rows.fields()) {
        count += leaves(field.dataType());
      }
    }
    return count;
  }

  @Override
  public boolean next() throws IOException {
    for (OnHeapColumnVector column : columns) {
      column.reset();
    }
    int count = 0;
    while (count < mostRows && rows.next()) {
      converter.convert(rows.get(), columns);
      count++;
    }
    batch.setNumRows(count);
    return count > 0;
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return rows.currentMetricsValues();
  }

  @Override
  public void close() throws IOException {
    batch.close();
    rows.close();
  }
}
