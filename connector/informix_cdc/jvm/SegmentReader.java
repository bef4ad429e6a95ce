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
 * Reads the changes of one range out of its segment, a batch of Spark's rows for each one of the file.
 *
 * <p>Rule: a batch is valid until the next one is asked for: both lie in the same memory. The file is
 * open from the first question to the last, and a block without a change of the range is not loaded.
 * Where an update is one row, it belongs to the range that has its second image.
 */
final class SegmentReader implements Closeable {
  private final SegmentRange range;
  private final ReaderForm form;
  private final ReaderForm.Shape shape;
  private BufferAllocator allocator;
  private SeekableByteChannel file;
  private ArrowFileReader segment;
  private ChangeGroup group;
  private Iterator<ArrowBlock> blocks;
  private long at;
  private int firstOfGroup;
  private int endOfGroup;
  private ColumnarBatch batch;

  SegmentReader(SegmentRange range, ReaderForm form, StructType rows) {
    this.range = range;
    this.form = form;
    shape = rows == null ? null : form.shapeOf(rows);
  }

  /** Return a reader of changes, from which no rows are made. */
  static SegmentReader ofChanges(SegmentRange range, ReaderForm form) {
    return new SegmentReader(range, form, null);
  }

  /** Refuse a segment whose changes lie in it in a way, or have a type, that is not known here. */
  void requireKnownForm() throws IOException {
    try (this) {
      open();
      group.loaded();
      shape.columns(group, new int[0]); // of no rows, and nothing is loaded
    }
  }

  /** Load the next rows; false when there are none left. */
  boolean next() throws IOException {
    while (nextChanges()) {
      int[] chosen = group.delivered(firstOfGroup, endOfGroup, form);
      if (chosen.length > 0) {
        batch = new ColumnarBatch(shape.columns(group, chosen), chosen.length);
        return true;
      }
    }
    return false;
  }

  /** Load the next changes; false when there are none left. */
  boolean nextChanges() throws IOException {
    if (segment == null) {
      open();
    }
    while (blocks.hasNext() && at < range.end()) {
      ArrowBlock block = blocks.next();
      long count = group.changesIn(head(block));
      int first = (int) Math.max(range.first() - at, 0);
      int end = (int) Math.min(range.end() - at, count);
      at += count;
      if (first < end) {
        segment.loadRecordBatch(block);
        group.loaded();
        boolean isWhole = form.joinsImages();
        firstOfGroup = first - (isWhole && group.kind(first) == ChangeGroup.AFTER ? 1 : 0);
        endOfGroup = end - (isWhole && group.kind(end - 1) == ChangeGroup.BEFORE ? 1 : 0);
        if (firstOfGroup < endOfGroup) {
          return true;
        }
      }
    }
    return false;
  }

  ColumnarBatch get() {
    return batch;
  }

  /** Pass each loaded change to a counter, until it has seen enough. */
  boolean count(CutTransaction.Counter counter) {
    for (int change = firstOfGroup; change < endOfGroup; change++) {
      if (counter.isEnough(group.commit(change), group.isRow(change, form))) {
        return true;
      }
    }
    return false;
  }

  private void open() throws IOException {
    allocator = ArrowUtils.rootAllocator().newChildAllocator("informix-cdc", 0, Long.MAX_VALUE);
    file = range.open();
    segment = new ArrowFileReader(file, allocator);
    group = new ChangeGroup(segment);
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
