// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** One of several oracles, drawn before the value is looked at. */
abstract class PartsOracle extends Oracle {
  final List<Oracle> parts = new ArrayList<>();

  /** Reads the parts: of these kinds, and of these numbers of values. */
  void read(Form form, Set<String> kinds, List<Long> sizes) throws TaskRefused {
    List<?> forms = form.list("parts");
    fits(forms.size() == sizes.size());
    for (int i = 0; i < sizes.size(); i++) {
      fits(kinds.contains(Form.kind(forms.get(i))));
      Oracle part = frequency(forms.get(i));
      fits(part.values() == sizes.get(i));
      parts.add(part);
    }
  }

  @Override
  int draws() {
    return 1 + parts.stream().mapToInt(Oracle::draws).max().getAsInt();
  }

  @Override
  int size() {
    return 1 + parts.stream().mapToInt(Oracle::size).max().getAsInt();
  }

  @Override
  BigInteger loss() {
    return parts.stream().map(Oracle::loss).reduce(BigInteger.ZERO, BigInteger::max);
  }

  /** The value that a part reports. */
  abstract long partOf(long value, int place);

  @Override
  byte[] encode(long value, long[] words, int from) {
    int place = Bytes.share(words[from], parts.size());
    byte[] own = parts.get(place).encode(partOf(value, place), words, from + 1);
    byte[] payload = new byte[size()];
    payload[0] = (byte) place;
    System.arraycopy(own, 0, payload, 1, own.length);
    return payload;
  }

  /** A level of a tree of ranges: the node of the number there. */
  static final class Levels extends PartsOracle {
    private static final Set<String> KINDS = Set.of("category", "unary", "bit");
    private final long values;
    private final long branching;

    Levels(Form form) throws TaskRefused {
      values = valuesOf(form);
      branching = form.whole("branching", 2, 256);
      List<Long> sizes = new ArrayList<>();
      long rest = values;
      while (rest > branching) {
        sizes.add(rest);
        rest = (rest + branching - 1) / branching;
      }
      sizes.add(rest);
      read(form, KINDS, sizes);
    }

    @Override
    long values() {
      return values;
    }

    @Override
    long partOf(long value, int place) {
      long found = value;
      for (int i = 0; i < place; i++) {
        found /= branching;
      }
      return found;
    }
  }

  /** The prefix of a text, of a length that is drawn. */
  static final class Prefixes extends PartsOracle {
    private static final int MOST = 1 << 15;
    private final long symbols;
    private final int length;
    private final int step;

    Prefixes(Form form, Domain domain) throws TaskRefused {
      Spelling spelling = new Spelling(form, domain);
      symbols = spelling.symbols;
      length = spelling.length;
      step = spelling.step;
      fits(step == 1 || spelling.steps().compareTo(BigInteger.valueOf(MOST)) <= 0);
      parts.addAll(spelling.sketches((length + step - 1) / step + 1));
    }

    @Override
    long values() {
      return -1;
    }

    @Override
    long partOf(long value, int place) {
      long found = value;
      for (int i = Math.min(length, (place + 1) * step); i < length; i++) {
        found = Long.divideUnsigned(found, symbols);
      }
      return found;
    }
  }

  /** One of the attributes of a record. */
  static final class Attributes extends PartsOracle {
    private static final Set<String> KINDS =
        Set.of("category", "hashed", "bit", "unary", "projective");
    private final long values;

    Attributes(Form form, Domain domain) throws TaskRefused {
      fits(domain instanceof Domain.Record);
      List<Domain> domains = ((Domain.Record) domain).domains;
      fits(domains.size() <= 256);
      List<Long> sizes = new ArrayList<>();
      for (Domain each : domains) {
        sizes.add(each.size());
      }
      read(form, KINDS, sizes);
      values = domain.size();
    }

    @Override
    long values() {
      return values;
    }

    @Override
    long partOf(long value, int place) {
      long rest = value;
      for (Oracle before : parts.subList(0, place)) {
        rest /= before.values();
      }
      return rest % parts.get(place).values();
    }
  }
}
