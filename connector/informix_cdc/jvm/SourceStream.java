package informixcdc;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceReadLimit;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A stream of Spark's for a Python source: in micro-batches, or in real-time mode.
 *
 * <p>Rule: offsets and partitions are made by the Python source in both modes, so a checkpoint serves
 * both. The Python process answers one question at a time, over one socket: all calls but `stop` are
 * made under one lock.
 *
 * <p>In real-time mode (Spark 4.1 and later) a batch lasts minutes, and its end is known when it ends.
 * Its only task asks for one range after another (RealTimeReader), which `after` answers.
 */
final class SourceStream implements InvocationHandler {
  private static final Logger LOG = LoggerFactory.getLogger(SourceStream.class);

  private static final String REAL_TIME =
      "org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode";

  /** Of a range in real-time mode: a batch that ends within one can repeat it. */
  private static final long MOST_ROWS = 10_000;

  /** The next range of rows: empty where `end` is worth a place in the checkpoint without any. */
  record Range(String start, String end, InputPartition[] partitions) {}

  private final MicroBatchStream inPython;
  private final StructType rows;
  private final String checkpoint;
  private final String whyInPython;
  private final String name = "informix-cdc-" + UUID.randomUUID();
  private DriverEndpoint endpoint; // in real-time mode
  private ReadLimit limit;
  private Range range; // the last one in real-time mode
  private Object[] planned = {};
  private InputPartition[] plan = {};
  private volatile boolean isStopped;

  private SourceStream(
      MicroBatchStream inPython, StructType rows, String checkpoint, String whyInPython) {
    this.inPython = inPython;
    this.rows = rows;
    this.checkpoint = checkpoint;
    this.whyInPython = whyInPython;
  }

  /**
   * Return a stream with the interfaces of Python's, which differ between versions of Spark.
   *
   * @param checkpoint the folder that Spark gives to this source of the query
   * @param whyInPython why rows are read in Python; null if they are not
   */
  static MicroBatchStream of(
      MicroBatchStream inPython, StructType rows, String checkpoint, String whyInPython) {
    List<Class<?>> can = new ArrayList<>(List.of(MicroBatchStream.class));
    for (Class<?> of = inPython.getClass(); of != null; of = of.getSuperclass()) {
      Arrays.stream(of.getInterfaces()).filter(SourceStream::isOfStreams).forEach(can::add);
    }
    ClassLoader loader = SourceStream.class.getClassLoader();
    try {
      can.add(Class.forName(REAL_TIME, false, loader));
    } catch (ClassNotFoundException none) {
      LOG.debug("this Spark has no real-time mode");
    }
    Class<?>[] distinct = can.stream().distinct().toArray(Class<?>[]::new);
    var stream = new SourceStream(inPython, rows, checkpoint, whyInPython);
    return (MicroBatchStream) Proxy.newProxyInstance(loader, distinct, stream);
  }

