-- id: B35
-- verdict: refused
-- error: UnsupportedSql
-- message: A regular expression with groups, or with more than two repetitions.
-- instead: SELECT COUNT(*) FROM events WHERE product LIKE '%a'
SELECT COUNT(*) FROM events WHERE regexp_matches(product, '(a+)+$')
