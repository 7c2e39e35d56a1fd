// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;

/** A point of a projective space: one of those orthogonal to the value, more often than others. */
final class ProjectiveOracle extends Oracle {
  private static final int MOST = 30_000_000;

  private final int values;
  private final long q;
  private final int t;
  private final BigInteger near;
  private final BigInteger far;
  private final long[] powers;

  ProjectiveOracle(Form form) throws TaskRefused {
    values = valuesOf(form);
    q = form.small("prime", 2, MOST);
    t = form.small("dimension", 2, 25);
    near = form.weight("near");
    far = form.weight("far");
    powers = new long[t + 1];
    powers[0] = 1;
    for (int i = 1; i <= t; i++) {
      powers[i] = powers[i - 1] * q;
      fits(powers[i] <= MOST);
    }
    fits(BigInteger.valueOf(q).isProbablePrime(100));
    BigInteger inside = near.multiply(BigInteger.valueOf(pointsBelow(t - 1)));
    BigInteger outside = far.multiply(BigInteger.valueOf(powers[t - 1]));
    fits(isMore(near, far) && inside.add(outside).equals(Form.WHOLE));
    fits(values <= pointsBelow(t));
  }

  @Override
  int draws() {
    return 1;
  }

  @Override
  int size() {
    return Bytes.sizeOf(pointsBelow(t) - 1);
  }

  @Override
  long values() {
    return values;
  }

  @Override
  BigInteger loss() {
    return Loss.logarithm(near, far);
  }

  /** How many points there are. */
  long points() {
    return pointsBelow(t);
  }

  /** How many points have fewer than f digits after the leading one. */
  private long pointsBelow(int f) {
    return (powers[f] - 1) / (q - 1);
  }

  private int freeDigits(long point) {
    int f = 0;
    while (pointsBelow(f + 1) <= point) {
      f++;
    }
    return f;
  }

  private long vectorOf(long point) {
    int f = freeDigits(point);
    return point - pointsBelow(f) + powers[f];
  }

  /** The digit of q^place. */
  private long digit(long vector, int place) {
    return vector / powers[place] % q;
  }

  @Override
  byte[] encode(long value, long[] words, int from) {
    long word = words[from];
    long edge = near.longValue() * pointsBelow(t - 1);
    long found;
    if (Bytes.isBelow(word, edge)) {
      long rest = vectorOf(Long.divideUnsigned(word, near.longValue()));
      found = completed(value, rest, 0);
    } else {
      long rest = Long.divideUnsigned(word - edge, far.longValue());
      found = completed(value, rest, 1);
    }
    return Bytes.bigEndian(pointOf(found), size());
  }

  /** The vector with the digits of `rest` whose product with the value is `product`. */
  private long completed(long value, long rest, int product) {
    int f = freeDigits(value);
    long coefficients = vectorOf(value);
    long cut = powers[t - 1 - f];
    long upper = rest / cut;
    long known = 0;
    for (int i = 0; i < f; i++) {
      known += digit(coefficients, i) * digit(upper, f - 1 - i);
    }
    long x = Math.floorMod(product - known, q);
    return (upper * q + x) * cut + rest % cut;
  }

  /** The number of the point that a vector is a multiple of. */
  private long pointOf(long vector) {
    int free = t - 1;
    while (digit(vector, free) == 0) {
      free--;
    }
    BigInteger leading = BigInteger.valueOf(digit(vector, free));
    long scale = leading.modInverse(BigInteger.valueOf(q)).longValue();
    long scaled = 0;
    for (int i = free; i >= 0; i--) {
      scaled = scaled * q + digit(vector, i) * scale % q;
    }
    return scaled - powers[free] + pointsBelow(free);
  }
}
