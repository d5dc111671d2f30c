package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"crier/platform/fault"
)

// How long browsers may keep an asset.
const (
	// revalidate is for addresses whose content changes: browsers ask each time whether it has.
	revalidate = "no-cache"
	// immutable is for addresses that have the version of their content in them.
	immutable = "public, max-age=31536000, immutable"
)

// Asset is a page or a file that is kept compressed. It is safe for concurrent use.
type Asset struct {
	contentType, caching, tag string
	// policy is the Content-Security-Policy; without it the one of the service stays.
	policy     string
	compressed []byte
	size       int // bytes, not compressed
}

// newAsset compresses content.
func newAsset(contentType, caching string, content []byte) (*Asset, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compressedAsset(contentType, caching, b.Bytes(), len(content)), nil
}

func compressedAsset(contentType, caching string, compressed []byte, size int) *Asset {
	sum := sha256.Sum256(compressed)
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return &Asset{contentType: contentType, caching: caching, tag: tag, compressed: compressed, size: size}
}

// Send answers with the asset: compressed if the client takes that, and without a body if it has it already. Its error
// is Internal.
func (a *Asset) Send(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, a.contentType)
	c.Set(fiber.HeaderCacheControl, a.caching)
	c.Set(fiber.HeaderETag, a.tag)
	c.Vary(fiber.HeaderAcceptEncoding)
	if a.policy != "" {
		c.Set(fiber.HeaderContentSecurityPolicy, a.policy)
	}
	if strings.Contains(c.Get(fiber.HeaderIfNoneMatch), a.tag) {
		c.Status(http.StatusNotModified)
		return nil
	}
	if c.Context().Request.Header.HasAcceptEncoding("gzip") {
		c.Set(fiber.HeaderContentEncoding, "gzip")
		return c.Send(a.compressed)
	}
	r, err := gzip.NewReader(bytes.NewReader(a.compressed))
	if err != nil {
		return fault.Wrap(fault.Internal, "docs.Send", "", err)
	}
	c.Context().SetBodyStream(r, a.size)
	return nil
}
