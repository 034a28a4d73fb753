package identitytest

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
)

// Unsigned is a token's claims with the algorithm none and no signature.
func Unsigned(token string) string {
	return header(`{"alg":"none"}`) + "." + strings.Split(token, ".")[1] + "."
}

// Symmetric is a token's claims signed with HS256 and a public key as the secret.
func Symmetric(t testing.TB, k Key, token string) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	signed := header(`{"alg":"HS256","kid":"`+k.ID+`"}`) + "." + strings.Split(token, ".")[1]
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func header(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
