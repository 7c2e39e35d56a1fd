// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import sfumato.telemetry.Client;
import sfumato.telemetry.MemoryStore;

/** Microseconds of the processor of one report of a device: java Report FOLDER. */
public final class Report {
  private static final int WARM = 100_000;
  private static final int MEASURED = 100_000;

  public static void main(String[] given) throws Exception {
    Path folder = Path.of(given[0]);
    byte[] secret = new byte[32];
    new SecureRandom().nextBytes(secret);
    Ticks clock = new Ticks();
    Client client = Client.builder()
        .signed(text(folder, "speed.task"))
        .secret(secret)
        .store(new MemoryStore())
        .trust(text(folder, "owner.pem"))
        .published(List.of(text(folder, "hash")))
        .maxEpsilon("1000000000000")
        .clock(clock)
        .open();
    // before the start: a new client is silent once
    client.report(7L);
    reports(client, clock, WARM);
    ThreadMXBean thread = ManagementFactory.getThreadMXBean();
    long begun = thread.getCurrentThreadCpuTime();
    reports(client, clock, MEASURED);
    System.out.println((thread.getCurrentThreadCpuTime() - begun) / 1e3 / MEASURED);
  }

  private static void reports(Client client, Ticks clock, int count) throws IOException {
    for (int i = 0; i < count; i++) {
      clock.seconds += 60;
      if (client.report(7L) == null) {
        throw new IOException("no report");
      }
    }
  }

  private static String text(Path folder, String name) throws IOException {
    return new String(Files.readAllBytes(folder.resolve(name)), StandardCharsets.UTF_8);
  }

  /** A clock that is told the time. */
  private static final class Ticks extends Clock {
    private long seconds = 0;

    @Override
    public Instant instant() {
      return Instant.ofEpochSecond(seconds);
    }

    @Override
    public ZoneId getZone() {
      return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
      return this;
    }
  }
}
