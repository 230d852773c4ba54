// Contract 7: prints, as a JSON list, the files of the arguments that Node's type stripping refuses.
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';

const refused = process.argv.slice(2).filter((file) => {
  try {
    stripTypeScriptTypes(readFileSync(file, 'utf8'));
    return false;
  } catch {
    return true;
  }
});
process.stdout.write(JSON.stringify(refused));
