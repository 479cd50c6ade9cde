import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import {
  ArrayContains,
  ArrayMaxSize,
  ArrayNotEmpty,
  ArrayUnique,
  IsArray,
  IsIn,
  IsInt,
  IsString,
  Max,
  MaxLength,
  Min,
  ValidateIf,
} from 'class-validator';
import { MODES, type Mode } from '../../common/mode.js';
import { LINE_PATTERN } from '../../common/plain-text.js';
import { compose, ListQueryDto, Optional, SingleLineText } from '../../infra/http/index.js';
import type { NewEndpointTerms } from '../webhook-endpoints.service.js';
import { SIGNATURE_SCHEMES, type SignatureScheme } from '../signature.js';
import { EVENT_TYPES_RULE, type Subscription, SUBSCRIPTIONS } from '../subscriptions.js';
import { MAX_URL_LENGTH } from '../target-policy.js';
import { ENDPOINT_STATUSES, type EndpointStatus } from '../webhook-endpoint.entity.js';
import type { EndpointChange } from '../webhook-endpoints.repository.js';

const MAX_DESCRIPTION = 200;
const MAX_GRACE_SECONDS = 604_800;
export const DEFAULT_GRACE_SECONDS = 86_400;

const oneOf = (values: readonly string[]): { message: string } => ({
  message: `must be one of ${values.join(', ')}`,
});

/** Validates text only; whether the URL is allowed depends on the settings and is checked by the service (D35). */
function TargetUrl(): PropertyDecorator {
  return compose(
    IsString({ message: 'must be text' }),
    MaxLength(MAX_URL_LENGTH, { message: `must have at most ${MAX_URL_LENGTH} characters` }),
  );
}

function Description(): PropertyDecorator {
  return compose(
    ApiPropertyOptional({
      type: String,
      nullable: true,
      minLength: 1,
      maxLength: MAX_DESCRIPTION,
      pattern: LINE_PATTERN,
    }),
    Optional(),
    SingleLineText(MAX_DESCRIPTION),
  );
}

/** Absent or null means the document's types (D58); `[]` would mean none and is refused (D28). */
function EventTypes(): PropertyDecorator {
  return compose(
    ApiPropertyOptional({
      enum: SUBSCRIPTIONS,
      isArray: true,
      nullable: true,
      minItems: 1,
      uniqueItems: true,
      description: EVENT_TYPES_RULE,
    }),
    Optional(),
    IsArray({ message: 'must be a list of event types' }),
    ArrayNotEmpty({ message: 'must not be empty; omit it for the default types' }),
    ArrayUnique({ message: 'must not repeat a type' }),
    IsIn(SUBSCRIPTIONS, { each: true, message: 'must hold known event types' }),
  );
}

const MAX_LEVELS = 10;

/** Absent or null means that the endpoint receives no `esim.usage.level` (D58). */
function UsageLevels(): PropertyDecorator {
  return compose(
    ApiPropertyOptional({
      type: 'array',
      items: { type: 'integer', minimum: 1, maximum: 100 },
      nullable: true,
      minItems: 1,
      maxItems: MAX_LEVELS,
      uniqueItems: true,
      example: [25, 75, 90],
      description:
        'Percentages at which the endpoint receives `esim.usage.level`, if it also subscribes to this type.',
    }),
    Optional(),
    IsArray({ message: 'must be a list of percentages' }),
    ArrayNotEmpty({ message: 'must not be empty; omit it for no levels' }),
    ArrayMaxSize(MAX_LEVELS, { message: `must have at most ${MAX_LEVELS} levels` }),
    ArrayUnique({ message: 'must not repeat a level' }),
    IsInt({ each: true, message: 'must hold whole numbers' }),
    Min(1, { each: true, message: 'must hold numbers of at least 1' }),
    Max(100, { each: true, message: 'must hold numbers of at most 100' }),
  );
}

/** The scheme `document` is mandatory (D49). */
function SignatureSchemes(): PropertyDecorator {
  return compose(
    ApiPropertyOptional({
      enum: SIGNATURE_SCHEMES,
      isArray: true,
      uniqueItems: true,
      minItems: 1,
      // OpenAPI 3.1 supports all of JSON Schema; the decorator's types do not.
      ...{ contains: { const: 'document' } },
      example: [...SIGNATURE_SCHEMES],
      description:
        'Must include `document`. `standard` adds the headers of Standard Webhooks. Default: `["document"]`.',
    }),
    ValidateIf((body: UpdateWebhookEndpointDto) => body.signature_schemes !== undefined),
    IsArray({ message: 'must be a list of signature schemes' }),
    ArrayUnique({ message: 'must not repeat a scheme' }),
    IsIn(SIGNATURE_SCHEMES, { each: true, message: 'must hold known schemes' }),
    ArrayContains(['document'], { message: 'must hold document' }),
  );
}

