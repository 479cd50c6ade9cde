import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { IsIn, IsInt, Matches, Max, MaxLength, Min } from 'class-validator';
import {
  FailureResponse,
  ListQueryDto,
  Metadata,
  METADATA_SCHEMA,
  Optional,
  ShortText,
  SingleLineText,
} from '../../infra/http/index.js';
import {
  ESIM_STATUSES,
  type EsimStatus,
  type InstallData,
  needsConfirmationCode,
  PENDING_ACTIONS,
  type PendingAction,
  PLAN_STATUSES,
  type PlanStatus,
  PROFILE_STATUSES,
  type ProfileStatus,
  toActivationCode,
  toInstallLinks,
  USAGE_SOURCES,
  type UsageSource,
} from '../esim.js';
import { type Mode, MODES } from '../../common/mode.js';
import { LINE_PATTERN } from '../../common/plain-text.js';
import type { EsimEntity } from '../esim.entity.js';
import { ESIM_ACTIONS, type EsimAction } from '../esim-actions.js';
import type { EsimLabels } from '../change-esim.js';
import type { ShownEsim } from '../esim-queries.js';
import type { EsimFilters } from '../esims.repository.js';
import { currentPlanRemainingBytes, type EsimPlan, hasOpenEnd } from '../esim-plans.js';

const MAX_LABEL = 64;
const MAX_REASON = 200;
const MAX_CONSUMED_BYTES = 1_000_000_000_000_000;

export class EsimsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: ESIM_STATUSES })
  @Optional()
  @IsIn(ESIM_STATUSES, { message: 'must be a known status' })
  status?: EsimStatus;

  @ApiPropertyOptional({ type: String, minLength: 1, maxLength: 64 })
  @Optional()
  @ShortText(64)
  order_id?: string;

  @ApiPropertyOptional({ type: String, pattern: '^[0-9]{18,20}$' })
  @Optional()
  @MaxLength(20, { message: 'must have 18 to 20 digits' })
  @Matches(/^[0-9]{18,20}$/, { message: 'must have 18 to 20 digits' })
  iccid?: string;

  @ApiPropertyOptional({ type: String, minLength: 1, maxLength: MAX_LABEL, pattern: LINE_PATTERN })
  @Optional()
  @SingleLineText(MAX_LABEL)
  label?: string;
}

export function toEsimFilters(query: EsimsQueryDto): EsimFilters {
  return { status: query.status, orderId: query.order_id, iccid: query.iccid, label: query.label };
}

/** Absent fields do not change; null removes the label, or all metadata. */
@ApiSchema({ description: 'Absent fields do not change. Null removes the label, or all metadata.' })
export class UpdateEsimDto {
  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_LABEL,
    pattern: LINE_PATTERN,
    example: 'Trip to Lyon',
    description: 'Your own name for the eSIM; not unique.',
  })
  @Optional()
  @SingleLineText(MAX_LABEL)
  label?: string | null;

  @ApiPropertyOptional({ ...METADATA_SCHEMA, description: 'Replaces all pairs.' })
  @Optional()
  @Metadata()
  metadata?: Record<string, string> | null;
}

export function toEsimLabels({ label, metadata }: UpdateEsimDto): EsimLabels {
  return {
    ...(label === undefined ? {} : { label }),
    ...(metadata === undefined ? {} : { metadata: metadata ?? {} }),
  };
}

export class ControlEsimDto {
  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_REASON,
    pattern: LINE_PATTERN,
    example: 'Phone reported stolen',
    description: 'Your own reason, returned in the event.',
  })
  @Optional()
  @SingleLineText(MAX_REASON)
  reason?: string | null;
}

/** Exactly one of the two fields. */
@ApiSchema({ description: 'Send exactly one of the two fields.' })
export class ConsumeDto {
  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 1,
    maximum: MAX_CONSUMED_BYTES,
    example: 500_000_000,
  })
  @Optional()
  @IsInt({ message: 'must be a whole number' })
  @Min(1, { message: 'must be at least 1' })
  @Max(MAX_CONSUMED_BYTES, { message: 'must be at most 10^15' })
  bytes?: number | null;

  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 1,
    maximum: 100,
    description: 'Percent of `total_bytes`, rounded up.',
  })
  @Optional()
  @IsInt({ message: 'must be a whole number' })
  @Min(1, { message: 'must be at least 1' })
  @Max(100, { message: 'must be at most 100' })
  percent?: number | null;
}

