// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.X509EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/** Signatures of tasks: ECDSA with P-256 and SHA-256. */
final class Signed {
  /** The first is that of tasks that do not say when they were signed. */
  private static final String CONTEXT = "sfumato telemetry task 1\n";

  private static final String TIMED = "sfumato telemetry task 2\n";
  private static final int NUMBER = 32;

  /** The canonical task. */
  final String body;

  /** When it was signed, in seconds since 1970; 0 if it does not say. */
  final long signedAt;

  private Signed(String body, long signedAt) {
    this.body = body;
    this.signedAt = signedAt;
  }

  /** The task and when it was signed, if one of the keys has signed both. */
  static Signed verified(String signed, List<ECPublicKey> trusted) throws TaskRefused {
    Object read;
    try {
      read = Json.parse(signed);
    } catch (IllegalArgumentException none) {
      throw new TaskRefused("no signed task");
    }
    boolean isTimed = read instanceof Map && ((Map<?, ?>) read).containsKey("signed_at");
    String[] names = {"signature", "task", "signed_at"};
    Form form = Form.of(read, "no signed task", Arrays.copyOf(names, isTimed ? 3 : 2));
    long signedAt = isTimed ? form.whole("signed_at", 0, 1L << 40) : 0;
    String body = form.text("task");
    String head = isTimed ? TIMED + signedAt + "\n" : CONTEXT;
    byte[] signature = base64(form.text("signature"), "unsigned");
    // a lone surrogate would be signed as another text than is read
    TaskRefused.unless(Bytes.isUnicode(body), "no canonical task");
    for (ECPublicKey key : trusted) {
      if (isSigned(head + body, signature, key)) {
        return new Signed(body, signedAt);
      }
    }
    throw new TaskRefused("not signed with a trusted key");
  }

  /** The bytes of base64 with padding. */
  static byte[] base64(String text, String reason) throws TaskRefused {
    try {
      byte[] found = Base64.getDecoder().decode(text);
      TaskRefused.unless(Base64.getEncoder().encodeToString(found).equals(text), reason);
      return found;
    } catch (IllegalArgumentException none) {
      throw new TaskRefused(reason);
    }
  }

  private static boolean isSigned(String text, byte[] signature, ECPublicKey key) {
    if (signature.length != 2 * NUMBER || !isInRange(signature)) {
      return false;
    }
    try {
      Signature check = Signature.getInstance("SHA256withECDSAinP1363Format");
      check.initVerify(key);
      check.update(Bytes.utf8(text));
      return check.verify(signature);
    } catch (GeneralSecurityException none) {
      return false;
    }
  }

  /** Whether r and s are from 1 on and below the order; some versions of Java take two zeros. */
  private static boolean isInRange(byte[] signature) {
    BigInteger r = new BigInteger(1, Arrays.copyOf(signature, NUMBER));
    BigInteger s = new BigInteger(1, Arrays.copyOfRange(signature, NUMBER, 2 * NUMBER));
    BigInteger order = Curve.PARAMETERS.getOrder();
    return r.signum() > 0 && s.signum() > 0 && r.max(s).compareTo(order) < 0;
  }

  /** A public key of P-256 in PEM; IllegalArgumentException if it is none. */
  static ECPublicKey key(String pem) {
    String body = pem.replaceAll("-----[A-Z ]+-----", "").replaceAll("\\s", "");
    try {
      byte[] der = Base64.getDecoder().decode(body);
      PublicKey found = KeyFactory.getInstance("EC").generatePublic(new X509EncodedKeySpec(der));
      if (found instanceof ECPublicKey && Curve.isOf((ECPublicKey) found)) {
        return (ECPublicKey) found;
      }
    } catch (GeneralSecurityException | IllegalArgumentException none) {
      // falls through: the cause says nothing that the message does not
    }
    throw new IllegalArgumentException("A trusted key is no public key of P-256 in PEM.");
  }
}
