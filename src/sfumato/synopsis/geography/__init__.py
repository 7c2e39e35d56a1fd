# SPDX-License-Identifier: Apache-2.0
"""Census tables: measured for every area of a geography in one charge, estimated from the top down.

Begin with ``census`` (plan, measure, publish). ``spine`` is the geography, ``design`` the tables of
each level, ``least_squares`` and ``tree_squares`` the exact estimates and variances, ``topdown``
the integer estimates that add up. ``layer`` has the only privacy proof.
"""
