// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

/** The values of a task, numbered from 0: every value that a device can hold has a number. */
abstract class Domain {
  private static final long MOST_VALUES = 1L << 31;
  private static final long MOST_CODE = 1L << 53;
  private static final String REASON = "its domain";
  private static final int[] NONE = {};

  /** The number of what a device holds, as an unsigned word. */
  abstract long number(Object value);

  /** How many values there are; -1 for texts that nobody listed. */
  abstract long size();

  /** Whether numbers need more than 32 bits. */
  boolean isLarge() {
    return size() < 0 || size() > 1L << 32;
  }

  static Domain of(Object form) throws TaskRefused {
    switch (Form.kind(form)) {
      case "texts":
        Form.of(form, REASON, "kind");
        return new Texts();
      case "words":
        return new Words(Form.of(form, REASON, "kind", "length", "letters"));
      case "record":
        return new Record(Form.of(form, REASON, "domains", "kind", "names"));
      default:
        return simple(form);
    }
  }

  private static Domain simple(Object form) throws TaskRefused {
    switch (Form.kind(form)) {
      case "listed":
        return new Listed(Form.of(form, REASON, "kind", "other", "values"));
      case "lattice":
        return new Lattice(Form.of(form, REASON, "kind", "lower", "step", "upper"));
      default:
        throw new TaskRefused(REASON);
    }
  }

  private static String composed(String text) {
    return Normalizer.normalize(text, Normalizer.Form.NFC);
  }

  /** Texts, each once, and a public "other". */
  static final class Listed extends Domain {
    private final Map<String, Integer> numbers = new HashMap<>();
    private final int other;

    private Listed(Form form) throws TaskRefused {
      List<Object> every = new ArrayList<>(form.list("values"));
      other = every.size();
      every.add(form.get("other"));
      for (Object each : every) {
        boolean fits = each instanceof String && !((String) each).isEmpty();
        TaskRefused.unless(fits && composed((String) each).equals(each), REASON);
        numbers.put((String) each, numbers.size());
      }
      TaskRefused.unless(numbers.size() == every.size() && other >= 1, REASON);
    }

    @Override
    long number(Object value) {
      String text = null;
      if (value instanceof String) {
        text = composed((String) value);
      } else if (Fraction.isWhole(value)) {
        text = digits(new BigInteger(value.toString()));
      }
      return numbers.getOrDefault(text, other);
    }

    private static String digits(BigInteger whole) {
      boolean isSmall = whole.abs().compareTo(BigInteger.valueOf(MOST_CODE)) <= 0;
      return isSmall ? whole.toString() : null;
    }

    @Override
    long size() {
      return other + 1L;
    }
  }

  /** Numbers from `lower` to `upper` times a step. */
  static final class Lattice extends Domain {
    private final BigInteger lower;
    private final BigInteger upper;
    private final Fraction step;

    private Lattice(Form form) throws TaskRefused {
      long least = form.whole("lower", -MOST_CODE, MOST_CODE);
      long most = form.whole("upper", -MOST_CODE, MOST_CODE);
      TaskRefused.unless(0 < most - least && most - least < MOST_VALUES, REASON);
      lower = BigInteger.valueOf(least);
      upper = BigInteger.valueOf(most);
      try {
        step = Fraction.parse(form.text("step"));
      } catch (IllegalArgumentException none) {
        throw new TaskRefused(REASON);
      }
    }

    @Override
    long number(Object value) {
      if (!(value instanceof Number)) {
        return 0;
      }
      Number held = (Number) value;
      double near = held.doubleValue();
      if (Double.isNaN(near) || near == Double.NEGATIVE_INFINITY) {
        return 0;
      }
      if (near == Double.POSITIVE_INFINITY) {
        return size() - 1;
      }
      BigInteger code = Fraction.of(held).roundedOver(step);
      return code.max(lower).min(upper).subtract(lower).longValue();
    }

    @Override
    long size() {
      return upper.subtract(lower).longValue() + 1;
    }
  }

  /** All texts. */
  static final class Texts extends Domain {
    @Override
    long number(Object value) {
      String text = value instanceof String ? composed((String) value) : "";
      byte[] digest = Bytes.sha256(Bytes.utf8(text));
      return java.nio.ByteBuffer.wrap(digest).getLong();
    }

    @Override
    long size() {
      return -1;
    }
  }

  /** Texts of the letters of an alphabet: their first letters, the first the most significant. */
  static final class Words extends Domain {
    private static final BigInteger MOST = BigInteger.ONE.shiftLeft(64);
    final int length;
    private final Map<Integer, Integer> digits = new HashMap<>();
    private final boolean isLarge;

    private Words(Form form) throws TaskRefused {
      String letters = form.text("letters");
      length = form.small("length", 1, 64);
      TaskRefused.unless(!letters.isEmpty() && composed(letters).equals(letters), REASON);
      letters.codePoints().forEach(letter -> digits.putIfAbsent(letter, digits.size() + 1));
      TaskRefused.unless(digits.size() == letters.codePointCount(0, letters.length()), REASON);
      BigInteger size = BigInteger.valueOf(symbols()).pow(length);
      TaskRefused.unless(size.compareTo(MOST) <= 0, REASON);
      isLarge = size.compareTo(BigInteger.ONE.shiftLeft(32)) > 0;
    }

    /** The letters, and the end of a text. */
    long symbols() {
      return digits.size() + 1L;
    }

    @Override
    long number(Object value) {
      String text = value instanceof String ? composed((String) value) : "";
      boolean isSpelled = text.codePoints().allMatch(digits::containsKey);
      int[] letters = isSpelled ? text.codePoints().toArray() : NONE;
      long found = 0;
      for (int i = 0; i < length; i++) {
        found = found * symbols() + (i < letters.length ? digits.get(letters[i]) : 0);
      }
      return found;
    }

    @Override
    long size() {
      return -1;
    }

    @Override
    boolean isLarge() {
      return isLarge;
    }
  }

  /** Attributes by name; their numbers are digits, the first the least significant. */
  static final class Record extends Domain {
    final List<Domain> domains = new ArrayList<>();
    private final List<String> names = new ArrayList<>();
    private final long size;

    private Record(Form form) throws TaskRefused {
      BigInteger together = BigInteger.ONE;
      for (Object each : form.list("domains")) {
        Domain part = simple(each);
        domains.add(part);
        together = together.multiply(BigInteger.valueOf(part.size()));
        TaskRefused.unless(together.compareTo(BigInteger.valueOf(MOST_CODE)) <= 0, REASON);
      }
      for (Object each : form.list("names")) {
        TaskRefused.unless(each instanceof String && !((String) each).isEmpty(), REASON);
        names.add((String) each);
      }
      boolean isNamed = new HashSet<>(names).size() == names.size();
      TaskRefused.unless(isNamed && names.size() == domains.size() && names.size() >= 2, REASON);
      size = together.longValue();
    }

    @Override
    long number(Object value) {
      Map<?, ?> held = value instanceof Map ? (Map<?, ?>) value : Map.of();
      long found = 0;
      long below = 1;
      for (int i = 0; i < names.size(); i++) {
        found += below * domains.get(i).number(held.get(names.get(i)));
        below *= domains.get(i).size();
      }
      return found;
    }

    @Override
    long size() {
      return size;
    }
  }
}
