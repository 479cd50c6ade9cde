import { ESIM_ACCESS_ANSWERS, ESIM_ACCESS_CALM } from './esim-access-answers.js';

/** A provider fault, as a body for the simulator's control endpoint. Counts apply to the next calls. */
export interface Fault {
  readonly provider: 'esimAccess' | 'zendit';
  readonly control: object;
}

const ofEsimAccess = (faults: object): Fault => ({ provider: 'esimAccess', control: { faults } });
const ofZendit = (control: object): Fault => ({ provider: 'zendit', control });

/** Longer than the service's timeout, shorter than its PROVIDER_READ_LAG_MS. */
const TOO_SLOW_MS = 2_500;
/** Shorter than the service's PROVIDER_READ_LAG_MS. */
const LAG_MS = 700;

/** Responses that Zendit's official SDKs and recordings allow, and that its simulator does not send by default. */
const RECORDED_OF_ZENDIT: Readonly<Record<string, Fault>> = {
  zenditHidesRefunds: ofZendit({ refundInPurchase: false }),
  zenditKnowsNoRefund: ofZendit({ noRefundStatus: 400 }),
  zenditHidesRefundsAndKnowsNone: ofZendit({ refundInPurchase: false, noRefundStatus: 400 }),
  zenditRefusesIccids: ofZendit({ unknownIccidStatus: 400 }),
  zenditBreaksOnIccids: ofZendit({ unknownIccidStatus: 500 }),
  zenditRefusesOffers: ofZendit({ unknownOfferStatus: 400 }),
  zenditConfirmsNothing: ofZendit({ topupConfirmation: 'absent' }),
  zenditConfirmsEmptily: ofZendit({ topupConfirmation: 'empty' }),
  zenditListsNoEndedPlans: ofZendit({ endedPlansLeave: true }),
  zenditTakesFees: ofZendit({ purchaseFee: 15 }),
  zenditTakesFeesBeside: ofZendit({ purchaseFee: 15, feeBesideCost: true }),
  zenditCodesInNumbers: ofZendit({ numericCodes: true, outcomes: ['OUT_OF_STOCK'] }),
};

/** All faults that a scenario may cause at a provider, by name. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  ...Object.fromEntries(
    Object.entries(ESIM_ACCESS_ANSWERS).map(([name, faults]) => [name, ofEsimAccess(faults)]),
  ),
  ...RECORDED_OF_ZENDIT,
  accessLosesAnswers: ofEsimAccess({ dropAfterCommit: 2 }),
  accessLosesOrders: ofEsimAccess({ dropBeforeCommit: 2 }),
  accessBusy: ofEsimAccess({ busy: 3 }),
  accessTalksHtml: ofEsimAccess({ garbage: 2, garbageKind: 'html' }),
  accessWrongTypes: ofEsimAccess({ garbage: 1, garbageKind: 'wrong_types' }),
  accessCutAnswers: ofEsimAccess({ garbage: 1, garbageKind: 'cut' }),
  accessSlow: ofEsimAccess({ slow: 1, slowMs: TOO_SLOW_MS }),
  accessAllocates: ofEsimAccess({ allocatingLooks: 2 }),
  accessLags: ofEsimAccess({ hiddenLooks: 1 }),
  accessSoldOut: ofEsimAccess({ stock: 2 }),
  accessRefusesCancels: ofEsimAccess({
    refuse: { path: 'esim/cancel', code: '200002', count: 2, after: 1 },
  }),
  accessPriceMoved: ofEsimAccess({ refuse: { path: 'esim/order', code: '200005', count: 2, after: 0 } }),
  accessTopupPriceMoved: ofEsimAccess({ refuse: { path: 'esim/topup', code: '200006', count: 1, after: 0 } }),
  zenditLosesAnswers: ofZendit({ dropAfterCommit: 2 }),
  zenditLosesOrders: ofZendit({ dropBeforeCommit: 2 }),
  zenditBusy: ofZendit({ busy: 3 }),
  zenditAway: ofZendit({ unavailable: 2 }),
  zenditAwayAfterwards: ofZendit({ unavailableAfterCommit: 2 }),
  zenditTalksHtml: ofZendit({ badAnswer: 'html', badAnswers: 2, badAnswersTakeEffect: true }),
  zenditWrongShape: ofZendit({ badAnswer: 'wrongShape', badAnswers: 1, badAnswersTakeEffect: false }),
  zenditTakesTime: ofZendit({ looks: 3 }),
  zenditLags: ofZendit({ readLagMs: LAG_MS }),
  zenditFailsSome: ofZendit({ outcomes: [null, 'OUT_OF_STOCK', null, 'PROVIDER_ERROR'] }),
  zenditPriceMoved: ofZendit({ outcomes: ['PRICE_CHANGED', null, 'PRICE_CHANGED'] }),
  zenditSoldOut: ofZendit({ outOfStock: true }),
  zenditRefusesRefunds: ofZendit({ refundOutcome: 'REFUND_NOT_ALLOWED' }),
};

/** Resets all faults. */
export const CALM: readonly Fault[] = [
  ofEsimAccess({
    ...{ dropAfterCommit: 0, dropBeforeCommit: 0, busy: 0, garbage: 0, slow: 0, slowMs: 0 },
    ...{ allocatingLooks: 0, hiddenLooks: 0, stock: null, refuse: null },
    ...ESIM_ACCESS_CALM,
  }),
  ofZendit({ reset: true }),
];
