-- id: A34
-- verdict: answered
SELECT region, COUNT(*) FROM events GROUP BY ROLLUP(region)
