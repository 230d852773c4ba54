// A worker that a test kills. Starts a test app that starts a child or a daemon. The app `faults` also runs a function that never leaves the
// interpreter. Prints both process ids.
import { join } from 'node:path';
import { Call } from './calls.ts';
import { Language, type LanguageName } from './languages.ts';

const [name = 'Python', app = 'faults'] = process.argv.slice(2) as [LanguageName?, string?];
const language = new Language(name);
const runtime =
  app === 'hostile'
    ? await language.started(100, { folder: join(import.meta.dirname, 'hostile') })
    : await language.started(100, { entry: app });
const leaves = app === 'hostile' ? 'leaves_a_daemon' : 'leaves_a_child';
const pids = [await new Call(runtime, 'pid').result(), await new Call(runtime, leaves).result()];
if (app === 'faults') new Call(runtime, 'never_returns');
process.stdout.write(`${pids.join(' ')}\n`);
