// Contract 7: `npm run check -- <folder>`. Exits with 0 if the app can be deployed, with 1 if it has problems, and with 2 without an argument.
import { resolve } from 'node:path';
import { readSettings } from '@inference-proxy/platform';
import { checkApp } from './check/check-app.ts';
import { report } from './check/report.ts';
import { CheckSettings, ownEnvironment } from './settings.ts';

const [folder, format, ...more] = process.argv.slice(2);
if (folder === undefined || (format !== undefined && format !== '--json') || more.length > 0) {
  process.stderr.write('Usage: npm run --silent check -- <folder of an app, <project>/<app>> [--json]\n');
  process.exitCode = 2;
} else {
  const environment = ownEnvironment();
  const settings = new CheckSettings(readSettings(CheckSettings.schema, environment));
  const checked = await checkApp(resolve(environment.INIT_CWD ?? '.', folder), {
    maxItemBytes: settings.MAX_ITEM_BYTES,
    maxOutputBytes: settings.MAX_OUTPUT_BYTES,
    maxLogBytes: settings.RUN_LOG_MAX_BYTES,
    allowCommands: settings.ALLOW_BUILD_COMMANDS,
    environment,
    printed: (line) => void process.stderr.write(`${line}\n`),
  });
  process.stdout.write(format === undefined ? report(checked) : `${JSON.stringify(checked)}\n`);
  process.exitCode = checked.problems.length === 0 ? 0 : 1;
}
