// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Locale;
import sfumato.telemetry.Client;
import sfumato.telemetry.MemoryStore;

/** Sends the reports of many made-up devices: java Send FOLDER. */
public final class Send {
  private static final int BATCH = 1000;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final HttpClient http = HttpClient.newHttpClient();
  private final Path folder;
  private final URI address;
  private final ByteArrayOutputStream waiting = new ByteArrayOutputStream();
  private int reports;
  private int sent;

  private Send(Path folder, String address) {
    this.folder = folder;
    this.address = URI.create(address);
  }

  public static void main(String[] given) throws Exception {
    Path folder = Path.of(given[0]);
    for (String line : Files.readAllLines(folder.resolve("tasks.tsv"))) {
      String[] row = line.split("\t");
      new Send(folder, row[4]).all(row[0], row[1].equals("number"), row[2], row[3]);
    }
  }

  private void all(String id, boolean isNumber, String hash, String start) throws Exception {
    long begun = System.nanoTime();
    Told clock = new Told();
    clock.seconds = Long.parseLong(start);
    Client client = Client.builder()
        .signed(text(id + ".task"))
        .secret(secret())
        .store(new MemoryStore())
        .trust(text("owner.pem"))
        .published(List.of(hash))
        .maxEpsilon("100")
        .clock(clock)
        .open();
    for (String line : Files.readAllLines(folder.resolve(id + ".java.tsv"))) {
      String[] row = line.split("\t");
      Object value = isNumber ? (Object) Long.valueOf(row[1]) : row[1];
      for (int i = Integer.parseInt(row[0]); i > 0; i--) {
        add(reportOf(client.device(secret(), new MemoryStore()), clock, start, value));
      }
    }
    post();
    double seconds = (System.nanoTime() - begun) / 1e9;
    System.out.printf(Locale.ROOT, "%s\t%d\t%.3f%n", id, sent, seconds);
  }

  /** The report of a new device, which was there before the task began. */
  private static byte[] reportOf(Client device, Told clock, String start, Object value)
      throws IOException {
    clock.seconds = Long.parseLong(start) - 1;
    device.report(value);
    clock.seconds = Instant.now().getEpochSecond();
    return device.report(value);
  }

  private void add(byte[] report) throws Exception {
    waiting.write(report);
    reports++;
    if (reports == BATCH) {
      post();
    }
  }

  private void post() throws Exception {
    if (reports > 0) {
      HttpRequest request = HttpRequest.newBuilder(address)
          .POST(HttpRequest.BodyPublishers.ofByteArray(waiting.toByteArray()))
          .build();
      int status = http.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
      if (status != 202) {
        throw new IOException("the collector answered " + status);
      }
    }
    sent += reports;
    reports = 0;
    waiting.reset();
  }

  private String text(String name) throws IOException {
    return new String(Files.readAllBytes(folder.resolve(name)), StandardCharsets.UTF_8);
  }

  private static byte[] secret() {
    byte[] found = new byte[32];
    RANDOM.nextBytes(found);
    return found;
  }

  /** A clock that is told the time. */
  private static final class Told extends Clock {
    private long seconds;

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
