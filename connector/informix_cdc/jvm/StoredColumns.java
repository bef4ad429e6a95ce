package informixcdc;

import java.math.BigInteger;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Columns over the memory of Arrow's vectors.
 *
 * <p>Rule: nothing is copied but what Spark takes as an object. A column begins at any row of its
 * vector. Spark's own ArrowColumnVector asks the vector for each value, which checks bounds and makes
 * an object of it first.
 */
final class StoredColumns {
  private StoredColumns() {}

  /** Return a column, or refuse a vector that holds another type than Spark was promised. */
  static Column of(FieldVector vector, DataType type, int first) {
    if (type instanceof StructType rows && vector instanceof StructVector struct) {
      return new Struct(struct, rows, first);
    }
    if (!ArrowUtils.fromArrowField(vector.getField()).equals(type)) {
      String message = vector.getField() + " is not of type " + type.simpleString();
      throw new IllegalArgumentException("column " + message);
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
      if (vector.size() != type.length()) { // Python's reader hands over all of them, by place
        throw new IllegalArgumentException("column " + vector.getName() + " has different fields");
      }
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
}
