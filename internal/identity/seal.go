package identity

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// SessionKey seals sessions.
type SessionKey []byte

// sessionKeyBytes is the length of a SessionKey.
const sessionKeyBytes = 32

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *SessionKey) UnmarshalText(text []byte) error {
	key, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(key) != sessionKeyBytes {
		return errors.New("give 32 random bytes in base64, such as openssl rand -base64 32 prints")
	}
	*k = key
	return nil
}

// sealer encrypts and authenticates what browsers keep. The first key seals; all open.
type sealer struct {
	keys  []cipher.AEAD
	bound []byte // what is sealed opens only where this is the same
}

// newSealer derives keys for one purpose: what is sealed for another does not open.
func newSealer(keys []SessionKey, purpose, bound string) (*sealer, error) {
	s := &sealer{bound: []byte(bound)}
	for _, key := range keys {
		derived, err := hkdf.Key(sha256.New, key, nil, "dronefleet "+purpose, sessionKeyBytes)
		if err != nil {
			return nil, fmt.Errorf("derive the key for a %s: %w", purpose, err)
		}
		block, err := aes.NewCipher(derived)
		if err != nil {
			return nil, fmt.Errorf("use the key for a %s: %w", purpose, err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("use the key for a %s: %w", purpose, err)
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

func (s *sealer) seal(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.keys[0].Seal(nil, nil, text, s.bound)), nil
}

// open reports whether one of the keys has sealed a text, and decodes it.
func (s *sealer) open(sealed string, v any) bool {
	data, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return false
	}
	for _, key := range s.keys {
		if text, err := key.Open(nil, nil, data, s.bound); err == nil {
			return json.Unmarshal(text, v) == nil
		}
	}
	return false
}
