-- id: B06
-- verdict: refused
-- error: MissingDeclaration
-- message: A number needs declared bounds, and 'quantity' is declared as Text().
-- instead: SELECT SUM(price) FROM orders
SELECT SUM(price * quantity) FROM orders
