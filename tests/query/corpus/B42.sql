-- id: B42
-- verdict: refused
-- error: UnsupportedSql
-- message: GROUP BY the unit makes every group one person.
-- instead: SELECT region, SUM(amount) FROM events GROUP BY ROLLUP(region)
SELECT SUM(amount) FROM events GROUP BY GROUPING SETS ((user_id), (region))
