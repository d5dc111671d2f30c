package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// overTLS measures the same small burst with three platforms behind TLS: one closes each connection
// after a response and resumes no session, one resumes sessions, and one keeps connections open.
// The first is the floor.
func overTLS(ctx context.Context, r *rig) error {
	chain, root, err := certificates()
	if err != nil {
		return err
	}
	roots := r.path("roots.pem")
	if err := os.WriteFile(roots, root, 0o600); err != nil {
		return err
	}
	plain := r.platform
	defer func() { r.platform = plain }()
	var floor float64
	for _, variant := range []struct {
		connections  string
		resume, keep bool
	}{
		{connections: "fresh", resume: false, keep: false},
		{connections: "resumed", resume: true, keep: false},
		{connections: "kept", resume: true, keep: true},
	} {
		cfg := &tls.Config{Certificates: []tls.Certificate{chain}, SessionTicketsDisabled: !variant.resume}
		r.platform, err = listen(ctx, tlsOptions{tls: cfg, roots: roots, closing: !variant.keep})
		if err != nil {
			return err
		}
		x := burst{posts: min(20_000, r.opts.posts), organizations: min(250, r.opts.organizations), channels: 2}
		out, err := x.run(ctx, r)
		err = errors.Join(err, r.platform.close())
		if err != nil {
			return err
		}
		line := x.line("tls", out)
		ours := x.per(out.used.cpu())
		if floor == 0 {
			floor = ours
		}
		line["unit"], line["ours"], line["floor"], line["ratio"] = "CPU-ms/post", ours, floor, ours/floor
		per := func(n *atomic.Int64) float64 { return float64(n.Load()) / float64(x.posts) }
		line["connections"], line["connectionsPerPost"] = variant.connections, per(&r.platform.accepted)
		line["resumedPerPost"] = per(&r.platform.resumed)
		if err := r.emit(line); err != nil {
			return err
		}
	}
	return nil
}

// certificates returns the certificate chain of a server on loopback, and the PEM certificate of
// the authority that signed it.
func certificates() (chain tls.Certificate, root []byte, err error) {
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return chain, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return chain, nil, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now().Add(-time.Hour), NotAfter: now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, ca, ca, authority.Public(), authority)
	if err != nil {
		return chain, nil, err
	}
	signed, err := x509.CreateCertificate(rand.Reader, server, ca, key.Public(), authority)
	if err != nil {
		return chain, nil, err
	}
	chain = tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
	return chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), nil
}
