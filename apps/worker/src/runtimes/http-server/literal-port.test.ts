// docs/apps/web-servers.md, "Ports": the forms in which a command names a fixed port.
import { expect, test } from '@jest/globals';
import { replacePort } from './literal-port.ts';

test.each([
  [['uvicorn', 'main:app', '--port', '8000']],
  [['uvicorn', 'main:app', '--port=8000']],
  [['serve', '-p', '8000']],
  [['gunicorn', '--bind', '0.0.0.0:8000', 'main:app']],
  [['gunicorn', '--bind=127.0.0.1:8000', 'main:app']],
  [['hypercorn', '-b', '[::]:8000', 'main:app']],
  [['gunicorn', '-b', ':8000']],
  [['caddy', '--listen', 'localhost:8000']],
  [['sh', '-c', 'exec uvicorn main:app --host 0.0.0.0 --port 8000 --workers 2']],
  [['sh', '-c', 'serve -p  8000']],
])('%j names port 8000 literally: a free port replaces the number', (entrypoint) => {
  const expected = entrypoint.map((word) => word.replace('8000', '41234'));
  expect(replacePort(entrypoint, 8000, 41234)).toEqual(expected);
});

test('{port} is replaced when the server starts: the command is unchanged', () => {
  expect(replacePort(['serve', '{port}'], 8000, 41234)).toEqual(['serve', '{port}']);
});

test.each([
  [['python', 'server.py']],
  [['serve', '--port', '18000']],
  [['serve', '--port', '80001']],
  [['serve', '--workers', '8000']],
  [['serve', '--export=8000']],
  [['serve', '--http-port', '8000']],
  [['serve', '8000']],
  [['serve', '--seed=8000.5']],
])('%j does not name port 8000 in a known form', (entrypoint) => {
  expect(replacePort(entrypoint, 8000, 41234)).toBeUndefined();
});
