// The proxy of docker-compose.yml in front of gateways on this machine: its own configuration, without the containers' network.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, guard, projectRoot } from '@inference-proxy/supervisor';
import { request } from '../client/http.ts';
import { until } from '../client/until.ts';

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

export const hasNginx = (): Promise<boolean> =>
  promisify(execFile)('nginx', ['-v']).then(
    () => true,
    () => false,
  );

/** Resolves when nginx answers. @param gateways their ports */
export async function startNginx(gateways: readonly number[]): Promise<{ port: number; stop(): Promise<void> }> {
  const from = join(projectRoot(), 'deploy', 'proxy');
  const folder = await mkdtemp(join(tmpdir(), 'nginx-'));
  const port = await freePort();
  const here = (text: string): string => text.replaceAll('/tmp/', `${folder}/`).replaceAll('/etc/nginx/proxy', folder);
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);
  const read = (name: string): Promise<string> => readFile(join(from, name), 'utf8');
  // The faults remove gateways, so these lines are expected.
  await write('nginx.conf', here(await read('nginx.conf')).replace('/dev/stderr warn', '/dev/stderr crit'));
  await write('servers.conf', here(await read('plain.conf')).replace('listen 80 ', `listen 127.0.0.1:${port} `));
  await write('gateways.conf', (await read('gateways.conf')).replace('http://$gateways:8080', 'http://gateways'));
  await write('connections.conf', 'worker_connections 4096;');
  // Like a name with several addresses: each address takes its turn, and a failed address stays in the list.
  const servers = gateways.map((gateway) => `server 127.0.0.1:${gateway} max_fails=0;`).join(' ');
  const paths = TEMPORARY.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ');
  await write('resolver.conf', `upstream gateways { ${servers} } ${paths}`);
  const nginx = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder, '-g', 'daemon off;'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    // A process group of its own: a Ctrl-C in the terminal then ends the soak in order.
    detached: true,
  });
  const ended = once(nginx, 'exit');
  const release = nginx.pid === undefined ? () => {} : guard(nginx.pid, 0, folder);
  await Promise.race([
    until(() =>
      request(port, '/healthz', { method: 'GET' }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    ),
    ended.then(() => Promise.reject(new Error('nginx did not start: see above'))),
  ]);
  return {
    port,
    async stop() {
      nginx.kill('SIGTERM');
      await ended;
      release();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
