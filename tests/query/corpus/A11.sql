-- id: A11
-- verdict: answered
SELECT DATE_TRUNC('month', day) AS m, SUM(amount) FROM events GROUP BY 1
