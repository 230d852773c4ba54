// docs/deploy.md: the worked example of the command line, from the first deployment of an app with a package to its rollback.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { inPipe } from '../command-line/program.ts';
import { type Here, say } from './running.ts';

const source = (format: string): string =>
  `import tabulate\n\ndef table(rows: list):\n    return tabulate.tabulate(rows, tablefmt="${format}")\n`;

export function testDeployments(here: Here): void {
  test('an app with a package is deployed through the proxy, called, changed, deployed again and rolled back', async () => {
    const began = performance.now();
    const folder = await mkdtemp(join(tmpdir(), 'worked-'));
    const scope = 'call runs:read runs:write apps:write';
    const token = (
      await here.stack.compose(['exec', '-T', 'gateway', 'token', '--project', 'demo', '--scope', scope])
    ).trim();
    const env = { INFERENCE_PROXY_URL: `http://127.0.0.1:${here.stack.port}`, INFERENCE_PROXY_TOKEN: token };
    const cli = async (...args: string[]): Promise<Record<string, unknown>> => {
      const { code, stdout, stderr } = await inPipe([...args, '--json'], { env, cwd: folder });
      expect([args[0], code, stderr]).toEqual([args[0], 0, '']);
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const called = () => cli('call', 'worked/table', '{"rows": [["a", 1]]}');
    try {
      await writeFile(join(folder, 'requirements.txt'), 'tabulate\n');
      await writeFile(join(folder, 'main.py'), source('plain'));
      const first = await cli('deploy', '--app', 'worked');
      expect(first).toMatchObject({ app: 'worked', state: 'active' });
      expect(await called()).toMatchObject({ result: 'a  1' });

      await writeFile(join(folder, 'main.py'), source('github'));
      const second = await cli('deploy', '--app', 'worked');
      expect(await called()).toMatchObject({ result: expect.stringContaining('|') });

      expect(await cli('rollback', 'worked')).toMatchObject({ version: first.version, state: 'active' });
      expect(await called()).toMatchObject({ result: 'a  1' });
      const { versions } = (await cli('versions', 'list', 'worked')) as { versions: { version: string }[] };
      expect(versions.map(({ version }) => version)).toEqual([second.version, first.version]);
      say(`${((performance.now() - began) / 1000).toFixed(1)} s for two deployments and a rollback`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
}
