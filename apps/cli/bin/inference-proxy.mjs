#!/usr/bin/env node
// The program `inference-proxy`. npm links this file, so it exists before the first build.
import { existsSync } from 'node:fs';

const main = new URL('../dist/main.js', import.meta.url);
const [major, minor] = process.versions.node.split('.').map(Number);

if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `Node 22.19 or later is needed; this is ${process.versions.node}; in the repository, start the program with npx\n`,
  );
  process.exitCode = 1;
} else if (!existsSync(main)) {
  process.stderr.write('The command line is not built: run npm start or npm run build first\n');
  process.exitCode = 1;
} else {
  await import(main.href);
}
