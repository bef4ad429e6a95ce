package informixcdc;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.flatbuf.RecordBatch;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The form of several tables: a record batch is one row, a group of changes, of which lists hold the
 * parts.
 *
 * <pre>
 *   transactions   what the changes of each share, and how many there are
 *   changes        what is known of each, a code for its kind, and the number of its table
 *   a table        the rows of its changes, one after the other, as many for each as its kind has
 * </pre>
 *
 * <p>Rule: nothing grows with tables that do not occur. Where a row of a table lies is one number for
 * each change and image, shared by all columns; a table that is not in the segment is NULL. Tables are
 * found by the names of their columns, since others may have joined the stream, or left it, since then.
 */
final class GroupedForm implements StoredForm {
  private static final int TRANSACTIONS = 0;
  private static final int CHANGES = 1;
  private static final int FIRST_TABLE = 2;
  private static final String OWN_COLUMN = "";

  private final ArrowFileReader segment;
  private final StructType rows;
  private final List<String> delivered;
  private final int nodesBeforeChanges;
  private final String kind;
  private final List<String> kinds;
  private final String tableName;
  private final Map<Integer, Integer> placeOfTable = new HashMap<>();
  private final Map<String, Integer> placeOfName = new HashMap<>();
  private final Column namesOfTables;
  private final List<String> images = new ArrayList<>();
  private final int[][] imagesOfKind;

  private GroupedForm(
      ArrowFileReader segment, StructType rows, List<String> delivered, Map<String, String> metadata)
      throws IOException {
    this.segment = segment;
    this.rows = rows;
    this.delivered = delivered;
    JsonNode tables = JSON.readTree(metadata.get("informix_cdc.tables"));
    JsonNode owned = JSON.readTree(metadata.get("informix_cdc.images"));
    kind = owned.required("by").textValue();
    kinds = texts(JSON.readTree(metadata.get("informix_cdc.codes")).required(kind));
    imagesOfKind = imagesOf(owned.required("columns"));
    tableName = tables.required("delivered").textValue();
    namesOfTables = Column.words(texts(tables.required("names")));
    for (JsonNode number : tables.required("numbers")) {
      int place = placeOfTable.size();
      placeOfTable.put(number.intValue(), place);
      placeOfName.put(field(FIRST_TABLE + place).getName(), place);
    }
    nodesBeforeChanges = nodes(field(TRANSACTIONS)) + 1;
  }

  static StoredForm of(
      ArrowFileReader segment, StructType rows, List<String> delivered, Map<String, String> metadata)
      throws IOException {
    GroupedForm made = new GroupedForm(segment, rows, delivered, metadata);
    made.requireSameColumns();
    return made;
  }

  /** In the delivered order a null stands for the columns of all tables, which follow each other. */
  private void requireSameColumns() throws IOException {
    int at = delivered.indexOf(null);
    int tables = at < 0 ? 0 : rows.length() - delivered.size() + 1;
    List<String> own = new ArrayList<>(List.of(rows.fieldNames()));
    if (tables >= 0 && at >= 0) {
      own.subList(at, at + tables).clear();
      own.add(at, null);
    }
    if (!own.equals(delivered)) {
      throw new IOException("the segment's columns differ from the stream's");
    }
  }

  private int[][] imagesOf(JsonNode columnsOfKinds) {
    List<int[]> found = new ArrayList<>();
    for (JsonNode columns : columnsOfKinds) {
      List<String> names = texts(columns);
      names.stream().filter(name -> !images.contains(name)).forEach(images::add);
      found.add(names.stream().mapToInt(images::indexOf).toArray());
    }
    return found.toArray(int[][]::new);
  }

  private static List<String> texts(JsonNode list) {
    List<String> found = new ArrayList<>();
    list.forEach(one -> found.add(one.textValue()));
    return found;
  }

  private Field field(int place) throws IOException {
    return segment.getVectorSchemaRoot().getSchema().getFields().get(place);
  }

  private static int nodes(Field field) {
    return 1 + field.getChildren().stream().mapToInt(GroupedForm::nodes).sum();
  }

  @Override
  public long rowsIn(RecordBatch block) {
    return block.nodes(nodesBeforeChanges).length();
  }

