/** The import direction of docs: main, apps, features, infra, common. A breach fails `npm run check` and `npm test`. */
const FEATURES =
  'auth|api-keys|partners|portal-sessions|audit|alerts|call-log|catalog|purchases|orders|esims|topups|wallet|providers|catalog-sync|support|esim-sync|reconciliation|restore|retention|events|webhooks';

/** Which features a feature may use; nobody uses webhooks, and webhooks uses only events (and who is calling, and what people are told). */
const MAY_USE = {
  auth: [],
  audit: ['auth'],
  alerts: ['auth'],
  partners: ['auth', 'audit'],
  'portal-sessions': ['auth', 'audit', 'partners'],
  'api-keys': ['auth', 'audit', 'alerts', 'partners'],
  'call-log': ['auth', 'partners', 'api-keys'],
  catalog: ['auth', 'audit', 'partners'],
  providers: ['catalog'],
  'catalog-sync': ['auth', 'audit', 'alerts', 'catalog', 'events', 'partners', 'providers'],
  events: ['auth', 'partners'],
  esims: ['auth', 'audit', 'catalog', 'partners', 'events', 'providers'],
  wallet: ['auth', 'audit', 'alerts', 'events', 'partners'],
  purchases: ['auth', 'providers'],
  orders: [
    'auth',
    'alerts',
    'catalog',
    'esims',
    'events',
    'partners',
    'providers',
    'purchases',
    'wallet',
    'catalog-sync',
  ],
  topups: [
    'auth',
    'catalog',
    'esims',
    'events',
    'partners',
    'providers',
    'purchases',
    'wallet',
    'catalog-sync',
  ],
  support: ['auth', 'audit', 'alerts', 'partners', 'esims', 'orders', 'topups', 'providers', 'purchases'],
  'esim-sync': ['esims', 'orders', 'topups', 'providers'],
  reconciliation: ['alerts', 'providers'],
  restore: ['catalog', 'events', 'providers', 'reconciliation'],
  retention: ['auth', 'alerts', 'catalog', 'catalog-sync', 'esims', 'orders', 'providers', 'topups'],
  webhooks: ['auth', 'audit', 'alerts', 'events', 'partners'],
};

const featureRules = Object.entries(MAY_USE).map(([feature, allowed]) => ({
  name: `${feature}-uses-only-what-it-may`,
  severity: 'error',
  from: { path: `^src/${feature}/` },
  to: { path: `^src/(${FEATURES})/`, pathNot: `^src/(${[feature, ...allowed].join('|')})/` },
}));

module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, pathNot: '^src/(main|migrate|openapi|reseal|routes)' },
      to: {},
    },
    {
      name: 'features-through-their-index',
      comment: 'A feature is reached through its index.ts only.',
      severity: 'error',
      from: { path: `^src/(${FEATURES})/` },
      to: { path: `^src/(${FEATURES})/`, pathNot: [`^src/$1/`, '/index\\.ts$'] },
    },
    {
      name: 'apps-through-index',
      severity: 'error',
      from: { path: '^src/apps/' },
      to: { path: `^src/(${FEATURES})/`, pathNot: '/index\\.ts$' },
    },
    {
      name: 'common-is-a-leaf',
      severity: 'error',
      from: { path: '^src/common/' },
      to: { path: '^(src|migrations)/', pathNot: '^src/common/' },
    },
    {
      name: 'common-without-frameworks',
      severity: 'error',
      from: { path: '^src/common/' },
      to: { path: 'node_modules/(@nestjs|typeorm|fastify|bullmq|pg)/' },
    },
    {
      name: 'infra-knows-no-feature',
      severity: 'error',
      from: { path: '^src/infra/' },
      to: { path: `^src/(${FEATURES}|apps)/` },
    },
    {
      name: 'config-knows-nobody',
      comment: 'But for infra/network, which only parses addresses.',
      severity: 'error',
      from: { path: '^src/config/' },
      to: { path: '^src/', pathNot: '^src/(config|common|infra/network)/' },
    },
    {
      name: 'only-mains-import-apps',
      comment: 'The embedded start is the main of a machine with nothing.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(apps/|embedded/|main|migrate|openapi|routes)' },
      to: { path: '^src/apps/' },
    },
    {
      name: 'only-main-imports-embedded',
      comment: 'A role that runs apart must not need what only `npm start` brings.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(embedded/|main\\.ts$)' },
      to: { path: '^src/embedded/' },
    },
    {
      name: 'embedded-postgres-knows-nobody',
      severity: 'error',
      from: { path: '^src/embedded/postgres/' },
      to: { path: '^(src|migrations)/', pathNot: '^src/embedded/postgres/' },
    },
    {
      name: 'embedded-uses-features-through-their-index',
      severity: 'error',
      from: { path: '^src/embedded/' },
      to: { path: `^src/(${FEATURES})/`, pathNot: '/index\\.ts$' },
    },
    {
      name: 'edges-do-not-reach-tables',
      comment: 'Controllers and processors translate; repositories and entities belong to use cases.',
      severity: 'error',
      from: { path: '^src/[^/]+/(api|admin|portal|worker)/.*\\.(controller|processor)\\.ts$' },
      to: { path: '(\\.entity|/orders/order|/topups/topup)\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'one-role-does-not-import-another',
      severity: 'error',
      from: { path: '^src/([^/]+)/(api|admin|portal|worker)/' },
      to: {
        path: '^src/$1/(api|admin|portal|worker)/',
        pathNot: ['^src/$1/$2/', '\\.(dto|response)\\.ts$', '\\.controller\\.ts$'],
      },
    },
    {
      name: 'src-without-tests',
      severity: 'error',
      from: { path: '^(src|migrations)/' },
      to: { path: '^(test|bench)/' },
    },
    {
      name: 'opentelemetry-in-its-folder',
      comment: 'A process without an endpoint for traces loads nothing of it.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/infra/tracing/otlp/' },
      to: { path: 'node_modules/@opentelemetry/' },
    },
    {
      name: 'opentelemetry-on-demand',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/infra/tracing/otlp/' },
      to: { path: '^src/infra/tracing/otlp/', dynamic: false },
    },
    {
      name: 'migrations-only-typeorm',
      severity: 'error',
      from: { path: '^migrations/' },
      to: { pathNot: ['^migrations/', 'node_modules/typeorm/'] },
    },
  ].concat(featureRules),
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
      mainFields: ['main', 'types'],
    },
  },
};
