// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECFieldFp;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.security.spec.EllipticCurve;

/** The curve P-256 (FIPS 186-5) and its public keys. */
final class Curve {
  static final ECGenParameterSpec NAME = new ECGenParameterSpec("secp256r1");
  static final ECParameterSpec PARAMETERS = parameters();
  static final int COORDINATE = 32;

  private Curve() {}

  private static ECParameterSpec parameters() {
    try {
      AlgorithmParameters found = AlgorithmParameters.getInstance("EC");
      found.init(NAME);
      return found.getParameterSpec(ECParameterSpec.class);
    } catch (GeneralSecurityException missing) {
      throw new IllegalStateException(missing);
    }
  }

  /** The public key of a point; IllegalArgumentException if the point is not on the curve. */
  static ECPublicKey key(BigInteger x, BigInteger y) throws GeneralSecurityException {
    if (!isOn(x, y)) {
      throw new IllegalArgumentException("This is no point of P-256.");
    }
    ECPublicKeySpec given = new ECPublicKeySpec(new ECPoint(x, y), PARAMETERS);
    return (ECPublicKey) KeyFactory.getInstance("EC").generatePublic(given);
  }

  /** Whether y^2 = x^3 + a x + b, which KeyFactory does not check. */
  private static boolean isOn(BigInteger x, BigInteger y) {
    EllipticCurve curve = PARAMETERS.getCurve();
    BigInteger p = ((ECFieldFp) curve.getField()).getP();
    BigInteger right = x.multiply(x).add(curve.getA()).multiply(x).add(curve.getB());
    boolean isReduced = x.compareTo(p) < 0 && y.compareTo(p) < 0;
    return isReduced && y.multiply(y).subtract(right).mod(p).signum() == 0;
  }

  /** Whether a key is one of P-256. */
  static boolean isOf(ECPublicKey key) {
    ECParameterSpec given = key.getParams();
    return given.getCurve().equals(PARAMETERS.getCurve())
        && given.getGenerator().equals(PARAMETERS.getGenerator())
        && given.getOrder().equals(PARAMETERS.getOrder())
        && isOn(key.getW().getAffineX(), key.getW().getAffineY());
  }

  /** The 65 bytes of an uncompressed point. */
  static byte[] bytes(ECPublicKey key) {
    byte[] found = new byte[1 + 2 * COORDINATE];
    found[0] = 4;
    put(found, 1, key.getW().getAffineX());
    put(found, 1 + COORDINATE, key.getW().getAffineY());
    return found;
  }

  private static void put(byte[] target, int from, BigInteger number) {
    byte[] given = number.toByteArray();
    int size = Math.min(given.length, COORDINATE);
    int start = given.length - size;
    System.arraycopy(given, start, target, from + COORDINATE - size, size);
  }
}
