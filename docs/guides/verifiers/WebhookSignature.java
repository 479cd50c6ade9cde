// Written by `npm run generate` from docs/webhooks.md.
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class WebhookSignature {
    private static final long TOLERANCE_SECONDS = 300;

    private WebhookSignature() {}

    /**
     * Pass secret as shown, with its prefix, rawBody as received, before any parsing, and
     * Instant.now().getEpochSecond() as nowSeconds. header may be null.
     */
    public static boolean verify(String header, byte[] rawBody, String secret, long nowSeconds) {
        List<String> timestamps = new ArrayList<>();
        List<String> signatures = new ArrayList<>();
        for (String part : (header == null ? "" : header).split(",")) {
            String trimmed = part.trim();
            if (trimmed.startsWith("t=")) timestamps.add(trimmed.substring(2));
            if (trimmed.startsWith("v1=")) signatures.add(trimmed.substring(3));
        }
        if (secret == null || secret.isEmpty()) return false;
        if (timestamps.size() != 1 || !timestamps.get(0).matches("[0-9]{1,15}")) return false;
        String timestamp = timestamps.get(0);
        if (Math.abs(nowSeconds - Long.parseLong(timestamp)) > TOLERANCE_SECONDS) return false;

        byte[] expected = hex(hmac(secret, timestamp + ".", rawBody)).getBytes(StandardCharsets.UTF_8);
        boolean matches = false;
        for (String signature : signatures) {
            matches |= MessageDigest.isEqual(expected, signature.getBytes(StandardCharsets.UTF_8));
        }
        return matches;
    }

    private static byte[] hmac(String secret, String prefix, byte[] rawBody) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
            mac.update(prefix.getBytes(StandardCharsets.UTF_8));
            return mac.doFinal(rawBody);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible); // Every Java has HmacSHA256.
        }
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte value : bytes) text.append(String.format("%02x", value));
        return text.toString();
    }
}
