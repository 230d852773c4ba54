// A webhook receiver: verifies the signature, drops repeats, prints what came. Node's standard library only.
//
//   SECRET=my-secret HOST=127.0.0.1 PORT=8090 node receiver.mjs
//
// SECRET is what the caller sent as X-Webhook-Secret.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const { SECRET = '', HOST = '127.0.0.1', PORT = '8090' } = process.env;
const LARGEST_BODY = 64 * 1024 * 1024;
// A signature of long ago may have been recorded and sent again by somebody else.
const TOLERANCE_S = 300;

// Deliveries are repeated when our answer got lost; their id stays the same. The oldest are forgotten: keep them in your database instead.
const seen = new Set();
const REMEMBERED = 10_000;

/** X-Service-Webhook-Signature is `v1,` + hex HMAC-SHA256 of `<request id>.<timestamp>.<body>`, over the body's bytes as they came. */
function isGenuine(headers, body) {
  const timestamp = headers['x-service-webhook-timestamp'] ?? '';
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_S)) return false;
  const digest = createHmac('sha256', SECRET)
    .update(`${headers['x-request-id']}.${timestamp}.`)
    .update(body)
    .digest('hex');
  const expected = Buffer.from(`v1,${digest}`);
  const given = Buffer.from(headers['x-service-webhook-signature'] ?? '');
  // In constant time: how long the comparison takes must not tell how much was right.
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** True the first time a delivery comes. */
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
