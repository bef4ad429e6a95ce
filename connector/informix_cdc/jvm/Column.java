package informixcdc;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.StructVector;
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
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Columns of Spark over the memory of Arrow's.
 *
 * <p>Rule: nothing is copied but what Spark takes as an object. A column begins at any row of its
 * vector, and does not own it: the reader of the segment frees it. Spark's own ArrowColumnVector asks
 * the vector for each value, which checks bounds and makes an object of it first.
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

  private Column(DataType type) {
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
    if (type instanceof StructType rows && vector instanceof StructVector struct) {
      return new Struct(struct, rows, first);
    }
    if (!ArrowUtils.fromArrowField(vector.getField()).equals(type)) {
      String told = vector.getField() + " is not of type " + type.simpleString();
      throw new IllegalArgumentException("column " + told);
    }
    if (vector instanceof DecimalVector decimals) {
      return decimals.getPrecision() <= Decimal.MAX_LONG_DIGITS()
          ? new SmallDecimals(decimals, type, first)
          : new LargeDecimals(decimals, type, first);
    }
    return vector instanceof BaseVariableWidthVector bytes
        ? new Bytes(bytes, type, first)
        : new Numbers((BaseFixedWidthVector) vector, type, first); // large texts are none, and refused
  }

  /** Return values of another column by their numbers; a negative one is NULL. */
  static Column picked(int[] which, Column from) {
    return new Picked(which, null, 0, from);
  }

  /** Return rows of one table among those of others. */
  static Column ofTable(int table, int[] tables, int[] which, Column from) {
    return new Picked(which, tables, table, from);
  }

  /** Return a struct with a child for each table. */
  static Column image(StructType type, int[] which, Column[] tables) {
    return new Image(type, which, tables);
  }

  /** Return texts by their numbers. */
  static Column words(List<String> words) {
    return new Words(words);
  }

  /** Return a column of NULLs. */
  static Column absent(DataType type) {
    return new Absent(type);
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

  /** A column over a vector: which values are NULL is a bitmap, or nothing where none is. */
  private abstract static class OverVector extends Column {
    private final long bitmap;
    private final boolean hasNull;
    final int first;

    OverVector(FieldVector vector, DataType type, int first) {
      super(type);
      this.first = first;
      hasNull = vector.getNullCount() > 0;
      bitmap = hasNull ? vector.getValidityBuffer().memoryAddress() : 0;
    }

    @Override
    public boolean hasNull() {
      return hasNull;
    }

    @Override
    public boolean isNullAt(int row) {
      return hasNull && !isSet(bitmap, first + row);
    }

    static boolean isSet(long bits, int place) {
      return (Platform.getByte(null, bits + (place >> 3)) & 1 << (place & 7)) != 0;
    }
  }

  /** Numbers, dates, times and booleans. */
  private static final class Numbers extends OverVector {
    private final long start;

    Numbers(BaseFixedWidthVector vector, DataType type, int first) {
      super(vector, type, first);
      long width = type instanceof BooleanType ? 0 : vector.getTypeWidth();
      start = vector.getDataBufferAddress() + width * first;
    }

    @Override
    public boolean getBoolean(int row) {
      return isSet(start, first + row);
    }

    @Override
    public short getShort(int row) {
      return Platform.getShort(null, start + 2L * row);
    }

    @Override
    public int getInt(int row) {
      return Platform.getInt(null, start + 4L * row);
    }

    @Override
    public long getLong(int row) {
      return Platform.getLong(null, start + 8L * row);
    }

    @Override
    public float getFloat(int row) {
      return Platform.getFloat(null, start + 4L * row);
    }

    @Override
    public double getDouble(int row) {
      return Platform.getDouble(null, start + 8L * row);
    }
  }

  /** Decimals of so few digits that the lower half of the 16 bytes holds them. */
  private static final class SmallDecimals extends OverVector {
    private final long start;

    SmallDecimals(DecimalVector vector, DataType type, int first) {
      super(vector, type, first);
      start = vector.getDataBufferAddress() + 16L * first;
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      if (isNullAt(row)) {
        return null;
      }
      return Decimal.createUnsafe(Platform.getLong(null, start + 16L * row), precision, scale);
    }
  }

  private static final class LargeDecimals extends OverVector {
    private final long start;

    LargeDecimals(DecimalVector vector, DataType type, int first) {
      super(vector, type, first);
      start = vector.getDataBufferAddress() + 16L * first;
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      if (isNullAt(row)) {
        return null;
      }
      long at = start + 16L * row;
      byte[] bytes = new byte[16];
      for (int place = 0; place < bytes.length; place++) {
        bytes[place] = Platform.getByte(null, at + bytes.length - 1 - place); // Java's is big endian
      }
      java.math.BigDecimal value = new java.math.BigDecimal(new BigInteger(bytes), scale);
      return Decimal.apply(value, precision, scale);
    }
  }

  /** Texts and byte strings. */
  private static final class Bytes extends OverVector {
    private final long start;
    private final long offsets;

    Bytes(BaseVariableWidthVector vector, DataType type, int first) {
      super(vector, type, first);
      start = vector.getDataBufferAddress();
      offsets = vector.getOffsetBufferAddress() + 4L * first;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      if (isNullAt(row)) {
        return null;
      }
      int begin = Platform.getInt(null, offsets + 4L * row);
      int end = Platform.getInt(null, offsets + 4L * row + 4);
      return UTF8String.fromAddress(null, start + begin, end - begin);
    }

    @Override
    public byte[] getBinary(int row) {
      UTF8String bytes = getUTF8String(row);
      return bytes == null ? null : bytes.getBytes();
    }
  }

  private static final class Struct extends OverVector {
    private final Column[] children;

    Struct(StructVector vector, StructType type, int first) {
      super(vector, type, first);
      children = new Column[type.length()];
      for (int place = 0; place < children.length; place++) {
        StructField field = type.fields()[place];
        FieldVector child = vector.getChild(field.name(), FieldVector.class);
        if (child == null) {
          throw new IllegalArgumentException("column " + field.name() + " is not in the segment");
        }
        children[place] = of(child, field.dataType(), first);
      }
    }

    @Override
    public ColumnVector getChild(int place) {
      return children[place];
    }
  }

  private static final class Absent extends Column {
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
  private static final class Words extends Column {
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
  private static final class Picked extends Column {
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
  private static final class Image extends Column {
    private final int[] which;
    private final Column[] tables;

    Image(StructType type, int[] which, Column[] tables) {
      super(type);
      this.which = which;
      this.tables = tables;
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
      return tables[place];
    }
  }
}
