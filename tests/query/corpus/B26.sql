-- id: B26
-- verdict: refused
-- error: UnsupportedSql
-- message: A set operation (UNION, EXCEPT, INTERSECT) of whole questions is not answered.
-- instead: SELECT COUNT(*) FROM (SELECT user_id, amount AS x FROM events UNION ALL SELECT user_id, price FROM orders) AS both
SELECT region FROM events UNION SELECT product FROM events
