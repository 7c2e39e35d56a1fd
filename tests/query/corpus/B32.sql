-- id: B32
-- verdict: refused
-- error: UnsupportedSql
-- message: The function my_udf is not part of the language.
-- instead: SELECT SUM(LEAST(amount, 100)) FROM events
SELECT my_udf(amount) FROM events
