package informixcdc;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
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

  /** `connector/informix_cdc/spark/datasource.py` takes it away again. */
  private static final String MARK = "readInJvm";

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
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return super.inferSchema(isTried() ? marked(options) : options);
  }

  /** Tell the Python source of this jar: Spark creates it with the options that it sees first. */
  private static CaseInsensitiveStringMap marked(CaseInsensitiveStringMap options) {
    Map<String, String> more = new HashMap<>(options.asCaseSensitiveMap());
    more.put(MARK, "true");
    return new CaseInsensitiveStringMap(more);
  }

  private static boolean isTried() {
    return TRIED.stream().anyMatch(org.apache.spark.package$.MODULE$.SPARK_VERSION()::startsWith);
  }

  @Override
  public Table getTable(StructType schema, Transform[] parts, Map<String, String> properties) {
    if (!isTried()) {
      LOG.warn(
          "informix-cdc: the jar was not tested with Spark {}: rows are read in Python",
          org.apache.spark.package$.MODULE$.SPARK_VERSION());
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

    /** Return why rows are read in Python; null if they are read here. */
    private String whyInPython() {
      if (!isWanted()) {
        return SWITCH + " is false";
      }
      // metadata ends every other shape
      boolean holdsArrow = rows.size() > 0 && rows.apply(rows.size() - 1).name().equals("arrow");
      return holdsArrow ? "rows of shape=arrow are read in Python" : null;
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      ScanBuilder inPython = super.newScanBuilder(marked(options));
      String whyInPython = whyInPython();
      return () -> new ColumnarScan(inPython.build(), rows, whyInPython);
    }
  }

  private record ColumnarScan(Scan inPython, StructType rows, String whyInPython) implements Scan {
    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      return SourceStream.of(inPython.toMicroBatchStream(checkpoint), rows, checkpoint, whyInPython);
    }

    /** Whether a batch can be read in columns shows in its partitions. */
    @Override
    public ColumnarSupportMode columnarSupportMode() {
      return whyInPython == null
          ? ColumnarSupportMode.PARTITION_DEFINED
          : inPython.columnarSupportMode();
    }

    @Override
    public StructType readSchema() {
      return inPython.readSchema();
    }

    @Override
    public String description() {
      return inPython.description() + (whyInPython == null ? " [rows read in the JVM]" : "");
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
}