  @Override
  public Column[] columns(int first, int end) throws IOException {
    StructVector transactions = items(TRANSACTIONS);
    StructVector changes = items(CHANGES);
    int[] transactionOf = transactionOfEachRow(transactions, first, end);
    Places places = new Places(changes, first, end);
    List<Column> columns = new ArrayList<>();
    for (String name : delivered) {
      if (name == null) {
        int after = rows.length() - delivered.size() + 1;
        StructField[] tables = Arrays.copyOfRange(rows.fields(), columns.size(), columns.size() + after);
        columns.addAll(List.of(places.tables(tables, images.indexOf(OWN_COLUMN))));
        continue;
      }
      StructField field = rows.fields()[columns.size()];
      FieldVector shared = transactions.getChild(name, FieldVector.class);
      columns.add(
          shared == null
              ? places.column(field)
              : Column.picked(transactionOf, Column.of(shared, field.dataType(), 0)));
    }
    return columns.toArray(Column[]::new);
  }

  @Override
  public long[] commits(int first, int end) throws IOException {
    StructVector transactions = items(TRANSACTIONS);
    BigIntVector values = transactions.getChild(COMMIT, BigIntVector.class);
    int[] transactionOf = transactionOfEachRow(transactions, first, end);
    return Arrays.stream(transactionOf).mapToLong(values::get).toArray();
  }

  private StructVector items(int place) throws IOException {
    ListVector list = (ListVector) segment.getVectorSchemaRoot().getFieldVectors().get(place);
    if (list.getValueCount() > 0 && list.getElementStartIndex(0) != 0) {
      throw new IOException("a list of a group does not start at offset 0");
    }
    return (StructVector) list.getDataVector();
  }

  private static int[] transactionOfEachRow(StructVector transactions, int first, int end)
      throws IOException {
    IntVector counts = transactions.getChild("changes", IntVector.class);
    int[] found = new int[end - first];
    for (int number = 0, row = 0; row < end; number++) {
      int last = row + counts.get(number);
      Arrays.fill(found, clamp(row, first, end), clamp(last, first, end), number);
      row = last;
    }
    return found;
  }

  private static int clamp(int row, int first, int end) {
    return Math.max(first, Math.min(row, end)) - first;
  }

  /** Where the changes of a stretch have their rows: in the list of which table, and how far in it. */
  private final class Places {
    private final StructVector changes;
    private final int first;
    private final int[] kindOf;
    private final int[] tableOf;
    private final int[][] placeOf;

    Places(StructVector changes, int first, int end) {
      this.changes = changes;
      this.first = first;
      kindOf = new int[end - first];
      tableOf = new int[end - first];
      placeOf = new int[images.size()][end - first];
      for (int[] places : placeOf) {
        Arrays.fill(places, -1);
      }
      lookUp(end);
    }

    private void lookUp(int end) {
      TinyIntVector codes = changes.getChild(kind, TinyIntVector.class);
      IntVector numbers = changes.getChild("table", IntVector.class);
      int[] taken = new int[placeOfTable.size()];
      for (int row = 0; row < end; row++) {
        int table = placeOfTable.get(numbers.get(row));
        int code = codes.get(row);
        if (row >= first) {
          kindOf[row - first] = code;
          tableOf[row - first] = table;
        }
        for (int image : imagesOfKind[code]) {
          int place = taken[table]++;
          if (row >= first) {
            placeOf[image][row - first] = place;
          }
        }
      }
    }

    Column column(StructField field) throws IOException {
      if (field.name().equals(kind)) {
        return Column.picked(kindOf, Column.words(kinds));
      }
      if (field.name().equals(tableName)) {
        return Column.picked(tableOf, namesOfTables);
      }
      if (images.contains(field.name())) {
        int image = images.indexOf(field.name());
        StructType type = (StructType) field.dataType();
        return Column.image(type, placeOf[image], tables(type.fields(), image));
      }
      FieldVector own = changes.getChild(field.name(), FieldVector.class);
      return Column.of(StoredForm.present(own, field.name()), field.dataType(), first);
    }

    /** Return a column for each delivered table, in their order. */
    Column[] tables(StructField[] fields, int image) throws IOException {
      Column[] found = new Column[fields.length];
      int known = 0;
      for (int number = 0; number < fields.length; number++) {
        StructType type = (StructType) fields[number].dataType();
        Integer place = placeOfName.get(fields[number].name());
        known += place == null ? 0 : 1;
        found[number] =
            place == null
                ? Column.absent(type)
                : Column.ofTable(
                    place, tableOf, placeOf[image], Column.of(items(FIRST_TABLE + place), type, 0));
      }
      if (known < placeOfName.size()) {
        throw new IOException("the segment has a table that is not in the stream");
      }
      return found;
    }
  }
}
