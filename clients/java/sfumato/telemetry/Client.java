// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.interfaces.ECPublicKey;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Reports the values of one device for one task (spec/telemetry/format.md).
 *
 * <p>Whether there is a report, when, and how long it is depends on the clock and the store, never
 * on the value. A device that is new, or whose store was lost, is silent until the next epoch.
 *
 * <pre>{@code
 * Client client = Client.builder()
 *     .signed(text).secret(bytes).store(new FileStore(path))
 *     .trust(pem).published(hashes).maxEpsilon("7")
 *     .open();
 * byte[] report = client.report("smile"); // null where none is due
 * }</pre>
 */
public final class Client {
  private static final byte[] ID = Bytes.utf8("sfumato telemetry id 1");
  private static final byte[] ANSWER = Bytes.utf8("sfumato telemetry answer 1");
  private static final int SECRET = 32;
  private static final int HEADER = 29;
  private static final int PERIOD = 9;
  private static final int PLACE = 13;

  private final Task task;
  private final Store store;
  private final Clock clock;
  private final long earliest;
  private final Mac mac;
  private final Words system = Words.system();

  private Client(Task task, byte[] secret, Store store, Clock clock, long earliest) {
    this.task = task;
    this.store = store;
    this.clock = clock;
    this.earliest = earliest;
    try {
      mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(secret, "HmacSHA256"));
    } catch (GeneralSecurityException missing) {
      throw new IllegalStateException(missing);
    }
  }

  /** Returns a builder of a client. */
  public static Builder builder() {
    return new Builder();
  }

  /** Returns a client of another device, with a store of its own; the task is not verified again. */
  public Client device(byte[] secret, Store store) {
    return new Client(task, whole(secret), Objects.requireNonNull(store), clock, earliest);
  }

  private static byte[] whole(byte[] secret) {
    if (secret == null || secret.length != SECRET) {
      throw new IllegalArgumentException("The secret of a device is not 32 bytes.");
    }
    return secret.clone();
  }

  /**
   * Returns the report of the value that the device has now, or null if none is due.
   *
   * <p>None is due before the start and after the end, after the reports of this period, while a
   * new or lost store waits, and when the clock is behind.
   *
   * @throws IOException if the store fails; then nothing may be sent
   */
  public byte[] report(Object value) throws IOException {
    return report(value, system);
  }

  synchronized byte[] report(Object value, Words words) throws IOException {
    long now = clock.instant().getEpochSecond();
    long period = task.periodAt(now);
    if (period >= task.periods || now >= task.expires) {
      return null;
    }
    long epoch = task.epochOf(period);
    State state = State.of(store.load(), task.oracle.size());
    if (state == null) {
      // a clock that is behind would begin in an epoch that the device has answered in
      if (now >= earliest) {
        store.save(State.fresh(Math.max(epoch + 1, 0)).bytes());
      }
      return null;
    }
    long used = period == state.period ? state.used : 0;
    boolean isLate = state.period != State.NONE && period < state.period;
    if (period < 0 || epoch < state.first || isLate || used >= task.reports) {
      return null;
    }
    long number = task.domain.number(value);
    byte[] payload;
    State after;
    if (task.memory == 0) {
      payload = task.oracle.encode(number, words.draw(task.oracle.draws()), 0);
      after = new State(state.first, period, used + 1, state.epoch, state.answer);
    } else {
      byte[] kept = state.epoch == epoch ? state.answer : permanent(number, epoch);
      payload = sent(kept, words);
      after = new State(state.first, period, used + 1, epoch, kept);
    }
    // before the report leaves: a crash after it must not draw again
    store.save(after.bytes());
    byte[] report = framed(period, used, payload);
    return task.aggregator == null ? report : task.aggregator.seal(task.hash, report);
  }

  /** What is sent of an answer: itself; of RAPPOR, its bits drawn again. */
  private byte[] sent(byte[] answer, Words words) {
    if (task.oracle instanceof RapporOracle) {
      RapporOracle oracle = (RapporOracle) task.oracle;
      return oracle.blurred(answer, words.draw(oracle.bits));
    }
    return answer;
  }

  /** The answer of an epoch: a keyed function of the task, the epoch and the value. */
  private byte[] permanent(long number, long epoch) {
    int draws = task.oracle.draws();
    long[] words = new long[4 * ((draws + 3) / 4)];
    for (int i = 0; 4 * i < draws; i++) {
      byte[] block = task.domain.isLarge()
          ? keyed(ANSWER, epoch, number >>> 32, number & 0xffffffffL, i)
          : keyed(ANSWER, epoch, number, i);
      ByteBuffer.wrap(block).asLongBuffer().get(words, 4 * i, 4);
    }
    return task.oracle.encode(number, words, 0);
  }

  private byte[] framed(long period, long used, byte[] payload) {
    byte[] report = new byte[HEADER + payload.length];
    report[0] = 1;
    System.arraycopy(task.hash, 0, report, 1, PERIOD - 1);
    Bytes.put(report, PERIOD, 4, period);
    System.arraycopy(keyed(ID, period, used), 0, report, PLACE, HEADER - PLACE);
    System.arraycopy(payload, 0, report, HEADER, payload.length);
    return report;
  }

  private byte[] keyed(byte[] label, long... numbers) {
    mac.update(label);
    mac.update(task.hash);
    for (long number : numbers) {
      mac.update(Bytes.bigEndian(number, 4));
    }
    return mac.doFinal();
  }

  /** Shows neither secret nor value. */
  @Override
  public String toString() {
    return "Client(" + Bytes.hex(Arrays.copyOf(task.hash, 4)) + ")";
  }

  /** What a client is opened with; all but the clock is needed. */
  public static final class Builder {
    private String signed;
    private byte[] secret;
    private Store store;
    private final List<ECPublicKey> trusted = new ArrayList<>();
    private final Set<String> published = new HashSet<>();
    private Fraction maxEpsilon;
    private Clock clock = Clock.systemUTC();
    private long installed;

    private Builder() {}

    /** Sets the signed task, as it is published. */
    public Builder signed(String text) {
      signed = text;
      return this;
    }

    /** Sets the 32 random bytes that never leave the device, the same for all of its tasks. */
    public Builder secret(byte[] bytes) {
      secret = whole(bytes);
      return this;
    }

    /** Sets the store of this task. */
    public Builder store(Store kept) {
      store = kept;
      return this;
    }

    /** Adds a public key of P-256, in PEM, of somebody who may ask. */
    public Builder trust(String pem) {
      trusted.add(Signed.key(pem));
      return this;
    }

    /** Adds hashes (hexadecimal) of the tasks that everybody gets. */
    public Builder published(Collection<String> hashes) {
      published.addAll(hashes);
      return this;
    }

    /** Sets the most that the device may tell of this task alone in its life: "7" or "0.5". */
    public Builder maxEpsilon(String decimal) {
      maxEpsilon = Fraction.parse(decimal);
      return this;
    }

    /** Sets the clock; that of the system without it. */
    public Builder clock(Clock given) {
      clock = Objects.requireNonNull(given);
      return this;
    }

    /** Sets when the application was installed, in seconds since 1970: no true clock is before. */
    public Builder installed(long second) {
      installed = second;
      return this;
    }

    /**
     * Opens the client.
     *
     * @throws TaskRefused if the task is unsigned, unlisted, expired, too dear, or its weights do
     *     not give the stated law
     * @throws IllegalStateException if a part is missing
     */
    public Client open() throws TaskRefused {
      boolean isWhole = signed != null && secret != null && store != null && maxEpsilon != null;
      if (!isWhole) {
        throw new IllegalStateException("A client needs signed, secret, store and maxEpsilon.");
      }
      Signed read = Signed.verified(signed, trusted);
      Task task = Task.read(read.body);
      TaskRefused.unless(published.contains(Bytes.hex(task.hash)), "not in the published list");
      boolean isOver = clock.instant().getEpochSecond() >= task.expires;
      TaskRefused.unless(!isOver, "expired");
      boolean isDearer = Loss.isDearer(task.oracle.loss(), task.draws(), maxEpsilon);
      TaskRefused.unless(!isDearer, "dearer than maxEpsilon in the life of a device");
      return new Client(task, secret, store, clock, Math.max(read.signedAt, installed));
    }
  }
}
