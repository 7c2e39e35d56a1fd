# SPDX-License-Identifier: Apache-2.0
"""What an attacker asks: the corpus, and statements about its weak places."""

from pathlib import Path

from sfumato.audit.seen import all_seen
from tests.attacks import shop
from tests.contracts.corpus import statements

MORE = [
    "SELECT region, product, COUNT(*), AVG(amount) FROM events GROUP BY region, product",
    "SELECT day, MEDIAN(amount) FROM events GROUP BY day ORDER BY day LIMIT 3",
    "SELECT region, age_band, COUNT(*) AS n FROM events JOIN users USING (user_id) GROUP BY CUBE(region, age_band)",
    "SELECT MIN(day), MAX(day), MEDIAN(day) FROM events",
    "SELECT STDDEV(amount) / AVG(amount), SUM(amount) / COUNT(DISTINCT user_id) FROM events",
    "SELECT AVG(1 / NULLIF(amount, 0)), AVG(amount / (amount + 1)), SUM(amount % 7) FROM events",
    "SELECT SUM(price), COUNT(quantity), COUNT(DISTINCT quantity) FROM orders WHERE price > 3",
    "SELECT COUNT(DISTINCT amount), COUNT(DISTINCT product) FROM events_unbounded WHERE product = 'tea' OR amount LIKE '1%'",
    ("SELECT u.age_band, DATE_DIFF('day', u.joined, e.day) > 600 AS late, COUNT(*) FROM events e"
    " LEFT JOIN users u ON e.user_id = u.user_id GROUP BY 1, 2"),
    "SELECT COUNT(*) FROM events WHERE user_id NOT IN (SELECT user_id FROM users WHERE age_band = '65+')",
    ("SELECT AVG(n), MAX(n) FROM (SELECT user_id, COUNT(DISTINCT product) AS n FROM events"
    " WHERE amount IS NOT NULL GROUP BY user_id) AS p"),
    "SELECT COUNT(*), SUM(x) FROM (SELECT user_id, amount AS x FROM events UNION ALL SELECT user_id, price FROM orders) AS both",
    "SELECT p.category, SUM(e.amount) FROM events e LEFT JOIN products p ON e.product = p.product GROUP BY p.category",
    "SELECT UPPER(region) || '-x' AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT MONTH(day) AS m, WEEK(day) AS w, COUNT(DISTINCT user_id) FROM events GROUP BY m, w HAVING COUNT(DISTINCT user_id) > 5",
    "SELECT product, MEDIAN(amount), COUNT(DISTINCT region) FROM events GROUP BY product",
    "SELECT region, COUNT(*) AS n FROM events GROUP BY region ORDER BY n DESC LIMIT 2",
]  # fmt: skip

QUESTIONS = [*(each.text for each in statements()), *MORE]
ANSWERED = [*(each.text for each in statements() if each.verdict == "answered"), *MORE]


def shown(folder: Path, content: shop.Data) -> dict[str, object]:
    """What every question shows of some data."""
    with shop.connected(folder, content) as session:
        return all_seen(session, QUESTIONS)
