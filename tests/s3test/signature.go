package s3test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	streaming = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	unsigned  = "UNSIGNED-PAYLOAD"
	maxChunk  = 1 << 20 // in bytes
)

var errSignature = errors.New("the signature is wrong")

// checkSignatures returns a handler that refuses requests whose header or content is not signed
// with SecretKey. It passes the content on without the signatures of its chunks.
func checkSignatures(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signature, key, scope, err := checkHeader(r)
		if err != nil {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(
				w, "<Error><Code>SignatureDoesNotMatch</Code><Message>"+err.Error()+"</Message></Error>",
			)
			return
		}
		switch hash := r.Header.Get("X-Amz-Content-Sha256"); hash {
		case unsigned:
		case streaming:
			size, err := strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
			if err != nil {
				http.Error(w, "no length", http.StatusBadRequest)
				return
			}
			signed := &chunks{
				r: bufio.NewReader(r.Body), key: key, last: signature,
				date: r.Header.Get("X-Amz-Date"), scope: scope,
			}
			r.Body, r.ContentLength = io.NopCloser(signed), size
			r.Header.Set("X-Amz-Content-Sha256", unsigned)
			r.Header.Del("Content-Encoding")
		default:
			body, err := io.ReadAll(io.LimitReader(r.Body, maxChunk))
			if err != nil || hexSum(body) != hash {
				http.Error(w, "the hash of the content is wrong", http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
		}
		next.ServeHTTP(w, r)
	})
}

// checkHeader checks the header Authorization. It returns the signature, the key and the scope,
// which the signatures of the content need.
func checkHeader(r *http.Request) (signature string, key []byte, scope string, err error) {
	kind, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	fields := map[string]string{}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	access, scope, _ := strings.Cut(fields["Credential"], "/")
	date := r.Header.Get("X-Amz-Date")
	if kind != algorithm || access != AccessKey || len(date) < 8 || scope != date[:8]+"/"+Region+"/s3/aws4_request" {
		return "", nil, "", errSignature
	}
	names := strings.Split(fields["SignedHeaders"], ";")
	if !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date") {
		return "", nil, "", errSignature
	}
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	canonical := strings.Join([]string{
		r.Method, escape(r.URL.Path, true), canonicalQuery(r.URL.Query()), headers.String(), fields["SignedHeaders"],
		r.Header.Get("X-Amz-Content-Sha256"),
	}, "\n")
	key = sum(sum(sum(sum([]byte("AWS4"+SecretKey), date[:8]), Region), "s3"), "aws4_request")
	want := hex.EncodeToString(sum(
		key, strings.Join([]string{algorithm, date, scope, hexSum([]byte(canonical))}, "\n"),
	))
	if !hmac.Equal([]byte(want), []byte(fields["Signature"])) {
		return "", nil, "", errSignature
	}
	return want, key, scope, nil
}

func canonicalQuery(query url.Values) string {
	var pairs []string
	for name, values := range query {
		for _, value := range values {
			pairs = append(pairs, escape(name, false)+"="+escape(value, false))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape encodes every byte except unreserved characters and, in a path, slashes.
func escape(s string, path bool) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-_.~", c) >= 0 || path && c == '/' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// chunks reads content in signed chunks. The signature of each chunk covers the signature of the
// one before it.
type chunks struct {
	r           *bufio.Reader
	key         []byte
	last        string
	date, scope string
	chunk       []byte
	err         error
}

func (c *chunks) Read(p []byte) (int, error) {
	for len(c.chunk) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		c.chunk, c.err = c.next()
	}
	n := copy(p, c.chunk)
	c.chunk = c.chunk[n:]
	return n, nil
}

// next returns the next chunk if its signature is correct, and io.EOF after the last one.
func (c *chunks) next() ([]byte, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	number, signature, _ := strings.Cut(strings.TrimSuffix(line, "\r\n"), ";chunk-signature=")
	size, err := strconv.ParseInt(number, 16, 64)
	if err != nil || size > maxChunk {
		return nil, errSignature
	}
	data := make([]byte, size+2)
	if _, err := io.ReadFull(c.r, data); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	data = data[:size]
	text := strings.Join([]string{algorithm + "-PAYLOAD", c.date, c.scope, c.last, hexSum(nil), hexSum(data)}, "\n")
	want := hex.EncodeToString(sum(c.key, text))
	if !hmac.Equal([]byte(want), []byte(signature)) {
		return nil, errSignature
	}
	c.last = want
	if size == 0 {
		return nil, io.EOF
	}
	return data, nil
}

func sum(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
