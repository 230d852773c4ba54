// Contract 6: `npm run token` prints a token only for a project name that a call can have.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { childEnvironment } from './child-environment.ts';

const program = join(import.meta.dirname, '..', '..', 'scripts', 'token.mjs');
const token = (project: string) =>
  promisify(execFile)(process.execPath, [program, '--project', project], {
    env: childEnvironment({ JWT_SECRET: 'a-development-secret-of-enough-characters' }),
  });

test.each(['demo', 'Team_7.eu-1', '*'])('npm run token prints a token for the project %j', async (project) => {
  const { stdout } = await token(project);
  const claims = JSON.parse(Buffer.from(stdout.split('.')[1] ?? '', 'base64url').toString());
  expect(claims).toMatchObject({ project_id: project });
});

test.each(['a b', '../demo', 'demo,other', '**', 'x'.repeat(64)])(
  'npm run token rejects the project name %j and names the rule',
  async (project) => {
    await expect(token(project)).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`The project name ${JSON.stringify(project)} must have at most 63 letters`),
    });
  },
);