export class EsimDataResponse {
  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: 1_000_000_000,
    description: 'Null when unlimited.',
  })
  total_bytes!: number | null;

  @ApiProperty({ type: 'integer', example: 0 })
  used_bytes!: number;

  @ApiProperty({ type: 'integer', nullable: true, example: 1_000_000_000 })
  remaining_bytes!: number | null;

  @ApiProperty({ type: Boolean })
  unlimited!: boolean;

  @ApiProperty({ type: String, format: 'date-time' })
  as_of!: string;
}

export class ActionFailureResponse extends FailureResponse {
  @ApiProperty({ enum: PENDING_ACTIONS, example: 'suspend' })
  action!: PendingAction;
}

export class EsimResponse {
  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ type: String, example: 'ord_01KAEXAMPLE0000000000000000' })
  order_id!: string;

  @ApiProperty({ type: String, example: 'pkg_fr_1gb_7d' })
  package_id!: string;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: null,
    description: 'Number of days ordered; null for a package of fixed days. Top-ups do not change it.',
  })
  days!: number | null;

  @ApiProperty({ type: String, pattern: '^[0-9]{18,20}$', example: '8910300000001234567' })
  iccid!: string;

  @ApiProperty({
    type: String,
    nullable: true,
    example: null,
    description: 'Phone number; null if the wholesaler states none.',
  })
  msisdn!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'Trip to Lyon',
    description: 'Your own name for it.',
  })
  label!: string | null;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' }, example: { traveler: 'A-17' } })
  metadata!: Record<string, string>;

  @ApiProperty({ enum: ESIM_STATUSES })
  status!: EsimStatus;

  @ApiProperty({
    enum: ESIM_ACTIONS,
    isArray: true,
    example: ['suspend', 'revoke', 'cancel', 'replace'],
    description:
      'What you can request for the eSIM now. `cancel` cancels its whole order. Depends also on the order and its other eSIMs, whose changes do not count in `version`.',
  })
  actions!: readonly EsimAction[];

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description:
      'Until when `cancel` is possible if nothing of the order is downloaded, topped up or changed. Null if it is not possible, or if the end is unknown.',
  })
  cancelable_until!: string | null;

  @ApiProperty({
    enum: PENDING_ACTIONS,
    nullable: true,
    type: String,
    example: null,
    description: 'The requested action that the wholesaler has not confirmed yet.',
  })
  pending_action!: PendingAction | null;

  @ApiProperty({
    type: ActionFailureResponse,
    nullable: true,
    example: null,
    description: 'Why the last requested action did not take effect; null if it did.',
  })
  action_failure!: ActionFailureResponse | null;

  @ApiProperty({
    type: 'integer',
    minimum: 1,
    example: 1,
    description: 'Increases by one with each change, including changes of the usage.',
  })
  version!: number;

  @ApiProperty({ enum: PROFILE_STATUSES })
  profile_status!: ProfileStatus;

  @ApiProperty({ type: String, nullable: true, example: 'internet' })
  apn!: string | null;

  @ApiProperty({ type: EsimDataResponse })
  data!: EsimDataResponse;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: "The wholesaler's deadline, else by `install_within_days` of the package, else 180 days.",
  })
  install_by!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  activated_at!: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'Null before first use, and while a plan is queued: its end is unknown until it starts.',
  })
  expires_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;
}

export class InstallLinksResponse {
  @ApiProperty({
    type: String,
    example:
      'https://esimsetup.apple.com/esim_qrcode_provisioning?carddata=LPA:1$smdp.example.com$MATCHING-ID',
  })
  ios_url!: string;

  @ApiProperty({
    type: String,
    example:
      'https://esimsetup.android.com/esim_qrcode_provisioning?carddata=LPA:1$smdp.example.com$MATCHING-ID',
  })
  android_url!: string;
}

