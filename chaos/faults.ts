/** What goes wrong at a wholesaler: a body for its simulator's control endpoint. Counted faults are about the next calls. */
export interface ProviderFault {
  readonly name: string;
  readonly provider: 'esimAccess' | 'zendit';
  readonly control: object;
}

const ofEsimAccess = (name: string, faults: object): ProviderFault => ({
  name: `esim_access ${name}`,
  provider: 'esimAccess',
  control: { faults },
});
const ofZendit = (name: string, control: object): ProviderFault => ({
  name: `zendit ${name}`,
  provider: 'zendit',
  control,
});

/** Longer than the service waits for an answer, shorter than its read lag. */
const TOO_SLOW_MS = 2_500;
/** Shorter than the service's read lag. */
const LAG_MS = 700;

export const PROVIDER_FAULTS: readonly ProviderFault[] = [
  ofEsimAccess('loses answers', { dropAfterCommit: 5 }),
  ofEsimAccess('loses orders', { dropBeforeCommit: 5 }),
  ofEsimAccess('is busy', { busy: 8 }),
  ofEsimAccess('talks HTML', { garbage: 4, garbageKind: 'html' }),
  ofEsimAccess('sends wrong types', { garbage: 3, garbageKind: 'wrong_types' }),
  ofEsimAccess('cuts answers', { garbage: 3, garbageKind: 'cut' }),
  ofEsimAccess('is too slow', { slow: 4, slowMs: TOO_SLOW_MS }),
  ofEsimAccess('allocates slowly', { allocatingLooks: 2 }),
  ofEsimAccess('denies what it has sold', { hiddenLooks: 1 }),
  ofEsimAccess('is sold out', { stock: 2 }),
  ofEsimAccess('has moved its price', { refuse: { path: 'esim/order', code: '200005', count: 2, after: 0 } }),
  ofZendit('loses answers', { dropAfterCommit: 5 }),
  ofZendit('loses orders', { dropBeforeCommit: 5 }),
  ofZendit('is busy', { busy: 8 }),
  ofZendit('is away', { unavailable: 8 }),
  ofZendit('is away after it has sold', { unavailableAfterCommit: 4 }),
  ofZendit('talks HTML', { badAnswer: 'html', badAnswers: 4, badAnswersTakeEffect: true }),
  ofZendit('sends another shape', { badAnswer: 'wrongShape', badAnswers: 3, badAnswersTakeEffect: false }),
  ofZendit('takes its time', { looks: 3 }),
  ofZendit('denies what it has sold', { readLagMs: LAG_MS }),
  ofZendit('fails some', { outcomes: [null, 'OUT_OF_STOCK', null, 'PROVIDER_ERROR'] }),
  ofZendit('has moved its price', { outcomes: ['PRICE_CHANGED', null, 'PRICE_CHANGED'] }),
  ofZendit('is sold out', { outOfStock: true }),
];

/** Puts every switch back. */
export const PROVIDERS_CALM: readonly ProviderFault[] = [
  ofEsimAccess('is well', {
    ...{ dropAfterCommit: 0, dropBeforeCommit: 0, busy: 0, garbage: 0, slow: 0, slowMs: 0 },
    ...{ allocatingLooks: 0, hiddenLooks: 0, stock: null, refuse: null },
  }),
  ofZendit('is well', { reset: true }),
];
