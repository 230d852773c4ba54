// PROTOCOL.md, "The process": fd 3 in Bun, whose sockets cannot take over a descriptor.
import { createReadStream, writeSync } from 'node:fs';
import { Duplex } from 'node:stream';

/**
 * Returns a stream over a descriptor. Each write is on the pipe when it returns, because the descriptor blocks.
 *
 * @param {number} fd
 */
export function streamOf(fd) {
  const stream = new Duplex({
    read() {},
    /**
     * @param {Buffer} chunk
     * @param {string} _encoding
     * @param {(error?: Error) => void} done
     */
    write(chunk, _encoding, done) {
      try {
        for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
        done();
      } catch (error) {
        done(/** @type {Error} */ (error));
      }
    },
  });
  const source = createReadStream('', { fd, autoClose: false });
  source.on('data', (chunk) => stream.push(chunk));
  source.on('end', () => stream.push(null));
  source.on('error', (error) => stream.destroy(error));
  return stream;
}
