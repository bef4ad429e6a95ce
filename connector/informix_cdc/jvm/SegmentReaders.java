package informixcdc;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes the reader of each partition: of columns, where its segments lie on this host.
 *
 * <p>Rule: whatever is not as it was written is left to Python, which looks in the other places and
 * says what is wrong; a partition is left as a whole, before its first row. Whether a batch is read
 * in columns is known when it is planned, before any executor has looked: so what Python reads of
 * such a batch is put into columns as well.
 */
record SegmentReaders(PartitionReaderFactory inPython, StructType rows)
    implements PartitionReaderFactory {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentReaders.class);

  private static final AtomicBoolean IS_TOLD = new AtomicBoolean();

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return Column.canHold(rows) && SegmentRange.areNamedIn(partition);
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return partition instanceof RealTimePartition endless
        ? new RealTimeReader(endless, this)
        : inPython.createReader(partition);
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    try {
      return segments(SegmentRange.of(partition), SegmentRange.formOf(partition));
    } catch (IOException | RuntimeException reason) {
      requireNotKilled(reason);
      tell(reason);
      return new RowsAsColumns(inPython.createReader(partition), rows);
    }
  }

  /**
   * Return the reader of one range in real-time mode: of columns, or of rows by Python.
   *
   * @param contents of its segments, which came with the answer; null if they did not
   */
  PartitionReader<?> inRealTime(InputPartition partition, byte[][] contents) {
    if (!Column.canHold(rows) || (contents == null && !SegmentRange.areNamedIn(partition))) {
      return inPython.createReader(partition);
    }
    try {
      return segments(SegmentRange.of(partition, contents), SegmentRange.formOf(partition));
    } catch (IOException | RuntimeException reason) {
      requireNotKilled(reason);
      tell(reason);
      return inPython.createReader(partition);
    }
  }

  private Segments segments(List<SegmentRange> ranges, ReaderForm form) throws IOException {
    List<SegmentReader> segments = new ArrayList<>();
    for (SegmentRange range : ranges) {
      SegmentReader segment = new SegmentReader(range, form, rows);
      range.requireSound();
      segment.requireKnownForm();
      segments.add(segment);
    }
    return new Segments(segments);
  }

  /** Spark interrupts a task that it kills, which closes the file that is read: nothing is wrong. */
  private static void requireNotKilled(Exception reason) {
    if (Thread.currentThread().isInterrupted()) {
      throw new IllegalStateException("the task was killed before its first row", reason);
    }
  }

  /** Once in a process: where files are out of reach, each partition of each batch finds that out. */
  private static void tell(Exception reason) {
    if (IS_TOLD.compareAndSet(false, true)) {
      LOG.warn(
          "informix-cdc: rows are read in Python, and slower: {}. If executors have no access"
              + " to the files, set option delivery to an address of the driver.",
          String.valueOf(reason));
    }
  }

  /** Reads one segment after another; none is open before it is its turn. */
  private static final class Segments implements PartitionReader<ColumnarBatch> {
    private final List<SegmentReader> segments;
    private int at;

    Segments(List<SegmentReader> segments) {
      this.segments = segments;
    }

    @Override
    public boolean next() throws IOException {
      while (at < segments.size()) {
        if (segments.get(at).next()) {
          return true;
        }
        segments.get(at++).close();
      }
      return false;
    }

    @Override
    public ColumnarBatch get() {
      return segments.get(at).get();
    }

    @Override
    public void close() throws IOException {
      if (at < segments.size()) {
        segments.get(at).close();
      }
    }
  }
}
