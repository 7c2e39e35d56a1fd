-- id: A09
-- verdict: answered
SELECT region, AVG(amount) AS m FROM events GROUP BY region HAVING COUNT(*) > 1000
