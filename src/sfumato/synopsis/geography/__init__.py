# SPDX-License-Identifier: Apache-2.0
"""Census tables: measured down a geography in one charge, estimated from the top down.

Begin with ``census`` (plan, measure, publish). ``spine`` is the geography, ``design`` what is
wanted of each level, ``least_squares`` and ``tree_squares`` the exact theory, ``topdown`` the whole
numbers that add up. ``layer`` has the only privacy proof.
"""
