-- id: A29
-- verdict: answered
SELECT region, SUM(amount) / COUNT(*) AS avg_basket FROM events GROUP BY region