/** The eSIM with its install data. Apart from /qr, no other read shows that data (D25). */
export class EsimWithInstallResponse extends EsimResponse {
  @ApiProperty({ type: String, example: 'smdp.example.com' })
  smdp_address!: string;

  @ApiProperty({ type: String, example: 'MATCHING-ID' })
  matching_id!: string;

  @ApiProperty({ type: String, example: 'LPA:1$smdp.example.com$MATCHING-ID' })
  activation_code!: string;

  @ApiProperty({ type: String, nullable: true })
  confirmation_code!: string | null;

  @ApiProperty({
    type: Boolean,
    example: false,
    description: 'Whether the user must enter a confirmation code to install the eSIM.',
  })
  confirmation_code_required!: boolean;

  @ApiProperty({ type: String, nullable: true, example: null, description: 'PIN of the profile.' })
  pin!: string | null;

  @ApiProperty({ type: String, nullable: true, example: null, description: 'PUK of the profile.' })
  puk!: string | null;

  @ApiProperty({ type: InstallLinksResponse })
  install!: InstallLinksResponse;
}

export class QrCodeResponse {
  @ApiProperty({ type: String, example: 'LPA:1$smdp.example.com$MATCHING-ID' })
  activation_code!: string;

  @ApiProperty({ type: String, description: 'The QR code as an SVG document.', example: '<svg>...</svg>' })
  svg!: string;

  @ApiProperty({ type: String, description: 'The QR code as a Base64 PNG.', example: 'iVBORw0KGgo=' })
  png_base64!: string;
}

export class UsageResponse {
  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({ type: Boolean })
  unlimited!: boolean;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: 1_000_000_000,
    description: 'Null when unlimited.',
  })
  total_bytes!: number | null;

  @ApiProperty({ type: 'integer', example: 505_000_000 })
  used_bytes!: number;

  @ApiProperty({ type: 'integer', nullable: true, example: 495_000_000 })
  remaining_bytes!: number | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: null,
    description:
      'Left in the plan in use, without queued plans; null if plans are pooled or their data is unknown.',
  })
  current_plan_remaining_bytes!: number | null;

  @ApiProperty({ type: Number, nullable: true, example: 50.5, description: 'Null when unlimited.' })
  percent_used!: number | null;

  @ApiProperty({ type: 'array', items: { type: 'integer' }, example: [50] })
  thresholds_crossed!: readonly number[];

  @ApiProperty({ type: String, format: 'date-time' })
  as_of!: string;

  @ApiProperty({ enum: USAGE_SOURCES })
  source!: UsageSource;
}

const PLAN_SOURCES = ['order', 'topup'] as const;

/** A plan on an eSIM. Null means that it is unknown. */
export class EsimPlanResponse {
  @ApiProperty({ type: String, example: 'pln_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({
    enum: PLAN_SOURCES,
    nullable: true,
    type: String,
    example: 'topup',
    description: 'The kind of purchase; null if it is unknown which purchase brought the plan.',
  })
  source!: (typeof PLAN_SOURCES)[number] | null;

  @ApiProperty({ type: String, nullable: true, example: null, description: 'Set if `source` is `order`.' })
  order_id!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'top_01KAEXAMPLE0000000000000000',
    description: 'Set if `source` is `topup`.',
  })
  topup_id!: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'pkg_fr_topup_1gb_7d' })
  package_id!: string | null;

  @ApiProperty({
    enum: PLAN_STATUSES,
    description: '`queued`: starts later. `unknown`: the wholesaler does not list the plan.',
  })
  status!: PlanStatus;

  @ApiProperty({ type: 'integer', nullable: true, example: 1_000_000_000 })
  total_bytes!: number | null;

  @ApiProperty({ type: 'integer', nullable: true, example: 0 })
  used_bytes!: number | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: 1_000_000_000,
    description: '0 for a plan that has ended, whatever was left.',
  })
  remaining_bytes!: number | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, example: null })
  starts_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, example: null })
  ends_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'Time of the last reading of this plan.' })
  as_of!: string;
}

