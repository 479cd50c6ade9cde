import { Cleanups } from './cleanups.js';
import { type BenchOptions, WEBHOOK_PARTS, type WebhookPartName } from './options.js';
import type { Section } from './report/report.js';
import { DatabaseServer } from './service/database-server.js';
import { backlog } from './webhooks/backlog.js';
import { hanging } from './webhooks/hanging.js';
import { history } from './webhooks/history.js';
import { latency } from './webhooks/latency.js';
import type { WebhookPart } from './webhooks/part.js';
import { statements } from './webhooks/statements.js';
import { STATEMENT_SETTINGS } from './webhooks/statement-counts.js';
import { throughput } from './webhooks/throughput.js';

const PARTS: Readonly<Record<WebhookPartName, WebhookPart>> = {
  throughput,
  latency,
  statements,
  hanging,
  backlog,
  history,
};

const SETTINGS_NOTE =
  'Settings: WEBHOOK_ALLOW_PRIVATE_TARGETS=true (loopback, http), all else default; no Redis; PostgreSQL durable.';

/** Each part on a server of its own, so that none works in what another has left. */
export async function benchWebhooks(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const sections: Section[] = [];
  for (const name of options.part === null ? WEBHOOK_PARTS : [options.part]) {
    const own = cleanups.stopping(new PartCleanups());
    try {
      const server = own.stopping(await DatabaseServer.start(STATEMENT_SETTINGS));
      const section = await PARTS[name](server, options, own);
      sections.push({ ...section, notes: [SETTINGS_NOTE, ...section.notes] });
    } finally {
      await own.run();
    }
  }
  return sections;
}

/** What one part has started; Ctrl-C ends it too. */
class PartCleanups extends Cleanups {
  stop(): Promise<void> {
    return this.run();
  }
}
