// Package secret encrypts data at rest, generates and hashes tokens, and keeps secrets out of logs.
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

// Config holds an instance's encryption keys, which all its processes share.
type Config struct {
	// Keys are separated by commas. The first key encrypts; all keys decrypt.
	Keys Text `env:"ENCRYPTION_KEYS, required" doc:"Comma-separated list of base64-encoded 32-byte keys. The first key encrypts; all keys decrypt."`
}

// Validate returns an error that lists every invalid key by its position, without its text.
func (c Config) Validate() error {
	if _, err := c.Keyring(); err != nil {
		return fmt.Errorf("ENCRYPTION_KEYS: %w", err)
	}
	return nil
}

// Keyring returns a keyring with the configured keys. It returns the same errors as NewKeyring.
func (c Config) Keyring() (*Keyring, error) { return NewKeyring(strings.Split(c.Keys.Reveal(), ",")) }

// Keyring encrypts and decrypts secrets (XChaCha20-Poly1305). It is safe for concurrent use.
type Keyring struct{ aead tink.AEAD }

// NewKeyring returns a keyring with the given keys, each of which is 32 bytes in base64. Seal uses
// the first key, and Open accepts all keys, in any order. To rotate keys, put a new key first, and
// remove the old key once no stored secret is sealed with it. The error joins one error for each
// invalid or repeated key and contains no key text.
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
	return &Keyring{aead: primitive}, nil
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

// keyID returns the id that Tink stores in front of a sealed secret. The id depends only on the
// key, so secrets can still be opened after a restart or after the keys are reordered. Tink rejects
// the id 0.
func keyID(raw []byte) uint32 {
	sum := sha256.Sum256(append([]byte("crier key id "), raw...))
	return max(binary.BigEndian.Uint32(sum[:4]), 1)
}

// Seal encrypts plain. bound is the id of the organization that owns the secret. Open needs the
// same bound to decrypt the secret. Seal returns fault.Internal if bound is empty.
func (k *Keyring) Seal(plain []byte, bound string) ([]byte, error) {
	if bound == "" {
		return nil, fault.New(fault.Internal, "secret.Seal", "A secret must be bound to its owner.")
	}
	return k.aead.Encrypt(plain, []byte(bound))
}

// Open decrypts the result of Seal. It returns fault.Internal if bound differs, the key is unknown
// or the bytes were changed.
func (k *Keyring) Open(sealed []byte, bound string) ([]byte, error) {
	plain, err := k.aead.Decrypt(sealed, []byte(bound))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "secret.Open", "A stored secret could not be opened.", err)
	}
	return plain, nil
}

// GenerateKey returns a new random key in the form that NewKeyring accepts. It returns an error if
// the system's source of randomness fails.
func GenerateKey() (string, error) {
	raw := make([]byte, keySize)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
