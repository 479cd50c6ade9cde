// Writes what docs/ has that follows from something else: the reference page, the Postman collection, the table of
// errors, the verifiers as files, and what the bench measured of an order's life and of an idle listen as a picture and
// tables. `npm run docs` writes them; `-- --check` compares, and names what is old.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { capacityTable } from './docs/capacity-table.mjs';
import { renderErrorsPage } from './docs/errors-page.mjs';
import { renderLatencyChart } from './docs/latency-chart.mjs';
import { lifeTable } from './docs/life-table.mjs';
import { listenTable } from './docs/listen-table.mjs';
import { withMeasured } from './docs/measured-block.mjs';
import { OpenApi } from './docs/open-api.mjs';
import { renderPostmanCollection } from './docs/postman.mjs';
import { renderReference } from './docs/reference-page.mjs';
import { verifierFiles } from './docs/verifier-files.mjs';

const docs = path.resolve(import.meta.dirname, '../docs');
const read = (name) => readFileSync(path.join(docs, name), 'utf8');

const api = new OpenApi(JSON.parse(read('openapi/partner.json')));
const life = JSON.parse(read('measured/life.json'));
const outputs = {
  'errors.md': renderErrorsPage(api),
  'reference/index.html': renderReference(api),
  'postman.json': renderPostmanCollection(api),
  'images/latency-against-load.svg': renderLatencyChart(life),
  'performance.md': withMeasured(
    withMeasured(read('performance.md'), 'life.json', lifeTable(life)),
    'listen.json',
    listenTable(JSON.parse(read('measured/listen.json'))),
  ),
  'capacity.md': withMeasured(
    read('capacity.md'),
    'capacity',
    capacityTable(
      life,
      JSON.parse(read('measured/catalog.json')),
      JSON.parse(read('measured/webhooks.json')),
    ),
  ),
  ...verifierFiles(read('webhooks.md')),
};

function isCurrent(name, text) {
  try {
    return read(name) === text;
  } catch {
    return false;
  }
}

const old = Object.entries(outputs).filter(([name, text]) => !isCurrent(name, text));
if (process.argv.includes('--check')) {
  for (const [name] of old) console.error(`docs/${name} is not what \`npm run docs\` writes`);
  process.exitCode = old.length > 0 ? 1 : 0;
} else {
  for (const [name, text] of old) {
    mkdirSync(path.dirname(path.join(docs, name)), { recursive: true });
    writeFileSync(path.join(docs, name), text);
    console.log(`wrote docs/${name}`);
  }
}
