package env_test

import (
	"context"
	"fmt"
	"time"

	"crier/platform/env"
)

type mailConfig struct {
	URL     string        `env:"SMTP_URL, required" doc:"The mail server."`
	Timeout time.Duration `env:"SMTP_TIMEOUT, default=30s" doc:"How long a delivery may take."`
}

func (c mailConfig) Validate() error {
	var f env.Faults
	f.Duration("SMTP_TIMEOUT", c.Timeout, time.Second, time.Minute)
	return f.Err()
}

// Load reports all faults at once.
func ExampleLoad() {
	variables := map[string]string{"SMTP_TIMEOUT": "2m"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	var cfg mailConfig
	fmt.Println(env.Load(context.Background(), lookup, &cfg))
	variables["SMTP_URL"], variables["SMTP_TIMEOUT"] = "smtp://localhost", ""
	fmt.Println(env.Load(context.Background(), lookup, &cfg), cfg.Timeout)
	// Output:
	// SMTP_URL: is required
	// SMTP_TIMEOUT: must be a duration from 1s to 1m
	// <nil> 30s
}
