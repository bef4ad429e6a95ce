package informixcdc;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** shape=envelope: Debezium's form of a change; `shapes/envelope_shape.py` describes it. */
record EnvelopeShape(ReaderForm form, StructType rows) implements ReaderForm.Shape {

  @Override
  public Column[] columns(ChangeGroup group, int[] chosen) {
    int[] before = form.imagesBefore(group, chosen);
    int[] after = form.imagesAfter(group, chosen);
    return new Column[] {
      image(group, before, rows.fields()[0]),
      image(group, after, rows.fields()[1]),
      source(group, chosen, (StructType) rows.fields()[2].dataType()),
      group.byKind(operations(group), chosen),
      milliseconds(group, chosen),
      transaction(group, chosen, (StructType) rows.fields()[5].dataType())
    };
  }

  private Column image(ChangeGroup group, int[] changes, StructField field) {
    StructType type = (StructType) field.dataType();
    return Column.struct(
        type, changes, RowShape.tables(group, changes, type.fields(), form.isFlat()));
  }

  /** By kind; the first image of an update is no event. */
  private static List<String> operations(ChangeGroup group) {
    return List.of(group.isRead() ? "r" : "c", "d", "", "u", "t");
  }

  private static Column milliseconds(ChangeGroup group, int[] chosen) {
    Column microseconds = group.about("_commit_timestamp", DataTypes.TimestampType, chosen);
    return Column.longs(row -> Math.floorDiv(microseconds.getLong(row), 1000L), null);
  }

  private Column source(ChangeGroup group, int[] chosen, StructType type) {
    List<String> databases = new ArrayList<>();
    List<String> owners = new ArrayList<>();
    List<String> names = new ArrayList<>();
    for (String table : group.tables) {
      ChangeGroup.TableName parts = ChangeGroup.TableName.of(table);
      databases.add(parts.database());
      owners.add(parts.owner());
      names.add(parts.table());
    }
    Column[] columns = {
      Column.constant("informix"),
      Column.constant(form.server()),
      milliseconds(group, chosen),
      Column.constant(Boolean.toString(group.isRead())),
      group.byTable(databases, chosen),
      group.byTable(owners, chosen),
      group.byTable(names, chosen),
      Column.textsOf(group.about("_change_seq", DataTypes.LongType, chosen)),
      Column.textsOf(group.about("_commit_version", DataTypes.LongType, chosen)),
      Column.textsOf(group.about("_begin_version", DataTypes.LongType, chosen)),
      Column.textsOf(transactionId(group, chosen))
    };
    return Column.struct(type, chosen, columns);
  }

  private static Column transactionId(ChangeGroup group, int[] chosen) {
    Column ids = group.about("_transaction_id", DataTypes.IntegerType, chosen);
    return Column.longs(ids::getInt, ids);
  }

  private static Column transaction(ChangeGroup group, int[] chosen, StructType type) {
    Column ordinals = group.about("_change_ordinal", DataTypes.IntegerType, chosen);
    Column ids = transactionId(group, chosen);
    long[] inTable = group.eventsOfTable(chosen);
    Column[] columns = {
      Column.textsOf(ids),
      Column.longs(row -> ordinals.getInt(row) + 1L, null),
      Column.longs(row -> inTable[row] + 1, ids) // unknown, like the transaction
    };
    return Column.struct(type, chosen, columns);
  }
}
