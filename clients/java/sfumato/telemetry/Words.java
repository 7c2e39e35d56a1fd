// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.nio.ByteBuffer;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;

/** A source of random words of 64 bits. */
interface Words {
  long[] draw(int count);

  /** Words of the operating system's generator. */
  static Words system() {
    SecureRandom random = systemRandom();
    return count -> {
      // a seed comes from the system itself; nextBytes would mix it with a generator of Java
      byte[] bytes = random.generateSeed(8 * count);
      long[] found = new long[count];
      ByteBuffer.wrap(bytes).asLongBuffer().get(found);
      return found;
    };
  }

  /** The generator of the system; what Java takes by default can be one with a seed. */
  static SecureRandom systemRandom() {
    for (String name : new String[] {"NativePRNGNonBlocking", "Windows-PRNG"}) {
      try {
        return SecureRandom.getInstance(name);
      } catch (NoSuchAlgorithmException otherSystem) {
        continue;
      }
    }
    throw new IllegalStateException("Java gives no access to the generator of this system.");
  }
}
