-- id: A33
-- verdict: answered
SELECT WIDTH_BUCKET(amount, 0, 200, 20) AS b, COUNT(*) FROM events GROUP BY b
