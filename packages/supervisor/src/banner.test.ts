// Contract 6, "Ports and pages": the text of `npm start` opens the console with a token that no server receives.
import { expect, test } from '@jest/globals';
import { banner } from './banner.ts';

const ready = {
  url: 'http://127.0.0.1:8080',
  jwtSecret: 'a key of at least thirty-two characters',
  hasConsole: true,
  receiverPort: 8090,
  dataDir: '/data',
  tookMs: 1500,
};

test('the link of the console has the token behind `#`', () => {
  const text = banner(ready);
  const [, token = ''] = /Token {3}(\S+)/.exec(text) ?? [];
  expect(token.split('.')).toHaveLength(3);
  expect(text).toContain(`Console ${ready.url}/console#token=${token}\n`);
});

test('without the console there is no link', () => {
  expect(banner({ ...ready, hasConsole: false })).not.toContain('/console');
});
