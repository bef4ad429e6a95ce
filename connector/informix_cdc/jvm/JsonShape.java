package informixcdc;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/** shape=json: before and after as JSON, for any number of tables. */
record JsonShape(ReaderForm form, StructType rows) implements ReaderForm.Shape {
  private static final int IMAGES = 2;

  @Override
  public Column[] columns(ChangeGroup group, int[] chosen) {
    int[] before = new int[chosen.length];
    int[] after = new int[chosen.length];
    for (int at = 0; at < chosen.length; at++) {
      int kind = group.kind(chosen[at]);
      boolean isUpdate = kind == ChangeGroup.AFTER;
      boolean hasBefore = kind == ChangeGroup.DELETE || isUpdate && form.hasBeforeImages();
      boolean hasAfter = kind != ChangeGroup.DELETE && kind != ChangeGroup.TRUNCATE;
      before[at] = hasBefore ? chosen[at] - (isUpdate ? 1 : 0) : -1;
      after[at] = hasAfter ? chosen[at] : -1;
    }
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
