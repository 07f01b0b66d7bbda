-- The store's time, once per transaction and under the write lock: the later of
-- the engine's clock and the floor, which is raised to it [P1]. Every predicate
-- on time in this transaction reads the floor that this statement wrote.
-- clock is NULL but in tests.
UPDATE pawl_meta
SET time_floor = max(time_floor, coalesce(:clock, CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000))
WHERE one = 1
RETURNING time_floor, policy_revision, epoch, issued_not_before
