package informixcdc;

import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcTimeout;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.RpcUtils$;
import scala.concurrent.duration.FiniteDuration;
import scala.reflect.ClassTag$;

/**
 * Reads one range after another, each as soon as the driver has it, until Spark ends the batch.
 *
 * <p>Rule: Spark may end the batch between any two rows, offsets lie between transactions. So no range
 * is begun shortly before the end; and where the end comes within one, the driver is told how many of
 * its rows are delivered (CutTransaction). A range without rows ends the batch: its offset, such as where
 * the stream begins, is one that a restart must know.
 */
final class RealTimeReader implements SupportsRealTimeRead<InternalRow> {
  private static final long MARGIN_MS = 300;

  /** With Spark 4.1 the first answer of a run comes when the stream has caught up, without limits. */
  private static final RpcTimeout PATIENCE =
      new RpcTimeout(FiniteDuration.apply(1, TimeUnit.HOURS), "informix-cdc");

  private final SegmentReaders readers;
  private final RpcEndpointRef driver;
  private final boolean isElsewhere;
  private String current;
  private String next; // while its range is read
  private boolean beginsBatch = true;
  private boolean isOver;
  private int at;
  private InputPartition[] partitions = {};
  private byte[][][] contents = {};
  private PartitionReader<?> reader;
  private Iterator<InternalRow> rows = Collections.emptyIterator();
  private InternalRow row;
  private long rowsOfRange; // that are delivered

  RealTimeReader(RealTimePartition partition, SegmentReaders readers) {
    this.readers = readers;
    SparkEnv env = SparkEnv.get();
    driver = RpcUtils$.MODULE$.makeDriverRef(partition.source(), env.conf(), env.rpcEnv());
    isElsewhere = !env.executorId().equals("driver");
    current = partition.start();
  }

  @Override
  public RecordStatus nextWithTimeout(Long timeoutMs) throws IOException {
    long deadlineMs = System.currentTimeMillis() + timeoutMs - MARGIN_MS;
    while (!advance()) {
      leaveRange();
      if (isOver || System.currentTimeMillis() >= deadlineMs) {
        return RecordStatus.newStatusWithoutArrivalTime(false);
      }
      ask();
    }
    return RecordStatus.newStatusWithoutArrivalTime(true);
  }

  /** Spark 4.2 and later: with the time at which the batch began. */
  @Override
  public RecordStatus nextWithTimeout(Long begunMs, Long timeoutMs) throws IOException {
    return nextWithTimeout(timeoutMs);
  }

  private void ask() {
    Object[] question = new DriverEndpoint.Question(current, beginsBatch, isElsewhere).message();
    Object[] range =
        (Object[]) driver.askSync(question, PATIENCE, ClassTag$.MODULE$.apply(Object[].class));
    beginsBatch = false;
    if (range.length > 0) {
      next = (String) range[0];
      partitions = (InputPartition[]) range[1];
      contents = (byte[][][]) range[2];
      at = 0;
      isOver = partitions.length == 0;
      rowsOfRange = 0;
    }
  }

  private boolean advance() throws IOException {
    while (!rows.hasNext()) {
      if (reader == null) {
        if (at == partitions.length) {
          return false;
        }
        reader = readers.inRealTime(partitions[at], contents[at]);
        at++;
      } else if (reader.next()) {
        rows = rowsOf(reader.get());
      } else {
        reader.close();
        reader = null;
      }
    }
    row = rows.next();
    rowsOfRange++;
    return true;
  }

  private static Iterator<InternalRow> rowsOf(Object got) {
    return got instanceof ColumnarBatch batch
        ? batch.rowIterator()
        : Collections.singleton((InternalRow) got).iterator();
  }

  private void leaveRange() {
    if (next != null) {
      current = next;
      next = null;
    }
  }

  /**
   * Return the end of the batch, once the stream has begun.
   *
   * <p>Spark does not ask for rows if the task has started after the end of a short batch. The stream
   * would have no beginning in the checkpoint then, and the next start would be another one.
   */
  @Override
  public PartitionOffset getOffset() {
    while (!OffsetText.isStarted(current)) {
      ask();
      leaveRange();
    }
    return new RealTimePartition.End(current, next == null ? 0 : rowsOfRange);
  }

  @Override
  public boolean next() {
    throw new UnsupportedOperationException("Spark reads with a timeout in real-time mode");
  }

  @Override
  public InternalRow get() {
    return row;
  }

  @Override
  public void close() throws IOException {
    if (reader != null) {
      reader.close();
    }
  }
}
