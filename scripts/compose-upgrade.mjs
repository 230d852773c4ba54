// `npm run compose:upgrade [-- --no-build] [-- <options of compose>]`: applies new code, a new .env or a new compose file without a failed call.
// Why gateways have spares: docs/decisions/0030-upgrades-in-compose.md.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Compose, docker } from './compose.mjs';
import { main, root, say } from './prepare.mjs';

/** Twice the time for which the proxy keeps the addresses of the gateways (`valid=1s` in deploy/proxy/start.sh). */
const PROXY_LOOKS_MS = 2000;
/** Each service limits its own stop (SHUTDOWN_GRACE_S). This limit applies to a service that hangs. */
const STOP_S = 600;
/** `replaceEach` skips these services. The final `up` recreates a service only if its definition has changed. */
const OTHERS = /^(proxy|redis|gateway|gateway-spare|prometheus|grafana|.*-exporter|.*-settings)$/;

/** Whether the service has another definition or another image than this container. */
async function isStale(id, hash) {
  const format = '{{index .Config.Labels "com.docker.compose.config-hash"}} {{.Image}} {{.Config.Image}}';
  const [was, image, name] = (await docker('inspect', '--format', format, id)).split(' ');
  return was !== hash || image !== (await docker('image', 'inspect', '--format', '{{.Id}}', name));
}

async function staleContainers(compose, service) {
  const [, hash] = (await compose.run(['config', '--hash', service])).split(' ');
  const ids = await compose.containers(service);
  const stale = await Promise.all(ids.map((id) => isStale(id, hash)));
  return ids.filter((_, at) => stale[at]);
}

async function remove(ids) {
  await Promise.all(ids.map((id) => docker('stop', '--time', String(STOP_S), id)));
  for (const id of ids) await docker('rm', id);
}

/** Replaces containers one by one, the old one first: a new worker may need the GPU memory of the old one. Other containers serve meanwhile. */
async function replaceEach(compose, service) {
  for (const id of await staleContainers(compose, service)) {
    await remove([id]);
    await compose.up(service, '--no-recreate');
    await compose.ready(service);
    say(`${service}: one replaced`);
  }
  await compose.up(service, '--no-recreate');
}

/** Replaces all gateways at once in place, which keeps their numbers: `exec gateway` means number 1. Spares serve meanwhile. */
async function replaceGateways(compose) {
  if ((await staleContainers(compose, 'gateway')).length === 0) return;
  try {
    await compose.up('gateway-spare');
    await compose.ready('gateway-spare');
    await sleep(PROXY_LOOKS_MS);
    await compose.up('gateway');
    await compose.ready('gateway');
    await sleep(PROXY_LOOKS_MS);
  } finally {
    await remove(await compose.containers('gateway-spare'));
  }
  say('gateway: all replaced');
}

/** Lets nginx read its files again if they changed. A renewed certificate: docs/operations/upgrade.md, "TLS". */
async function reloadProxy(compose) {
  const [id] = await compose.containers('proxy');
  const startedAt = Date.parse(await docker('inspect', '--format', '{{.State.StartedAt}}', id));
  const folder = join(root, 'deploy', 'proxy');
  if (!readdirSync(folder).some((file) => statSync(join(folder, file)).mtimeMs > startedAt)) return;
  await compose.run(['kill', '-s', 'HUP', 'proxy']);
  say('proxy: reads its new files');
}

await main(async () => {
  const options = process.argv.slice(2).filter((option) => option !== '--no-build');
  const compose = new Compose(options);
  if (!process.argv.includes('--no-build')) await compose.run(['build'], { out: 'inherit' });
  const services = await compose.services();
  for (const check of services.filter((name) => name.endsWith('-settings')))
    say(await compose.run(['run', '--rm', '--no-deps', '-T', check]));
  for (const service of services.filter((name) => !OTHERS.test(name))) await replaceEach(compose, service);
  await replaceGateways(compose);
  await compose.run(['up', '--detach', '--no-build']);
  await reloadProxy(compose);
  say('The stack is up to date');
  return 0;
});
