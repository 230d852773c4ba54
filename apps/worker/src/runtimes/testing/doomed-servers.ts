// A worker that a test kills. Serves a web server that has started a child process, and prints the process ids of both.

import { reached } from './calls.ts';
import { RecordedLog, request, serverRuntime } from './servers.ts';

const runtime = serverRuntime(new RecordedLog(), { folder: 'moody', env: { MOODS: '/nowhere' } });
runtime.start();
await reached(runtime, 'ready');
const pids = [await request(runtime, '/pid').result(), await request(runtime, '/leaves-a-child').result()];
process.stdout.write(`${pids.join(' ')}\n`);
