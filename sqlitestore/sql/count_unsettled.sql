-- How many operations of one caller an erasure leaves alone.
SELECT (SELECT count(*) FROM pawl_operations WHERE status IN (10, 20)
            AND principal = :principal AND tenant = :tenant AND authority = :authority)
     + (SELECT count(*) FROM pawl_operations WHERE status IN (30, 40)
            AND principal = :principal AND tenant = :tenant AND authority = :authority)
