package informixcdc;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.arrow.flatbuf.RecordBatch;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The changes of a record batch of a segment, by table: what `shapes/stored_changes.py` has written.
 *
 * <p>Rule: a batch is one row of lists: transactions, changes in commit order, and the rows of each
 * table. It is valid until the next one is loaded.
 */
final class ChangeGroup {
  static final int INSERT = 0;
  static final int DELETE = 1;
  static final int BEFORE = 2;
  static final int AFTER = 3;
  static final int TRUNCATE = 4;

  private static final String FORM = "changes 1";
  private static final int TRANSACTIONS = 0;
  private static final int CHANGES = 1;
  private static final int EARLIER = 2;
  private static final int FIRST_TABLE = 3;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final VectorSchemaRoot root;
  private final int nodesBeforeChanges;
  private final boolean isCompared; // rows of a snapshot that are there to be compared with a copy
  final List<String> kinds;
  final List<String> tables;

  private byte[] kindOf;
  private int[] tableOf;
  private int[] transactionOf;
  private int[] rowOf;
  private int size;
  private int[] lastChosen;
  private int[] lastTransactions;

  /** Read the names of the tables and kinds of an opened segment. */
  ChangeGroup(ArrowFileReader segment) throws IOException {
    root = segment.getVectorSchemaRoot();
    Map<String, String> metadata = root.getSchema().getCustomMetadata();
    String form = metadata == null ? null : metadata.get("informix_cdc.form");
    if (!FORM.equals(form)) {
      throw new IOException("the segment's form, " + form + ", is unknown to this jar");
    }
    kinds = texts(JSON.readTree(metadata.get("informix_cdc.change_types")));
    tables = texts(JSON.readTree(metadata.get("informix_cdc.tables")).required("names"));
    isCompared = metadata.containsKey("informix_cdc.compared");
    nodesBeforeChanges = nodes(root.getSchema().getFields().get(TRANSACTIONS)) + 1;
  }

  private static List<String> texts(JsonNode list) {
    List<String> found = new ArrayList<>();
    list.forEach(one -> found.add(one.textValue()));
    return found;
  }

  private static int nodes(Field field) {
    return 1 + field.getChildren().stream().mapToInt(ChangeGroup::nodes).sum();
  }

  /** Return how many changes a block has that is not loaded. */
  long changesIn(RecordBatch block) {
    return block.nodes(nodesBeforeChanges).length();
  }

  /** Read the changes of the loaded block; before the first block there are none. */
  void loaded() throws IOException {
    StructVector changes = items(CHANGES);
    size = changes.getValueCount();
    lastChosen = null;
    kindOf = new byte[size];
    tableOf = new int[size];
    copy(changes, "_change_type", kindOf, Platform.BYTE_ARRAY_OFFSET, Byte.BYTES);
    copy(changes, "table", tableOf, Platform.INT_ARRAY_OFFSET, Integer.BYTES);
    IntVector counts = items(TRANSACTIONS).getChild("changes", IntVector.class);
    transactionOf = new int[size];
    for (int number = 0, at = 0; at < size; number++) {
      for (int last = at + counts.get(number); at < last; at++) {
        transactionOf[at] = number;
      }
    }
    int[] taken = new int[tables.size()];
    rowOf = new int[size];
    for (int at = 0; at < size; at++) {
      rowOf[at] = kindOf[at] == TRUNCATE ? -1 : taken[tableOf[at]]++;
    }
  }

  /** Copy numbers without NULLs; asking the vector for each of them checks its bounds each time. */
  private void copy(StructVector changes, String name, Object into, long offset, int width) {
    BaseFixedWidthVector from = changes.getChild(name, BaseFixedWidthVector.class);
    if (size > 0) {
      Platform.copyMemory(null, from.getDataBufferAddress(), into, offset, (long) width * size);
    }
  }

  private StructVector items(int place) throws IOException {
    ListVector list = (ListVector) root.getFieldVectors().get(place);
    if (list.getValueCount() > 0 && list.getElementStartIndex(0) != 0) {
      throw new IOException("a list of a group does not start at offset 0");
    }
    return (StructVector) list.getDataVector();
  }

  int kind(int change) {
    return kindOf[change];
  }

  int table(int change) {
    return tableOf[change];
  }

  /** Return the place of a change's row among those of its table; of a TRUNCATE -1. */
  int row(int change) {
    return rowOf[change];
  }

  long commit(int change) {
    return shared("_commit_version", BigIntVector.class).get(transactionOf[change]);
  }

  /** Return whether the changes are rows of a snapshot, which are in no group with others. */
  boolean isRead() {
    return size > 0 && shared("_transaction_id", IntVector.class).isNull(0);
  }

  private <T extends FieldVector> T shared(String name, Class<T> kind) {
    StructVector transactions = (StructVector) ((ListVector) root.getVector(TRANSACTIONS)).getDataVector();
    return transactions.getChild(name, kind);
  }

