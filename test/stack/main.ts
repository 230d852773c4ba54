// The process behind `npm start`.
import { runInTerminal } from './terminal.ts';

runInTerminal();
