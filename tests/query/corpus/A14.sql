-- id: A14
-- verdict: answered
SELECT VAR_SAMP(amount), STDDEV_SAMP(amount) FROM events
