// Ends another process after this process has ended, also by `kill -9`. Redis does not watch its parent.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

// `read` returns when this process, the last holder of the pipe's other end, is gone. Linux' parent-death signal would not be portable.
const SCRIPT = `
read -r _
sleep "$1"
kill -TERM "$2" 2>/dev/null || exit 0
left=50
while [ $left -gt 0 ] && kill -0 "$2" 2>/dev/null; do sleep 0.1; left=$((left - 1)); done
kill -KILL "$2" 2>/dev/null
[ -z "$3" ] || rm -rf "$3"
`;

/** Stops guarding. May be called twice. */
export type Release = () => void;

/**
 * Ends `pid` after the end of this process.
 *
 * @param graceS seconds for which `pid` may live on, so that its clients can finish
 * @param folder removed after the end of `pid`
 */
export function guard(pid: number, graceS: number, folder = ''): Release {
  const watcher: ChildProcess = spawn('sh', ['-c', SCRIPT, 'guard', String(graceS), String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // A separate process group, so that a Ctrl-C in the terminal reaches the supervisor only.
    detached: true,
  });
  watcher.on('error', () => {});
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return () => {
    watcher.kill('SIGKILL');
  };
}
