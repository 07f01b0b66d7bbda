-- Deletes locked operations. Their claims stay: a grant is never freed by it [P3].
--
-- $1 operation ids
DELETE FROM pawl.operations AS o
 WHERE o.id = ANY ($1::uuid[])
