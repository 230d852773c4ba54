// RFC 1035 §4, only the parts that tests need: a name server whose answer to each question comes from the test.
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';

/** An answer: addresses, `NXDOMAIN`, or no answer. Without addresses, the name exists but has no record of this type. */
export type Answer = readonly string[] | 'NXDOMAIN' | 'silence';

export interface DnsServer {
  /** In the form that `nameLookup` expects. */
  readonly address: string;
  close(): Promise<void>;
}

const TYPES: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' };

export async function dnsServer(
  answer: (name: string, type: 'A' | 'AAAA') => Answer | Promise<Answer>,
): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const reply = async (query: Buffer, peer: RemoteInfo): Promise<void> => {
    let at = 12;
    const labels: string[] = [];
    for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const question = query.subarray(12, at + 5);
    const type = TYPES[query.readUInt16BE(at + 1)];
    const answered = type ? await answer(labels.join('.').toLowerCase(), type) : [];
    if (answered === 'silence') return;
    const records = answered === 'NXDOMAIN' ? [] : answered.map((address) => record(address));
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(answered === 'NXDOMAIN' ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    socket.send(Buffer.concat([head, question, ...records]), peer.port, peer.address);
  };
  socket.on('message', (query, peer) => void reply(query, peer));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

/** Returns a resource record for the question's name (a pointer to byte 12) with lifetime 0. */
function record(address: string): Buffer {
  const data = address.includes(':')
    ? Buffer.from(expanded(address), 'hex')
    : Buffer.from(address.split('.').map((part) => Number(part)));
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(data.length === 4 ? 1 : 28, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function expanded(address: string): string {
  const [left = '', right = ''] = address.split('::');
  const groups = (text: string) => text.split(':').filter((group) => group !== '');
  const missing = 8 - groups(left).length - groups(right).length;
  const all = [
    ...groups(left),
    ...Array.from({ length: address.includes('::') ? missing : 0 }, () => '0'),
    ...groups(right),
  ];
  return all.map((group) => group.padStart(4, '0')).join('');
}
