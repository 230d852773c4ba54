#!/usr/bin/env bash
# Starts a container engine, as root, from Debian's or Ubuntu's packages. Uses a running engine if there is one.
# test/compose/engine.sh start|stop      start exits with 1 and prints the reason if no engine can be started
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
  [ "$(id -u)" = 0 ] || refuse 'no engine answers (docker info), and only root can start an engine; run this script as root'
  if ! command -v dockerd >/dev/null || ! composes || ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || refuse 'no dockerd on PATH, and no apt-get to install it; install Docker and its compose plugin'
    export DEBIAN_FRONTEND=noninteractive
    timeout 120 apt-get update -qq >"$log" 2>&1 &&
      timeout 300 apt-get install -y -qq --no-install-recommends docker.io docker-compose iptables debootstrap >>"$log" 2>&1 ||
      refuse "apt-get could not install Docker (log: $log): $(tail -n 1 "$log")"
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
  refuse "dockerd does not start (log: $log): $(grep -v level=info "$log" | tail -n 1)"
}

# Stops only an engine that this script started.
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
