-- id: B07
-- verdict: refused
-- error: MissingDeclaration
-- message: MAX of amount needs declared bounds, and 'amount' is declared as Text().
-- instead: SELECT MAX(amount) - MIN(amount) FROM events
SELECT MAX(amount) - MIN(amount) FROM events_unbounded
