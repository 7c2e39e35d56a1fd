// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;

/** The truth with one weight, and each of the other answers with another. */
abstract class ChoiceOracle extends Oracle {
  final int values;
  private final BigInteger truth;
  private final BigInteger other;

  private ChoiceOracle(Form form, int answers) throws TaskRefused {
    values = valuesOf(form);
    truth = form.weight("truth");
    other = form.weight("other_weight");
    BigInteger others = other.multiply(BigInteger.valueOf(answers - 1L));
    fits(isMore(truth, other) && truth.add(others).equals(Form.WHOLE));
  }

  @Override
  long values() {
    return values;
  }

  @Override
  BigInteger loss() {
    return Loss.logarithm(truth, other);
  }

  /** The place itself, or another one. */
  long perhaps(long word, long place) {
    long truth = this.truth.longValue();
    if (Bytes.isBelow(word, truth)) {
      return place;
    }
    long found = Long.divideUnsigned(word - truth, other.longValue());
    return found >= place ? found + 1 : found;
  }

  /** The value, or another one. */
  static final class Category extends ChoiceOracle {
    Category(Form form) throws TaskRefused {
      super(form, valuesOf(form));
    }

    @Override
    int draws() {
      return 1;
    }

    @Override
    int size() {
      return Bytes.sizeOf(values - 1L);
    }

    @Override
    byte[] encode(long value, long[] words, int from) {
      return Bytes.bigEndian(perhaps(words[from], value), size());
    }
  }

  /** The bucket of the value under a hash function that is drawn, or another bucket. */
  static final class Hashed extends ChoiceOracle {
    private final int buckets;

    Hashed(Form form) throws TaskRefused {
      super(form, form.small("buckets", 2, 65536));
      buckets = form.small("buckets", 2, 65536);
    }

    @Override
    int draws() {
      return 3;
    }

    @Override
    int size() {
      return 16 + Bytes.sizeOf(buckets - 1L);
    }

    @Override
    byte[] encode(long value, long[] words, int from) {
      long high = (words[from] * value + words[from + 1]) >>> 32;
      long own = (high * buckets) >>> 32;
      byte[] payload = new byte[size()];
      Bytes.put(payload, 0, 8, words[from]);
      Bytes.put(payload, 8, 8, words[from + 1]);
      Bytes.put(payload, 16, payload.length - 16, perhaps(words[from + 2], own));
      return payload;
    }
  }
}