  /** Return whether a change becomes a row of a form. */
  boolean isRow(int change, ReaderForm form) {
    return form.delivers(kindOf[change]) && (!isCompared || form.hasTableEvents());
  }

  /** Return the changes from `first` to `end` that become rows of a form. */
  int[] delivered(int first, int end, ReaderForm form) {
    int[] found = new int[end - first];
    int count = 0;
    for (int change = first; change < end; change++) {
      if (isRow(change, form)) {
        found[count++] = change;
      }
    }
    return count == found.length ? found : Arrays.copyOf(found, count);
  }

  /** Return a stored column about some changes. */
  Column about(String name, DataType type, int[] chosen) {
    FieldVector shared = shared(name, FieldVector.class);
    if (shared != null) {
      return Column.picked(transactionsOf(chosen), Column.of(shared, type, 0));
    }
    StructVector changes = (StructVector) ((ListVector) root.getVector(CHANGES)).getDataVector();
    FieldVector own = changes.getChild(name, FieldVector.class);
    if (own == null) {
      throw new IllegalArgumentException("column " + name + " is not in the segment");
    }
    return isRun(chosen)
        ? Column.of(own, type, chosen.length == 0 ? 0 : chosen[0])
        : Column.picked(chosen, Column.of(own, type, 0));
  }

  /** Return the transactions of changes; the same changes are asked for column by column. */
  private int[] transactionsOf(int[] chosen) {
    if (chosen.length == size) {
      return transactionOf;
    }
    if (chosen != lastChosen) {
      lastTransactions = map(chosen, transactionOf);
      lastChosen = chosen;
    }
    return lastTransactions;
  }

  /** Return a text for each change, by its kind. */
  Column byKind(List<String> texts, int[] chosen) {
    int[] numbers = new int[chosen.length];
    for (int at = 0; at < chosen.length; at++) {
      numbers[at] = kindOf[chosen[at]];
    }
    return Column.picked(numbers, Column.words(texts));
  }

  /** Return a text for each change, by its table. */
  Column byTable(List<String> texts, int[] chosen) {
    if (texts.size() == 1) {
      return Column.constant(texts.get(0));
    }
    return Column.picked(tablesOf(chosen), Column.words(texts));
  }

  /** Return the places of changes' tables; -1 where the change is -1. */
  int[] tablesOf(int[] changes) {
    return map(changes, tableOf);
  }

  /** Return the places of changes' rows; -1 where there is none, and where the change is -1. */
  int[] rowsOf(int[] changes) {
    return map(changes, rowOf);
  }

  private static int[] map(int[] changes, int[] values) {
    int[] found = new int[changes.length];
    for (int at = 0; at < found.length; at++) {
      found[at] = changes[at] < 0 ? -1 : values[changes[at]];
    }
    return found;
  }

  static boolean isRun(int[] numbers) {
    int last = numbers.length - 1;
    if (last > 0 && numbers[last] != numbers[0] + last) {
      return false;
    }
    for (int at = 1; at < numbers.length; at++) {
      if (numbers[at] != numbers[0] + at) {
        return false;
      }
    }
    return numbers.length == 0 || numbers[0] >= 0;
  }

  /** Return the rows of a table. */
  StructVector rowsAt(int table) {
    return (StructVector) ((ListVector) root.getVector(FIRST_TABLE + table)).getDataVector();
  }

  /** Return the number of each change's event among those of its transaction and table, from 0. */
  long[] eventsOfTable(int[] chosen) {
    IntVector earlier = (IntVector) ((ListVector) root.getVector(EARLIER)).getDataVector();
    long[] counts = new long[tables.size()];
    for (int table = 0; table < counts.length && size > 0; table++) {
      counts[table] = earlier.get(table);
    }
    long[] found = new long[chosen.length];
    for (int change = 0, at = 0; at < chosen.length; change++) {
      if (change > 0 && transactionOf[change] != transactionOf[change - 1]) {
        Arrays.fill(counts, 0);
      }
      if (change == chosen[at]) {
        found[at++] = counts[tableOf[change]];
      }
      counts[tableOf[change]] += kindOf[change] == BEFORE ? 0 : 1;
    }
    return found;
  }

  /** The names of a table, of database:owner.table; a name that is not plain stands in quotes there. */
  record TableName(String database, String owner, String table) {
    private static final Pattern NAMES =
        Pattern.compile("([^:]*):(\"(?:[^\"]|\"\")*\"|[^.\"]*)\\.(\"(?:[^\"]|\"\")*\"|[^.\"]*)");

    static TableName of(String name) {
      Matcher names = NAMES.matcher(name);
      if (!names.matches()) {
        throw new IllegalArgumentException(name + " is not the name of a table");
      }
      return new TableName(names.group(1), plain(names.group(2)), plain(names.group(3)));
    }

    private static String plain(String name) {
      return name.startsWith("\"")
          ? name.substring(1, name.length() - 1).replace("\"\"", "\"")
          : name;
    }
  }

  static UTF8String text(long number) {
    return UTF8String.fromString(Long.toString(number));
  }
}
