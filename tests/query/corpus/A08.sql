-- id: A08
-- verdict: answered
SELECT product, COUNT(*) AS n FROM events GROUP BY product ORDER BY n DESC LIMIT 10
