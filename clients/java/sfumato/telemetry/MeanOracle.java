// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;

/** A coin whose weight grows with the number, or a place near it. */
final class MeanOracle extends Oracle {
  private final int values;
  private final long window;
  private final BigInteger share;
  private final BigInteger low;
  private final BigInteger high;
  private final BigInteger near;
  private final BigInteger far;
  private final long slope;

  MeanOracle(Form form) throws TaskRefused {
    values = valuesOf(form);
    window = form.whole("window", 1, 1L << 32);
    share = form.weight("share", 0);
    low = form.weight("low");
    high = form.weight("high");
    near = form.weight("near");
    far = form.weight("far");
    BigInteger moves = BigInteger.valueOf(values - 1L);
    BigInteger[] steps = high.subtract(low).divideAndRemainder(moves);
    fits(isMore(high, low) && steps[1].signum() == 0);
    slope = steps[0].longValue();
    fits(hasPlaces() ? isWhole(moves) : isAlone());
  }

  private boolean hasPlaces() {
    return share.signum() > 0;
  }

  private boolean isAlone() {
    return near.equals(BigInteger.ONE) && far.equals(BigInteger.ONE) && window == 1;
  }

  private boolean isWhole(BigInteger moves) {
    BigInteger inside = near.multiply(BigInteger.valueOf(window));
    return isMore(near, far) && inside.add(far.multiply(moves)).equals(Form.WHOLE);
  }

  @Override
  int draws() {
    return 2;
  }

  @Override
  int size() {
    return Bytes.sizeOf(hasPlaces() ? window + values : 1);
  }

  @Override
  long values() {
    return values;
  }

  @Override
  BigInteger loss() {
    BigInteger no = Loss.logarithm(Form.WHOLE.subtract(low), Form.WHOLE.subtract(high));
    BigInteger coin = Loss.logarithm(high, low).max(no);
    return hasPlaces() ? coin.max(Loss.logarithm(near, far)) : coin;
  }

  @Override
  byte[] encode(long value, long[] words, int from) {
    boolean isCoin = !Bytes.isBelow(words[from], share.longValue());
    long said = isCoin ? coin(value, words[from + 1]) : place(value, words[from + 1]);
    return Bytes.bigEndian(said, size());
  }

  private long coin(long value, long word) {
    return Bytes.isBelow(word, low.longValue() + slope * value) ? 1 : 0;
  }

  private long place(long value, long word) {
    long inside = near.longValue() * window;
    if (Bytes.isBelow(word, inside)) {
      return 2 + value + Long.divideUnsigned(word, near.longValue());
    }
    long found = Long.divideUnsigned(word - inside, far.longValue());
    return 2 + (found >= value ? found + window : found);
  }
}
