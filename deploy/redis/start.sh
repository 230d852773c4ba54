#!/bin/sh
# The command of the Redis container: writes the users with their passwords to a file that Redis loads, then starts the server.
# start.sh <users.acl> redis-server <arguments>; passwords come from REDIS_<USER>_PASSWORD.
set -eu
rules=$1
shift
file=${REDIS_ACL_FILE:-/tmp/users.acl}

password() {
  eval "value=\${REDIS_$1_PASSWORD:-}"
  # A password with other characters would be read as further rules.
  case $value in
    '' | *[!A-Za-z0-9]*) echo "REDIS_$1_PASSWORD must be letters and digits; npm run secrets makes one" >&2; exit 1 ;;
  esac
  printf 's/ \\$%s_PASSWORD/ >%s/\n' "$1" "$value"
}

script=$(for user in ADMIN BACKUP MONITOR GATEWAY WORKER DISPATCHER; do password $user; done)
umask 077
# Removes comments and empty lines. Joins a line that begins with a space to the line before.
sed -e '/^#/d' -e '/^$/d' "$rules" | sed -e ':join' -e '$!{N;b join' -e '}' -e 's/\n  */ /g' | sed -e "$script" >"$file"
if [ "$(id -u)" = 0 ]; then chown redis "$file" 2>/dev/null || true; fi
# The image's entrypoint drops root if it can.
if command -v docker-entrypoint.sh >/dev/null; then set -- docker-entrypoint.sh "$@"; fi
exec "$@" --aclfile "$file"
