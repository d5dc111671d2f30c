package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority makes a certificate that is its own authority and returns the files of it and of its key.
func authority(t *testing.T) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"other.test"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Whoever has no certificate of the authority must not give orders to a process.
func TestTLS_RequiresACertificateOfTheAuthority(t *testing.T) {
	t.Parallel()
	cert, key := authority(t)
	own, err := Config{Cert: cert, Key: key, CA: cert}.tls()
	if err != nil {
		t.Fatal(err)
	}
	otherCert, otherKey := authority(t)
	stranger, err := tls.LoadX509KeyPair(otherCert, otherKey)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // nothing depends on it any more
	for name, c := range map[string]struct {
		shown []tls.Certificate
		most  uint16
		in    bool
	}{
		"one of the authority":          {own.Certificates, tls.VersionTLS13, true},
		"none":                          {nil, tls.VersionTLS13, false},
		"one of another authority":      {[]tls.Certificate{stranger}, tls.VersionTLS13, false},
		"one of the authority, TLS 1.2": {own.Certificates, tls.VersionTLS12, false},
	} {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go func() { // its error is the server's, too
			_ = tls.Client(client, &tls.Config{RootCAs: own.RootCAs, ServerName: "other.test", Certificates: c.shown, MaxVersion: c.most}).HandshakeContext(t.Context())
		}()
		if err := tls.Server(conn, own).HandshakeContext(t.Context()); (err == nil) != c.in {
			t.Errorf("%s: the process answers with %v, want it let in: %v", name, err, c.in)
		}
		_ = conn.Close() // of a test that is over
		_ = client.Close()
	}
}
