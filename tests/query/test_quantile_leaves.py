# SPDX-License-Identifier: Apache-2.0
"""What quantiles are selected from: codes, or a grid by declarations alone; the cost of ends."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CodeQuantiles, Quantiles
from sfumato.query.choose import plan_for_price
from sfumato.query.price import price
from sfumato.query.quantile_leaves import MOST_GROUPS, MOST_LEAVES, codes_of_leaf
from sfumato.sql.lower import understand

MEDIAN = "SELECT MEDIAN(income) AS m FROM t"
PRICE = price(epsilon=1)


def planned(sql, cost=PRICE, **options):
    table = sf.Table(
        "t.csv",
        columns={
            "income": sf.Integer(0, 10**7),
            "age": sf.Integer(0, 120),
            "zip": sf.Integer(1, 5000),
            "word": sf.Text(),
        },
    )
    declared = Dataset("d", {"t": table})
    return plan_for_price(understand(sql, declared), declared, cost, **options)


def leaf_of(*args, **options):
    (part, *_) = planned(*args, **options).bounded.parts
    return part.aggregate.coarse


def test_every_code_is_a_leaf_on_a_local_engine():
    (part,) = planned(MEDIAN).bounded.parts
    assert part.aggregate == CodeQuantiles(part.aggregate.value, (Fraction(1, 2),))
    assert part.aggregate.leaves == 10**7 + 1
    assert leaf_of("SELECT MEDIAN(income) FROM t GROUP BY age") == 1
    by_word = price(epsilon=1, delta="1e-9")
    assert leaf_of("SELECT word, MEDIAN(income) FROM t GROUP BY word", by_word) == 1


def test_very_many_groups_are_read_on_a_grid_that_the_declarations_choose():
    # 5,000 groups: 838 leaves each
    assert leaf_of("SELECT zip, MEDIAN(income) FROM t GROUP BY zip") == -(-(10**7 + 1) // 838)
    assert leaf_of("SELECT zip, MEDIAN(age) FROM t GROUP BY zip") == 1
    assert leaf_of("SELECT zip % 4096, MEDIAN(income) FROM t GROUP BY zip % 4096") == 1


def test_an_engine_that_collects_no_codes_reads_on_a_grid():
    def spark(sql, cost=PRICE):
        return leaf_of(sql, cost, collects_codes=False)

    assert spark(MEDIAN) == 3
    assert spark("SELECT MEDIAN(age) FROM t") == 1
    assert spark("SELECT age, MEDIAN(income) FROM t GROUP BY age") == -(-(10**7 + 1) // 34_663)
    open_groups = price(epsilon=1, delta="1e-9")
    assert spark("SELECT word, MEDIAN(income) FROM t GROUP BY word", open_groups) == 9766


@pytest.mark.parametrize("groups", [1, 2, 4096, 4097, 100_000])
@pytest.mark.parametrize("codes", [2, 1024, 10**7])
def test_a_grid_has_at_most_so_many_leaves_in_all(groups, codes):
    for collects in (True, False):
        leaf = codes_of_leaf(codes, groups, collects_codes=collects)
        leaves = -(-codes // leaf)
        assert leaf == 1 if collects and groups <= MOST_GROUPS else leaves * groups <= MOST_LEAVES


def test_ends_take_two_thirds_of_the_cost_of_a_quantile_and_nothing_of_another_number():
    alone, both = planned(MEDIAN), planned(MEDIAN, PRICE.buying(interval=True))
    assert both.charge.epsilon == alone.charge.epsilon
    assert both.mechanisms[0].rate == alone.mechanisms[0].rate / 3
    count = "SELECT COUNT(*), MEDIAN(income) FROM t"
    first, second = planned(count), planned(count, PRICE.buying(interval=True))
    assert second.charge.epsilon == first.charge.epsilon
    assert second.mechanisms[0].noise.scale > first.mechanisms[0].noise.scale
    with pytest.raises(WrongUse, match="nothing in this question is a quantile"):
        planned("SELECT COUNT(*) FROM t", PRICE.buying(interval=True))


def test_a_median_of_few_codes_keeps_its_plan_and_that_with_ends_has_another():
    sql = "SELECT MEDIAN(age) AS m FROM t"
    (part,) = planned(sql).bounded.parts
    assert type(part.aggregate) is Quantiles
    (other,) = planned(sql, PRICE.buying(interval=True)).bounded.parts
    assert other.aggregate == CodeQuantiles(part.aggregate.value, (Fraction(1, 2),), ends=True)
