package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/tenancy"
	"crier/tests/call"
	"crier/tests/fixture"
	"crier/tests/pds"
)

// Organizations have Bluesky channels on the PDS. Every post has a separate channel, so that all
// posts are sent at once.
const (
	pictureOrgs  = 10
	picturePosts = 10 // per organization
	pictureAhead = 15 * time.Second
	picturePause = 15 * time.Minute // time limit for all posts
)

// pictures measures posts with an image of the largest allowed size: the peak memory of the
// service's process from its start to the last post, and the lateness of single text posts of other
// organizations on another server. Its floor is the same posts with text alone.
func pictures(ctx context.Context, r *rig) (err error) {
	server, stop, err := pds.Run(ctx, io.Discard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	texts, err := r.picturesRun(ctx, server.URL, nil)
	if err != nil {
		return err
	}
	images, err := largestImages()
	if err != nil {
		return err
	}
	ours, err := r.picturesRun(ctx, server.URL, images)
	if err != nil {
		return err
	}
	return r.emit(m{
		"bench": "pictures", "unit": "MB of peak memory", "posts": pictureOrgs * picturePosts,
		"organizations": pictureOrgs, "imageBytes": publishing.MaxImageSize,
		"ours": ours.peak, "floor": texts.peak, "more": ours.peak - texts.peak, "published": ours.published,
		"floorPublished": texts.published, "latestTextMs": ms(quantile(ours.late, 1)),
		"floorLatestTextMs": ms(quantile(texts.late, 1)),
		"p50TextMs":         ms(quantile(ours.late, .5)), "floorP50TextMs": ms(quantile(texts.late, .5)),
		"readyWhenDue": ours.ready, "lastOutSeconds": ours.last.Seconds(), "floorLastOutSeconds": texts.last.Seconds(),
	})
}

// picturesResult is the measurement of one run.
type picturesResult struct {
	peak      float64 // MB
	published int     // posts on Bluesky
	// ready is the number of pictures that were ready when their posts were due.
	ready int
	late  []time.Duration // of the single text posts, sorted
	// last is the time from the due time until the last post on Bluesky has ended.
	last time.Duration
}

// picturesRun publishes posts with images, or with text alone if images is empty.
func (r *rig) picturesRun(ctx context.Context, server string, images [][]byte) (out picturesResult, err error) {
	err = r.withDB(ctx, func(b *testDB) (err error) {
		few, err := b.createTenants(ctx, lonely, 1)
		if err != nil {
			return err
		}
		all, err := b.createTenants(ctx, pictureOrgs, 0)
		if err != nil {
			return err
		}
		if err := b.connectBluesky(ctx, server, all); err != nil {
			return err
		}
		n, err := b.serve(ctx, append(r.opts.settings, unlimited,
			"OUTBOUND_ALLOW="+strings.TrimPrefix(server, "http://"))...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.stop()) }()
		b.platform.begin(0)
		media, err := uploadImages(ctx, newClient(n, 1), all, images)
		if err != nil {
			return err
		}
		due := now().Add(pictureAhead).Truncate(time.Second)
		if err := b.bookSingles(ctx, few, due); err != nil {
			return err
		}
		if err := bookPictures(ctx, newClient(n, 1), all, media, due); err != nil {
			return err
		}
		if err := until(ctx, due); err != nil {
			return err
		}
		const ready = "select count(*) from derived_picture where state = 'ready'"
		if err := b.super.QueryRow(ctx, ready).Scan(&out.ready); err != nil {
			return err
		}
		if err := b.awaitPosts(ctx, lonely, lonely); err != nil {
			return err
		}
		out.late = b.platform.end().latest(few)
		out.published, err = b.awaitBlueskyEnd(ctx)
		if err != nil {
			return err
		}
		out.last = now().Sub(due)
		out.peak, err = peakOf(n.cmd.Process.Pid)
		return err
	})
	return out, err
}

// awaitBlueskyEnd waits until no post on Bluesky is in flight and returns the number of published
// posts. A failed post is an error.
func (b *testDB) awaitBlueskyEnd(ctx context.Context) (published int, err error) {
	patience, cancel := context.WithTimeout(ctx, picturePause)
	defer cancel()
	for {
		var left int
		var failed *string
		if err := b.super.QueryRow(patience, `select count(*) filter (where p.state = 'PUBLISHED'), count(*) filter (where p.state not in ('PUBLISHED', 'ERROR')), min(p.error)
			from post p join channel c on c.id = p.channel_id where c.connector = 'bluesky'`).Scan(&published, &left, &failed); err != nil {
			return 0, err
		}
		if failed != nil {
			return 0, fmt.Errorf("a post was not published: %s", *failed)
		}
		if left == 0 {
			return published, nil
		}
		if err := wait(patience, 200*time.Millisecond); err != nil {
			return 0, fmt.Errorf("%d posts have not ended: %w", left, err)
		}
	}
}

