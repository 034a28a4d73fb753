package identity

import "github.com/coreos/go-oidc/v3/oidc"

// IAPKeysURL is where Google publishes the keys of its Identity-Aware Proxy.
const IAPKeysURL = "https://www.gstatic.com/iap/verify/public_key-jwk"

// IAPIssuer is the issuer of the proxy's assertions.
const IAPIssuer = "https://cloud.google.com/iap"

// NewIAP returns a verifier of the assertions that Google's Identity-Aware Proxy puts
// into the header X-Goog-IAP-JWT-Assertion. cfg.Issuer is not used; keysURL is
// IAPKeysURL except in tests.
func NewIAP(cfg Config, keysURL string) (*Verifier, error) {
	cfg.Issuer = IAPIssuer
	v, err := New(cfg)
	if err != nil {
		return nil, err
	}
	v.method, v.algorithms, v.keysURL = IAP, []string{oidc.ES256}, keysURL
	return v, nil
}
