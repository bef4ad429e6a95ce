package informixcdc;

import java.util.List;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Columns whose rows are values of other columns, by their numbers, or made of them.
 *
 * <p>Rule: a negative number is NULL, and nothing is looked up for it: Spark asks for a value only
 * where isNullAt says that there is one.
 */
final class ChosenColumns {
  private ChosenColumns() {}

  static final class Absent extends Column {
    Absent(DataType type) {
      super(type);
    }

    @Override
    public boolean hasNull() {
      return true;
    }

    @Override
    public boolean isNullAt(int row) {
      return true;
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      return null;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      return null;
    }

    @Override
    public byte[] getBinary(int row) {
      return null;
    }

    @Override
    public ColumnVector getChild(int place) {
      return new Absent(((StructType) type).fields()[place].dataType());
    }
  }

  /** Few texts, by their numbers. */
  static final class Words extends Column {
    private final UTF8String[] words;

    Words(List<String> words) {
      super(DataTypes.StringType);
      this.words = words.stream().map(UTF8String::fromString).toArray(UTF8String[]::new);
    }

    @Override
    public boolean hasNull() {
      return false;
    }

    @Override
    public boolean isNullAt(int row) {
      return false;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      return words[row];
    }
  }

  /** What a transaction shares, texts of which there are few, and rows of one table among others. */
  static final class Picked extends Column {
    private final int[] which;
    private final int[] tables;
    private final int table;
    private final Column from;

    /** `tables` says of which table each row is: a row of another one is NULL. */
    Picked(int[] which, int[] tables, int table, Column from) {
      super(from.dataType());
      this.which = which;
      this.tables = tables;
      this.table = table;
      this.from = from;
    }

    private int at(int row) {
      return tables == null || tables[row] == table ? which[row] : -1;
    }

    @Override
    public boolean hasNull() {
      return true;
    }

    @Override
    public boolean isNullAt(int row) {
      int at = at(row);
      return at < 0 || from.isNullAt(at);
    }

    @Override
    public boolean getBoolean(int row) {
      return from.getBoolean(which[row]);
    }

    @Override
    public short getShort(int row) {
      return from.getShort(which[row]);
    }

    @Override
    public int getInt(int row) {
      return from.getInt(which[row]);
    }

    @Override
    public long getLong(int row) {
      return from.getLong(which[row]);
    }

    @Override
    public float getFloat(int row) {
      return from.getFloat(which[row]);
    }

    @Override
    public double getDouble(int row) {
      return from.getDouble(which[row]);
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      int at = at(row);
      return at < 0 ? null : from.getDecimal(at, precision, scale);
    }

    @Override
    public UTF8String getUTF8String(int row) {
      int at = at(row);
      return at < 0 ? null : from.getUTF8String(at);
    }

    @Override
    public byte[] getBinary(int row) {
      int at = at(row);
      return at < 0 ? null : from.getBinary(at);
    }

    @Override
    public ColumnVector getChild(int place) {
      return new Picked(which, tables, table, (Column) from.getChild(place));
    }
  }

  /** A struct of which each child is NULL where it is, and which is NULL itself where `which` is. */
  static final class Struct extends Column {
    private final int[] which;
    private final Column[] children;

    Struct(StructType type, int[] which, Column[] children) {
      super(type);
      this.which = which;
      this.children = children;
    }

    @Override
    public boolean hasNull() {
      return true;
    }

    @Override
    public boolean isNullAt(int row) {
      return which[row] < 0;
    }

    @Override
    public ColumnVector getChild(int place) {
      return children[place];
    }
  }

  /** Values that are made when they are asked for. */
  static final class Made extends Column {
    private final IntFunction<UTF8String> texts;
    private final IntToLongFunction longs;
    private final IntPredicate isNull;

    Made(
        DataType type,
        IntFunction<UTF8String> texts,
        IntToLongFunction longs,
        IntPredicate isNull) {
      super(type);
      this.texts = texts;
      this.longs = longs;
      this.isNull = isNull;
    }

    @Override
    public boolean hasNull() {
      return true;
    }

    @Override
    public boolean isNullAt(int row) {
      return isNull.test(row);
    }

    @Override
    public long getLong(int row) {
      return longs.applyAsLong(row);
    }

    @Override
    public UTF8String getUTF8String(int row) {
      return isNull.test(row) ? null : texts.apply(row);
    }
  }
}
