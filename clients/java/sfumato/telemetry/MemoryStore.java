// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

/** A store that is lost with the process: for tests. */
public final class MemoryStore implements Store {
  private byte[] state;

  @Override
  public byte[] load() {
    return state == null ? null : state.clone();
  }

  @Override
  public void save(byte[] kept) {
    state = kept.clone();
  }
}
