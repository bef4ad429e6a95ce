package informixcdc;

import com.fasterxml.jackson.core.io.schubfach.DoubleToDecimal;
import com.fasterxml.jackson.core.io.schubfach.FloatToDecimal;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
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
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Rows of a group as JSON texts, byte for byte those of `shapes/json_rows.py`.
 *
 * <p>Rule: a text is made when it is asked for, so a query that leaves it out does not pay for it.
 */
final class JsonTexts {
  private static final int FIRST_PRINTED = 0x20;
  private static final long DAY = 86_400_000_000L;

  private final ChangeGroup group;
  private final Table[] tables;
  private final Text text = new Text();

  JsonTexts(ChangeGroup group) {
    this.group = group;
    tables = new Table[group.tables.size()];
  }

  /** Return the row of a change. */
  UTF8String of(int change) {
    int table = group.table(change);
    if (tables[table] == null) {
      tables[table] = Table.of(group.rowsAt(table));
    }
    text.reset();
    int row = group.row(change);
    for (int place = 0; place < tables[table].columns.length; place++) {
      byte[] head = tables[table].heads[place];
      text.write(head, 0, head.length);
      value(text, tables[table].cells[place], tables[table].columns[place], row);
    }
    text.write('}');
    return UTF8String.fromBytes(text.toByteArray());
  }

  /** The bytes of a text that is being made. */
  private static final class Text extends ByteArrayOutputStream {
    void write(String ascii) {
      byte[] bytes = ascii.getBytes(StandardCharsets.US_ASCII);
      write(bytes, 0, bytes.length);
    }

    /** Write a number with leading zeros. */
    void write(long number, int digits) {
      String shown = Long.toString(number);
      for (int left = digits - shown.length(); left > 0; left--) {
        write('0');
      }
      write(shown);
    }
  }

  /** The columns of a table, and what comes before each: a brace or a comma, and its name. */
  private record Table(Column[] columns, byte[][] heads, Cell[] cells) {
    static Table of(StructVector rows) {
      StructType type = (StructType) ArrowUtils.fromArrowField(rows.getField());
      Column[] columns = new Column[type.length()];
      byte[][] heads = new byte[columns.length][];
      Cell[] cells = new Cell[columns.length];
      for (int place = 0; place < columns.length; place++) {
        StructField field = type.fields()[place];
        FieldVector values = rows.getChild(field.name(), FieldVector.class);
        columns[place] = Column.of(values, field.dataType(), 0);
        Text head = new Text();
        head.write(place == 0 ? '{' : ',');
        quoted(head, field.name().getBytes(StandardCharsets.UTF_8));
        head.write(':');
        heads[place] = head.toByteArray();
        cells[place] = cellOf(field.dataType());
      }
      return new Table(columns, heads, cells);
    }
  }

  /** Writes a value that is not NULL. */
  private interface Cell {
    void write(Text text, Column column, int row);
  }

  private static final Map<Class<?>, Cell> CELLS =
      Map.ofEntries(
          Map.entry(ShortType.class, (text, column, row) -> text.write(column.getShort(row), 1)),
          Map.entry(IntegerType.class, (text, column, row) -> text.write(column.getInt(row), 1)),
          Map.entry(LongType.class, (text, column, row) -> text.write(column.getLong(row), 1)),
          Map.entry(FloatType.class, (text, column, row) -> text.write(real(column.getFloat(row)))),
          Map.entry(DoubleType.class, (text, column, row) -> text.write(real(column.getDouble(row)))),
          Map.entry(DecimalType.class, JsonTexts::exact),
          Map.entry(
              BooleanType.class,
              (text, column, row) -> text.write(column.getBoolean(row) ? "true" : "false")),
          Map.entry(DateType.class, JsonTexts::date),
          Map.entry(TimestampNTZType.class, JsonTexts::instant),
          Map.entry(DayTimeIntervalType.class, JsonTexts::span),
          Map.entry(
              StringType.class,
              (text, column, row) -> quoted(text, column.getUTF8String(row).getBytes())),
          Map.entry(BinaryType.class, JsonTexts::bytes),
          Map.entry(StructType.class, JsonTexts::struct));

