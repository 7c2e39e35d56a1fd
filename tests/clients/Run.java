// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECPrivateKeySpec;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Answers one JSON request a line on stdin with one JSON answer a line on stdout. */
final class Run {
  private Run() {}

  public static void main(String[] given) throws IOException {
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Map<String, Object> answer = new TreeMap<>();
      try {
        answer.put("found", answer((Map<?, ?>) Json.parse(line)));
      } catch (Exception error) {
        answer.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
      }
      out.println(Json.canonical(answer));
    }
  }

  private static Object answer(Map<?, ?> request) throws Exception {
    switch ((String) request.get("ask")) {
      case "number":
        Domain domain = Domain.of(request.get("domain"));
        return Long.toUnsignedString(domain.number(request.get("value")));
      case "encode":
        return encoded(request);
      case "reports":
        return reports(request, new MemoryStore());
      case "file":
        try (FileStore store = new FileStore(Path.of((String) request.get("path")))) {
          return reports(request, store);
        }
      case "twice":
        return twice(Path.of((String) request.get("path")));
      case "together":
        return together(request);
      case "other":
        return other(request);
      case "seal":
        return sealed(request);
      case "time":
        return time(request);
      default:
        throw new IllegalArgumentException("an unknown request");
    }
  }

  private static String encoded(Map<?, ?> request) throws TaskRefused {
    Map<?, ?> form = (Map<?, ?>) request.get("oracle");
    Oracle oracle = Oracle.of(form, domainOf(form));
    BigInteger value = new BigInteger(request.get("value").toString());
    long[] words = told(request.get("words")).draw(0);
    return Bytes.hex(oracle.encode(value.longValue(), words, 0));
  }

  /** A domain that an oracle fits, for those that look at it; null for others. */
  private static Domain domainOf(Map<?, ?> form) throws TaskRefused {
    switch (Form.kind(form)) {
      case "prefixes":
      case "fragments":
        return wordsOf(form);
      case "attributes":
        return recordOf(form);
      default:
        return null;
    }
  }

  private static Domain wordsOf(Map<?, ?> form) throws TaskRefused {
    StringBuilder letters = new StringBuilder();
    for (long i = 1; i < (Long) form.get("symbols"); i++) {
      letters.append((char) (0x4e00 + i));
    }
    Object length = form.get("length");
    return Domain.of(Map.of("kind", "words", "letters", letters.toString(), "length", length));
  }

  /** A record with as many values as the parts of an oracle have. */
  private static Domain recordOf(Map<?, ?> form) throws TaskRefused {
    List<Object> domains = new ArrayList<>();
    List<Object> names = new ArrayList<>();
    for (Object part : (List<?>) form.get("parts")) {
      long upper = (Long) ((Map<?, ?>) part).get("values") - 1;
      domains.add(Map.of("kind", "lattice", "lower", 0L, "upper", upper, "step", "1"));
      names.add("attribute " + names.size());
    }
    return Domain.of(Map.of("kind", "record", "names", names, "domains", domains));
  }

  private static Words told(Object words) {
    List<?> texts = (List<?>) words;
    long[] found = new long[texts.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = Long.parseUnsignedLong((String) texts.get(i), 16);
    }
    return count -> found;
  }

  private static Client opened(Object open, Store store, Clock clock) throws TaskRefused {
    Map<?, ?> given = (Map<?, ?>) open;
    Client.Builder builder = Client.builder()
        .signed((String) given.get("signed"))
        .secret(bytes(given.get("secret")))
        .store(store)
        .maxEpsilon(given.get("maxEpsilon").toString())
        .clock(clock);
    for (Object pem : (List<?>) given.get("trusted")) {
      builder.trust((String) pem);
    }
    List<String> published = new ArrayList<>();
    for (Object hash : (List<?>) given.get("published")) {
      published.add((String) hash);
    }
    return builder.published(published).open();
  }

  private static List<Object> reports(Map<?, ?> request, Store store) throws Exception {
    List<?> turns = (List<?>) request.get("turns");
    Told clock = new Told((Long) ((Map<?, ?>) turns.get(0)).get("seconds"));
    Client client = opened(request.get("open"), store, clock);
    List<Object> found = new ArrayList<>();
    for (Object each : turns) {
      Map<?, ?> turn = (Map<?, ?>) each;
      clock.seconds = (Long) turn.get("seconds");
      Object words = turn.get("words");
      Object value = turn.get("value");
      byte[] report = words == null ? client.report(value) : client.report(value, told(words));
      found.add(report == null ? null : Bytes.hex(report));
    }
    return found;
  }

  /** Whether a second client may use the store of another one. */
  private static Object twice(Path path) throws IOException {
    try (FileStore first = new FileStore(path); FileStore second = new FileStore(path)) {
      return "both";
    }
  }

  /** How many reports all values of the second turn give at once. */
  private static Object together(Map<?, ?> request) throws Exception {
    List<?> turns = (List<?>) request.get("turns");
    Told clock = new Told((Long) turns.get(0));
    Client client = opened(request.get("open"), new MemoryStore(), clock);
    client.report("");
    clock.seconds = (Long) turns.get(1);
    ExecutorService threads = Executors.newFixedThreadPool(4);
    List<Callable<byte[]>> calls = new ArrayList<>();
    for (Object value : (List<?>) request.get("values")) {
      calls.add(() -> client.report(value));
    }
    long found = 0;
    for (Future<byte[]> each : threads.invokeAll(calls)) {
      found += each.get() == null ? 0 : 1;
    }
    threads.shutdown();
    return found;
  }

  /** A report of another device. */
  private static Object other(Map<?, ?> request) throws Exception {
    List<?> turns = (List<?>) request.get("turns");
    Told clock = new Told((Long) turns.get(0));
    Client client = opened(request.get("open"), new MemoryStore(), clock);
    Client device = client.device(bytes(request.get("secret")), new MemoryStore());
    device.report(request.get("value"));
    clock.seconds = (Long) turns.get(1);
    return Bytes.hex(device.report(request.get("value")));
  }

  /** A message sealed with a private key that is told. */
  private static Object sealed(Map<?, ?> request) throws Exception {
    ECPrivateKeySpec secret =
        new ECPrivateKeySpec(new BigInteger(1, bytes(request.get("secret"))), Curve.PARAMETERS);
    ECPublicKey made = key(bytes(request.get("made")));
    KeyPair pair = new KeyPair(made, KeyFactory.getInstance("EC").generatePrivate(secret));
    String point = Base64.getEncoder().encodeToString(bytes(request.get("receiver")));
    byte[] info = bytes(request.get("info"));
    byte[] beside = bytes(request.get("beside"));
    return Bytes.hex(Aggregator.of(point).seal(pair, info, bytes(request.get("text")), beside));
  }

  private static ECPublicKey key(byte[] point) throws Exception {
    BigInteger x = new BigInteger(1, Arrays.copyOfRange(point, 1, 33));
    return Curve.key(x, new BigInteger(1, Arrays.copyOfRange(point, 33, 65)));
  }

  /** Nanoseconds of a report, the least of several rounds; a period each. */
  private static Object time(Map<?, ?> request) throws Exception {
    Map<?, ?> turn = (Map<?, ?>) ((List<?>) request.get("turns")).get(0);
    long period = (Long) request.get("period");
    int count = ((Long) request.get("count")).intValue();
    Told clock = new Told((Long) turn.get("seconds"));
    Client client = opened(request.get("open"), new MemoryStore(), clock);
    client.report(turn.get("value"));
    long best = Long.MAX_VALUE;
    for (int round = 0; round < 10; round++) {
      long begun = System.nanoTime();
      for (int i = 0; i < count; i++) {
        clock.seconds += period;
        if (client.report(turn.get("value")) == null) {
          throw new IllegalStateException("no report");
        }
      }
      best = Math.min(best, (System.nanoTime() - begun) / count);
    }
    return best;
  }

  private static byte[] bytes(Object hex) {
    String text = (String) hex;
    byte[] found = new byte[text.length() / 2];
    for (int i = 0; i < found.length; i++) {
      found[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
    }
    return found;
  }

  /** A clock that is told the time. */
  private static final class Told extends Clock {
    private long seconds;

    private Told(long seconds) {
      this.seconds = seconds;
    }

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
