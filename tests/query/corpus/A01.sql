-- id: A01
-- verdict: answered
SELECT COUNT(*) FROM events
