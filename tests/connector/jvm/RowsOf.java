package informixcdc;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Prints the rows of pickled partitions as the reader in the JVM has them: one line a partition. */
final class RowsOf {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Set<Path> SEEN = new HashSet<>();

  private static final Map<Class<?>, BiFunction<SpecializedGetters, Integer, Object>> GET =
      Map.ofEntries(
          Map.entry(BooleanType.class, (row, place) -> row.getBoolean(place)),
          Map.entry(ShortType.class, (row, place) -> row.getShort(place)),
          Map.entry(IntegerType.class, (row, place) -> row.getInt(place)),
          Map.entry(LongType.class, (row, place) -> row.getLong(place)),
          Map.entry(FloatType.class, (row, place) -> (double) row.getFloat(place)),
          Map.entry(DoubleType.class, (row, place) -> row.getDouble(place)),
          Map.entry(DateType.class, (row, place) -> row.getInt(place)),
          Map.entry(TimestampType.class, (row, place) -> row.getLong(place)),
          Map.entry(TimestampNTZType.class, (row, place) -> row.getLong(place)),
          Map.entry(DayTimeIntervalType.class, (row, place) -> row.getLong(place)),
          Map.entry(StringType.class, (row, place) -> row.getUTF8String(place).toString()),
          Map.entry(BinaryType.class, (row, place) -> hex(row.getBinary(place))));

  private record Nowhere() implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("left to Python");
    }
  }

  /** Arguments: a schema as JSON and a pickled partition, by turns. */
  public static void main(String[] paths) throws Exception {
    for (int at = 0; at < paths.length; at += 2) {
      String schema = Files.readString(Path.of(paths[at]));
      StructType rows = (StructType) DataType.fromJson(schema);
      byte[] pickled = Files.readAllBytes(Path.of(paths[at + 1]));
      System.out.println(JSON.writeValueAsString(found(rows, pickled)));
    }
    System.out.println(ArrowUtils.rootAllocator().getAllocatedMemory() + openSegments());
  }

  /** How many files outside of Java's own are open. */
  private static long openSegments() throws Exception {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.filter(RowsOf::isSegment).count();
    }
  }

  private static boolean isSegment(Path descriptor) {
    try {
      Path path = Files.readSymbolicLink(descriptor);
      return SEEN.contains(path);
    } catch (java.io.IOException closedMeanwhile) {
      return false;
    }
  }

  private static Object found(StructType type, byte[] pickled) throws Exception {
    var factory = new SegmentReaders(new Nowhere(), type);
    var partition = new PythonStreamingInputPartition(0, pickled, scala.Option.empty());
    if (!factory.supportColumnarReads(partition)) {
      return "read in Python from the start";
    }
    if (!isGivenUp(factory, partition)) {
      return "read on by a task that is killed";
    }
    try (PartitionReader<ColumnarBatch> cancelled = factory.createColumnarReader(partition)) {
      cancelled.next();
    } catch (UnsupportedOperationException reason) {
      return reason.getMessage();
    }
    SegmentRange.of(partition).forEach(range -> SEEN.add(range.path()));
    List<Object> rows = collected(factory.createColumnarReader(partition), type);
    Rows again = new Rows(factory.createColumnarReader(partition));
    List<Object> throughRows = collected(new RowsAsColumns(again, type), type);
    if (!throughRows.equals(rows)) {
      return List.of("other rows in columns of rows", throughRows);
    }
    List<Object> sent = sentWithAnAnswer(factory, partition, type);
    if (!sent.equals(rows)) {
      return List.of("other rows from contents", sent);
    }
    return hasCommits(rows, partition) ? rows : List.of("other commits");
  }

  /** The rows from the contents of the files, as an executor on another host gets them. */
  @SuppressWarnings("unchecked")
  private static List<Object> sentWithAnAnswer(
      SegmentReaders factory, InputPartition partition, StructType type) throws Exception {
    byte[][] contents = SegmentRange.smallContents(partition);
    PartitionReader<?> reader = factory.inRealTime(partition, contents);
    return collected((PartitionReader<ColumnarBatch>) reader, type);
  }

  /** Whether a cut after some of the rows names the transaction that the rows themselves name. */
  private static boolean hasCommits(List<Object> rows, InputPartition partition) throws Exception {
    ReaderForm form = SegmentRange.formOf(partition);
    boolean isEveryChange =
        form.shape().equals("rows") && form.hasBeforeImages() && form.emitsTruncates();
    boolean isKnown = !form.shape().equals("envelope");
    for (int count = rows.size(); isKnown && count > 0; count /= 2) {
      Object commit = ((Map<?, ?>) rows.get(count - 1)).get("_commit_version");
      int first = count - 1;
      while (first > 0 && commit.equals(((Map<?, ?>) rows.get(first - 1)).get("_commit_version"))) {
        first--;
      }
      CutTransaction cut = CutTransaction.after(count, new InputPartition[] {partition});
      if (cut.commit() != (Long) commit || isEveryChange && cut.rows() != count - first) {
        return false;
      }
    }
    return true;
  }

  /** Whether a task that is killed as it begins is not left to Python. */
  private static boolean isGivenUp(SegmentReaders factory, InputPartition partition)
      throws Exception {
    Thread.currentThread().interrupt(); // as Spark does
    try (PartitionReader<ColumnarBatch> killed = factory.createColumnarReader(partition)) {
      return false;
    } catch (IllegalStateException given) {
      return true;
    } catch (UnsupportedOperationException leftToPython) {
      return false;
    } finally {
      Thread.interrupted();
    }
  }

  private static List<Object> collected(PartitionReader<ColumnarBatch> batches, StructType type)
      throws Exception {
    List<Object> rows = new ArrayList<>();
    try (batches) {
      while (batches.next()) {
        for (Iterator<InternalRow> all = batches.get().rowIterator(); all.hasNext(); ) {
          rows.add(values(all.next(), type));
        }
      }
    }
    return rows;
  }

  /** Rows one by one, as Python's reader hands them over. */
  private static final class Rows implements PartitionReader<InternalRow> {
    private final PartitionReader<ColumnarBatch> batches;
    private Iterator<InternalRow> rows = List.<InternalRow>of().iterator();

    Rows(PartitionReader<ColumnarBatch> batches) {
      this.batches = batches;
    }

    @Override
    public boolean next() throws java.io.IOException {
      while (!rows.hasNext()) {
        if (!batches.next()) {
          return false;
        }
        rows = batches.get().rowIterator();
      }
      return true;
    }

    @Override
    public InternalRow get() {
      return rows.next();
    }

    @Override
    public void close() throws java.io.IOException {
      batches.close();
    }
  }

  private static Map<String, Object> values(SpecializedGetters row, StructType type) {
    Map<String, Object> found = new LinkedHashMap<>();
    for (int place = 0; place < type.length(); place++) {
      StructField field = type.fields()[place];
      found.put(field.name(), row.isNullAt(place) ? null : value(row, place, field.dataType()));
    }
    return found;
  }

  private static Object value(SpecializedGetters row, int place, DataType type) {
    if (type instanceof StructType nested) {
      return values(row.getStruct(place, nested.length()), nested);
    }
    if (type instanceof DecimalType exact) {
      return row.getDecimal(place, exact.precision(), exact.scale()).toPlainString();
    }
    Class<?> kind = type.getClass();
    while (!GET.containsKey(kind)) {
      kind = kind.getSuperclass();
    }
    return GET.get(kind).apply(row, place);
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }
}
