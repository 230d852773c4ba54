// The process behind `npm start`: runs the whole service on this machine.
import { runInTerminal } from './terminal.ts';

runInTerminal();
