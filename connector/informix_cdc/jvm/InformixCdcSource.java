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
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The format `informix-cdc` where this jar is among Spark's: the Python source, read as columns.
 *
 * <p>Rule: nothing is decided here. Options, schema, offsets, planning and commit are the Python
 * source's, by Spark's own classes for it; only the factory of readers is another one, and that one
 * hands back whatever it cannot read. So nothing in a checkpoint tells which of the two has read.
 *
 * <p>Spark looks a format up among Java's sources first and gives a PythonDataSourceV2 the name that
 * was asked for (DataSource.lookupDataSource, lookupDataSourceV2); the name finds the Python source.
 */
public final class InformixCdcSource extends PythonDataSourceV2 implements DataSourceRegister {
  private static final Logger LOG = LoggerFactory.getLogger(InformixCdcSource.class);

  /** The classes of Spark that are used here are not its public interface: these were tried. */
  private static final List<String> TRIED = List.of("4.0.", "4.1.", "4.2.", "4.3.");

  private static final String SWITCH = "spark.informix-cdc.readInJvm";

  private String name = "informix-cdc";

  @Override
  public String shortName() {
    return "informix-cdc";
  }

  @Override
  public void setShortName(String given) {
    super.setShortName(given);
    name = given;
  }

  @Override
  public Table getTable(StructType schema, Transform[] parts, Map<String, String> properties) {
    String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    if (TRIED.stream().noneMatch(version::startsWith)) {
      LOG.warn("informix-cdc: the jar was not tested with Spark {}: rows are read in Python", version);
      return super.getTable(schema, parts, properties);
    }
    return new ColumnarTable(this, name, schema);
  }

  /** Whether a query that starts now may be read here: a setting of the session, on unless it is false. */
  private static boolean isWanted() {
    return Boolean.parseBoolean(SparkSession.active().conf().get(SWITCH, "true"));
  }

  private static final class ColumnarTable extends PythonTable {
    private final StructType rows;

    ColumnarTable(PythonDataSourceV2 source, String name, StructType rows) {
      super(source, name, rows);
      this.rows = rows;
    }

    /** Whether rows are of shape=arrow, which Python alone reads; metadata ends every other shape. */
    private boolean holdsArrow() {
      return rows.size() > 0 && rows.apply(rows.size() - 1).name().equals("arrow");
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      ScanBuilder inPython = super.newScanBuilder(options);
      return isWanted() && !holdsArrow() ? () -> new ColumnarScan(inPython.build(), rows) : inPython;
    }
  }

  private record ColumnarScan(Scan inPython, StructType rows) implements Scan {
    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      return Stream.of(inPython.toMicroBatchStream(checkpoint), rows);
    }

    /** Whether a batch can be read in columns shows in its partitions. */
    @Override
    public ColumnarSupportMode columnarSupportMode() {
      return ColumnarSupportMode.PARTITION_DEFINED;
    }

    @Override
    public StructType readSchema() {
      return inPython.readSchema();
    }

    @Override
    public String description() {
      return inPython.description() + " [rows read in the JVM]";
    }

    @Override
    public Batch toBatch() {
      return inPython.toBatch();
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
      return inPython.supportedCustomMetrics();
    }

    @Override
    public CustomTaskMetric[] reportDriverMetrics() {
      return inPython.reportDriverMetrics();
    }
  }

  /** A stream of Spark's for a Python source, of which two calls are answered otherwise. */
  static final class Stream implements InvocationHandler {
    private final MicroBatchStream inPython;
    private final StructType rows;
    private Object[] planned = {};
    private InputPartition[] plan = {};

    private Stream(MicroBatchStream inPython, StructType rows) {
      this.inPython = inPython;
      this.rows = rows;
    }

    /** What a stream can do, Spark reads off its interfaces, and they differ between versions. */
    static MicroBatchStream of(MicroBatchStream inPython, StructType rows) {
      List<Class<?>> can = new ArrayList<>(List.of(MicroBatchStream.class));
      for (Class<?> of = inPython.getClass(); of != null; of = of.getSuperclass()) {
        Arrays.stream(of.getInterfaces()).filter(Stream::isOfStreams).forEach(can::add);
      }
      Class<?>[] distinct = can.stream().distinct().toArray(Class<?>[]::new);
      ClassLoader loader = InformixCdcSource.class.getClassLoader();
      return (MicroBatchStream)
          Proxy.newProxyInstance(loader, distinct, new Stream(inPython, rows));
    }

    private static boolean isOfStreams(Class<?> type) {
      return type.getPackageName().startsWith("org.apache.spark.sql.connector.read");
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] given) throws Throwable {
      try {
        return switch (method.getName()) {
          case "createReaderFactory" -> new SegmentReaders(inPython.createReaderFactory(), rows);
          case "planInputPartitions" -> planned(given);
          case "equals" -> proxy == given[0];
          default -> method.invoke(inPython, given);
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

    /** Spark asks as often as it copies its plan, and each question goes to the Python process. */
    private synchronized InputPartition[] planned(Object[] range) {
      if (!Arrays.equals(range, planned)) {
        plan = inPython.planInputPartitions((Offset) range[0], (Offset) range[1]);
        planned = range.clone();
      }
      return plan;
    }
  }
}
