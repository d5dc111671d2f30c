package sandbox

import (
	_ "embed"
	"errors"
	"hash/fnv"
	"html/template"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"crier/platform/id"
)

const pagePosts = 200

//go:embed page.html
var pageSource string

//go:embed style.css
var styleSource string

func parsePage() (*template.Template, error) {
	return template.New("page").Parse(pageSource)
}

type pageView struct {
	Accounts []*account
	One      *account // the account named by ?account=, or nil
	Alone    bool     // whether the page shows only the thread that contains the post of ?post=
	Full     int      // number of posts shown if older ones are left out, else 0
	Threads  []thread
}

// thread is an item on the page. The page shows the newest thread first. Within a thread, it shows
// the posts in the order in which they were published.
type thread struct {
	Account *account
	Posts   []pagePost
}

type pagePost struct {
	postView
	Reply bool
}

// Clock formats the post's time for page.html. The template also calls Stamp and Video.
func (v pagePost) Clock() string { return v.CreatedAt.UTC().Format("2 January 2006, 15:04:05 UTC") }

func (v pagePost) Stamp() string { return v.CreatedAt.UTC().Format(time.RFC3339) }

func (m postMedia) Video() bool { return m.Type == "video/mp4" }

// pages serves the HTML pages and the files that these pages use.
type pages struct{ *Platform }

func (p pages) servePage(w http.ResponseWriter, r *http.Request) {
	view, err := p.pageOf(r)
	if err != nil {
		p.failure(err).send(w)
		return
	}
	var b strings.Builder
	if err := p.page.Execute(&b, view); err != nil {
		p.failure(err).send(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(b.String())) // the client may have disconnected
}

func (p pages) pageOf(r *http.Request) (pageView, error) {
	q, err := query(r, "account", "post")
	if err != nil {
		return pageView{}, err
	}
	view, keep, err := p.choose(q.Get("account"), q.Get("post"))
	if err != nil {
		return view, err
	}
	entries, recs, err := p.load(pagePosts, keep)
	if err != nil {
		return view, err
	}
	if len(entries) == pagePosts {
		view.Full = pagePosts
	}
	view.Threads = threads(entries, recs)
	return view, nil
}

// choose returns the view for an account name and a post id, both of which may be empty. It also
// returns a filter that accepts only the posts in the view.
func (p pages) choose(name, ref string) (pageView, func(*entry) bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	view, keep := pageView{}, func(*entry) bool { return true }
	for _, a := range p.state.accounts {
		view.Accounts = append(view.Accounts, a)
	}
	slices.SortFunc(view.Accounts, func(a, b *account) int { return strings.Compare(a.Name, b.Name) })
	if name != "" {
		view.One = p.state.accounts[name]
		if view.One == nil {
			return view, keep, refuse(http.StatusNotFound, "account_not_found", "There is no such account.")
		}
		keep = func(e *entry) bool { return e.account == view.One }
	}
	if ref != "" {
		e := p.state.entryOf(ref)
		if e == nil {
			return view, keep, refuse(http.StatusNotFound, "post_not_found",
				"There is no such post, or it was deleted.")
		}
		view.Alone, keep = true, func(o *entry) bool { return o.root == e.root }
	}
	return view, keep, nil
}

// threads groups posts by the first post of their thread. The posts must be ordered newest first.
func threads(entries []*entry, recs []record) []thread {
	list, index := []thread{}, map[postID]int{}
	for i, e := range entries {
		at, ok := index[e.root]
		if !ok {
			at = len(list)
			index[e.root] = at
			list = append(list, thread{Account: e.account})
		}
		v := recs[i].Post
		shown := postView{ID: v.ID, CreatedAt: e.at, Text: v.Text, Media: v.Media, ReplyTo: orNull(v.ReplyTo)}
		list[at].Posts = append(list[at].Posts, pagePost{postView: shown, Reply: e.root != e.id})
	}
	for _, t := range list {
		slices.Reverse(t.Posts)
	}
	return list
}

func (p pages) serveStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write([]byte(styleSource)) // the client may have disconnected
}

// serveMedia serves an uploaded file with its detected content type. The headers prevent browsers
// from interpreting the file as any other type.
func (p pages) serveMedia(w http.ResponseWriter, r *http.Request) {
	sum := r.PathValue("sha256")
	p.mu.Lock()
	kind := p.state.types[sum]
	p.mu.Unlock()
	if kind == "" {
		p.failure(refuse(http.StatusNotFound, "media_not_found", "There is no such media.")).send(w)
		return
	}
	file, err := os.Open(filepath.Join(p.dir, "media", sum))
	if err != nil {
		p.failure(err).send(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, file)
	if err := file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		p.opts.Log.Warn("sandbox: cannot close a media file", "error", err)
	}
}

// servePicture serves an account's profile picture, in two colors that depend on the account's id.
func (p pages) servePicture(w http.ResponseWriter, r *http.Request) {
	v, _ := id.Parse[account](r.PathValue("id"))
	p.mu.Lock()
	known := p.state.byID[v] != nil
	p.mu.Unlock()
	if !known {
		p.failure(refuse(http.StatusNotFound, "account_not_found", "There is no such account.")).send(w)
		return
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(v.String())) // a hash never fails
	n := sum.Sum32()
	tone := color.NRGBA{uint8(n), uint8(n >> 8), uint8(n >> 16), 255}
	img := image.NewNRGBA(image.Rect(0, 0, 128, 128))
	draw.Draw(img, img.Bounds(), image.NewUniform(tone), image.Point{}, draw.Src)
	inner := color.NRGBA{255 - tone.R, 255 - tone.G, 255 - tone.B, 255}
	draw.Draw(img, image.Rect(40, 40, 88, 88), image.NewUniform(inner), image.Point{}, draw.Src)
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "max-age=86400")
	_ = png.Encode(w, img) // the client may have disconnected
}
