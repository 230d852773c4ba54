// The text of a started stack: an address, a token, a link to the console, and two commands to paste.
import { RECEIVER_SECRET } from './services.ts';
import { signToken } from './tokens.ts';

const DAY_S = 86_400;

export interface Ready {
  /** The gateway's URL, without a slash at the end. */
  readonly url: string;
  readonly jwtSecret: string;
  /** Whether the gateway serves `/console`. */
  readonly hasConsole: boolean;
  readonly receiverPort: number;
  readonly dataDir: string;
  readonly tookMs: number;
}

/** Returns the text. Each command is complete and can be pasted alone. */
export function banner({ url, jwtSecret, hasConsole, receiverPort, dataDir, tookMs }: Ready): string {
  const token = signToken(jwtSecret, { project: 'demo', ttlS: DAY_S });
  // Browsers do not send the part behind `#`, so no log and no proxy has the token.
  const page = hasConsole ? `\n  Console ${url}/console#token=${token}` : '';
  const call = `${url}/v4/demo/hello/run`;
  const endpoint = encodeURIComponent(`http://127.0.0.1:${receiverPort}/`);
  const headers = `-H "Authorization: Bearer ${token}" -H "Content-Type: application/json"`;
  return `
Ready in ${(tookMs / 1000).toFixed(1)} s.  Ctrl-C stops everything; data is kept in ${dataDir}

  URL     ${url}${page}
  Token   ${token}
          (for the project demo, valid for a day; new token: npm run --silent token -- --project demo)

Stream the items of a Python generator (examples/demo/hello/main.py), one event a second:

curl -N -X POST "${call}" ${headers} -H "Accept: text/event-stream" -d '{"upper_range": 5}'

Send the answer to a webhook, signed. The receiver's lines below show the delivery:

curl -X POST "${call}?webhookEndpoint=${endpoint}" ${headers} -H "X-Webhook-Secret: ${RECEIVER_SECRET}" -d '{"upper_range": 2}'
`;
}
