// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A quotient of integers; the denominator is positive. */
final class Fraction {
  private static final Pattern QUOTIENT = Pattern.compile("([0-9]{1,400})/([0-9]{1,400})");
  private static final Pattern DECIMAL =
      Pattern.compile("([0-9]{1,400})(?:\\.([0-9]{1,400}))?(?:e([+-]?[0-9]{1,3}))?");
  // A longer number is read as a double: its exact value would take long.
  private static final int LONGEST = 4096;

  final BigInteger above;
  final BigInteger below;

  Fraction(BigInteger above, BigInteger below) {
    this.above = above;
    this.below = below;
  }

  /** A positive decimal ("0.25", "1e-3") or quotient ("1/3"); IllegalArgumentException if none. */
  static Fraction parse(String text) {
    Matcher quotient = QUOTIENT.matcher(text);
    Matcher decimal = DECIMAL.matcher(text);
    Fraction found = null;
    if (quotient.matches()) {
      found = new Fraction(new BigInteger(quotient.group(1)), new BigInteger(quotient.group(2)));
    } else if (decimal.matches()) {
      found = of(new BigDecimal(text));
    }
    if (found == null || found.above.signum() <= 0 || found.below.signum() <= 0) {
      throw new IllegalArgumentException("This is no positive decimal or quotient.");
    }
    return found;
  }

  /** The exact value of a number that is neither infinite nor NaN. */
  static Fraction of(Number number) {
    if (isWhole(number)) {
      return new Fraction(new BigInteger(number.toString()), BigInteger.ONE);
    }
    if (number instanceof BigDecimal && isShort((BigDecimal) number)) {
      return of((BigDecimal) number);
    }
    return of(number.doubleValue());
  }

  /** Whether a number is of a type of integers, and not too long to write. */
  static boolean isWhole(Object value) {
    if (value instanceof BigInteger) {
      return ((BigInteger) value).bitLength() <= LONGEST;
    }
    return value instanceof Long
        || value instanceof Integer
        || value instanceof Short
        || value instanceof Byte;
  }

  private static boolean isShort(BigDecimal number) {
    return Math.abs((long) number.scale()) <= LONGEST / 4
        && number.unscaledValue().bitLength() <= LONGEST;
  }

  private static Fraction of(BigDecimal number) {
    BigInteger power = BigInteger.TEN.pow(Math.abs(number.scale()));
    BigInteger digits = number.unscaledValue();
    return number.scale() > 0
        ? new Fraction(digits, power)
        : new Fraction(digits.multiply(power), BigInteger.ONE);
  }

  private static Fraction of(double value) {
    long bits = Double.doubleToRawLongBits(Math.abs(value));
    int exponent = (int) (bits >>> 52);
    long mantissa = bits & ((1L << 52) - 1);
    if (exponent > 0) {
      mantissa |= 1L << 52;
    }
    int power = Math.max(exponent, 1) - 1075;
    BigInteger digits = BigInteger.valueOf(value < 0 ? -mantissa : mantissa);
    return power > 0
        ? new Fraction(digits.shiftLeft(power), BigInteger.ONE)
        : new Fraction(digits, BigInteger.ONE.shiftLeft(-power));
  }

  /** The nearest integer to this over another, half to even. */
  BigInteger roundedOver(Fraction step) {
    BigInteger numerator = above.multiply(step.below);
    BigInteger denominator = below.multiply(step.above);
    BigInteger[] parts = numerator.divideAndRemainder(denominator);
    BigInteger floor = parts[1].signum() < 0 ? parts[0].subtract(BigInteger.ONE) : parts[0];
    BigInteger rest = numerator.subtract(floor.multiply(denominator));
    int side = rest.shiftLeft(1).compareTo(denominator);
    boolean isUp = side > 0 || side == 0 && floor.testBit(0);
    return isUp ? floor.add(BigInteger.ONE) : floor;
  }
}
