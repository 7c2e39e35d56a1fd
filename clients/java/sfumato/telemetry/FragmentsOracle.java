// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.util.List;

/** A fragment of a text, from a place that is drawn, with its puzzle piece; and the whole text. */
final class FragmentsOracle extends Oracle {
  private static final int MOST = 1 << 13;
  private static final int PIECE_BITS = 8;
  // the hash function that no row of a sketch has
  private static final int PIECE_ROW = 1 << 16;

  private final long symbols;
  private final int length;
  private final int step;
  private final SketchOracle few;
  private final SketchOracle whole;

  FragmentsOracle(Form form, Domain domain) throws TaskRefused {
    Spelling spelling = new Spelling(form, domain);
    symbols = spelling.symbols;
    length = spelling.length;
    step = spelling.step;
    fits(spelling.steps().compareTo(BigInteger.valueOf(MOST)) <= 0);
    List<SketchOracle> parts = spelling.sketches(2);
    few = parts.get(0);
    whole = parts.get(1);
  }

  @Override
  int draws() {
    return 1 + few.draws() + whole.draws();
  }

  @Override
  int size() {
    return 1 + few.size() + whole.size();
  }

  @Override
  long values() {
    return -1;
  }

  @Override
  BigInteger loss() {
    return few.loss().add(whole.loss());
  }

  @Override
  byte[] encode(long value, long[] words, int from) {
    int place = Bytes.share(words[from], (length + step - 1) / step);
    long piece = SketchOracle.hash(value, PIECE_ROW) >>> (64 - PIECE_BITS);
    long marked = piece * power(step) + fragment(value, place);
    byte[] first = few.encode(marked, words, from + 1);
    byte[] second = whole.encode(value, words, from + 1 + few.draws());
    return Bytes.concat(new byte[] {(byte) place}, first, second);
  }

  private long fragment(long value, int place) {
    int left = length - place * step;
    int width = Math.min(step, left);
    long found = value;
    for (int i = width; i < left; i++) {
      found = Long.divideUnsigned(found, symbols);
    }
    return Long.remainderUnsigned(found, power(width));
  }

  private long power(int exponent) {
    long found = 1;
    for (int i = 0; i < exponent; i++) {
      found *= symbols;
    }
    return found;
  }
}
