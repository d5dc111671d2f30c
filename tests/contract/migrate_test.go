package contract

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"crier/platform/migrations"
)

// retried is a log that closes done when a migration is retried.
type retried struct {
	once sync.Once
	done chan struct{}
}

func (r *retried) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "will be retried") {
		r.once.Do(func() { close(r.done) })
	}
	return len(line), nil
}

// TestMigrate_NoRequestFailsWhileItWaitsForLock changes the table post while a long transaction
// reads it, like a backup. It uses the real lock timeout, so requests wait behind the migration for
// just as long. testLog fails the test if the service logs an error.
func TestMigrate_NoRequestFailsWhileItWaitsForLock(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	backup, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backup.Close(t.Context()) })
	if _, err := backup.Exec(t.Context(), "begin; lock table post in access share mode"); err != nil {
		t.Fatal(err)
	}

	files := withMigration(t, "9999_reviewer.sql", "alter table post add column reviewer uuid")
	log := &retried{done: make(chan struct{})}
	migrated := make(chan error, 1)
	go func() {
		cfg := migrations.Config{URL: r.database, Files: files}
		migrated <- migrations.Migrate(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)))
	}()

	var stop atomic.Bool
	var mu sync.Mutex  // protects posts
	var posts []string // the ids of the posts to be published at once
	var served atomic.Int32
	var clients errgroup.Group
	for n := range 4 {
		c := o.channel(t, "A")
		clients.Go(func() error {
			for i := 0; !stop.Load(); i++ {
				id, err := o.useOnce(t.Context(), c, fmt.Sprintf("client %d, post %d", n, i))
				if err != nil {
					return err
				}
				mu.Lock()
				posts = append(posts, id)
				mu.Unlock()
				served.Add(1)
			}
			return nil
		})
	}
	more := func(than int32) {
		t.Helper()
		eventually(t, "more requests", func() bool { return served.Load() > than }, func() any { return served.Load() })
	}
	<-log.done
	more(8)
	if _, err := backup.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Error(err)
	}
	more(served.Load() + 8)
	stop.Store(true)
	if err := clients.Wait(); err != nil {
		t.Error(err)
	}
	for _, id := range posts {
		o.reaches(t, id, "PUBLISHED")
	}
	if _, err := backup.Exec(t.Context(), "select reviewer from post"); err != nil {
		t.Error(err)
	}
}

// useOnce publishes a post, schedules a second one, lists both and deletes the second. It returns
// the id of the first.
func (o org) useOnce(ctx context.Context, c channel, text string) (string, error) {
	var made []created
	ask := func(status int, method, path string, body any) error {
		a, err := o.attempt(ctx, method, path, body)
		if err != nil {
			return err
		}
		if a.Status != status {
			return fmt.Errorf("%s %s is answered with %v, want %d", method, path, a, status)
		}
		if status != http.StatusCreated {
			return nil
		}
		return a.Into(&made)
	}
	if err := ask(http.StatusCreated, http.MethodPost, "/posts", now(c.id, part(text))); err != nil {
		return "", err
	}
	out := made[0].PostID
	if err := ask(http.StatusCreated, http.MethodPost, "/posts", later(c.id, part(text))); err != nil {
		return "", err
	}
	if err := ask(http.StatusOK, http.MethodGet, "/posts?page=0", nil); err != nil {
		return "", err
	}
	return out, ask(http.StatusOK, http.MethodDelete, "/posts/"+made[0].PostID, nil)
}

// withMigration returns the product's migrations and one more.
func withMigration(t *testing.T, name, sql string) fstest.MapFS {
	t.Helper()
	const dir = "../../platform/migrations"
	paths, err := filepath.Glob(dir + "/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("%s has no migrations, want at least one", dir)
	}
	files := fstest.MapFS{name: &fstest.MapFile{Data: []byte(sql)}}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = &fstest.MapFile{Data: text}
	}
	return files
}
