import { spawn } from 'node:child_process';
import type { Command } from '../command.js';
import { EXIT, usageError } from '../exit-codes.js';

/** Portal paths by page name. */
const PAGES: Readonly<Record<string, string>> = {
  portal: '/',
  'api-keys': '/developers/api-keys',
  webhooks: '/developers/webhooks',
  events: '/developers/events',
  requests: '/developers/requests',
  orders: '/orders',
  balance: '/balance',
};
const LOCAL_PORTAL = 'http://localhost:3004';

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

export const open: Command = {
  name: 'open',
  summary: 'open the portal in a browser',
  arguments: '[page]',
  details: `Pages: ${Object.keys(PAGES).join(', ')}. The portal's address comes from ESIM_PORTAL_URL (default: ${LOCAL_PORTAL}).`,
  options: { print: { type: 'boolean', help: 'print the address without opening it' } },
  examples: [
    { command: 'esim open webhooks', says: 'open your endpoints' },
    { command: 'esim open requests --print', says: 'print the address only' },
  ],
  run: (context, options, [page = 'portal']) => {
    const path = PAGES[page];
    if (path === undefined)
      throw usageError(`there is no page "${page}"`, `Pages: ${Object.keys(PAGES).join(', ')}.`);
    const portal = context.environment['ESIM_PORTAL_URL'] ?? LOCAL_PORTAL;
    if (!URL.canParse(portal) || !/^https?:/.test(portal))
      throw usageError(
        'ESIM_PORTAL_URL does not start with http:// or https://',
        'Set it to the address of the portal, for example https://portal.example.com.',
      );
    const url = new URL(path, portal).href;
    context.output.line(url);
    context.output.data({ url });
    if (!options.flag('print') && !context.output.json) launch(url);
    return Promise.resolve(EXIT.ok);
  },
};

/** Opens the browser if there is one. The address is already printed. */
function launch(url: string): void {
  const [command = 'xdg-open', ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  spawn(command, [...args, url], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref();
}
