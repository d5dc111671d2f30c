package dbtest

import (
	"context"
	"crypto/rand"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"crier/platform/pg/local"
)

const containerSeconds = 1800

// fromDocker starts a container for this test process. Docker removes the container after
// containerSeconds.
func fromDocker(ctx context.Context) (server, error) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return server{}, err
	}
	if err := pool.Client.Ping(); err != nil {
		return server{}, err
	}
	password := rand.Text()
	box, err := pool.RunWithOptions(&dockertest.RunOptions{
		Repository: "postgres", Tag: "17", Env: []string{"POSTGRES_PASSWORD=" + password},
		Cmd: []string{"postgres", "-c", "fsync=off", "-c", "max_connections=1000", "-c",
			"shared_preload_libraries=pg_stat_statements", "-c", trackNothing},
	}, func(h *docker.HostConfig) { h.AutoRemove = true })
	if err != nil {
		return server{}, err
	}
	if err := box.Expire(containerSeconds); err != nil {
		return server{}, err
	}
	s := server{super: "postgres://postgres:" + password + "@" + box.GetHostPort("5432/tcp") +
		"/postgres?sslmode=disable"}
	err = pool.Retry(func() error {
		s.owner, err = local.CreateOwner(ctx, s.super, password)
		return err
	})
	if err != nil {
		return server{}, err
	}
	return s, allowDatabases(ctx, s.super)
}
