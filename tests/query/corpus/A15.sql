-- id: A15
-- verdict: answered
SELECT COUNT(*) FILTER (WHERE amount > 50), COUNT(*) FROM events
