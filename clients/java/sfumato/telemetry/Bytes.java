// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** Bytes, hashes and unsigned words of 64 bits. */
final class Bytes {
  private Bytes() {}

  /** Text as UTF-8; a lone surrogate, which is no character, becomes a question mark. */
  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Whether UTF-8 can write a text: it has no lone surrogate. */
  static boolean isUnicode(String text) {
    try {
      StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      return true;
    } catch (CharacterCodingException lone) {
      return false;
    }
  }

  static String hex(byte[] bytes) {
    StringBuilder found = new StringBuilder(2 * bytes.length);
    for (byte each : bytes) {
      found.append(Character.forDigit((each >> 4) & 15, 16));
      found.append(Character.forDigit(each & 15, 16));
    }
    return found.toString();
  }

  static byte[] concat(byte[]... parts) {
    int size = 0;
    for (byte[] part : parts) {
      size += part.length;
    }
    ByteBuffer found = ByteBuffer.allocate(size);
    for (byte[] part : parts) {
      found.put(part);
    }
    return found.array();
  }

  static byte[] sha256(byte[] bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException(missing);
    }
  }

  /** The least number of bytes that holds a number. */
  static int sizeOf(long most) {
    int bits = 64 - Long.numberOfLeadingZeros(most);
    return Math.max(1, (bits + 7) / 8);
  }

  /** Writes a number, the most significant byte first. */
  static void put(byte[] target, int from, int size, long number) {
    long rest = number;
    for (int i = from + size - 1; i >= from; i--) {
      target[i] = (byte) rest;
      rest >>>= 8;
    }
  }

  static byte[] bigEndian(long number, int size) {
    byte[] found = new byte[size];
    put(found, 0, size, number);
    return found;
  }

  static boolean isBelow(long word, long bound) {
    return Long.compareUnsigned(word, bound) < 0;
  }

  /** The word times a count below 2^31, divided by 2^64 and rounded down. */
  static int share(long word, int count) {
    long high = (word >>> 32) * count;
    long low = ((word & 0xffffffffL) * count) >>> 32;
    return (int) ((high + low) >>> 32);
  }
}
