// Puts the roles and commands into dist/roles: our own code in one file and the libraries in another. A process that
// loads those two begins after 0.6 s of CPU time; with the 3,400 modules that they are made of, it takes 1.9 s.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ENTRIES = {
  main: 'src/main.ts',
  'main.api': 'src/main.api.ts',
  'main.admin': 'src/main.admin.ts',
  'main.portal': 'src/main.portal.ts',
  'main.worker': 'src/main.worker.ts',
  'main.reconcile': 'src/main.reconcile.ts',
  'main.restore-epoch': 'src/main.restore-epoch.ts',
  migrate: 'src/migrate.ts',
  reseal: 'src/reseal.ts',
};
/** A thread of its own shares nothing with its process, and needs one library of them all. */
const THREADS = { 'draw-qr-code.thread': 'src/esims/draw-qr-code.thread.ts' };

/** Loaded only where traces go somewhere (D53): the last group, as each takes along what its files import. */
const TRACES = /\/(node_modules\/@opentelemetry|src\/infra\/tracing\/otlp)\//;
/** All but that. prom-client needs the API of OpenTelemetry, which is small. */
const LIBRARIES = /\/node_modules\/(?!@opentelemetry\/(?!api\/))/;
/** All of ours but that and the entries: what such a file holds runs in every process. */
const SERVICE = /\/(src\/(?!infra\/tracing\/otlp\/)[^/]+|migrations)\//;

/** Libraries load these only where somebody installed them; we did not. */
const NOT_INSTALLED =
  /^(@fastify\/(multipart|view)|@nestjs\/(microservices|websockets|platform-(express|socket\.io))|@sap|@google-cloud|better-sqlite3|bufferutil|expo|hdb-pool|mongodb|msgpackr-extract|mssql|mysql2?|oracledb|pg-(native|query-stream|cloudflare)|react-native|redis|sql\.js|sqlite3|supports-color|ts-node|typeorm-aurora-data-api-driver|utf-8-validate)(\/|$)/;

/** Files of libraries that cost each start what this service has no use for. */
const REPLACED = {
  // Asks at run time for two classes that TypeORM 1 has no more, and loads the whole of TypeORM beside the one in
  // `libraries.js` for it: 0.2 s.
  '/@nestjs/typeorm/dist/common/typeorm-compat.js':
    'export const Connection = undefined;\nexport const AbstractRepository = undefined;\n',
  // Who called pino, which its transports alone ask for: Node.js reads the whole source map to tell. 0.05 s.
  '/pino/lib/caller.js': 'module.exports = () => undefined;\n',
};
const WITHOUT_WASTE = {
  name: 'without-waste',
  load: (id) => Object.entries(REPLACED).find(([file]) => id.endsWith(file))?.[1] ?? null,
};

/**
 * Bundles while the compiler reads the same sources, and keeps the bundles when `compiling` gives 0.
 * @throws Error when something cannot be resolved that no library says it can do without
 */
export async function bundleRoles(root, compiling) {
  const output = path.join(root, `dist/roles.${process.pid}`);
  try {
    await bundle(root, output, THREADS, {});
    await bundle(root, output, ENTRIES, {
      groups: [
        { name: 'libraries', test: LIBRARIES, priority: 3 },
        { name: 'service', test: SERVICE, priority: 2 },
        { name: 'traces', test: TRACES, priority: 1 },
      ],
    });
    dropMapsOfLibraries(output);
    if ((await compiling) !== 0) return;
    // A role that starts meanwhile finds the old files or the new ones.
    rmSync(path.join(root, 'dist/roles'), { recursive: true, force: true });
    renameSync(output, path.join(root, 'dist/roles'));
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

async function bundle(root, output, input, codeSplitting) {
  const { rolldown } = await import('rolldown');
  const build = await rolldown({
    cwd: root,
    input,
    platform: 'node',
    tsconfig: path.join(root, 'tsconfig.json'),
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    external: (id) => NOT_INSTALLED.test(id),
    plugins: [WITHOUT_WASTE],
    onLog: (_level, log) => {
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
    },
  });
  try {
    await build.write({
      dir: output,
      format: 'esm',
      // TypeORM and Nest know entities and providers by the names of their classes.
      keepNames: true,
      sourcemap: true,
      entryFileNames: '[name].js',
      chunkFileNames: '[name].js',
      codeSplitting,
    });
  } finally {
    await build.close();
  }
}

/** Node.js reads a map when it loads the file: that of the libraries is larger than they are, and shows nothing of ours. */
function dropMapsOfLibraries(folder) {
  rmSync(path.join(folder, 'libraries.js.map'));
  const file = path.join(folder, 'libraries.js');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'));
}
