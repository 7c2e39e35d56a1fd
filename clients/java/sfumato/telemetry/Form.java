// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** One JSON object of a task; what is no such field is refused. */
final class Form {
  static final BigInteger WHOLE = BigInteger.ONE.shiftLeft(64);

  private final Map<?, ?> fields;

  private Form(Map<?, ?> fields) {
    this.fields = fields;
  }

  /** The object, if it is one with exactly these names. */
  static Form of(Object value, String reason, String... names) throws TaskRefused {
    boolean fits = value instanceof Map && ((Map<?, ?>) value).keySet().equals(Set.of(names));
    TaskRefused.unless(fits, reason);
    return new Form((Map<?, ?>) value);
  }

  /** The text `kind` of a JSON object; empty if it has none. */
  static String kind(Object value) {
    Object kind = value instanceof Map ? ((Map<?, ?>) value).get("kind") : null;
    return kind instanceof String ? (String) kind : "";
  }

  Object get(String name) {
    return fields.get(name);
  }

  String text(String name) throws TaskRefused {
    TaskRefused.unless(get(name) instanceof String, "its " + name);
    return (String) get(name);
  }

  List<?> list(String name) throws TaskRefused {
    TaskRefused.unless(get(name) instanceof List, "its " + name);
    return (List<?>) get(name);
  }

  long whole(String name, long least, long most) throws TaskRefused {
    TaskRefused.unless(get(name) instanceof Long, "its " + name);
    long found = (Long) get(name);
    TaskRefused.unless(found >= least && found <= most, "its " + name);
    return found;
  }

  int small(String name, int least, int most) throws TaskRefused {
    return (int) whole(name, least, most);
  }

  /** A weight from `least` to 2^64 - 1. */
  BigInteger weight(String name, int least) throws TaskRefused {
    String text = text(name);
    TaskRefused.unless(text.matches("0|[1-9][0-9]{0,19}"), "a weight is no integer");
    BigInteger found = new BigInteger(text);
    boolean fits = found.compareTo(BigInteger.valueOf(least)) >= 0 && found.bitLength() <= 64;
    TaskRefused.unless(fits, "a weight outside 1 to 2^64 - 1");
    return found;
  }

  BigInteger weight(String name) throws TaskRefused {
    return weight(name, 1);
  }
}
