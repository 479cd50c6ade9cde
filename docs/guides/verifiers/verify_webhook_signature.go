// Written by `npm run generate` from docs/webhooks.md.
package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

// VerifyWebhookSignature checks the header. Pass secret as shown, with its prefix, rawBody as received, before
// any parsing, and time.Now() as now.
func VerifyWebhookSignature(header string, rawBody []byte, secret string, now time.Time) bool {
	var timestamps, signatures []string
	for _, part := range strings.Split(header, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(part), "=")
		if found && name == "t" {
			timestamps = append(timestamps, value)
		} else if found && name == "v1" {
			signatures = append(signatures, value)
		}
	}
	if secret == "" || len(timestamps) != 1 {
		return false
	}
	timestamp, err := strconv.ParseUint(timestamps[0], 10, 48)
	if err != nil {
		return false
	}
	if age := now.Unix() - int64(timestamp); age > toleranceSeconds || age < -toleranceSeconds {
		return false
	}

	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamps[0] + "."))
	mac.Write(rawBody)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	for _, signature := range signatures {
		if hmac.Equal([]byte(signature), expected) {
			return true
		}
	}
	return false
}
