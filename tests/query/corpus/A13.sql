-- id: A13
-- verdict: answered
SELECT MEDIAN(amount) FROM events WHERE region = 'R01'
