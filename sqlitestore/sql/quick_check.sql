-- Whether the pages of the file hang together; one row, "ok" or what is wrong.
PRAGMA quick_check(1)
