-- id: B14
-- verdict: answered
-- note: CURRENT_DATE is 2024-06-01 here.
SELECT COUNT(*) FROM events WHERE day > CURRENT_DATE - 7
