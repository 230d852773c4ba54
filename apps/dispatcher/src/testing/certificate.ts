// RFC 5280: makes self-signed X.509 certificates with any names and dates for tests, without an external program.
import { generateKeyPairSync, sign } from 'node:crypto';

export interface Certificate {
  /** PEM. */
  readonly key: string;
  /** PEM. A client trusts the certificate if it is among the client's roots. */
  readonly cert: string;
}

const DAY_MS = 86_400_000;

const der = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
};
const sequence = (...parts: readonly Buffer[]) => der(0x30, ...parts);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const time = (at: number) =>
  der(
    0x18,
    Buffer.from(
      new Date(at)
        .toISOString()
        .replace(/[-:T]/g, '')
        .replace(/\.\d+Z$/, 'Z'),
    ),
  );

const ECDSA_SHA256 = oid('2a8648ce3d040302');
const COMMON_NAME = oid('550403');
const ALTERNATIVE_NAMES = oid('551d11');
const BASIC_CONSTRAINTS = oid('551d13');

/** Returns a certificate and its key. @param names the DNS names or IPv4 addresses of the certificate */
export function certificate(names: readonly string[], validUntil = Date.now() + DAY_MS): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from('a test receiver')))));
  const alternatives = names.map((text) =>
    /^[\d.]+$/.test(text) ? der(0x87, Buffer.from(text.split('.').map(Number))) : der(0x82, Buffer.from(text)),
  );
  const extensions = sequence(
    sequence(BASIC_CONSTRAINTS, der(0x01, Buffer.of(255)), der(0x04, sequence(der(0x01, Buffer.of(255))))),
    sequence(ALTERNATIVE_NAMES, der(0x04, sequence(...alternatives))),
  );
  const content = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1)),
    sequence(ECDSA_SHA256),
    name,
    sequence(time(validUntil - 10 * DAY_MS), time(validUntil)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const signature = sign('sha256', content, privateKey);
  const whole = sequence(content, sequence(ECDSA_SHA256), der(0x03, Buffer.of(0), signature));
  const lines = whole.toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}
