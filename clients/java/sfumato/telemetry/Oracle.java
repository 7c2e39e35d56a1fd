// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;

/**
 * How a value is reported. Weights and random words are unsigned words of 64 bits; each constructor
 * refuses weights that do not give the stated law.
 */
abstract class Oracle {
  static final int MOST_VALUES = Integer.MAX_VALUE;
  private static final String FIELDS = "other fields of an oracle";

  /** How many random words a draw takes. */
  abstract int draws();

  /** How many bytes the payload has, whatever the value is. */
  abstract int size();

  /** The number of values; -1 for all texts. */
  abstract long values();

  /** 2^200 epsilon of one draw, rounded up. */
  abstract BigInteger loss();

  /** The payload of the number of a value, with the words from a place on. */
  abstract byte[] encode(long value, long[] words, int from);

  static Oracle of(Object form, Domain domain) throws TaskRefused {
    switch (Form.kind(form)) {
      case "mean":
        return new MeanOracle(
            fields(form, "far", "high", "low", "near", "share", "values", "window"));
      case "levels":
        return new PartsOracle.Levels(fields(form, "branching", "parts", "values"));
      case "attributes":
        return new PartsOracle.Attributes(fields(form, "parts"), domain);
      case "prefixes":
        return new PartsOracle.Prefixes(
            fields(form, "length", "parts", "step", "symbols"), domain);
      case "fragments":
        return new FragmentsOracle(fields(form, "length", "parts", "step", "symbols"), domain);
      case "sketch":
        return sketch(form);
      case "rappor":
        return new RapporOracle(
            fields(form, "added", "bits", "cohorts", "hashes", "kept", "one", "zero"));
      default:
        return frequency(form);
    }
  }

  /** An oracle that counts values, of which others are made. */
  static Oracle frequency(Object form) throws TaskRefused {
    switch (Form.kind(form)) {
      case "category":
        return new ChoiceOracle.Category(fields(form, "other_weight", "truth", "values"));
      case "hashed":
        return new ChoiceOracle.Hashed(fields(form, "buckets", "other_weight", "truth", "values"));
      case "bit":
        return new BitOracle(fields(form, "truth", "values"));
      case "unary":
        return new UnaryOracle(fields(form, "added", "kept", "values"));
      case "projective":
        return new ProjectiveOracle(fields(form, "dimension", "far", "near", "prime", "values"));
      default:
        throw new TaskRefused("an unknown oracle");
    }
  }

  static SketchOracle sketch(Object form) throws TaskRefused {
    return new SketchOracle(fields(form, "part", "rows"));
  }

  private static Form fields(Object form, String... names) throws TaskRefused {
    String[] every = java.util.Arrays.copyOf(names, names.length + 1);
    every[names.length] = "kind";
    return Form.of(form, FIELDS, every);
  }

  static void fits(boolean holds) throws TaskRefused {
    TaskRefused.unless(holds, "the weights of an oracle do not fit");
  }

  static boolean isMore(BigInteger one, BigInteger other) {
    return one.compareTo(other) > 0;
  }

  static int valuesOf(Form form) throws TaskRefused {
    return form.small("values", 2, MOST_VALUES);
  }
}
