// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * What a client remembers: from which epoch on it answers, the last period in which it reported and
 * how often, and the answer of an epoch. The layout is that of the Python client.
 */
final class State {
  /** No epoch or period has this number. */
  static final long NONE = (1L << 32) - 1;

  private static final byte VERSION = 1;
  private static final int HEADER = 21;
  private static final int CHECKSUM = 32;

  final long first;
  final long period;
  final long used;
  final long epoch;
  final byte[] answer;

  State(long first, long period, long used, long epoch, byte[] answer) {
    this.first = first;
    this.period = period;
    this.used = used;
    this.epoch = epoch;
    this.answer = answer;
  }

  /** The state of a device that answers from an epoch on. */
  static State fresh(long first) {
    return new State(first, NONE, 0, NONE, new byte[0]);
  }

  byte[] bytes() {
    ByteBuffer body = ByteBuffer.allocate(HEADER + answer.length);
    body.put(VERSION).putInt((int) first).putInt((int) period).putInt((int) used);
    body.putInt((int) epoch).putInt(answer.length).put(answer);
    return Bytes.concat(body.array(), Bytes.sha256(body.array()));
  }

  /** The state of such bytes, for answers of a size; null if anything is wrong with them. */
  static State of(byte[] kept, int size) {
    if (kept == null || kept.length < HEADER + CHECKSUM) {
      return null;
    }
    byte[] body = Arrays.copyOf(kept, kept.length - CHECKSUM);
    byte[] checksum = Arrays.copyOfRange(kept, body.length, kept.length);
    if (!Arrays.equals(Bytes.sha256(body), checksum) || body[0] != VERSION) {
      return null;
    }
    long[] numbers = new long[5];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = ByteBuffer.wrap(body).getInt(1 + 4 * i) & 0xffffffffL;
    }
    byte[] answer = Arrays.copyOfRange(body, HEADER, body.length);
    long due = numbers[3] == NONE ? 0 : size;
    boolean fits = answer.length == numbers[4] && numbers[4] == due;
    return fits ? new State(numbers[0], numbers[1], numbers[2], numbers[3], answer) : null;
  }
}
