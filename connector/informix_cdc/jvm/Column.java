package informixcdc;

import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;
import org.apache.arrow.vector.FieldVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Columns of Spark over segments: of the values of a vector, or of those that numbers choose.
 *
 * <p>Rule: a column owns nothing: the reader of the segment frees its memory. Which types there are
 * is said here, once.
 */
abstract class Column extends ColumnVector {
  private static final Set<Class<?>> LEAVES =
      Set.of(
          BinaryType.class,
          BooleanType.class,
          DateType.class,
          DayTimeIntervalType.class,
          DecimalType.class,
          DoubleType.class,
          FloatType.class,
          IntegerType.class,
          LongType.class,
          ShortType.class,
          StringType.class,
          TimestampNTZType.class,
          TimestampType.class);

  Column(DataType type) {
    super(type);
  }

  /** Tell whether columns can hold rows of a schema. */
  static boolean canHold(StructType rows) {
    return Arrays.stream(rows.fields()).map(StructField::dataType).allMatch(Column::canHoldType);
  }

  private static boolean canHoldType(DataType type) {
    if (type instanceof StructType rows) {
      return canHold(rows);
    }
    return LEAVES.stream().anyMatch(leaf -> leaf.isInstance(type));
  }

  /**
   * Return the values of a vector from its row `first` on.
   *
   * @throws IllegalArgumentException the segment holds another type than Spark was promised
   */
  static Column of(FieldVector vector, DataType type, int first) {
    return StoredColumns.of(vector, type, first);
  }

  /** Return values of another column by their numbers; a negative one is NULL. */
  static Column picked(int[] which, Column from) {
    return new ChosenColumns.Picked(which, null, 0, from);
  }

  /** Return rows of one table among those of others. */
  static Column ofTable(int table, int[] tables, int[] which, Column from) {
    return new ChosenColumns.Picked(which, tables, table, from);
  }

  /** Return a struct of these columns, NULL where `which` is negative. */
  static Column struct(StructType type, int[] which, Column[] children) {
    return new ChosenColumns.Struct(type, which, children);
  }

  /** Return a column of one text. */
  static Column constant(String text) {
    UTF8String same = UTF8String.fromString(text);
    return texts(row -> same, row -> false);
  }

  /** Return texts that are made when they are asked for. */
  static Column texts(IntFunction<UTF8String> made, IntPredicate isNull) {
    return new ChosenColumns.Made(DataTypes.StringType, made, null, isNull);
  }

  /** Return numbers that are made when they are asked for; NULL where another column is, if any. */
  static Column longs(IntToLongFunction made, Column nulls) {
    IntPredicate isNull = nulls == null ? row -> false : nulls::isNullAt;
    return new ChosenColumns.Made(DataTypes.LongType, null, made, isNull);
  }

  /** Return numbers as texts. */
  static Column textsOf(Column longs) {
    return texts(row -> ChangeGroup.text(longs.getLong(row)), longs::isNullAt);
  }

  /** Return texts by their numbers. */
  static Column words(List<String> words) {
    return new ChosenColumns.Words(words);
  }

  /** Return a column of NULLs. */
  static Column absent(DataType type) {
    return new ChosenColumns.Absent(type);
  }

  @Override
  public void close() {}

  @Override
  public int numNulls() {
    return hasNull() ? 1 : 0; // read by nobody as a number
  }

  @Override
  public boolean getBoolean(int row) {
    throw noSuchValue();
  }

  @Override
  public byte getByte(int row) {
    throw noSuchValue();
  }

  @Override
  public short getShort(int row) {
    throw noSuchValue();
  }

  @Override
  public int getInt(int row) {
    throw noSuchValue();
  }

  @Override
  public long getLong(int row) {
    throw noSuchValue();
  }

  @Override
  public float getFloat(int row) {
    throw noSuchValue();
  }

  @Override
  public double getDouble(int row) {
    throw noSuchValue();
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw noSuchValue();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw noSuchValue();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw noSuchValue();
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw noSuchValue();
  }

  @Override
  public byte[] getBinary(int row) {
    throw noSuchValue();
  }

  @Override
  public ColumnVector getChild(int place) {
    throw noSuchValue();
  }

  private UnsupportedOperationException noSuchValue() {
    return new UnsupportedOperationException("not a value of a column of " + type.simpleString());
  }
}
