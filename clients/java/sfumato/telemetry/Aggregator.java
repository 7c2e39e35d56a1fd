// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.SecureRandom;
import java.security.interfaces.ECPublicKey;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * The receiver of sealed reports: HPKE (RFC 9180) in base mode with DHKEM(P-256, HKDF-SHA256),
 * HKDF-SHA256 and AES-128-GCM.
 */
final class Aggregator {
  private static final byte[] KEM = {'K', 'E', 'M', 0, 0x10};
  private static final byte[] SUITE = {'H', 'P', 'K', 'E', 0, 0x10, 0, 1, 0, 1};
  private static final byte[] VERSION = Bytes.utf8("HPKE-v1");
  private static final byte[] CONTEXT = Bytes.utf8("sfumato telemetry report 1\n");
  private static final byte[] NONE = new byte[0];
  private static final int POINT = 65;

  private final ECPublicKey key;
  private final byte[] point;
  private final SecureRandom random = Words.systemRandom();

  private Aggregator(ECPublicKey key, byte[] point) {
    this.key = key;
    this.point = point;
  }

  /** The receiver of a point in base64. */
  static Aggregator of(String text) throws TaskRefused {
    String reason = "the key of its aggregator";
    byte[] point = Signed.base64(text, reason);
    TaskRefused.unless(point.length == POINT && point[0] == 4, reason);
    BigInteger x = new BigInteger(1, Arrays.copyOfRange(point, 1, 1 + Curve.COORDINATE));
    BigInteger y = new BigInteger(1, Arrays.copyOfRange(point, 1 + Curve.COORDINATE, POINT));
    try {
      return new Aggregator(Curve.key(x, y), point);
    } catch (GeneralSecurityException | IllegalArgumentException none) {
      throw new TaskRefused(reason);
    }
  }

  /** A report, sealed under the hash of its task with a new key. */
  byte[] seal(byte[] hash, byte[] report) {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
      generator.initialize(Curve.NAME, random);
      return seal(generator.generateKeyPair(), Bytes.concat(CONTEXT, hash), report, NONE);
    } catch (GeneralSecurityException failed) {
      throw new IllegalStateException("A report could not be sealed.", failed);
    }
  }

  /** The key that was made and one message, as in the RFC. */
  byte[] seal(KeyPair made, byte[] info, byte[] text, byte[] beside)
      throws GeneralSecurityException {
    byte[] sent = Curve.bytes((ECPublicKey) made.getPublic());
    KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
    agreement.init(made.getPrivate());
    agreement.doPhase(key, true);
    byte[] start = extract(KEM, NONE, "eae_prk", agreement.generateSecret());
    byte[] shared = expand(KEM, start, "shared_secret", Bytes.concat(sent, point), 32);
    byte[] context = Bytes.concat(
        new byte[1],
        extract(SUITE, NONE, "psk_id_hash", NONE),
        extract(SUITE, NONE, "info_hash", info));
    byte[] secret = extract(SUITE, shared, "secret", NONE);
    byte[] aes = expand(SUITE, secret, "key", context, 16);
    byte[] nonce = expand(SUITE, secret, "base_nonce", context, 12);
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(
        Cipher.ENCRYPT_MODE, new SecretKeySpec(aes, "AES"), new GCMParameterSpec(128, nonce));
    cipher.updateAAD(beside);
    return Bytes.concat(sent, cipher.doFinal(text));
  }

  private static byte[] hmac(byte[] key, byte[] text) throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    return mac.doFinal(text);
  }

  private static byte[] extract(byte[] suite, byte[] salt, String label, byte[] key)
      throws GeneralSecurityException {
    byte[] salted = salt.length > 0 ? salt : new byte[32];
    return hmac(salted, Bytes.concat(VERSION, suite, Bytes.utf8(label), key));
  }

  /** At most 32 bytes, so one block is enough. */
  private static byte[] expand(byte[] suite, byte[] secret, String label, byte[] info, int size)
      throws GeneralSecurityException {
    byte[] named = Bytes.concat(
        Bytes.bigEndian(size, 2), VERSION, suite, Bytes.utf8(label), info, new byte[] {1});
    return Arrays.copyOf(hmac(secret, named), size);
  }
}
