// `npm run --silent token -- --project demo`: prints or revokes a token of the development stack. The command line has the same command.
import { cli, main } from './prepare.mjs';

await main(() => cli('token', ...process.argv.slice(2)));
