-- id: B08
-- verdict: refused
-- error: UnsupportedSql
-- message: A join that is not on the unit: it lets one person meet all others.
-- instead: SELECT p.category, COUNT(*) FROM events a JOIN products p ON a.product = p.product GROUP BY p.category
SELECT COUNT(*) FROM events a JOIN events b ON a.product = b.product
