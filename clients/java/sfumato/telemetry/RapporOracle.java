// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.nio.ByteBuffer;

/** The bits of a text in a cohort, changed for good and again in each report. */
final class RapporOracle extends Oracle {
  final int bits;
  private final int hashes;
  private final int cohorts;
  private final BigInteger kept;
  private final BigInteger added;
  private final BigInteger one;
  private final BigInteger zero;

  RapporOracle(Form form) throws TaskRefused {
    bits = form.small("bits", 8, 1024);
    hashes = form.small("hashes", 1, 8);
    cohorts = form.small("cohorts", 1, 65536);
    kept = form.weight("kept");
    added = form.weight("added");
    one = form.weight("one");
    zero = form.weight("zero");
    fits(bits % 8 == 0 && isMore(kept, added) && isMore(one, zero));
  }

  @Override
  int draws() {
    return 1 + bits;
  }

  @Override
  int size() {
    return 2 + bits / 8;
  }

  @Override
  long values() {
    return -1;
  }

  @Override
  BigInteger loss() {
    return Loss.ofBits(kept, added).multiply(BigInteger.valueOf(hashes));
  }

  @Override
  byte[] encode(long value, long[] words, int from) {
    int cohort = Bytes.share(words[from], cohorts);
    byte[] own = ownBits(cohort, value);
    return drawn(own, words, from + 1, kept.longValue(), added.longValue());
  }

  /** A permanent answer with its bits drawn again. */
  byte[] blurred(byte[] answer, long[] words) {
    return drawn(answer, words, 0, one.longValue(), zero.longValue());
  }

  /** The cohort, and the bits of a text in it. */
  private byte[] ownBits(int cohort, long value) {
    byte[] seed = new byte[12];
    Bytes.put(seed, 0, 4, cohort);
    Bytes.put(seed, 4, 8, value);
    ByteBuffer digest = ByteBuffer.wrap(Bytes.sha256(seed));
    byte[] found = new byte[size()];
    Bytes.put(found, 0, 2, cohort);
    for (int i = 0; i < hashes; i++) {
      int place = (int) (((digest.getInt(4 * i) & 0xffffffffL) * bits) >>> 32);
      found[2 + (place >> 3)] |= (byte) (1 << (place & 7));
    }
    return found;
  }

  /** The cohort, and each bit drawn with the weight of a 1 or of a 0. */
  private byte[] drawn(byte[] from, long[] words, int first, long ofOne, long ofZero) {
    byte[] found = new byte[size()];
    System.arraycopy(from, 0, found, 0, 2);
    for (int i = 0; i < bits; i++) {
      boolean isSet = (from[2 + (i >> 3)] >> (i & 7) & 1) == 1;
      if (Bytes.isBelow(words[first + i], isSet ? ofOne : ofZero)) {
        found[2 + (i >> 3)] |= (byte) (1 << (i & 7));
      }
    }
    return found;
  }
}
