package informixcdc;

import java.util.Arrays;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** shape=rows: a table's columns, or a struct for each of several, and columns about the change. */
record RowShape(ReaderForm form, StructType rows) implements ReaderForm.Shape {
  private static final String FIRST_OF_METADATA = "_change_type";

  @Override
  public Column[] columns(ChangeGroup group, int[] chosen) {
    int first = Arrays.asList(rows.fieldNames()).indexOf(FIRST_OF_METADATA);
    Column[] columns = new Column[rows.length()];
    StructField[] fields = Arrays.copyOf(rows.fields(), first);
    System.arraycopy(tables(group, chosen, fields, form.isFlat()), 0, columns, 0, first);
    for (int place = first; place < columns.length; place++) {
      columns[place] = about(group, chosen, rows.fields()[place]);
    }
    return columns;
  }

  /** Return a column about changes, as the shapes rows and json have it. */
  static Column about(ChangeGroup group, int[] chosen, StructField field) {
    return switch (field.name()) {
      case FIRST_OF_METADATA -> group.byKind(group.kinds, chosen);
      case "_table" -> group.byTable(group.tables, chosen);
      default -> group.about(field.name(), field.dataType(), chosen);
    };
  }

  /** Return the rows of changes in the columns of one table, or in a struct for each; -1: no row. */
  static Column[] tables(ChangeGroup group, int[] changes, StructField[] fields, boolean isFlat) {
    int[] places = group.rowsOf(changes);
    if (isFlat) {
      return flat(group, places, fields);
    }
    int[] tableOf = group.tablesOf(changes);
    Column[] columns = new Column[fields.length];
    for (int table = 0; table < group.tables.size(); table++) {
      int column = columnOf(group.tables.get(table), fields);
      Column rows = Column.of(group.rowsAt(table), fields[column].dataType(), 0);
      columns[column] = Column.ofTable(table, tableOf, places, rows);
    }
    for (int column = 0; column < columns.length; column++) {
      if (columns[column] == null) {
        columns[column] = Column.absent(fields[column].dataType());
      }
    }
    return columns;
  }

  private static Column[] flat(ChangeGroup group, int[] places, StructField[] fields) {
    if (group.tables.size() != 1) {
      throw new IllegalArgumentException("the segment has other tables than the stream");
    }
    StructVector rows = group.rowsAt(0);
    if (rows.size() != fields.length) { // Python leaves columns out, and adds NULL
      throw new IllegalArgumentException("the segment's columns differ from the stream's");
    }
    boolean isRun = ChangeGroup.isRun(places);
    Column[] columns = new Column[fields.length];
    for (int place = 0; place < columns.length; place++) {
      FieldVector values = rows.getChild(fields[place].name(), FieldVector.class);
      if (values == null) {
        throw new IllegalArgumentException("column " + fields[place].name() + " is not in the segment");
      }
      int first = isRun && places.length > 0 ? places[0] : 0;
      Column all = Column.of(values, fields[place].dataType(), first);
      columns[place] = isRun ? all : Column.picked(places, all);
    }
    return columns;
  }

  /** Return the column of a table, which has its owner as prefix if it shares its name. */
  private static int columnOf(String name, StructField[] fields) {
    ChangeGroup.TableName parts = ChangeGroup.TableName.of(name);
    String[] names = {parts.table(), parts.owner() + "_" + parts.table()};
    for (String one : names) {
      for (int column = 0; column < fields.length; column++) {
        if (fields[column].name().equals(one)) {
          return column;
        }
      }
    }
    throw new IllegalArgumentException("the segment has a table that is not in the stream");
  }
}
