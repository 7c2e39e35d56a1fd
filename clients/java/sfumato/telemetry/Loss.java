// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;

/** What a draw costs: the logarithm of the odds of its weights, exact integers rounded up. */
final class Loss {
  private static final int SCALE = 200;
  // the terms of the series that are left out are below 9^-80, which is less than this
  private static final BigInteger REST = BigInteger.ONE.shiftLeft(8);
  private static final BigInteger TWO =
      belowTwo(BigInteger.TWO, BigInteger.ONE);

  private Loss() {}

  /** 2^200 ln(a/b) rounded up, for a > b > 0 with a <= 2 b: 2 atanh((a - b)/(a + b)). */
  private static BigInteger belowTwo(BigInteger a, BigInteger b) {
    BigInteger x = a.subtract(b).shiftLeft(SCALE).divide(a.add(b)).add(BigInteger.ONE);
    BigInteger square = x.multiply(x).shiftRight(SCALE).add(BigInteger.ONE);
    BigInteger sum = BigInteger.ZERO;
    BigInteger power = x;
    for (int k = 1; k < 160; k += 2) {
      sum = sum.add(power.divide(BigInteger.valueOf(k))).add(BigInteger.ONE);
      power = power.multiply(square).shiftRight(SCALE).add(BigInteger.ONE);
    }
    return sum.shiftLeft(1).add(REST);
  }

  /** 2^200 ln(a/b) rounded up, for a > b > 0. */
  static BigInteger logarithm(BigInteger a, BigInteger b) {
    BigInteger below = b;
    int twos = 0;
    while (a.compareTo(below.shiftLeft(1)) > 0) {
      below = below.shiftLeft(1);
      twos++;
    }
    return TWO.multiply(BigInteger.valueOf(twos)).add(belowTwo(a, below));
  }

  /** The same of a coin that says yes with one weight or another, of 2^64. */
  static BigInteger ofBits(BigInteger kept, BigInteger added) {
    BigInteger above = kept.multiply(Form.WHOLE.subtract(added));
    BigInteger below = added.multiply(Form.WHOLE.subtract(kept));
    return logarithm(above, below);
  }

  /** Whether the draws of a life cost more than a fraction. */
  static boolean isDearer(BigInteger loss, long draws, Fraction most) {
    BigInteger life = loss.multiply(BigInteger.valueOf(draws)).multiply(most.below);
    return life.compareTo(most.above.shiftLeft(SCALE)) > 0;
  }
}
