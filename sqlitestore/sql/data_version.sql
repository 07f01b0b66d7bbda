-- Changes with each commit of another connection, of any process: a purge pauses
-- while there are some [P4].
PRAGMA data_version
