import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsString, Matches, MaxLength, ValidateBy } from 'class-validator';
import { Optional, Rfc3339 } from '../../infra/http/index.js';
import { type Diagnosis, type DiagnosisCode, DIAGNOSES } from '../signature-doctor.js';

const MOST_HEADERS = 100;
const MOST_CHARACTERS = 60_000;
const MOST_COMPUTED = 200;

export class SignatureDoctorDto {
  @ApiProperty({ type: String, pattern: '^whe_[0-9A-Z]{1,60}$', example: 'whe_01KAEXAMPLE000000000000000' })
  @Matches(/^whe_[0-9A-Z]{1,60}$/, { message: 'must be the id of an endpoint' })
  endpoint_id!: string;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string' },
    example: { 'X-Service-Signature': 't=1795255200,v1=...' },
    description: 'As received; only `X-Service-Signature` counts.',
  })
  @ValidateBy({
    name: 'headers',
    validator: { validate: isHeaders, defaultMessage: () => 'must be an object of at most 100 texts' },
  })
  headers!: Record<string, string>;

  @ApiProperty({
    type: String,
    maxLength: MOST_CHARACTERS,
    description: 'As your code has it when it verifies.',
  })
  @IsString({ message: 'must be text' })
  @MaxLength(MOST_CHARACTERS, { message: `must have at most ${MOST_CHARACTERS} characters` })
  body!: string;

  @ApiPropertyOptional({
    type: String,
    format: 'date-time',
    description:
      'When it arrived, by the clock of your receiver: without it a clock that is off is not found.',
  })
  @Optional()
  @Rfc3339()
  received_at?: string;

  @ApiPropertyOptional({
    type: String,
    maxLength: MOST_COMPUTED,
    description: 'What your code computed where it should be `v1`, hexadecimal or base64.',
  })
  @Optional()
  @IsString({ message: 'must be text' })
  @MaxLength(MOST_COMPUTED, { message: `must have at most ${MOST_COMPUTED} characters` })
  computed?: string;
}

function isHeaders(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const values = Object.values(value);
  return values.length <= MOST_HEADERS && values.every((each) => typeof each === 'string');
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
      'For `clock_off` and `stale`: how far `t` is behind `received_at`, else behind our time; negative: ahead.',
  })
  seconds_off!: number | null;
}

const RAW = 'Verify the raw bytes of the request, before any parser or framework touches them.';
const SECRET = 'Use the whole secret as it was shown, `whsec_` included, as the bytes of its text.';

const WORDS: Readonly<Record<DiagnosisCode, readonly [summary: string, cure: string]>> = {
  valid: [
    'The header and the body are right for this endpoint.',
    'If your receiver refuses them, tell the doctor what your code computed, and when the call arrived by its clock.',
  ],
  stale: [
    'The header and the body are right; the signature is older than the 300 seconds that receivers allow.',
    'Pasted later this is as it should be. If it was refused when it arrived, tell the doctor when that was by the clock of your receiver.',
  ],
  header_missing: [
    'There is no X-Service-Signature.',
    'Let your proxy pass the header on, and read it in any letter case.',
  ],
  header_malformed: [
    'The header is not t=<seconds>,v1=<hex>.',
    'Read the header as a whole; do not split it at the first comma.',
  ],
  signature_changed: [
    'The value of v1 is compared in another form: its letters, quotes or encoding.',
    'Compare v1 as it was sent: lower-case hex without quotes.',
  ],
  clock_off: [
    'The signature is right, but its time is not within 300 seconds of the receipt.',
    'Set the clock of your receiver by NTP, and verify when the request arrives, not later.',
  ],
  old_secret: [
    'It was signed with the secret from before the last rotation.',
    'Put the new secret in place before the grace ends; every v1 of the header counts.',
  ],
  other_endpoint: [
    'It was signed with the secret of another of your endpoints.',
    'Each endpoint has a secret of its own: use that of the endpoint that was called.',
  ],
  other_mode: [
    'It was signed with the secret of an endpoint of the other mode.',
    'Sandbox and Live have endpoints and secrets of their own: use those of the mode.',
  ],
  wrong_secret: [
    'The header and the body are right, and none of the usual mistakes gives what your code computed.',
    'Compare the secret that it uses with the one that was shown for this endpoint: cut off, of another environment, or from before two rotations.',
  ],
  timestamp_missing: [
    'Your code signs the body alone.',
    'Sign the value of t, a full stop and the raw body: `<t>.<body>`.',
  ],
  whitespace_changed: ['White space at the end or the beginning of the body was added or removed.', RAW],
  reserialized_json: ['The body was parsed and printed again: it means the same, but has other bytes.', RAW],
  wrong_charset: ['The body was read in another character set than UTF-8.', RAW],
  secret_without_prefix: ['It was signed with the secret without its prefix.', SECRET],
  secret_decoded: ['It was signed with the secret decoded from base64.', SECRET],
  unknown: [
    'It fits none of your endpoints, and none of the usual mistakes.',
    `${RAW} If it is, it was not we who sent it.`,
  ],
};

export function toDiagnosisResponse({ code, secondsOff }: Diagnosis): DiagnosisResponse {
  const [summary, cure] = WORDS[code];
  return { diagnosis: code, summary, cure, seconds_off: secondsOff };
}
