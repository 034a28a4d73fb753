package webhooks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// NewSecret makes a secret.
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return domain.WebhookSecretOf(key)
}

// NewTestID names a test message.
func NewTestID() string { return "test-" + rand.Text() }

// signatures are those of a message by each secret that is valid, separated by spaces.
func signatures(secrets domain.WebhookSecrets, id string, at time.Time, body string) (string, error) {
	valid := []string{secrets.Current}
	if secrets.Previous != "" && at.Before(secrets.PreviousUntil) {
		valid = append(valid, secrets.Previous)
	}
	signed := make([]string, len(valid))
	for i, secret := range valid {
		key, err := domain.WebhookKey(secret)
		if err != nil {
			return "", err
		}
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "." + body)) // never fails
		signed[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signed, " "), nil
}
