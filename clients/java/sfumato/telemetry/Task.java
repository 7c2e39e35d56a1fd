// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.util.Arrays;
import java.util.Map;

/** A canonical task whose law is the stated one. */
final class Task {
  private static final String[] FIELDS = {
    "domain", "expires", "format", "id", "memory", "min_batch", "oracle", "period", "periods",
    "question", "reports", "start", "aggregator",
  };
  private static final long MOST = (1L << 32) - 1;

  final Domain domain;
  final Oracle oracle;
  final long start;
  final long period;
  final long periods;
  final long reports;
  final long memory;
  final long expires;
  final Aggregator aggregator;
  final byte[] hash;

  private Task(Form form, byte[] hash) throws TaskRefused {
    this.hash = hash;
    TaskRefused.unless(Long.valueOf(1).equals(form.get("format")), "an unknown format");
    String id = form.text("id");
    TaskRefused.unless(id.matches("[a-z0-9][a-z0-9._-]{0,62}"), "its id");
    String question = form.text("question");
    int length = question.codePointCount(0, question.length());
    TaskRefused.unless(length >= 1 && length <= 1000, "its question");
    start = form.whole("start", 0, 1L << 40);
    period = form.whole("period", 60, 1L << 32);
    periods = form.whole("periods", 1, MOST);
    reports = form.whole("reports", 1, 1000);
    memory = form.whole("memory", 0, MOST);
    form.whole("min_batch", 2, 1L << 40);
    expires = form.whole("expires", start + 1, 1L << 41);
    TaskRefused.unless(memory == 0 || reports == 1, "several reports a period with memory");
    domain = Domain.of(form.get("domain"));
    oracle = Oracle.of(form.get("oracle"), domain);
    requireFitting();
    boolean isSealed = form.get("aggregator") != null;
    aggregator = isSealed ? Aggregator.of(form.text("aggregator")) : null;
  }

  /** Refuses an oracle that is not one of this domain. */
  private void requireFitting() throws TaskRefused {
    TaskRefused.unless(oracle.values() == domain.size(), "an oracle of another size");
    boolean isRappor = oracle instanceof RapporOracle;
    boolean isOfTexts = isRappor || oracle instanceof SketchOracle;
    TaskRefused.unless(domain instanceof Domain.Texts == isOfTexts, "its oracle");
    boolean isOfWords =
        oracle instanceof PartsOracle.Prefixes || oracle instanceof FragmentsOracle;
    TaskRefused.unless(domain instanceof Domain.Words == isOfWords, "its oracle");
    boolean isRecord = domain instanceof Domain.Record;
    TaskRefused.unless(oracle instanceof PartsOracle.Attributes == isRecord, "its oracle");
    boolean isNumber = oracle instanceof MeanOracle || oracle instanceof PartsOracle.Levels;
    boolean hasNumbers = domain instanceof Domain.Lattice;
    TaskRefused.unless(!isNumber || hasNumbers, "an oracle of numbers for texts");
    TaskRefused.unless(!isRappor || memory > 0, "rappor without memory");
  }

  /** Reads a canonical task. */
  static Task read(String body) throws TaskRefused {
    Object form;
    try {
      form = Json.parse(body);
      TaskRefused.unless(Json.canonical(form).equals(body), "no canonical task");
    } catch (IllegalArgumentException none) {
      throw new TaskRefused("no JSON");
    }
    boolean isSealed = form instanceof Map && ((Map<?, ?>) form).containsKey("aggregator");
    String[] names = Arrays.copyOf(FIELDS, FIELDS.length - (isSealed ? 0 : 1));
    TaskRefused.unless(!isSealed || ((Map<?, ?>) form).get("aggregator") != null, "its aggregator");
    return new Task(Form.of(form, "no canonical task", names), Bytes.sha256(Bytes.utf8(body)));
  }

  /** How often a device draws in its life. */
  long draws() {
    return memory > 0 ? (periods + memory - 1) / memory : periods * reports;
  }

  long periodAt(long second) {
    return Math.floorDiv(second - start, period);
  }

  long epochOf(long period) {
    return Math.floorDiv(period, Math.max(memory, 1));
  }
}
