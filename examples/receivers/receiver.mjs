// A webhook receiver: verifies the signature, ignores repeats, prints each delivery. Uses Node's standard library only.
//
//   SECRET=my-secret HOST=127.0.0.1 PORT=8090 node receiver.mjs
//
// SECRET is the value that the caller sent as X-Webhook-Secret.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const { SECRET = '', HOST = '127.0.0.1', PORT = '8090' } = process.env;
const LARGEST_BODY = 64 * 1024 * 1024;
// An attacker may have recorded an old request and may send it again.
const TOLERANCE_S = 300;

// A delivery is repeated with the same id if its answer was lost. This set forgets the oldest ids. In production, keep ids in your database.
const seen = new Set();
const REMEMBERED = 10_000;

/** X-Service-Webhook-Signature is `v1,` + hex HMAC-SHA256 of `<request id>.<timestamp>.<body>`, over the received bytes of the body. */
function isGenuine(headers, body) {
  const timestamp = headers['x-service-webhook-timestamp'] ?? '';
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_S)) return false;
  const digest = createHmac('sha256', SECRET)
    .update(`${headers['x-request-id']}.${timestamp}.`)
    .update(body)
    .digest('hex');
  const expected = Buffer.from(`v1,${digest}`);
  const given = Buffer.from(headers['x-service-webhook-signature'] ?? '');
  // In constant time, so that the duration of the comparison reveals nothing about the signature.
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Returns true the first time a delivery arrives. */
function isNew(id) {
  if (seen.has(id)) return false;
  seen.add(id);
  if (seen.size > REMEMBERED) seen.delete(seen.values().next().value);
  return true;
}

async function bodyOf(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > LARGEST_BODY) throw new Error('body too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function receive(request) {
  if (request.method !== 'POST') return 405;
  const body = await bodyOf(request);
  const id = request.headers['webhook-id'];
  if (!isGenuine(request.headers, body)) {
    console.log(`refused ${id}: the signature is missing, wrong or too old`);
    return 401;
  }
  if (isNew(id)) console.log(`verified ${id}: ${body}`);
  else console.log(`repeated ${id}: already handled`);
  return 204;
}

const server = createServer(async (request, response) => {
  const status = await receive(request).catch(() => 400);
  response.writeHead(status).end();
});

server.listen(Number(PORT), HOST, () => console.log(`listening on http://${HOST}:${server.address().port}/`));
server.on('error', (error) => {
  console.error(`cannot listen: ${error.message}`);
  process.exit(1);
});
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    server.close(() => process.exit(0));
    server.closeAllConnections();
  });
}
