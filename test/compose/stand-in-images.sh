#!/usr/bin/env bash
# Builds substitutes for the three base images if no image registry can be reached, under the names of the Dockerfile and docker-compose.yml,
# from Debian's packages and this machine's Node. Requires root, debootstrap, and a running engine. Keeps existing images.
#
# The images contain this machine's access to packages: its certificates, npm's registry, and the wheels of the examples.
# Containers need this access, too. Use the images for tests on this machine only, and never push them.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Reads the public names from the files that use them.
name_in() { sed -nE "s/.*$2[:=]-?([a-z]+:[a-z0-9.-]+).*/\1/p" "$1" | head -n 1; }
node_image=$(name_in Dockerfile NODE_IMAGE)
redis_image=$(name_in docker-compose.yml REDIS_IMAGE)
proxy_image=$(name_in docker-compose.yml PROXY_IMAGE)
base=inference-proxy-stand-in:bookworm

there() { docker image inspect "$1" >/dev/null 2>&1; }
there "$node_image" && there "$redis_image" && there "$proxy_image" && exit 0

work=$(mktemp -d)
container=
finish() {
  [ -z "$container" ] || docker rm --force "$container" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT

if ! there "$base"; then
  echo "stand-ins: a Debian of packages (debootstrap)"
  debootstrap --variant=minbase --include=ca-certificates,redis-server,nginx-light bookworm "$work/root" >"$work/log" 2>&1 ||
    { tail -n 5 "$work/log" >&2; exit 1; }
  rm -rf "$work/root"/var/cache/apt/archives/*.deb "$work/root"/var/lib/apt/lists/*
  tar -C "$work/root" --one-file-system -c . | docker import --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$base" >/dev/null
fi

# Creates a container, changes it with commands and copies, and commits it under a name. This needs no image builder.
begin() { container=$(docker create --label stand-in=true "$base" sh -c "$1"); }
keep() {
  local name=$1
  shift
  docker start --attach "$container"
  local changes=()
  for change in "$@"; do changes+=(--change "$change"); done
  docker commit "${changes[@]}" "$container" "$name" >/dev/null
  docker rm "$container" >/dev/null
  container=
  echo "stand-ins: $name"
}

if ! there "$node_image"; then
  mkdir -p "$work/node/bin" "$work/node/lib/node_modules" "$work/wheels"
  # Node 24 is the package `node` of this project. npm is the machine's npm.
  cp -L node_modules/node/bin/node "$work/node/bin/node"
  cp -RL "$(npm root --global)/npm" "$work/node/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/node/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$work/node/bin/npx"
  find examples -name requirements.txt -exec python3 -m pip download --quiet --dest "$work/wheels" --only-binary :all: --requirement {} \;
  begin 'groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node'
  docker cp "$work/node/." "$container:/usr/local/"
  docker cp "$work/wheels" "$container:/wheels"
  bundle=${NODE_EXTRA_CA_CERTS:-${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}}
  docker cp --follow-link "$bundle" "$container:/etc/ssl/certs/ca-certificates.crt"
  keep "$node_image" 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' \
    "ENV npm_config_registry=$(npm config get registry)" 'ENV PIP_NO_INDEX=1' 'ENV PIP_FIND_LINKS=/wheels' 'CMD ["node"]'
fi
if ! there "$redis_image"; then
  # The public image's user has this id, and docker-compose.yml names this id.
  begin 'usermod --uid 999 redis && mkdir /data && chown redis:redis /data'
  keep "$redis_image" 'VOLUME /data' 'WORKDIR /data' 'USER redis' 'CMD ["redis-server"]'
fi
if ! there "$proxy_image"; then
  begin 'ln -sf /dev/stderr /var/log/nginx/error.log'
  keep "$proxy_image" 'CMD ["nginx", "-g", "daemon off;"]'
fi
