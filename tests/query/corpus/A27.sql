-- id: A27
-- verdict: answered
SELECT region, product, COUNT(*) FROM events GROUP BY region, product
