       (extract(epoch FROM m.admission_bound) * 1000000)::bigint,
       (extract(epoch FROM m.purge_margin) * 1000000)::bigint,
       (extract(epoch FROM m.max_grant_lifetime) * 1000000)::bigint,
       (extract(epoch FROM m.issue_skew) * 1000000)::bigint,
       (extract(epoch FROM m.key_lifetime) * 1000000)::bigint,
       m.replicated,
       (SELECT coalesce(json_object_agg(l.version, (extract(epoch FROM l.leeway) * 1000000)::bigint), '{}')::text
          FROM pawl.leeways AS l)
