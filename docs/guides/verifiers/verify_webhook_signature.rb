# Written by `npm run generate` from docs/webhooks.md.
require 'openssl'

TOLERANCE_SECONDS = 300

# Pass secret as shown, with its prefix, and raw_body as received, before any parsing.
def verify_webhook_signature(header, raw_body, secret, now_seconds = Time.now.to_i)
  parts = header.to_s.split(',').map(&:strip)
  timestamps = parts.select { |part| part.start_with?('t=') }.map { |part| part[2..-1] }
  signatures = parts.select { |part| part.start_with?('v1=') }.map { |part| part[3..-1] }
  return false if secret.to_s.empty? || timestamps.length != 1 || !timestamps[0].match?(/\A[0-9]{1,15}\z/)
  return false if (now_seconds - timestamps[0].to_i).abs > TOLERANCE_SECONDS

  expected = OpenSSL::HMAC.hexdigest('SHA256', secret, "#{timestamps[0]}.".b + raw_body.b)
  signatures.any? { |signature| same?(expected, signature) }
end

# Constant time for texts of the same length. The length itself is not secret.
def same?(expected, received)
  return false unless expected.bytesize == received.bytesize

  expected.bytes.zip(received.bytes).inject(0) { |different, (a, b)| different | (a ^ b) }.zero?
end
