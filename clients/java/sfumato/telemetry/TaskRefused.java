// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

/** A task that this device must not answer: unsigned, unlisted, expired, too dear, or unfit. */
public final class TaskRefused extends Exception {
  private static final long serialVersionUID = 1L;

  TaskRefused(String reason) {
    super("The telemetry task is refused: " + reason + ".");
  }

  /** Refuses unless a condition holds. */
  static void unless(boolean holds, String reason) throws TaskRefused {
    if (!holds) {
      throw new TaskRefused(reason);
    }
  }
}