export class CreateWebhookEndpointDto {
  @ApiProperty({ enum: MODES })
  @IsIn(MODES, oneOf(MODES))
  mode!: Mode;

  @ApiProperty({
    type: String,
    format: 'uri',
    pattern: '^https?://',
    maxLength: MAX_URL_LENGTH,
    example: 'https://partner.example/webhooks',
  })
  @TargetUrl()
  url!: string;

  @Description()
  description?: string | null;

  @EventTypes()
  event_types?: Subscription[] | null;

  @UsageLevels()
  usage_levels?: number[] | null;

  @SignatureSchemes()
  signature_schemes?: SignatureScheme[];
}

export class UpdateWebhookEndpointDto {
  @ApiPropertyOptional({ type: String, format: 'uri', pattern: '^https?://', maxLength: MAX_URL_LENGTH })
  @ValidateIf((body: UpdateWebhookEndpointDto) => body.url !== undefined)
  @TargetUrl()
  url?: string;

  @Description()
  description?: string | null;

  @EventTypes()
  event_types?: Subscription[] | null;

  @UsageLevels()
  usage_levels?: number[] | null;

  @SignatureSchemes()
  signature_schemes?: SignatureScheme[];
}

export const HELD_CHOICES = ['release', 'discard'] as const;
export const FAILED_CHOICES = ['resend', 'leave'] as const;

export class EnableWebhookEndpointDto {
  @ApiPropertyOptional({ enum: HELD_CHOICES, nullable: true, default: 'release' })
  @Optional()
  @IsIn(HELD_CHOICES, oneOf(HELD_CHOICES))
  held?: (typeof HELD_CHOICES)[number] | null;

  @ApiPropertyOptional({
    enum: FAILED_CHOICES,
    nullable: true,
    default: 'leave',
    description: 'Deliveries that failed since the last 2xx.',
  })
  @Optional()
  @IsIn(FAILED_CHOICES, oneOf(FAILED_CHOICES))
  failed?: (typeof FAILED_CHOICES)[number] | null;
}

export class RotateWebhookSecretDto {
  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 0,
    maximum: MAX_GRACE_SECONDS,
    default: DEFAULT_GRACE_SECONDS,
    description: 'Seconds for which the old secret also signs.',
  })
  @Optional()
  @IsInt({ message: 'must be a whole number of seconds' })
  @Min(0, { message: 'must be at least 0' })
  @Max(MAX_GRACE_SECONDS, { message: `must be at most ${MAX_GRACE_SECONDS}` })
  grace_seconds?: number | null;
}

export class WebhookEndpointsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: ENDPOINT_STATUSES })
  @Optional()
  @IsIn(ENDPOINT_STATUSES, oneOf(ENDPOINT_STATUSES))
  status?: EndpointStatus;
}

export function toNewEndpointTerms(partnerId: string, body: CreateWebhookEndpointDto): NewEndpointTerms {
  return {
    partnerId,
    mode: body.mode,
    url: body.url,
    description: body.description ?? null,
    eventTypes: body.event_types ?? null,
    usageLevels: body.usage_levels ? ascending(body.usage_levels) : null,
    signatureSchemes: inOrder(body.signature_schemes ?? ['document']),
  };
}

/** The fields present in the body. Null is a value here: it clears the description and selects the default types. */
export function toEndpointChange(body: UpdateWebhookEndpointDto): EndpointChange {
  return {
    ...(body.url === undefined ? {} : { url: body.url }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.event_types === undefined ? {} : { eventTypes: body.event_types }),
    ...(body.usage_levels === undefined
      ? {}
      : { usageLevels: body.usage_levels && ascending(body.usage_levels) }),
    ...(body.signature_schemes === undefined ? {} : { signatureSchemes: inOrder(body.signature_schemes) }),
  };
}

function ascending(levels: readonly number[]): number[] {
  return levels.toSorted((a, b) => a - b);
}

/** Schemes are a set; they are always shown in the same order. */
function inOrder(schemes: readonly SignatureScheme[]): SignatureScheme[] {
  return SIGNATURE_SCHEMES.filter((scheme) => schemes.includes(scheme));
}
