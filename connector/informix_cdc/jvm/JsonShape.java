package informixcdc;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/** shape=json: before and after as JSON, for any number of tables. */
record JsonShape(ReaderForm form, StructType rows) implements ReaderForm.Shape {
  private static final int IMAGES = 2;

  @Override
  public Column[] columns(ChangeGroup group, int[] chosen) {
    int[] before = form.imagesBefore(group, chosen);
    int[] after = form.imagesAfter(group, chosen);
    Column[] columns = new Column[rows.length()];
    JsonTexts texts = new JsonTexts(group);
    columns[0] = Column.texts(row -> texts.of(before[row]), row -> before[row] < 0);
    columns[1] = Column.texts(row -> texts.of(after[row]), row -> after[row] < 0);
    List<String> kinds = new ArrayList<>(group.kinds);
    kinds.set(ChangeGroup.AFTER, "update");
    for (int place = IMAGES; place < columns.length; place++) {
      columns[place] =
          rows.fields()[place].name().equals("_change_type")
              ? group.byKind(kinds, chosen)
              : RowShape.about(group, chosen, rows.fields()[place]);
    }
    return columns;
  }
}
