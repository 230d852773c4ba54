// The apps of the journeys of runs, by name: their files and contents.

export const changing = (version: number): string => `
import os, time
def version(): return ${version}
def versions(path):
  yield ${version}
  while not os.path.exists(path): time.sleep(0.01)
  yield ${version}
`;

export const APPS: Record<string, Record<string, string>> = {
  hello: {
    'main.py': `
import os, time
def add(a, b): return {"sum": a + b}
def count(n):
    for i in range(n): yield f"item {i}"
def rows(n):
    for i in range(n): yield {"i": i, "pair": [1.0, None]}
def slow(n, pause):
    for i in range(n):
        yield i
        time.sleep(pause)
def wait_for(path):
    while not os.path.exists(path): time.sleep(0.01)
def gated(path):
    yield "before"
    wait_for(path)
    yield "after"
def tidy(path):
    try:
        yield "begun"
        time.sleep(600)
    finally:
        with open(path, "w") as file: file.write("tidied")
def flood(path, size):
    i = 0
    try:
        while True:
            i += 1
            yield "x" * size
    finally:
        with open(path, "w") as file: file.write(str(i))
def counted(path, n, size):
    for i in range(n):
        with open(path, "a") as file: file.write(".")
        yield "x" * size
def fail(): raise ValueError("no such thing")
def crash(): os._exit(3)
def environment(): return dict(os.environ)
def wait(path):
    wait_for(path)
    return "waited"
`,
  },
  sleepers: {
    'main.py': `
import os, time
def meet(folder, name, n):
    yield "waits"
    open(os.path.join(folder, name), "w").close()
    while len(os.listdir(folder)) < n: time.sleep(0.05)
    yield "met"
`,
  },
  brittle: {
    'app.toml': '[scaling]\nretry_on_crash = true\n',
    'main.py':
      'import os\ndef once(path):\n  if os.path.exists(path): return "second"\n  open(path, "w").close()\n  os._exit(1)\n',
  },
  limited: {
    'app.toml': '[scaling]\nmax_output_bytes = 1000\n',
    'main.py': 'def flood():\n  while True: yield "x" * 100\n',
  },
  broken: { 'main.py': 'import nothing_of_that_name\n' },
  server: {
    'app.toml': '[runtime.custom]\nentrypoint = "node server.mjs"\n[scaling]\nretry_on_crash = true\n',
    'server.mjs': `
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
createServer((request, response) => {
  const gate = decodeURIComponent(request.url.split('?')[1] ?? '');
  if (request.url.startsWith('/stream')) {
    response.writeHead(202, { 'content-type': 'text/event-stream', 'x-own': 'yes' }).flushHeaders();
    const look = setInterval(() => {
      if (!existsSync(gate)) return;
      clearInterval(look);
      response.end('data: after\\n\\n');
    }, 10);
    request.on('close', () => clearInterval(look));
  } else if (request.url.startsWith('/cut')) {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\\n\\n', () => response.destroy());
  } else if (request.url.startsWith('/once') && !existsSync(gate)) {
    writeFileSync(gate, '');
    response.destroy();
  } else response.writeHead(404, { 'content-type': 'text/plain', 'content-length': 4 }).end('gone');
}).listen(process.env.PORT);
`,
  },
  changing: { 'main.py': changing(1) },
};
