package informixcdc;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SeekableByteChannel;
import java.util.Iterator;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.flatbuf.RecordBatch;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.util.AutoCloseables;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.apache.arrow.vector.ipc.message.ArrowBlock;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads the rows of one range out of its segment, a batch of Spark's for each one of the file.
 *
 * <p>Rule: a batch is valid until the next one is asked for: both lie in the same memory. The file is
 * open from the first question to the last, and a block that has no row of the range is not loaded.
 */
final class SegmentReader implements Closeable {
  private final SegmentRange range;
  private final StructType rows;
  private BufferAllocator allocator;
  private SeekableByteChannel file;
  private ArrowFileReader segment;
  private StoredForm form;
  private Iterator<ArrowBlock> blocks;
  private long at;
  private int firstOfBlock; // of the loaded rows
  private int endOfBlock;
  private ColumnarBatch batch;

  SegmentReader(SegmentRange range, StructType rows) {
    this.range = range;
    this.rows = rows;
  }

  /** Refuse a segment whose rows lie in it in a way, or have a type, that is not known here. */
  void requireKnownForm() throws IOException {
    try (this) {
      open();
      form.columns(0, 0); // of no rows, and nothing is loaded
    }
  }

  /** Load the next rows; false when there are none left. */
  boolean next() throws IOException {
    if (segment == null) {
      open();
    }
    while (blocks.hasNext() && at < range.end()) {
      ArrowBlock block = blocks.next();
      long count = form.rowsIn(head(block));
      long first = Math.max(range.first() - at, 0);
      long end = Math.min(range.end() - at, count);
      at += count;
      if (first < end) {
        segment.loadRecordBatch(block);
        firstOfBlock = (int) first;
        endOfBlock = (int) end;
        batch = new ColumnarBatch(form.columns(firstOfBlock, endOfBlock), endOfBlock - firstOfBlock);
        return true;
      }
    }
    return false;
  }

  ColumnarBatch get() {
    return batch;
  }

  /** Return the commits of the loaded rows. */
  long[] commits() throws IOException {
    return form.commits(firstOfBlock, endOfBlock);
  }

  private void open() throws IOException {
    allocator = ArrowUtils.rootAllocator().newChildAllocator("informix-cdc", 0, Long.MAX_VALUE);
    file = range.open();
    segment = new ArrowFileReader(file, allocator);
    form = StoredForm.of(segment, rows);
    blocks = segment.getRecordBlocks().iterator();
    at = 0;
  }

  /** Return what a block says of itself, before its rows are loaded. */
  private RecordBatch head(ArrowBlock block) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(block.getMetadataLength());
    file.position(block.getOffset()); // where Arrow reads it, it sets its own
    while (bytes.hasRemaining()) {
      if (file.read(bytes) < 0) {
        throw new IOException(range.path() + " ends within a block");
      }
    }
    bytes.flip().order(ByteOrder.LITTLE_ENDIAN);
    boolean isMarked = bytes.getInt(0) == -1; // since Arrow 0.15 a mark precedes the length
    Message message = Message.getRootAsMessage(bytes.position(isMarked ? 8 : 4).slice());
    return (RecordBatch) message.header(new RecordBatch());
  }

  @Override
  public void close() throws IOException {
    batch = null;
    try {
      AutoCloseables.close(segment, file, allocator);
    } catch (IOException | RuntimeException reason) {
      throw reason;
    } catch (Exception reason) {
      throw new IOException(reason);
    } finally {
      segment = null;
      file = null;
      allocator = null;
    }
  }
}
