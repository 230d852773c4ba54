// `npm run page:cli`: writes docs/cli.md.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../development/programs.ts';
import { programOf } from '../program.ts';
import { readSettings } from '../settings.ts';
import { cliPage } from './page.ts';

writeFileSync(join(repository(), 'docs', 'cli.md'), cliPage(programOf(readSettings())));
