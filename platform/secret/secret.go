// Package secret seals what must stay unread at rest, makes tokens and their hashes, and keeps secrets out of logs.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/xchacha20poly1305"
	"github.com/tink-crypto/tink-go/v2/insecuresecretdataaccess"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/secretdata"
	"github.com/tink-crypto/tink-go/v2/tink"

	"crier/platform/fault"
)

const keySize = 32

// Config holds the keys that seal secrets.
type Config struct {
	Keys Text `env:"ENCRYPTION_KEYS, required" doc:"comma-separated base64 keys of 32 bytes; the first seals, all of them open"`
}

// Validate tells what is wrong with the keys without showing them.
func (c Config) Validate() error {
	if _, err := c.Keyring(); err != nil {
		return fmt.Errorf("ENCRYPTION_KEYS: %w", err)
	}
	return nil
}

// Keyring makes the keyring of the configuration.
func (c Config) Keyring() (*Keyring, error) { return NewKeyring(strings.Split(c.Keys.Reveal(), ",")) }

// Keyring seals and opens. It is safe for concurrent use.
type Keyring struct{ aead tink.AEAD }

// NewKeyring takes base64 keys of 32 bytes. The first seals; all open, in any order, so a key is retired by moving it back
// and dropped when nothing is sealed by it any more.
func NewKeyring(keys []string) (*Keyring, error) {
	manager := keyset.NewManager()
	params, err := xchacha20poly1305.NewParameters(xchacha20poly1305.VariantTink)
	if err != nil {
		return nil, err
	}
	var faults []error
	ids := map[uint32]int{}
	for i, text := range keys {
		raw, err := decodeKey(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("key %d %w", i+1, err))
			continue
		}
		id := keyID(raw)
		if first, twice := ids[id]; twice {
			faults = append(faults, fmt.Errorf("key %d is the same as key %d", i+1, first))
			continue
		}
		ids[id] = i + 1
		faults = append(faults, addKey(manager, params, raw, id, i == 0))
	}
	if len(keys) == 0 {
		faults = append(faults, errors.New("no key is given"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	handle, err := manager.Handle()
	if err != nil {
		return nil, err
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, err
	}
	return &Keyring{primitive}, nil
}

func addKey(m *keyset.Manager, params *xchacha20poly1305.Parameters, raw []byte, id uint32, primary bool) error {
	key, err := xchacha20poly1305.NewKey(secretdata.NewBytesFromData(raw, insecuresecretdataaccess.Token{}), id, params)
	if err != nil {
		return err
	}
	if _, err := m.AddKey(key); err != nil {
		return err
	}
	if primary {
		return m.SetPrimary(id)
	}
	return nil
}

func decodeKey(text string) ([]byte, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != keySize {
		return nil, errors.New("is not base64 of 32 bytes") // the cause would quote the key
	}
	if string(raw) == string(make([]byte, keySize)) {
		return nil, errors.New("is all zeros")
	}
	return raw, nil
}

// keyID depends on the key only, so that what is sealed names its key across restarts and reorderings. Tink refuses 0.
func keyID(raw []byte) uint32 {
	sum := sha256.Sum256(append([]byte("crier key id "), raw...))
	return max(binary.BigEndian.Uint32(sum[:4]), 1)
}

// Seal encrypts plain so that only Open with the same bound (the organization's id) reads it. An empty bound is an error.
func (k *Keyring) Seal(plain []byte, bound string) ([]byte, error) {
	if bound == "" {
		return nil, fault.New(fault.Internal, "secret.Seal", "A secret must be bound to its owner.")
	}
	return k.aead.Encrypt(plain, []byte(bound))
}

// Open decrypts what Seal made; another bound, an unknown key or a changed byte is fault.Internal.
func (k *Keyring) Open(sealed []byte, bound string) ([]byte, error) {
	plain, err := k.aead.Decrypt(sealed, []byte(bound))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "secret.Open", "A stored secret could not be opened.", err)
	}
	return plain, nil
}

// GenerateKey makes a key for NewKeyring.
func GenerateKey() (string, error) {
	raw := make([]byte, keySize)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
