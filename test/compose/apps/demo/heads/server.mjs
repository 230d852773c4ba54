import { createServer } from 'node:http';

createServer(({ headers }, answer) => {
  answer.setHeader('content-type', 'application/json').end(JSON.stringify(headers));
}).listen(Number(process.env.PORT), '127.0.0.1');
