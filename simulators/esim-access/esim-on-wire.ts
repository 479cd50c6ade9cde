import type { Faults } from './faults.ts';
import type { SimEsim, SimEsimPackage } from './ledger.ts';
import { wireTime } from './wire.ts';

const SMDP_HOST = 'rsp-eu.simulator.example.com';
const DAY_MS = 86_400_000;

type ShownAs = Pick<Faults, 'packageList' | 'topups' | 'emptyFupPolicy' | 'ipExport' | 'msisdn'>;

/** One eSIM in the format of `esim/query`. Top-ups in `hidden` are not visible yet. */
export function esimOnWire(
  esim: SimEsim,
  allocating: boolean,
  hidden: ReadonlySet<string>,
  shownAs: ShownAs,
): Record<string, unknown> {
  const { totalVolume, totalDuration, expiredTimeMs, packages } = seenOf(esim, hidden);
  return {
    esimTranNo: esim.esimTranNo,
    orderNo: esim.orderNo,
    transactionId: esim.transactionId,
    imsi: '454006109846571',
    iccid: allocating ? null : esim.iccid,
    smsStatus: esim.smsStatus,
    msisdn: shownAs.msisdn,
    ac: allocating ? null : `LPA:1$${SMDP_HOST}$${esim.matchingId}`,
    qrCodeUrl: `https://qr.simulator.example.com/${esim.esimTranNo}.png`,
    shortUrl: `https://p.simulator.example.com/${esim.esimTranNo}`,
    smdpStatus: esim.smdpStatus,
    eid: esim.eid,
    activeType: esim.activeType,
    dataType: esim.dataType,
    activateTime: timeOrNull(esim.activateTimeMs),
    expiredTime: wireTime(expiredTimeMs),
    installationTime: timeOrNull(esim.installationTimeMs),
    totalVolume,
    totalDuration,
    durationUnit: esim.durationUnit,
    orderUsage: esim.orderUsage,
    esimStatus: allocating ? 'GETTING_RESOURCE' : esim.esimStatus,
    pin: esim.pin,
    puk: esim.puk,
    apn: 'drei.at',
    ipExport: shownAs.ipExport ?? esim.ipExport,
    supportTopUpType: esim.supportTopUpType,
    fupPolicy: esim.fupPolicy || (shownAs.emptyFupPolicy ? '' : null),
    ...(shownAs.packageList === 'missing' ? {} : { packageList: packagesOnWire(packages, esim, shownAs) }),
  };
}

type Seen = Pick<SimEsim, 'totalVolume' | 'totalDuration' | 'expiredTimeMs' | 'packages'>;

/** The eSIM as it was before the purchases that this query does not see yet. */
export function seenOf(esim: SimEsim, hidden: ReadonlySet<string>): Seen {
  const isSeen = ({ transactionId, shownFromMs = 0 }: SimEsimPackage) =>
    !hidden.has(transactionId) && shownFromMs <= Date.now();
  const unseen = esim.packages.filter((bought) => !isSeen(bought));
  const days = sum(unseen.map((bought) => bought.duration));
  return {
    totalVolume: esim.totalVolume - sum(unseen.map(({ volume, addedVolume }) => addedVolume ?? volume)),
    totalDuration: esim.totalDuration - days,
    expiredTimeMs: esim.expiredTimeMs - days * DAY_MS,
    packages: esim.packages.filter(isSeen),
  };
}

function packagesOnWire(
  packages: readonly SimEsimPackage[],
  { esimTranNo }: SimEsim,
  { packageList, topups }: ShownAs,
): Record<string, unknown>[] {
  return packages.map((bought) => {
    const { transactionId, shownId, shownCode, topUpEsimTranNo } = bought;
    const { packageName, slug, duration, volume, locationCode, createTimeMs } = bought;
    const name = shownId === undefined ? transactionId : shownId;
    return {
      ...{ packageName, packageCode: shownCode ?? bought.packageCode, slug, duration, volume, locationCode },
      ...(packageList === 'unnamed' ? { transactionId: null } : name === null ? {} : { transactionId: name }),
      createTime: wireTime(createTimeMs),
      esimTranNo,
      ...(topups.numberedEntry && topUpEsimTranNo !== undefined ? { topUpEsimTranNo } : {}),
    };
  });
}

function timeOrNull(atMs: number | null): string | null {
  return atMs === null ? null : wireTime(atMs);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
