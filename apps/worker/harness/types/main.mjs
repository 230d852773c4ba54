// Contract 1, "Parameters and types": prints the types of an app's exported functions as JSON. Arguments: the app's folder and its entry file.
// The worker runs this program when a version starts. It reads files and runs no code of the app.
import { functionsOf } from './functions.mjs';
import { programOf } from './program.mjs';

const [folder = '', entry = ''] = process.argv.slice(2);
const { program, source } = programOf(folder, entry);
process.stdout.write(JSON.stringify(functionsOf(program, source)));
