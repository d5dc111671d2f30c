package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"crier/platform/fault"
)

// Kind holds the properties of an asset apart from its content.
type Kind struct {
	// Type is the content type.
	Type string
	// Policy is the asset's Content-Security-Policy; see the function Policy. If it is empty, the
	// service's default policy applies.
	Policy string
	// Immutable means that the asset's URL changes whenever its content changes. Browsers cache an
	// immutable asset for a year. Before using any other cached asset, they check for a new
	// version.
	Immutable bool
}

func (k Kind) caching() string {
	if k.Immutable {
		return "public, max-age=31536000, immutable"
	}
	return "no-cache"
}

// Asset is a page or a file that is the same for all requests. It is stored compressed and is safe
// for concurrent use.
type Asset struct {
	kind       Kind
	tag        string
	compressed []byte
	size       int // uncompressed, in bytes
}

// NewAsset compresses content and returns it as an asset.
func NewAsset(kind Kind, content []byte) (*Asset, error) {
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
	return CompressedAsset(kind, b.Bytes())
}

// gzipTrailer is the length of a gzip file's trailer, in bytes. The last four bytes hold the size
// of the uncompressed content.
const gzipTrailer = 8

// CompressedAsset returns an asset whose content is already compressed. The content must be one
// gzip member of less than 4 GiB.
func CompressedAsset(kind Kind, compressed []byte) (*Asset, error) {
	if len(compressed) < gzipTrailer {
		return nil, errors.New("the content is not compressed with gzip")
	}
	size := binary.LittleEndian.Uint32(compressed[len(compressed)-4:])
	sum := sha256.Sum256(compressed)
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return &Asset{kind: kind, tag: tag, compressed: compressed, size: int(size)}, nil
}

// Content returns a reader for the uncompressed content.
func (a *Asset) Content() (io.Reader, error) { return gzip.NewReader(bytes.NewReader(a.compressed)) }

// Send responds with the asset. If the client accepts gzip, the response is compressed. If the
// client already has the asset, the response has no body. If Send fails, it returns Internal.
func (a *Asset) Send(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, a.kind.Type)
	c.Set(fiber.HeaderCacheControl, a.kind.caching())
	c.Set(fiber.HeaderETag, a.tag)
	c.Vary(fiber.HeaderAcceptEncoding)
	if a.kind.Policy != "" {
		c.Set(fiber.HeaderContentSecurityPolicy, a.kind.Policy)
	}
	if strings.Contains(c.Get(fiber.HeaderIfNoneMatch), a.tag) {
		c.Status(http.StatusNotModified)
		return nil
	}
	if c.Context().Request.Header.HasAcceptEncoding("gzip") {
		c.Set(fiber.HeaderContentEncoding, "gzip")
		return c.Send(a.compressed)
	}
	r, err := a.Content()
	if err != nil {
		return fault.Wrap(fault.Internal, "page.Send", "", err)
	}
	c.Context().SetBodyStream(r, a.size)
	return nil
}
