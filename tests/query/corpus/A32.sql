-- id: A32
-- verdict: answered
SELECT UPPER(region) AS r, COUNT(*) FROM events GROUP BY UPPER(region)
