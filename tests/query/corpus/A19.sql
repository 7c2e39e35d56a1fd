-- id: A19
-- verdict: answered
SELECT COUNT(*) FROM events WHERE day BETWEEN DATE '2024-06-01' AND DATE '2024-06-30' AND region IN ('R01','R02')
