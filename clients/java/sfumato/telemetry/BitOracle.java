// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;

/** One bit of the Hadamard transform, at a row that is drawn. */
final class BitOracle extends Oracle {
  private final int values;
  private final int rowBits;
  private final BigInteger truth;

  BitOracle(Form form) throws TaskRefused {
    values = valuesOf(form);
    rowBits = 64 - Long.numberOfLeadingZeros(values - 1L);
    truth = form.weight("truth");
    fits(isMore(truth.shiftLeft(1), Form.WHOLE));
  }

  @Override
  int draws() {
    return 2;
  }

  @Override
  int size() {
    return Bytes.sizeOf((2L << rowBits) - 1);
  }

  @Override
  long values() {
    return values;
  }

  @Override
  BigInteger loss() {
    return Loss.logarithm(truth, Form.WHOLE.subtract(truth));
  }

  @Override
  byte[] encode(long value, long[] words, int from) {
    long row = words[from] >>> (64 - rowBits);
    int sign = Long.bitCount(row & value) & 1;
    int said = Bytes.isBelow(words[from + 1], truth.longValue()) ? sign : 1 - sign;
    return Bytes.bigEndian(2 * row + said, size());
  }
}