  private static boolean isOfStreams(Class<?> type) {
    return type.getPackageName().startsWith("org.apache.spark.sql.connector.read");
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] given) throws Throwable {
    try {
      return switch (method.getName()) {
        case "equals" -> proxy == given[0];
        case "hashCode" -> System.identityHashCode(proxy);
        case "stop" -> stopped();
        case "prepareForRealTimeMode" -> preparedForRealTime();
        case "createReaderFactory" ->
            whyInPython == null
                ? new SegmentReaders(inPython.createReaderFactory(), rows)
                : inPython.createReaderFactory();
        case "planInputPartitions" ->
            given.length == 1
                ? new InputPartition[] {new RealTimePartition(name, ((Offset) given[0]).json())}
                : planned(given);
        case "mergeOffsets" -> merged((RealTimePartition.End) ((PartitionOffset[]) given[0])[0]);
        default -> asked(method, given);
      };
    } catch (InvocationTargetException wrapped) {
      throw unchecked(wrapped.getCause());
    } catch (Exception reason) {
      throw unchecked(reason);
    }
  }

  /**
   * Return an error as a proxy lets it pass with its text: a checked one, as Spark's own is,
   * though Scala need not declare it, would become an UndeclaredThrowableException without any.
   *
   * <p>An interruption stays one that Spark knows: it is how a query is stopped, and no failure.
   */
  private static Throwable unchecked(Throwable reason) {
    if (reason instanceof RuntimeException || reason instanceof Error) {
      return reason;
    }
    if (reason instanceof IOException broken) {
      return new UncheckedIOException(broken.getMessage(), broken);
    }
    if (reason instanceof InterruptedException) {
      return new UncheckedIOException(new InterruptedIOException(reason.getMessage()));
    }
    return new RuntimeException(reason.getMessage(), reason);
  }

  private synchronized Object asked(Method method, Object[] given) throws ReflectiveOperationException {
    boolean isCommit = method.getName().equals("commit");
    if (isCommit && isStopped) {
      // With asyncProgressTrackingEnabled Spark commits after it has stopped the source, whose process
      // is gone. The failure would leave the query registered, and its next start would be refused
      // (AsyncProgressTrackingMicroBatchExecution.cleanup). The next start releases the rows.
      return null;
    }
    if (endpoint != null && method.getName().equals("latestOffset")) {
      // A batch in real-time mode has no end yet. Spark 4.1 does not say where it starts, and needs
      // no more than an offset.
      return given == null ? inPython.initialOffset() : given[0];
    }
    return method.invoke(inPython, given);
  }

  /** Spark asks as often as it copies its plan, and each question goes to the Python process. */
  private synchronized InputPartition[] planned(Object[] range) {
    if (!Arrays.equals(range, planned)) {
      plan = inPython.planInputPartitions((Offset) range[0], (Offset) range[1]);
      planned = range.clone();
    }
    return plan;
  }

  private Object stopped() {
    isStopped = true;
    if (endpoint != null) {
      endpoint.close();
    }
    inPython.stop(); // not under the lock: a question may be waiting for rows
    return null;
  }

  private Object preparedForRealTime() throws IOException {
    boolean isAccepted = false;
    try {
      requireReadHere();
      requireClassesOfTheApplication();
      requireNothingToForget();
      isAccepted = true;
    } finally {
      if (!isAccepted) {
        stopped(); // Spark does not know the source yet, and would leave its process behind
      }
    }
    LOG.warn(
        "informix-cdc: in real-time mode rows are delivered at least once, and a restart may cut them"
            + " into other batches: the sink must be idempotent by (_commit_version, _change_ordinal).");
    endpoint = new DriverEndpoint(name, this);
    return null;
  }

  private void requireReadHere() {
    if (whyInPython != null) {
      throw new IllegalArgumentException(
          "informix-cdc: real-time mode needs rows that are read in the JVM, but "
              + whyInPython
              + ". Set spark.informix-cdc.readInJvm to true and use another shape, or another trigger.");
    }
  }

  /**
   * Refuse a jar that only the session has, by ADD JAR: Spark reads the results of tasks, among them
   * the end of a batch, with the class loader of the application.
   */
  private static void requireClassesOfTheApplication() {
    for (Thread each : Thread.getAllStackTraces().keySet()) {
      if (each.getName().equals("dag-scheduler-event-loop")) {
        try {
          Class.forName(RealTimePartition.End.class.getName(), false, each.getContextClassLoader());
        } catch (ClassNotFoundException ofTheSession) {
          throw new IllegalArgumentException(
              "informix-cdc: real-time mode needs the jar when Spark starts; ADD JAR is too late for it."
                  + " Start Spark with .config(\"spark.jars\", informix_cdc.jar()), or use another"
                  + " trigger.");
        }
      }
    }
  }

  /**
   * Refuse a checkpoint of which Spark would forget what must not be forgotten.
   *
   * <p>Before a query in real-time mode, Spark deletes the offset of a batch that is not committed
   * (MicroBatchExecution.initializeExecution). If no batch is committed, the next one would begin at
   * the end of the log, and what came since the query first started would be lost. If the offset has
   * a data loss, the loss would be forgotten, and what was lost missed in silence.
   */
  private void requireNothingToForget() throws IOException {
    PlannedBatch planned = PlannedBatch.in(new Path(checkpoint).getParent().getParent());
    if (planned == null) {
      return;
    }
    if (planned.isFirst()) {
      throw planned.refusal("the place where the stream begins");
    }
    for (String offset : planned.losses()) {
      Offset lost = inPython.deserializeOffset(offset);
      inPython.planInputPartitions(lost, lost); // says what is lost, unless it may be left
      throw planned.refusal("a data loss");
    }
  }

  boolean isStopped() {
    return isStopped;
  }

  /**
   * Return the range after an offset; null if nothing is new for a moment.
   *
   * <p>At the start of a batch the place itself is planned first: Python refuses it there if a data
   * loss was reported at it.
   */
  synchronized Range after(String start, boolean beginsBatch) {
    Offset from = inPython.deserializeOffset(start);
    if (beginsBatch) {
      inPython.planInputPartitions(from, from);
    }
    Offset end = endAfter(from);
    if (end.json().equals(start)) {
      return null;
    }
    boolean isLost = OffsetText.isLost(end.json());
    InputPartition[] none = {};
    range = new Range(start, end.json(), isLost ? none : inPython.planInputPartitions(from, end));
    return range;
  }

  private Offset endAfter(Offset start) {
    if (!(inPython instanceof SupportsAdmissionControl source)) {
      return inPython.latestOffset(); // before Spark 4.2: after what was planned last
    }
    if (limit == null) {
      String whole = ((PythonStreamingSourceReadLimit) source.getDefaultReadLimit()).json();
      limit = new PythonStreamingSourceReadLimit(OffsetText.smallLimit(whole, MOST_ROWS));
    }
    return source.latestOffset(start, limit);
  }

  /**
   * Return where a batch in real-time mode has ended, also within a transaction.
   *
   * <p>A chunk of a snapshot, which is a range alone, begins again: it may have other rows when it is
   * read once more. So does a range whose segments are on another host.
   */
  private synchronized Offset merged(RealTimePartition.End end) {
    boolean isCut = end.rows() > 0 && range != null && range.start().equals(end.start());
    if (isCut && OffsetText.chunks(end.start()) == OffsetText.chunks(range.end())) {
      try {
        CutTransaction cut = CutTransaction.after(end.rows(), range.partitions());
        cut = cut.continuing(OffsetText.cutOf(end.start()));
        return inPython.deserializeOffset(OffsetText.with(cut, end.start()));
      } catch (IOException | RuntimeException elsewhere) {
        LOG.warn("informix-cdc: the last rows of a batch come again: {}", String.valueOf(elsewhere));
      }
    }
    return inPython.deserializeOffset(end.start());
  }
}