// connectBluesky gives each organization channels, each with a separate account.
func (b *testDB) connectBluesky(ctx context.Context, server string, all []tenant) error {
	c := &client{http: &http.Client{Timeout: time.Minute}}
	for i := range all {
		for range picturePosts {
			var account struct{ DID, Handle, AccessJWT, RefreshJWT string }
			name := "u" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12] + ".test"
			if err := c.ask(ctx, server+"/xrpc/com.atproto.server.createAccount", "",
				m{"handle": name, "password": "bench-bench", "email": name + "@example.com"}, &account); err != nil {
				return err
			}
			sealed, err := b.seal(all[i].org, m{"service": server, "server": server, "identifier": name,
				"password": "bench-bench", "did": account.DID, "handle": account.Handle,
				"accessJwt": account.AccessJWT, "refreshJwt": account.RefreshJWT})
			if err != nil {
				return err
			}
			id := uuid.New()
			all[i].channels = append(all[i].channels, id)
			batch := &pgx.Batch{}
			batch.Queue(`insert into channel (org_id, id, connector, name, profile, account_id, grade, credential)
				values ($1, $2, 'bluesky', $3, $3, $4, 'A', $5)`,
				all[i].org.UUID(), id, name, account.DID, sealed)
			batch.Queue(`insert into channel_queue (channel_id, org_id, shard, connector)
				values ($1, $2, $3, 'bluesky')`, id, all[i].org.UUID(), int16(tenancy.Shard(all[i].org)))
			if err := b.super.SendBatch(ctx, batch).Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask posts a body and decodes the response into into. A status other than 2xx is an error.
func (c *client) ask(ctx context.Context, address, key string, body, into any, headers ...string) error {
	a, err := call.Do(ctx, c.http, http.MethodPost, address, body,
		append([]string{"Authorization", key}, headers...)...)
	if err != nil {
		return err
	}
	return a.Into(into)
}

// uploadImages uploads a different image for every post and returns the ids, or none if images is
// empty.
func uploadImages(ctx context.Context, c *client, all []tenant, images [][]byte) (media []string, err error) {
	if len(images) == 0 {
		return nil, nil
	}
	for i := range len(all) * picturePosts {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		part, err := w.CreateFormFile("file", "picture")
		if err != nil {
			return nil, err
		}
		// Bytes after the end of the image make each file different and exactly as large as
		// allowed.
		raw := append(slices.Clip(images[i%len(images)]), strconv.Itoa(i)...)
		raw = append(raw, make([]byte, publishing.MaxImageSize-len(raw))...)
		if _, err := part.Write(raw); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		var medium struct{ ID string }
		if err := c.ask(ctx, c.address+"/upload", all[i/picturePosts].key, b.Bytes(), &medium, "Content-Type",
			w.FormDataContentType()); err != nil {
			return nil, err
		}
		media = append(media, medium.ID)
	}
	return media, nil
}

func bookPictures(ctx context.Context, c *client, all []tenant, media []string, due time.Time) error {
	for i := range len(all) * picturePosts {
		t := all[i/picturePosts]
		images := []m{}
		if len(media) > 0 {
			images = append(images, m{"id": media[i], "alt": "A picture"})
		}
		if err := c.call(ctx, t.key, http.MethodPost, "/posts", m{
			"type": "schedule", "date": due.UTC().Format("2006-01-02T15:04:05.000Z"), "shortLink": false,
			"tags": []any{},
			"posts": []m{{"integration": m{"id": t.channels[i%picturePosts].String()},
				"value": []m{{"content": "Post " + strconv.Itoa(i), "image": images}}}},
		}, http.StatusCreated); err != nil {
			return err
		}
	}
	return nil
}

// largestImages returns images of nearly the largest allowed size in bytes: a photo of 40 million
// pixels, the JPEG that takes the most memory, and a PNG.
func largestImages() (out [][]byte, err error) {
	const room = 1000 // room for the bytes that make each file different
	r := rand.New(rand.NewPCG(1, 2))
	photo := image.NewYCbCr(image.Rect(0, 0, 8000, 5000), image.YCbCrSubsampleRatio420)
	for i := range photo.Y {
		photo.Y[i] = byte(i/photo.YStride/32 + int(r.Uint32()&7))
	}
	for i := range photo.Cb {
		photo.Cb[i], photo.Cr[i] = byte(i%photo.CStride/16), byte(i/photo.CStride/10)
	}
	var b bytes.Buffer
	for quality := 95; quality == 95 || b.Len() > publishing.MaxImageSize-room; quality -= 5 {
		b.Reset()
		if err := jpeg.Encode(&b, photo, &jpeg.Options{Quality: quality}); err != nil {
			return nil, err
		}
	}
	out = append(out, slices.Clone(b.Bytes()), fixture.BlankJPEG(8000, 5000, false, 0x11, "\x01\x02\x03"))
	graphic := image.NewRGBA(image.Rect(0, 0, 1860, 1860))
	for i := range graphic.Pix {
		graphic.Pix[i] = byte(r.Uint32())
		if i%4 == 3 {
			graphic.Pix[i] = 255
		}
	}
	b.Reset()
	if err := png.Encode(&b, graphic); err != nil {
		return nil, err
	}
	return append(out, b.Bytes()), nil
}
