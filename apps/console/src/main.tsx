// The console: contract 6, `GET /console`. It uses only the public API, with the token of a person.
import './shell/base.css';
import './shell/frame.css';
import './components/parts.css';
import './components/controls.css';
import './components/lists.css';
import './runs/runs.css';
import './components/json-tree.css';
import './deliveries/deliveries.css';
import './try/try.css';
import './shell/narrow.css';
import { render } from 'preact';
import { takeToken } from './session/session.ts';
import { Console } from './shell/console.tsx';
import { readAddress } from './shell/route.ts';

const start = (): void => {
  takeToken();
  readAddress();
};

start();
// A second link with a token in an open tab changes only the fragment.
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#token=')) start();
});
render(<Console />, document.getElementById('console') as HTMLElement);
