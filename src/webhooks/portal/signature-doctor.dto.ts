import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsString, Matches, MaxLength, ValidateBy } from 'class-validator';
import { Optional, Rfc3339 } from '../../infra/http/index.js';
import { type Diagnosis, type DiagnosisCode, DIAGNOSES } from '../signature-doctor.js';

const MAX_HEADERS = 100;
const MAX_CHARACTERS = 60_000;
const MAX_COMPUTED = 200;

export class SignatureDoctorDto {
  @ApiProperty({ type: String, pattern: '^whe_[0-9A-Z]{1,60}$', example: 'whe_01KAEXAMPLE000000000000000' })
  @Matches(/^whe_[0-9A-Z]{1,60}$/, { message: 'must be the id of an endpoint' })
  endpoint_id!: string;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string' },
    example: { 'X-Service-Signature': 't=1795255200,v1=...' },
    description: 'The headers as received. Only `X-Service-Signature` is used.',
  })
  @ValidateBy({
    name: 'headers',
    validator: { validate: isHeaders, defaultMessage: () => 'must be an object of at most 100 texts' },
  })
  headers!: Record<string, string>;

  @ApiProperty({
    type: String,
    maxLength: MAX_CHARACTERS,
    description: 'The body as your code verifies it.',
  })
  @IsString({ message: 'must be text' })
  @MaxLength(MAX_CHARACTERS, { message: `must have at most ${MAX_CHARACTERS} characters` })
  body!: string;

  @ApiPropertyOptional({
    type: String,
    format: 'date-time',
    description: "Time of arrival by your server's clock. Needed to detect a wrong clock.",
  })
  @Optional()
  @Rfc3339()
  received_at?: string;

  @ApiPropertyOptional({
    type: String,
    maxLength: MAX_COMPUTED,
    description: 'The signature that your code computed, in hex or Base64.',
  })
  @Optional()
  @IsString({ message: 'must be text' })
  @MaxLength(MAX_COMPUTED, { message: `must have at most ${MAX_COMPUTED} characters` })
  computed?: string;
}

function isHeaders(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const values = Object.values(value);
  return values.length <= MAX_HEADERS && values.every((each) => typeof each === 'string');
}

export class DiagnosisResponse {
  @ApiProperty({ enum: DIAGNOSES })
  diagnosis!: DiagnosisCode;

  @ApiProperty({ type: String })
  summary!: string;

  @ApiProperty({ type: String })
  cure!: string;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description:
      'For `clock_off` and `stale`: seconds by which `t` is behind `received_at`, or behind our clock without it. Negative if ahead.',
  })
  seconds_off!: number | null;
}

const RAW = 'Verify the raw bytes of the request, before any parser or framework touches them.';
const SECRET = 'Use the whole secret exactly as shown, including `whsec_`. Do not decode it.';

const WORDS: Readonly<Record<DiagnosisCode, readonly [summary: string, cure: string]>> = {
  valid: [
    'The header and the body match this endpoint.',
    'If your server still rejects them, enter the signature that your code computed, and the time of arrival by its clock.',
  ],
  stale: [
    'The header and the body are correct, but the signature is older than the 300 seconds that servers should allow.',
    'This is expected for an old request. If your server rejected it on arrival, enter the time of arrival by its clock.',
  ],
  header_missing: [
    'The X-Service-Signature header is missing.',
    'Let your proxy pass the header on, and ignore letter case when you read its name.',
  ],
  header_malformed: [
    'The header does not have the form t=<seconds>,v1=<hex>.',
    'Read the whole header. Do not split it at the first comma.',
  ],
  signature_changed: [
    'The value of v1 was changed: its letter case, quotes or encoding.',
    'Compare v1 exactly as sent: lower-case hex without quotes.',
  ],
  clock_off: [
    'The signature is correct, but its time is more than 300 seconds from the time of arrival.',
    "Synchronize your server's clock with NTP, and verify each request when it arrives.",
  ],
  old_secret: [
    'The request was signed with the secret from before the last rotation.',
    'Deploy the new secret before the grace period ends, and accept any v1 in the header.',
  ],
  other_endpoint: [
    'The request was signed with the secret of another endpoint.',
    'Each endpoint has its own secret. Use the secret of the endpoint that received the request.',
  ],
  other_mode: [
    'The request was signed with the secret of an endpoint in the other mode.',
    'Sandbox and Live have separate endpoints and secrets. Use the secret of the right mode.',
  ],
  wrong_secret: [
    'The header and the body are correct, but no common mistake explains the signature that your code computed.',
    'Compare the secret in your code with the one shown for this endpoint. It may be cut off, from another environment, or two rotations old.',
  ],
  timestamp_missing: [
    'Your code signs only the body.',
    'Sign `<t>.<body>`: the value of t, a period and the raw body.',
  ],
  whitespace_changed: ['White space at the start or end of the body was added or removed.', RAW],
  reserialized_json: ['The body was parsed and serialized again, which changed its bytes.', RAW],
  wrong_charset: ['The body was decoded with a character set other than UTF-8.', RAW],
  secret_without_prefix: ['The signature was made with the secret without its prefix.', SECRET],
  secret_decoded: ['The signature was made with the secret decoded from Base64.', SECRET],
  unknown: [
    'The signature matches none of your endpoints and no common mistake.',
    `${RAW} If you already do, we did not send this request.`,
  ],
};

export function toDiagnosisResponse({ code, secondsOff }: Diagnosis): DiagnosisResponse {
  const [summary, cure] = WORDS[code];
  return { diagnosis: code, summary, cure, seconds_off: secondsOff };
}
