import type { Faults } from './faults.ts';
import type { SimEsim } from './ledger.ts';
import { wireTime } from './wire.ts';

const SMDP_HOST = 'rsp-eu.simulator.example.com';

/** One eSIM as `esim/query` shows it. Top-ups in `hidden` are not to be seen yet. */
export function esimOnWire(
  esim: SimEsim,
  allocating: boolean,
  hidden: ReadonlySet<string>,
  { packageList }: Pick<Faults, 'packageList'>,
): Record<string, unknown> {
  const unseen = esim.packages.filter((bought) => hidden.has(bought.transactionId));
  return {
    esimTranNo: esim.esimTranNo,
    orderNo: esim.orderNo,
    transactionId: esim.transactionId,
    imsi: '454006109846571',
    iccid: allocating ? null : esim.iccid,
    smsStatus: 1,
    msisdn: '',
    ac: allocating ? null : `LPA:1$${SMDP_HOST}$${esim.matchingId}`,
    qrCodeUrl: `https://qr.simulator.example.com/${esim.esimTranNo}.png`,
    shortUrl: `https://p.simulator.example.com/${esim.esimTranNo}`,
    smdpStatus: esim.smdpStatus,
    eid: esim.eid,
    activeType: esim.activeType,
    dataType: esim.dataType,
    activateTime: timeOrNull(esim.activateTimeMs),
    expiredTime: wireTime(esim.expiredTimeMs),
    installationTime: timeOrNull(esim.installationTimeMs),
    totalVolume: esim.totalVolume - sum(unseen.map((bought) => bought.volume)),
    totalDuration: esim.totalDuration - sum(unseen.map((bought) => bought.duration)),
    durationUnit: esim.durationUnit,
    orderUsage: esim.orderUsage,
    esimStatus: allocating ? 'GETTING_RESOURCE' : esim.esimStatus,
    pin: '1234',
    puk: '12345678',
    apn: 'drei.at',
    ipExport: 'HK',
    supportTopUpType: esim.supportTopUpType,
    fupPolicy: null,
    ...(packageList === 'missing' ? {} : { packageList: packagesOnWire(esim, hidden, packageList) }),
  };
}

function packagesOnWire(
  { packages, esimTranNo }: SimEsim,
  hidden: ReadonlySet<string>,
  names: 'named' | 'unnamed',
): Record<string, unknown>[] {
  return packages
    .filter((bought) => !hidden.has(bought.transactionId))
    .map(({ createTimeMs, transactionId, ...bought }) => ({
      ...bought,
      transactionId: names === 'named' ? transactionId : null,
      createTime: wireTime(createTimeMs),
      esimTranNo,
    }));
}

function timeOrNull(atMs: number | null): string | null {
  return atMs === null ? null : wireTime(atMs);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
