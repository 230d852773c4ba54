// jest's `globalSetup`: names the folder of the shared stack, and the process with which the stack ends (shared-stack.ts).
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export default function nameSharedStack() {
  process.env.SHARED_STACK = join(tmpdir(), `shared-stack-${process.pid}-${Date.now()}`);
  process.env.SHARED_STACK_OWNER = String(process.pid);
}
