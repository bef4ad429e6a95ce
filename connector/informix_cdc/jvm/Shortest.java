package informixcdc;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.function.Predicate;

/**
 * The shortest text of a real number that is read back as the same number, as Arrow writes it.
 *
 * <p>Java's has at least two digits, and an exponent from other sizes on.
 */
final class Shortest {
  private static final int SMALLEST_EXPONENT = -6;
  private static final int LARGEST_EXPONENT = 9;

  private Shortest() {}

  /**
   * Return Arrow's text of a number.
   *
   * @param javas shortest text with at least two digits
   * @param isSame whether a text is read back as the number
   */
  static String of(String javas, Predicate<String> isSame) {
    String sign = javas.startsWith("-") ? "-" : "";
    BigDecimal value = new BigDecimal(javas).abs().stripTrailingZeros();
    if (value.signum() == 0) {
      return sign + "0";
    }
    if (value.precision() == 2) {
      value = ofOneDigit(value, sign, isSame);
    }
    int exponent = value.precision() - value.scale() - 1;
    if (exponent >= SMALLEST_EXPONENT && exponent <= LARGEST_EXPONENT) {
      return sign + value.toPlainString();
    }
    String digits = value.unscaledValue().toString();
    String rest = digits.length() > 1 ? "." + digits.substring(1) : "";
    return sign + digits.charAt(0) + rest + (exponent < 0 ? "e" : "e+") + exponent;
  }

  /** Return the nearest number of one digit that is read back as the same; else the given one. */
  private static BigDecimal ofOneDigit(BigDecimal value, String sign, Predicate<String> isSame) {
    BigDecimal near = value.round(new MathContext(1, RoundingMode.HALF_EVEN));
    return isSame.test(sign + near) ? near.stripTrailingZeros() : value;
  }
}