  private static Cell cellOf(DataType type) {
    for (Map.Entry<Class<?>, Cell> known : CELLS.entrySet()) {
      if (known.getKey().isInstance(type)) {
        return known.getValue();
      }
    }
    throw new IllegalArgumentException("a value of " + type.simpleString() + " has no JSON");
  }

  private static void value(Text text, Cell cell, Column column, int row) {
    if (column.isNullAt(row)) {
      text.write("null");
    } else {
      cell.write(text, column, row);
    }
  }

  private static void struct(Text text, Column column, int row) {
    StructField[] fields = ((StructType) column.dataType()).fields();
    for (int place = 0; place < fields.length; place++) {
      text.write((place == 0 ? "{\"" : ",\"") + fields[place].name() + "\":");
      value(text, cellOf(fields[place].dataType()), (Column) column.getChild(place), row);
    }
    text.write('}');
  }

  private static void exact(Text text, Column column, int row) {
    DecimalType type = (DecimalType) column.dataType();
    Decimal value = column.getDecimal(row, type.precision(), type.scale());
    text.write(value.toJavaBigDecimal().toPlainString());
  }

  private static void date(Text text, Column column, int row) {
    text.write('"');
    text.write(LocalDate.ofEpochDay(column.getInt(row)).toString());
    text.write('"');
  }

  private static void bytes(Text text, Column column, int row) {
    text.write('"');
    text.write(Base64.getEncoder().encodeToString(column.getBinary(row)));
    text.write('"');
  }

  private static void instant(Text text, Column column, int row) {
    long microseconds = column.getLong(row);
    text.write('"');
    text.write(LocalDate.ofEpochDay(Math.floorDiv(microseconds, DAY)).toString());
    text.write('T');
    clock(text, Math.floorMod(microseconds, DAY));
    text.write('"');
  }

  /** As Informix prints an INTERVAL DAY TO FRACTION(6). */
  private static void span(Text text, Column column, int row) {
    long microseconds = column.getLong(row);
    long size = Math.abs(microseconds); // of the lowest number it is that number, without a sign
    text.write(microseconds < 0 ? "\"-" : "\"");
    text.write(Long.divideUnsigned(size, DAY), 1);
    text.write(' ');
    clock(text, Long.remainderUnsigned(size, DAY));
    text.write('"');
  }

  private static void clock(Text text, long microseconds) {
    long seconds = microseconds / 1_000_000;
    text.write(seconds / 3600, 2);
    text.write(':');
    text.write(seconds / 60 % 60, 2);
    text.write(':');
    text.write(seconds % 60, 2);
    text.write('.');
    text.write(microseconds % 1_000_000, 6);
  }

  private static void quoted(Text text, byte[] utf8) {
    text.write('"');
    int begin = 0;
    for (int at = 0; at < utf8.length; at++) {
      byte one = utf8[at];
      if (one == '"' || one == '\\' || one >= 0 && one < FIRST_PRINTED) {
        text.write(utf8, begin, at - begin);
        text.write(escaped(one));
        begin = at + 1;
      }
    }
    text.write(utf8, begin, utf8.length - begin);
    text.write('"');
  }

  private static String escaped(byte one) {
    return switch (one) {
      case '"' -> "\\\"";
      case '\\' -> "\\\\";
      case '\n' -> "\\n";
      case '\r' -> "\\r";
      case '\t' -> "\\t";
      case '\b' -> "\\b";
      case '\f' -> "\\f";
      default -> "\\u00" + HexFormat.of().toHexDigits(one);
    };
  }

  static String real(double value) {
    if (Double.isNaN(value) || Double.isInfinite(value)) {
      return Double.isNaN(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    }
    return Shortest.of(DoubleToDecimal.toString(value), text -> Double.parseDouble(text) == value);
  }

  static String real(float value) {
    if (Float.isNaN(value) || Float.isInfinite(value)) {
      return real((double) value);
    }
    return Shortest.of(FloatToDecimal.toString(value), text -> Float.parseFloat(text) == value);
  }
}
