// PROTOCOL.md, "The process": its signals, and its end when the worker ends.
import { closeSync, openSync } from 'node:fs';

/** Ignores SIGTERM and SIGINT. A signal to a whole process group also reaches the worker, which drains its replicas first. */
export function takeSignals() {
  // Node resets handlers in child processes, so children end normally.
  process.on('SIGTERM', leaveToWorker);
  process.on('SIGINT', leaveToWorker);
}

function leaveToWorker() {}

/**
 * Ends this process and its process group: the worker's end of the channel is closed.
 *
 * @returns {never}
 */
export function endGroup() {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } catch {
    // the process was started by hand, without a process group
  }
  process.exit(0);
}

/** Returns whether the functions left so many files open that no other can be opened. */
export function hasNoFilesLeft() {
  try {
    closeSync(openSync('/dev/null', 'r'));
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EMFILE';
  }
  return false;
}
