-- From here on every grant issued before this moment, by an issuer's clock that
-- may be ahead by the issue skew, is refused [A12].
UPDATE pawl_meta
SET epoch = epoch + 1, issued_not_before = time_floor + issue_skew
WHERE one = 1
RETURNING epoch, issued_not_before
