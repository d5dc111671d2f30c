package boot

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"crier/billing"
	billingservice "crier/billing/service"
	"crier/platform/env"
)

// maxPlansFile is the maximum size of a plan file, in bytes.
const maxPlansFile = 1 << 20

// openPlans reads the plan file. It returns an env.Fault if the file cannot be read or is not a
// valid plan file.
func (a *App) openPlans(context.Context) error {
	catalogue, err := readPlans(a.cfg.PlansFile)
	if err != nil {
		return env.Fault{Name: "PLANS_FILE", Message: "does not name a usable plan file: " + err.Error()}
	}
	if catalogue.Limited() {
		a.log.Info("organizations have plans", "file", a.cfg.PlansFile, "default", catalogue.Default,
			"organizations with a plan of their own", len(catalogue.Assigned))
	}
	a.plans = billingservice.New(catalogue)
	return nil
}

func readPlans(file string) (billing.Catalogue, error) {
	if file == "" {
		return billing.Catalogue{}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return billing.Catalogue{}, withoutPath(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxPlansFile+1))
	if err != nil {
		return billing.Catalogue{}, withoutPath(err)
	}
	if len(raw) > maxPlansFile {
		return billing.Catalogue{}, errors.New("it is larger than 1 MB")
	}
	return billing.Parse(raw)
}

// withoutPath returns the cause of a file error. It omits the path, which is a variable's value,
// because messages about a variable must not contain its value.
func withoutPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
