#!lua flags=allow-oom
-- Changes nothing, as `/readyz` asks it. Redis runs it only where it would run the other scripts: not on a replica, not with a full disk,
-- not for a user who may run no scripts.
--
-- KEYS  1 a project's prefix
-- Returns 1
return reply(1)
