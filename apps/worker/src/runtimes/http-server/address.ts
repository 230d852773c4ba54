// runtimes: where an app's own web server is, and how many connections to it are kept.
import type http from 'node:http';
import https from 'node:https';
import type { ListenerGuard } from './listener-guard.ts';
import { PatientAgent } from './patient-agent.ts';

/** A connection without a request is closed before a server that closes them, too, would: gunicorn does after 2 s, uvicorn and Node after 5 s. */
const IDLE_MS = 1_000;

/** Where requests go, and over which connections. */
export interface ServerAddress {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** What `Host` says. */
  readonly authority: string;
  /** Put before every path; '' or begins with a slash. */
  readonly prefix: string;
  /** In words, for errors. */
  readonly name: string;
  readonly agent: http.Agent;
  /** Opens a connection for each request. */
  readonly unkept: http.Agent;
  /** Of a server that the worker started. */
  readonly guard: ListenerGuard | undefined;
}

const agentOptions: http.AgentOptions = {
  keepAlive: true,
  timeout: IDLE_MS,
  scheduling: 'lifo',
};

/** A server on this machine. @param host the loopback address it was found at @param guard of its listening sockets */
export const localAddress = (host: string, port: number, guard: ListenerGuard): ServerAddress => ({
  secure: false,
  host,
  port,
  authority: `localhost:${port}`,
  prefix: '',
  name: `the server on port ${port}`,
  agent: new PatientAgent(agentOptions, guard),
  unkept: new PatientAgent({}, guard),
  guard,
});

/** @param url scheme, host, port and path, which does not end in a slash (deployments/custom-server) */
export function remoteAddress(url: string): ServerAddress {
  const { protocol, hostname, host, port, pathname } = new URL(url);
  const secure = protocol === 'https:';
  return {
    secure,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (secure ? 443 : 80) : Number(port),
    authority: host,
    prefix: pathname === '/' ? '' : pathname,
    name: url,
    agent: secure ? new https.Agent(agentOptions) : new PatientAgent(agentOptions),
    unkept: secure ? new https.Agent() : new PatientAgent({}),
    guard: undefined,
  };
}
