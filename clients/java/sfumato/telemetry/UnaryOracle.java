// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;

/** A bit for each value; that of the value itself is 1 more often than the others. */
final class UnaryOracle extends Oracle {
  private final int values;
  private final BigInteger kept;
  private final BigInteger added;

  UnaryOracle(Form form) throws TaskRefused {
    values = valuesOf(form);
    kept = form.weight("kept");
    added = form.weight("added");
    fits(isMore(kept, added));
  }

  @Override
  int draws() {
    return values;
  }

  @Override
  int size() {
    return (int) ((values + 7L) / 8);
  }

  @Override
  long values() {
    return values;
  }

  @Override
  BigInteger loss() {
    return Loss.ofBits(kept, added);
  }

  @Override
  byte[] encode(long value, long[] words, int from) {
    long usual = added.longValue();
    byte[] payload = new byte[size()];
    for (int i = 0; i < values; i++) {
      long weight = i == value ? kept.longValue() : usual;
      if (Bytes.isBelow(words[from + i], weight)) {
        payload[i >> 3] |= (byte) (1 << (i & 7));
      }
    }
    return payload;
  }
}
