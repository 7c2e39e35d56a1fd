-- id: A36
-- verdict: answered
-- note: MIN(amount) is the value that 0.5% lie below, found privately: the extreme itself is one person's.
-- note: MAX(amount) is the value that 0.5% lie above, found privately: the extreme itself is one person's.
SELECT MIN(amount), MAX(amount) FROM events
