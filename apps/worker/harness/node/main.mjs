// PROTOCOL.md: the entry point of the harness in JavaScript. The keeper starts it by its absolute path, in the app's folder.
import { Channel } from './channel.mjs';
import { takeSignals } from './process.mjs';
import { Replica } from './replica.mjs';
import { useCompiled } from './sources-hooks.mjs';

const CHANNEL_FD = 3;
const PROTOCOL = 1;

takeSignals();
const channel = new Channel(CHANNEL_FD);
/** @type {Replica | undefined} */
let replica;
channel.onMessage = (header, blob) => {
  if (replica !== undefined) replica.receive(header, blob);
  else if (header.t === 'init') {
    const { types, ...compiled } = blob.length > 0 ? JSON.parse(blob.toString()) : {};
    if (compiled.files !== undefined) useCompiled(compiled);
    replica = new Replica(header, channel, types);
    void replica.start();
  }
};
// `one_loop`: all functions share one event loop, and the harness confirms a cancel with `cancelling`.
channel.send({ t: 'hello', proto: PROTOCOL, pid: process.pid, node: process.versions.node, one_loop: true });
channel.flush();
