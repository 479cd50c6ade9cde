// Written by `npm run generate` from docs/webhooks.md.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

public static class WebhookSignature
{
    private const long ToleranceSeconds = 300;

    /// <summary>
    /// Pass secret as shown, with its prefix, rawBody as received, before any parsing, and
    /// DateTimeOffset.UtcNow.ToUnixTimeSeconds() as nowSeconds. header may be null.
    /// </summary>
    public static bool Verify(string header, byte[] rawBody, string secret, long nowSeconds)
    {
        List<string> parts = (header ?? "").Split(',').Select(part => part.Trim()).ToList();
        List<string> timestamps = ValuesOf(parts, "t=");
        if (string.IsNullOrEmpty(secret) || timestamps.Count != 1) return false;
        string timestamp = timestamps[0];
        if (!Regex.IsMatch(timestamp, @"\A[0-9]{1,15}\z")) return false;
        if (Math.Abs(nowSeconds - long.Parse(timestamp)) > ToleranceSeconds) return false;

        byte[] signed = Encoding.UTF8.GetBytes(timestamp + ".").Concat(rawBody).ToArray();
        using (HMACSHA256 hmac = new HMACSHA256(Encoding.UTF8.GetBytes(secret)))
        {
            string hex = BitConverter.ToString(hmac.ComputeHash(signed)).Replace("-", "").ToLowerInvariant();
            byte[] expected = Encoding.UTF8.GetBytes(hex);
            return ValuesOf(parts, "v1=").Any(
                signature => CryptographicOperations.FixedTimeEquals(expected, Encoding.UTF8.GetBytes(signature)));
        }
    }

    private static List<string> ValuesOf(List<string> parts, string name)
    {
        return parts
            .Where(part => part.StartsWith(name, StringComparison.Ordinal))
            .Select(part => part.Substring(name.Length))
            .ToList();
    }
}
