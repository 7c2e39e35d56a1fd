-- id: A07
-- verdict: answered
SELECT product, COUNT(*) AS n FROM events GROUP BY product
