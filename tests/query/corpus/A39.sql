-- id: A39
-- verdict: answered
SELECT region, APPROX_COUNT_DISTINCT(user_id) FROM events GROUP BY region
