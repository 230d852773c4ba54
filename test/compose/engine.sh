#!/usr/bin/env bash
# Brings a container engine up where one can be had: as root, from Debian's or Ubuntu's packages. One that answers is used as it is.
#   test/compose/engine.sh start|stop      start ends with 1, and says why, where there is none to be had
set -u
cd "$(dirname "$0")/../.."
mkdir -p .data
pid_file=.data/dockerd.pid
log=.data/dockerd.log

answers() { docker info >/dev/null 2>&1; }
composes() { docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1; }
refuse() {
  echo "no container engine: $1"
  exit 1
}

start() {
  if answers && composes; then return; fi
  [ "$(id -u)" = 0 ] || refuse 'none answers, and only root can start one'
  if ! command -v dockerd >/dev/null || ! composes || ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || refuse 'no dockerd, and no apt-get to install it with'
    export DEBIAN_FRONTEND=noninteractive
    timeout 120 apt-get update -qq >"$log" 2>&1 &&
      timeout 300 apt-get install -y -qq --no-install-recommends docker.io docker-compose iptables debootstrap >>"$log" 2>&1 ||
      refuse "apt-get could not install one: $(tail -n 1 "$log")"
  fi
  if answers; then return; fi
  nohup dockerd >"$log" 2>&1 </dev/null &
  echo $! >"$pid_file"
  for _ in $(seq 60); do
    if answers; then return; fi
    kill -0 "$(cat "$pid_file")" 2>/dev/null || break
    sleep 0.5
  done
  stop
  refuse "dockerd does not start: $(grep -v level=info "$log" | tail -n 1)"
}

# Only the one that was started here.
stop() {
  [ -f "$pid_file" ] || return 0
  kill "$(cat "$pid_file")" 2>/dev/null
  for _ in $(seq 60); do
    kill -0 "$(cat "$pid_file")" 2>/dev/null || break
    sleep 0.5
  done
  rm -f "$pid_file"
}

"${1:-start}"
