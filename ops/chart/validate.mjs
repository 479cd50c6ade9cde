// Runs helm lint and checks every rendered manifest against the Kubernetes schemas, with unknown fields rejected. The
// schemas are derived offline from Kubernetes' own OpenAPI document (the Go module k8s.io/kubernetes).
// `node ops/chart/validate.mjs`; `--install` first installs the programs with `go install`. If a program is missing,
// prints which one and exits with 0.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const HELM = 'helm.sh/helm/v4/cmd/helm@v4.3.1';
const KUBECONFORM = 'github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0';
const KUBERNETES = 'k8s.io/kubernetes@v1.36.3';
const chart = import.meta.dirname;
/** Values that enable every feature, in addition to the defaults. */
const EVERYTHING = [
  ...['worker.keda.enabled=true', 'webhooks.keda.enabled=true', 'worker.callbacks.enabled=true'],
  ...['settings.TRUST_PROXY=1', 'liveProviders={esim_access,zendit}', 'api.existingSecret=partner-esim-api'],
  'privateCa.configMap=private-ca',
  'tracing.endpoint=http://collector.monitoring:4318',
  `image.digest=sha256:${'0'.repeat(64)}`,
];
/** Kinds of custom resources, whose schemas only their operators have. */
const FOREIGN_KINDS = 'ScaledObject';

const go = (...args) => execFileSync('go', args, { encoding: 'utf8', cwd: tmpdir() }).trim();

if (process.argv.includes('--install')) {
  for (const program of [KUBECONFORM, HELM]) go('install', program);
  go('mod', 'download', KUBERNETES);
}
const [helm, kubeconform] = ['helm', 'kubeconform'].map(find);
const swagger = findSwagger();
const missing = Object.entries({ helm, kubeconform, [KUBERNETES]: swagger }).filter(
  ([, found]) => found === null,
);
if (missing.length > 0) {
  console.log(
    `not checked: ${missing.map(([name]) => name).join(', ')} not found (node ops/chart/validate.mjs --install)`,
  );
  process.exit(0);
}

const place = mkdtempSync(path.join(tmpdir(), 'esim-chart-'));
try {
  const schemas = writeSchemas(path.join(place, 'schemas'));
  console.log(run(helm, ['lint', '--strict', chart]));
  for (const values of [[], EVERYTHING]) {
    const sets = values.flatMap((value) => ['--set', value]);
    const manifests = run(helm, ['template', 'esim', chart, '--namespace', 'esim', ...sets]);
    const location = path.join(schemas, '{{ .ResourceKind }}{{ .KindSuffix }}.json');
    const options = ['-strict', '-summary', '-skip', FOREIGN_KINDS, '-schema-location', location];
    console.log(run(kubeconform, [...options, '-'], manifests).trim());
  }
  refuses('settings.DATABASE_URL=postgres://x', 'a secret among the settings');
  refuses('api.replicas=two', 'a number that is not numeric');
  refuses('worker.concurrency=5', 'an unknown value');
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(place, { recursive: true, force: true });
}

function run(program, args, input) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', input });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

/** Checks that the values schema rejects a value. */
function refuses(value, what) {
  const { status } = spawnSync(helm, ['template', 'esim', chart, '--set', value], { encoding: 'utf8' });
  if (status === 0) throw new Error(`the values schema accepts ${what}: ${value}`);
  console.log(`rejected: ${what}`);
}

function find(name) {
  if (spawnSync(name, ['version']).error === undefined || spawnSync(name, ['-v']).error === undefined)
    return name;
  const installed = [
    process.env.GOBIN,
    spawnSync('go', ['env', 'GOPATH'], { encoding: 'utf8' }).stdout?.trim() + '/bin',
  ]
    .filter(Boolean)
    .map((folder) => path.join(folder, name));
  return installed.find((file) => existsSync(file)) ?? null;
}

function findSwagger() {
  const cache = spawnSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).stdout?.trim();
  const file = path.join(cache || '/nowhere', KUBERNETES, 'api/openapi-spec/swagger.json');
  return existsSync(file) ? file : null;
}

/** Writes one schema per kind, with the file name that kubeconform expects. */
function writeSchemas(folder) {
  mkdirSync(folder, { recursive: true });
  const { definitions } = JSON.parse(readFileSync(swagger, 'utf8'));
  for (const [name, definition] of Object.entries(definitions)) tighten(name, definition);
  for (const [name, definition] of Object.entries(definitions))
    for (const { group, version, kind } of definition['x-kubernetes-group-version-kind'] ?? []) {
      if (
        ![
          'Deployment',
          'Service',
          'Job',
          'NetworkPolicy',
          'PodDisruptionBudget',
          'HorizontalPodAutoscaler',
        ].includes(kind)
      )
        continue;
      const suffix = [group.split('.')[0], version].filter(Boolean).join('-');
      const schema = { $ref: `#/definitions/${name}`, definitions };
      writeFileSync(path.join(folder, `${kind.toLowerCase()}-${suffix}.json`), JSON.stringify(schema));
    }
  return folder;
}

/** Makes unknown fields errors, like the API server's strict field validation. */
function tighten(name, definition) {
  if (definition.properties && definition.additionalProperties === undefined)
    definition.additionalProperties = false;
  if (definition.format === 'int-or-string' || name.endsWith('.Quantity')) {
    delete definition.format;
    definition.type = ['string', 'number'];
  }
}
