import type { Command } from '../command.js';
import { catalog, catalogChanges, destinations } from './catalog.command.js';
import { completionOf } from './completion.command.js';
import { doctor } from './doctor.command.js';
import {
  esimsAutoTopup,
  esimsGet,
  esimsInstallLink,
  esimsLabel,
  esimsList,
  esimsPlans,
  esimsReplace,
  esimsResume,
  esimsRevoke,
  esimsSuspend,
} from './esims.command.js';
import { eventsList, eventsResend } from './events.command.js';
import { listen } from './listen.command.js';
import { login, logout } from './login.command.js';
import { mcp } from './mcp.command.js';
import { open } from './open.command.js';
import { ordersCancel, ordersGet, ordersList, ordersPlace } from './orders.command.js';
import { refundsCancel, refundsCreate, refundsGet, refundsList } from './refunds.command.js';
import { requestsTail } from './requests.command.js';
import { topupsGet, topupsPackages, topupsPlace } from './topups.command.js';
import { trigger } from './trigger.command.js';
import { verify } from './verify.command.js';

const ALL: readonly Command[] = [
  login,
  logout,
  listen,
  trigger,
  catalog,
  catalogChanges,
  destinations,
  ordersPlace,
  ordersList,
  ordersGet,
  ordersCancel,
  esimsList,
  esimsGet,
  esimsInstallLink,
  esimsPlans,
  esimsAutoTopup,
  esimsLabel,
  esimsSuspend,
  esimsResume,
  esimsRevoke,
  esimsReplace,
  topupsPackages,
  topupsPlace,
  topupsGet,
  refundsCreate,
  refundsList,
  refundsGet,
  refundsCancel,
  eventsList,
  eventsResend,
  requestsTail,
  verify,
  doctor,
  open,
  mcp,
];

/** Every command, in the order of help. */
export const COMMANDS: readonly Command[] = [...ALL, completionOf(ALL)];
