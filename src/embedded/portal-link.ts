import { existsSync, readFileSync } from 'node:fs';
import { AdminClient, makePortalLink } from './demo.js';
import { openDataDirectory } from './development-settings.js';
import { shellWord } from './banner.js';

/** Prints a new sign-in link to the portal of a running `npm start`: `npm run portal`. */
async function printPortalLink(): Promise<void> {
  const { demoFile } = openDataDirectory(process.env);
  const text = existsSync(demoFile) ? readFileSync(demoFile, 'utf8') : '';
  const valueOf = (name: string): string =>
    new RegExp(`^export ${name}=(.+)$`, 'm').exec(text)?.[1] ?? fail(`${shellWord(demoFile)} has no ${name}`);
  const admin = new AdminClient(valueOf('ESIM_ADMIN_URL'), valueOf('ESIM_ADMIN_TOKEN'));
  try {
    console.log(await makePortalLink(admin, valueOf('ESIM_PARTNER_ID')));
  } catch (error) {
    fail(`the admin API did not create a link (${(error as Error).message})`);
  }
}

function fail(why: string): never {
  console.error(`${why}. Start the service with npm start, then run npm run portal again`);
  process.exit(1);
}

await printPortalLink();
