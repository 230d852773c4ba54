#!/bin/sh
# Chooses TLS if there is a certificate, and plain HTTP otherwise. Then this process becomes nginx.
set -eu
if [ -e /certificates/fullchain.pem ]; then servers=tls; else servers=plain; fi
ln -sf "/etc/nginx/proxy/$servers.conf" /tmp/servers.conf
# The DNS server of this network, for example Docker's.
echo "resolver $(sed -n 's/^nameserver //p' /etc/resolv.conf | head -n 1) valid=1s ipv6=off;" >/tmp/resolver.conf
files=$(ulimit -n)
if [ "$files" = unlimited ] || [ "$files" -gt 65536 ]; then files=65536; fi
echo "worker_connections $files;" >/tmp/connections.conf
# Written only with the exporter. Without a listener at that port, nginx would log an error for each line.
case ",${COMPOSE_PROFILES:-}," in
*,monitoring,* | *,proxy-metrics,*) unserved='access_log syslog:server=127.0.0.1:9114,tag=proxy unserved if=$unserved;' ;;
*) unserved= ;;
esac
echo "$unserved" >/tmp/unserved.conf
echo "proxy: $servers, $files connections for each of its processes"
exec nginx -c /etc/nginx/proxy/nginx.conf -g "daemon off; worker_shutdown_timeout ${SHUTDOWN_GRACE_S:-25}s;"
