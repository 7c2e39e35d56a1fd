-- id: A06
-- verdict: answered
SELECT region, COUNT(*) FROM events GROUP BY region
