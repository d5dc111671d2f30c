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

// authority writes a new self-signed certificate and its key, and returns the names of the files.
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
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Only processes with a certificate of the authority may send messages to another process.
func TestTLS_RequiresCertificateOfAuthority(t *testing.T) {
	t.Parallel()
	cert, key := authority(t)
	own, err := Config{Cert: cert, Key: key, CA: cert}.tls()
	if err != nil {
		t.Fatal(err)
	}
	otherCert, otherKey := authority(t)
	foreign, err := tls.LoadX509KeyPair(otherCert, otherKey)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		maxVersion   uint16
		want         bool
	}{
		"certificate of the authority":       {certificates: own.Certificates, maxVersion: tls.VersionTLS13, want: true},
		"no certificate":                     {maxVersion: tls.VersionTLS13},
		"certificate of another authority":   {certificates: []tls.Certificate{foreign}, maxVersion: tls.VersionTLS13},
		"TLS 1.2 with the right certificate": {certificates: own.Certificates, maxVersion: tls.VersionTLS12},
	} {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go func() { // the error is checked on the server's side
			_ = tls.Client(client, &tls.Config{
				RootCAs: own.RootCAs, ServerName: "other.test", Certificates: c.certificates, MaxVersion: c.maxVersion,
			}).HandshakeContext(t.Context())
		}()
		if err := tls.Server(conn, own).HandshakeContext(t.Context()); (err == nil) != c.want {
			t.Errorf("%s: got %v, want a connection: %t", name, err, c.want)
		}
		_ = conn.Close()
		_ = client.Close()
	}
}
