-- id: A21
-- verdict: answered
SELECT p.category, COUNT(*) FROM events e JOIN products p ON e.product = p.product GROUP BY p.category
