// Contract 1, "Custom runtimes": the address of an app's web server, and its kept connections.
import type http from 'node:http';
import https from 'node:https';
import type { ListenerGuard } from './listener-guard.ts';
import { PatientAgent } from './patient-agent.ts';

/** Closes idle connections before a server does: gunicorn closes idle connections after 2 s, uvicorn and Node after 5 s. */
const IDLE_MS = 1_000;

/** A server's address, and the connections for its requests. */
export interface ServerAddress {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** The value of `Host`. */
  readonly authority: string;
  /** Precedes every path. Empty, or begins with a slash. */
  readonly prefix: string;
  /** The address as text for errors. */
  readonly name: string;
  readonly agent: http.Agent;
  /** Opens a connection for each request. */
  readonly unkept: http.Agent;
  /** Set for a server that the worker started. */
  readonly guard: ListenerGuard | undefined;
}

const agentOptions: http.AgentOptions = {
  keepAlive: true,
  timeout: IDLE_MS,
  scheduling: 'lifo',
};

/** Returns the address of a server on this machine. @param host the loopback address of the server @param guard checks its listening sockets */
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

/** @param url scheme, host, port and path without a slash at the end (deployments/custom-server) */
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
