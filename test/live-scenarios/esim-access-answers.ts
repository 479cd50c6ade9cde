import type { FaultsCommand } from '../../simulators/esim-access/faults.js';

/**
 * Responses of eSIM Access that were recorded or that clients have seen, as faults for its control endpoint. Those
 * under `topups` apply to every top-up until they are reset, except `lostAnswer`, which is a count.
 */
export const ESIM_ACCESS_ANSWERS: Readonly<Record<string, FaultsCommand>> = {
  accessTopupOtherId: { topups: { otherId: true } },
  accessTopupNoId: { topups: { noId: true } },
  accessTopupOrderId: { topups: { orderId: true } },
  accessTopupBaseCode: { topups: { baseCodeWithoutId: true } },
  // Longer than a response takes, shorter than the service's PROVIDER_READ_LAG_MS.
  accessTopupLateEntry: { topups: { lateEntry: 700 } },
  accessTopupLostAnswer: { topups: { lostAnswer: 1 } },
  accessTopupLostOtherId: { topups: { lostAnswer: 1, otherId: true } },
  accessTopupLostNoId: { topups: { lostAnswer: 1, noId: true } },
  accessTopupLostOrderId: { topups: { lostAnswer: 1, orderId: true } },
  accessTopupLostBaseCode: { topups: { lostAnswer: 1, baseCodeWithoutId: true } },
  accessTopupLostLateOtherId: { topups: { lostAnswer: 1, lateEntry: 700, otherId: true } },
  accessTopupNumbered: { topups: { numberedEntry: true } },
  accessTopupRefusesRepeats: { topups: { refuseRepeats: true } },
  accessTopupKnown: { refuse: { path: 'esim/topup', code: '310402', count: 1, after: 0 } },
  accessOrderKnown: { refuse: { path: 'esim/order', code: '310402', count: 1, after: 0 } },
  accessNumericCodes: { numericCodes: true },
  accessNumericPriceMoved: {
    numericCodes: true,
    refuse: { path: 'esim/order', code: '200005', count: 1, after: 0 },
  },
  accessNullUsageTimes: { nullUsageTimes: true },
  accessSparseFields: { emptyFupPolicy: true, ipExport: 'NL/FR' },
};

/** Resets them. */
export const ESIM_ACCESS_CALM: FaultsCommand = {
  ...{ topups: null, refuse: null, numericCodes: false },
  ...{ nullUsageTimes: false, emptyFupPolicy: false, ipExport: null },
};
