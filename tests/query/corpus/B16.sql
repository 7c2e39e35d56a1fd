-- id: B16
-- verdict: refused
-- error: UnsupportedSql
-- message: A CAST of product to INT: one row could make it fail.
-- instead: SELECT COUNT(*) FROM events WHERE product IN ('6', '7')
SELECT COUNT(*) FROM events WHERE CAST(product AS INT) > 5
