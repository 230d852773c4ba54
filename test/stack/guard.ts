// Ends a process when ours is gone, however it went: `kill -9` gives nobody a chance to clean up, and Redis does not watch its parent.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

// The read returns when the last holder of the pipe's other end, which is us, has gone: portable, unlike Linux' parent-death signal.
const SCRIPT = `
read -r _
sleep "$1"
kill -TERM "$2" 2>/dev/null || exit 0
left=50
while [ $left -gt 0 ] && kill -0 "$2" 2>/dev/null; do sleep 0.1; left=$((left - 1)); done
kill -KILL "$2" 2>/dev/null
[ -z "$3" ] || rm -rf "$3"
`;

/** Stops guarding; harmless when done twice. */
export type Release = () => void;

/**
 * Sees to it that `pid` does not outlive this process.
 *
 * @param graceS how long it may live on, so that others can finish with it
 * @param folder removed with it
 */
export function guard(pid: number, graceS: number, folder = ''): Release {
  const watcher: ChildProcess = spawn('sh', ['-c', SCRIPT, 'guard', String(graceS), String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // Its own group: a Ctrl-C in the terminal is for the supervisor alone.
    detached: true,
  });
  watcher.on('error', () => {});
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return () => {
    watcher.kill('SIGKILL');
  };
}
