// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.io.IOException;

/** Keeps the state of a device for one task: a few bytes. One store serves one client. */
public interface Store {
  /** Returns what was saved last; null if nothing is known. */
  byte[] load() throws IOException;

  /** Keeps the bytes; when this returns, they survive a crash. */
  void save(byte[] state) throws IOException;
}
