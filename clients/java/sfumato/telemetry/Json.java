// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * JSON (RFC 8259): objects as maps, arrays as lists, integers as Long or BigInteger, other numbers
 * as Double. What is not JSON, a name that comes twice, and deep nesting are refused.
 */
final class Json {
  private static final int DEPTH = 32;
  private static final Map<Character, Character> ESCAPES = new HashMap<>();

  static {
    String from = "bfnrt\"\\/";
    String to = "\b\f\n\r\t\"\\/";
    for (int i = 0; i < from.length(); i++) {
      ESCAPES.put(from.charAt(i), to.charAt(i));
    }
  }

  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  /** The value of a text; IllegalArgumentException if it is no JSON. */
  static Object parse(String text) {
    Json reader = new Json(text);
    Object found = reader.value(0);
    reader.space();
    reader.require(reader.at == text.length());
    return found;
  }

  private void require(boolean holds) {
    if (!holds) {
      throw new IllegalArgumentException("This is no JSON.");
    }
  }

  private void space() {
    while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
  }

  private char peek() {
    require(at < text.length());
    return text.charAt(at);
  }

  private boolean takes(char expected) {
    space();
    boolean found = peek() == expected;
    at += found ? 1 : 0;
    return found;
  }

  private Object value(int depth) {
    require(depth < DEPTH);
    space();
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      case 't':
        return word("true", Boolean.TRUE);
      case 'f':
        return word("false", Boolean.FALSE);
      case 'n':
        return word("null", null);
      default:
        return number();
    }
  }

  private Object word(String expected, Object found) {
    require(text.startsWith(expected, at));
    at += expected.length();
    return found;
  }

  private Map<String, Object> object(int depth) {
    at++;
    Map<String, Object> found = new TreeMap<>();
    if (takes('}')) {
      return found;
    }
    do {
      space();
      require(peek() == '"');
      String name = string();
      require(takes(':') && !found.containsKey(name));
      found.put(name, value(depth + 1));
    } while (takes(','));
    require(takes('}'));
    return found;
  }

  private List<Object> array(int depth) {
    at++;
    List<Object> found = new ArrayList<>();
    if (takes(']')) {
      return found;
    }
    do {
      found.add(value(depth + 1));
    } while (takes(','));
    require(takes(']'));
    return found;
  }

  private String string() {
    at++;
    StringBuilder found = new StringBuilder();
    while (peek() != '"') {
      char each = text.charAt(at++);
      require(each >= ' ');
      found.append(each == '\\' ? escaped() : each);
    }
    at++;
    return found.toString();
  }

  private char escaped() {
    char kind = peek();
    at++;
    if (kind != 'u') {
      require(ESCAPES.containsKey(kind));
      return ESCAPES.get(kind);
    }
    require(at + 4 <= text.length());
    String digits = text.substring(at, at + 4);
    require(digits.matches("[0-9a-fA-F]{4}"));
    at += 4;
    return (char) Integer.parseInt(digits, 16);
  }

  private Object number() {
    int from = at;
    while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    String found = text.substring(from, at);
    require(found.matches("-?(0|[1-9]\\d*)(\\.\\d+)?([eE][+-]?\\d+)?"));
    if (!found.matches("-?\\d{1,1000}")) {
      return Double.valueOf(found);
    }
    BigInteger whole = new BigInteger(found);
    return whole.bitLength() < 64 ? (Object) whole.longValue() : whole;
  }

  /** The canonical form of a value without broken numbers. */
  static String canonical(Object value) {
    StringBuilder found = new StringBuilder();
    write(value, found);
    return found.toString();
  }

  private static void write(Object value, StringBuilder to) {
    if (value instanceof Map) {
      char before = '{';
      for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
        to.append(before);
        writeText((String) each.getKey(), to);
        write(each.getValue(), to.append(':'));
        before = ',';
      }
      to.append(before == '{' ? "{}" : "}");
    } else if (value instanceof List) {
      char before = '[';
      for (Object each : (List<?>) value) {
        write(each, to.append(before));
        before = ',';
      }
      to.append(before == '[' ? "[]" : "]");
    } else if (value instanceof String) {
      writeText((String) value, to);
    } else if (value instanceof Double) {
      throw new IllegalArgumentException("A number that is no integer has no canonical form.");
    } else {
      to.append(value);
    }
  }

  private static void writeText(String text, StringBuilder to) {
    to.append('"');
    for (int i = 0; i < text.length(); i++) {
      char each = text.charAt(i);
      int place = "\b\f\n\r\t\"\\".indexOf(each);
      if (place >= 0) {
        to.append('\\').append("bfnrt\"\\".charAt(place));
      } else if (each < ' ') {
        to.append(String.format("\\u%04x", (int) each));
      } else {
        to.append(each);
      }
    }
    to.append('"');
  }
}
