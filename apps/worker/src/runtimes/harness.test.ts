// harness/PROTOCOL.md: the harness's own tests, which are written in Python. Each Python test is one jest test.
import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';

const TESTS = join(import.meta.dirname, '../../harness/python/tests');
const python = process.env.PYTHON_UNDER_TEST ?? 'python3';

const names: string[] = JSON.parse(execFileSync(python, [TESTS, '--list'], { encoding: 'utf8' }));
/** The traceback of each test that has run, or null. */
const failures = new Map<string, string | null>();

describe('the harness in Python', () => {
  beforeAll(async () => {
    const lines = await new Promise<string>((resolve) => {
      // The exit code repeats what the lines say. A test without a line fails below.
      execFile(python, [TESTS], (_error, stdout) => resolve(stdout));
    });
    for (const line of lines.trim().split('\n')) {
      const { name, failure } = JSON.parse(line);
      failures.set(name, failure);
    }
  });

  test.each(names)('%s', (name) => {
    expect(failures.get(name)).toBeNull();
  });
});
