// harness/PROTOCOL.md, "Life of a replica": a drained process ends after every frame is on the pipe.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const REPLICAS = Number(process.env.DRAIN_ROUNDS ?? 2_000);
const script = join(import.meta.dirname, '../../harness/python/tests/drained_replicas.py');

test('replicas that are drained while their runs end send every answer, then bye', async () => {
  const python = process.env.PYTHON_UNDER_TEST ?? 'python3';
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { stdout } = await promisify(execFile)(python, [script, String(REPLICAS), String(seed)]);
  expect({ seed, stdout }).toEqual({ seed, stdout: '' });
}, 1_200_000);
