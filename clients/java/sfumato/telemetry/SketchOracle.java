// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.nio.ByteBuffer;

/** A row that is drawn, and the bucket of a text under the hash function of that row. */
final class SketchOracle extends Oracle {
  private static final byte[] LABEL = Bytes.utf8("sfumato telemetry sketch 1");
  private static final int ROW = 2;
  private static final int MOST = 1 << 16;
  private static final long MOST_SUMS = 1L << 28;

  private final int rows;
  private final int bits;
  private final Oracle part;

  SketchOracle(Form form) throws TaskRefused {
    rows = form.small("rows", 1, MOST);
    part = frequency(form.get("part"));
    long buckets = part.values();
    fits(buckets <= MOST && Long.bitCount(buckets) == 1);
    bits = Long.numberOfTrailingZeros(buckets);
    fits(rows * (1 + sums(part)) <= MOST_SUMS);
  }

  /** What the aggregator keeps of the buckets of a row. */
  private static long sums(Oracle part) throws TaskRefused {
    fits(!(part instanceof ChoiceOracle.Hashed));
    return part instanceof ProjectiveOracle ? ((ProjectiveOracle) part).points() : part.values();
  }

  @Override
  int draws() {
    return 1 + part.draws();
  }

  @Override
  int size() {
    return ROW + part.size();
  }

  @Override
  long values() {
    return -1;
  }

  @Override
  BigInteger loss() {
    return part.loss();
  }

  @Override
  byte[] encode(long value, long[] words, int from) {
    int row = Bytes.share(words[from], rows);
    byte[] own = part.encode(bucket(value, row), words, from + 1);
    byte[] payload = new byte[ROW + own.length];
    Bytes.put(payload, 0, ROW, row);
    System.arraycopy(own, 0, payload, ROW, own.length);
    return payload;
  }

  private long bucket(long value, int row) {
    return hash(value, row) >>> (64 - bits);
  }

  /** The hash of a text in a row, whose first bits are its bucket. */
  static long hash(long value, int row) {
    ByteBuffer digest = ByteBuffer.wrap(Bytes.sha256(Bytes.concat(LABEL, Bytes.bigEndian(row, 4))));
    long upper = digest.getLong() * (value >>> 32);
    long lower = digest.getLong() * (value & 0xffffffffL);
    return upper + lower + digest.getLong();
  }
}
