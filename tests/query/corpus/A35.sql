-- id: A35
-- verdict: answered
SELECT region, COUNT(*) FROM events WHERE region LIKE 'R0%' GROUP BY region
