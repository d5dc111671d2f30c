// Command stop stops the Postgres cluster that test runs share; the next run starts it again.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"crier/tests/dbtest"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := dbtest.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
