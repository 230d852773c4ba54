#!lua flags=allow-oom
-- Changes nothing: `/readyz` runs this script as a probe. Redis rejects it whenever Redis would reject the other scripts: on a replica,
-- with a full disk, or for a user without the right to run scripts.
--
-- KEYS  1 a project's prefix
-- Returns 1
return reply(1)
