// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;

/** How the oracles of texts of an alphabet spell them, and the sketches that they are made of. */
final class Spelling {
  final long symbols;
  final int length;
  final int step;
  private final List<?> forms;

  Spelling(Form form, Domain domain) throws TaskRefused {
    Oracle.fits(domain instanceof Domain.Words);
    Domain.Words words = (Domain.Words) domain;
    symbols = form.whole("symbols", 2, 256);
    length = form.small("length", 1, 64);
    Oracle.fits(symbols == words.symbols() && length == words.length);
    step = form.small("step", 1, length);
    forms = form.list("parts");
  }

  /** The number of texts of one step. */
  BigInteger steps() {
    return BigInteger.valueOf(symbols).pow(step);
  }

  /** The parts, if they are so many sketches. */
  List<SketchOracle> sketches(int count) throws TaskRefused {
    Oracle.fits(forms.size() == count);
    List<SketchOracle> found = new ArrayList<>();
    for (Object each : forms) {
      Oracle.fits(Form.kind(each).equals("sketch"));
      found.add(Oracle.sketch(each));
    }
    return found;
  }
}
