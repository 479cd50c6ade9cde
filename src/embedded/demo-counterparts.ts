import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { PACKAGE_ROOT } from '../infra/package-root.js';
import { verifyWebhookSignature } from '../webhooks/index.js';

/** The simulated wholesaler of the embedded start: a separate process on loopback that sells nothing real. */
export interface WholesalerSimulator {
  /** `ESIM_ACCESS_*` for the service. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Not part of the production image. */
const PROGRAM = path.join(PACKAGE_ROOT.folder, 'simulators/esim-access/main.ts');
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 1_000;

/** Null when the simulator is not installed, or when a real wholesaler is configured. */
export async function startWholesalerSimulator(
  env: NodeJS.ProcessEnv,
  stateFile: string,
): Promise<WholesalerSimulator | null> {
  if (env['ESIM_ACCESS_CODE'] || env['ZENDIT_API_KEY'] || !existsSync(PROGRAM)) return null;
  const [accessCode, signingKey] = [randomBytes(16).toString('hex'), randomBytes(24).toString('hex')];
  const child = spawn(
    process.execPath,
    [PROGRAM, '--port', '0', '--state', stateFile, '--until-stdin-ends'],
    {
      // The simulator exits when its standard input closes, even after a SIGKILL of this process.
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], SIM_ACCESS_CODE: accessCode, SIM_SIGNING_KEY: signingKey },
    },
  );
  const port = await readPort(child);
  return {
    env: {
      ESIM_ACCESS_BASE_URL: `http://127.0.0.1:${port}`,
      ESIM_ACCESS_CODE: accessCode,
      ESIM_ACCESS_SECRET: signingKey,
    },
    close: () => stop(child),
  };
}

async function readPort(child: ChildProcess): Promise<number> {
  const lines = createInterface({ input: child.stdout! });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error('the wholesaler simulator did not start')),
      START_TIMEOUT_MS,
    );
    child.once('exit', (code) => reject(new Error(`the wholesaler simulator exited with ${code}`)));
    lines.once('line', (line) => {
      clearTimeout(timer);
      resolve((JSON.parse(line) as { port: number }).port);
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.stdin!.end();
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(timer);
}

export interface WebhookReceiver {
  readonly url: string;
  /** Known only after the endpoint has been registered. */
  setSecret(secret: string): void;
  close(): Promise<void>;
}

/** A receiver as a partner would write it: verifies the signature over the raw body, responds, prints. */
export async function startWebhookReceiver(
  known: { port?: number; secret: string } | null,
  print: (line: string) => void,
): Promise<WebhookReceiver> {
  let secret = known?.secret ?? '';
  const server = createServer((request, response) => {
    receive(request, () => secret).then(
      ({ status, line }) => {
        print(line);
        response.writeHead(status).end();
      },
      () => response.writeHead(400).end(),
    );
  });
  await listen(server, known?.port ?? 0);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`,
    setSecret: (value) => (secret = value),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.resolve();
    },
  };
}

/** Uses the port of the last start, where pending deliveries go, or a free one when it is taken. */
async function listen(server: Server, port: number): Promise<void> {
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    if (port === 0) throw error;
    await listen(server, 0);
  }
}

async function receive(
  request: IncomingMessage,
  secret: () => string,
): Promise<{ status: number; line: string }> {
  const body = await text(request);
  const header = request.headers['x-service-signature'];
  const valid = typeof header === 'string' && verifyWebhookSignature({ header, body, secret: secret() });
  if (!valid) return { status: 400, line: 'webhook REJECTED: the signature does not match' };
  const event = JSON.parse(body) as { id: string; type: string; data: unknown };
  return {
    status: 200,
    line: `webhook  ${event.type}  signature ok  ${event.id}  ${JSON.stringify(event.data)}`,
  };
}
