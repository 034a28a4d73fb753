package firestoretx

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
)

// sealed begins a secret that is sealed.
const sealed = "sealed1:"

// sealer encrypts the secrets of webhooks, so that those who only read the database cannot use
// them. Its first key seals, all open; without keys secrets stay as they are.
type sealer [][]byte

func aead(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal seals the secrets of a webhook.
func (s sealer) seal(id domain.WebhookID, secrets domain.WebhookSecrets) (domain.WebhookSecrets, error) {
	if len(s) == 0 {
		return secrets, nil
	}
	key, err := aead(s[0])
	if err != nil {
		return secrets, err
	}
	for _, secret := range []*string{&secrets.Current, &secrets.Previous} {
		if *secret != "" {
			*secret = sealed + base64.StdEncoding.EncodeToString(key.Seal(nil, nil, []byte(*secret), []byte(id)))
		}
	}
	return secrets, nil
}

// open opens what seal has sealed for the same webhook. A secret that was stored without a key is
// returned as it is.
func (s sealer) open(id domain.WebhookID, secrets domain.WebhookSecrets) (domain.WebhookSecrets, error) {
	for _, secret := range []*string{&secrets.Current, &secrets.Previous} {
		text, is := strings.CutPrefix(*secret, sealed)
		if !is {
			continue
		}
		plain, err := s.opened(id, text)
		if err != nil {
			return domain.WebhookSecrets{}, fmt.Errorf("secret of webhook %s: %w; set --webhook-key to the key that has sealed it", id, err)
		}
		*secret = plain
	}
	return secrets, nil
}

func (s sealer) opened(id domain.WebhookID, text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", err
	}
	for _, k := range s {
		key, err := aead(k)
		if err != nil {
			return "", err
		}
		if plain, err := key.Open(nil, nil, data, []byte(id)); err == nil {
			return string(plain), nil
		}
	}
	return "", errors.New("it is sealed, and no key opens it")
}