export function toEsimPlanResponse(plan: EsimPlan): EsimPlanResponse {
  return {
    id: plan.id,
    source: plan.source,
    order_id: plan.source === 'order' ? plan.purchaseId : null,
    topup_id: plan.source === 'topup' ? plan.purchaseId : null,
    package_id: plan.packageId,
    status: plan.status,
    total_bytes: plan.totalBytes,
    used_bytes: plan.usedBytes,
    remaining_bytes: plan.remainingBytes,
    starts_at: plan.startsAt?.toISOString() ?? null,
    ends_at: plan.endsAt?.toISOString() ?? null,
    as_of: plan.asOf.toISOString(),
  };
}

/** Documents the list of an eSIM's plans, for partners and in the portal. */
export const PLANS_PAGE = {
  summary: 'List the plans on an eSIM, in the order of purchase',
  description:
    'Returns one plan for the order and one for each completed top-up, as last read from the wholesaler. A queued plan starts after the one in use; only the wholesaler decides when.',
  beside: {
    pooled: {
      type: 'boolean',
      description:
        "The wholesaler shows all plans as one. The first plan then has the eSIM's status, start and end, and no plan has bytes: the usage has the sums.",
    },
  },
} as const;

export function toEsimResponse({ esim, actions, cancelableUntil }: ShownEsim): EsimResponse {
  return {
    id: esim.id,
    mode: esim.mode,
    order_id: esim.orderId,
    package_id: esim.packageId,
    days: esim.days,
    iccid: esim.iccid,
    msisdn: esim.msisdn,
    label: esim.label,
    metadata: esim.metadata,
    status: esim.status,
    actions,
    cancelable_until: cancelableUntil?.toISOString() ?? null,
    pending_action: esim.pendingAction,
    action_failure: esim.actionFailure,
    version: esim.version,
    profile_status: esim.profileStatus,
    apn: esim.apn,
    data: {
      total_bytes: esim.totalBytes,
      used_bytes: esim.usedBytes,
      remaining_bytes: remainingBytes(esim),
      unlimited: esim.unlimited,
      as_of: esim.usageAsOf.toISOString(),
    },
    install_by: esim.installBy?.toISOString() ?? null,
    activated_at: esim.activatedAt?.toISOString() ?? null,
    expires_at: hasOpenEnd(esim) ? null : (esim.expiresAt?.toISOString() ?? null),
    created_at: esim.createdAt.toISOString(),
    updated_at: esim.updatedAt.toISOString(),
  };
}

export function toEsimWithInstallResponse(esim: ShownEsim, install: InstallData): EsimWithInstallResponse {
  const activationCode = toActivationCode(install);
  const { iosUrl, androidUrl } = toInstallLinks(activationCode);
  return {
    ...toEsimResponse(esim),
    smdp_address: install.smdpAddress,
    matching_id: install.matchingId,
    activation_code: activationCode,
    confirmation_code: install.confirmationCode,
    confirmation_code_required: needsConfirmationCode(activationCode),
    pin: install.pin ?? null,
    puk: install.puk ?? null,
    install: { ios_url: iosUrl, android_url: androidUrl },
  };
}

export function toUsageResponse(esim: EsimEntity): UsageResponse {
  return {
    esim_id: esim.id,
    unlimited: esim.unlimited,
    total_bytes: esim.totalBytes,
    used_bytes: esim.usedBytes,
    remaining_bytes: remainingBytes(esim),
    current_plan_remaining_bytes: currentPlanRemainingBytes(esim),
    percent_used: percentUsed(esim),
    thresholds_crossed: esim.thresholdsCrossed,
    as_of: esim.usageAsOf.toISOString(),
    source: esim.usageSource,
  };
}

/** Truncated to two decimals, in integer arithmetic: 57 % of 1 GB is 57 instead of 56.99. */
function percentUsed({ usedBytes, totalBytes }: EsimEntity): number | null {
  return totalBytes === null ? null : Number((BigInt(usedBytes) * 10_000n) / BigInt(totalBytes)) / 100;
}

function remainingBytes(esim: EsimEntity): number | null {
  return esim.totalBytes === null ? null : Math.max(0, esim.totalBytes - esim.usedBytes);
}
