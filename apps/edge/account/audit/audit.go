// Package audit provides the endpoint for the audit log.
package audit

import (
	"bytes"
	"context"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	Log AuditLog
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// AuditLog reads the audit log.
type AuditLog interface {
	// Audit returns audit log entries, newest first, and reports whether there are more.
	Audit(ctx context.Context, p tenancy.Principal, q tenancy.AuditQuery) (list []tenancy.AuditEvent, more bool, err error)
}

// Limits and names for the audit log endpoint.
const (
	auditPage    = 100 // entries on a page if the query has no limit
	maxAuditText = 128 // characters in a filter
	headerMore   = "X-Has-More"
	mimeCSV      = "text/csv"
)

// AuditRecord is an entry in the audit log.
type AuditRecord struct {
	ID           string  `json:"id"`
	At           string  `json:"at" format:"date-time"`
	Action       string  `json:"action" example:"key.created"`
	Actor        string  `json:"actor" doc:"Name of the actor at the time of the action: an email address, or the name of an API key."`
	ActorID      *string `json:"actorId" nullable:"true" doc:"Id of the person; null for the operator and the service."`
	Via          string  `json:"via" enum:"key,session,agent,instance,guest"`
	KeyID        *string `json:"keyId" nullable:"true" doc:"Id of the API key, if the actor used one."`
	Impersonator *string `json:"behind" nullable:"true" doc:"The instance administrator who impersonated the actor."`
	Subject      string  `json:"subject" doc:"What the action affected."`
	Address      string  `json:"address" doc:"IP address of the client."`
}

// Audit returns the endpoint that reads the organization's audit log as JSON or CSV.
func (a *API) Audit() route.Endpoint {
	d := route.Described(route.Describe("Settings", "Read the organization's audit log", 400),
		"Entries are listed newest first. A USER sees only their own entries. With Accept: text/csv, the response is "+
			"a CSV file; cells that a spreadsheet would interpret as formulas begin with an apostrophe.")
	text, number := &huma.Schema{Type: huma.TypeString}, &huma.Schema{Type: huma.TypeInteger}
	for _, p := range []struct {
		name, doc string
		schema    *huma.Schema
	}{
		{name: "from", doc: "ISO 8601, inclusive.", schema: text},
		{name: "to", doc: "ISO 8601, exclusive.", schema: text},
		{name: "actor", doc: "Id of a person, or part of an actor's name.", schema: text},
		{name: "action", doc: "Name of an action, such as key.created.", schema: text},
		{name: "page", doc: "Page number, starting at 0.", schema: number},
		{name: "limit", doc: "Entries per page, 1 to 1000 (default 100).", schema: number},
	} {
		d.Parameters = append(d.Parameters,
			&huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: p.schema})
	}
	return route.Raw(d, a.audit,
		route.Answer[[]AuditRecord](http.StatusOK, "A page of entries. The header X-Has-More says whether there are more."))
}

func (a *API) audit(c *fiber.Ctx) error {
	q, err := auditQuery(c.Query)
	if err != nil {
		return err
	}
	list, more, err := a.deps.Log.Audit(c.UserContext(), request.Principal(c.Context()), q)
	if err != nil {
		return err
	}
	records := make([]AuditRecord, 0, len(list))
	for _, e := range list {
		records = append(records, newAuditRecord(e))
	}
	c.Set(headerMore, strconv.FormatBool(more))
	if c.Accepts(fiber.MIMEApplicationJSON, mimeCSV) != mimeCSV {
		return c.JSON(records)
	}
	file, err := auditCSV(records)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, mimeCSV+"; charset=utf-8")
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="audit.csv"`)
	return c.Send(file)
}

func newAuditRecord(e tenancy.AuditEvent) AuditRecord {
	out := AuditRecord{
		ID: e.ID.String(), At: record.FormatTime(e.At), Action: string(e.Action), Actor: e.Actor, Via: string(e.Via),
		Impersonator: record.OptionalText(e.Impersonator), Subject: e.Subject, Address: e.Address,
	}
	if !e.Person.IsZero() {
		out.ActorID = record.OptionalText(e.Person.String())
	}
	if !e.Key.IsZero() {
		out.KeyID = record.OptionalText(e.Key.String())
	}
	return out
}

// auditQuery builds a query from the query parameters, which it reads with get. If any parameters
// are invalid, it returns an Invalid fault that lists them.
func auditQuery(get func(name string, fallback ...string) string) (tenancy.AuditQuery, error) {
	var faults tenancy.Inputs
	date := func(name string) (at time.Time) {
		if text := get(name); text != "" {
			parsed, ok := record.ParseDate(text)
			faults.Check(ok, name, record.DateRule(text))
			at = parsed
		}
		return at
	}
	number := func(name string, fallback, least, most int) int {
		text := get(name)
		if text == "" {
			return fallback
		}
		n, err := strconv.Atoi(text)
		faults.Check(err == nil && n >= least && n <= most, name,
			"must be a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return n
	}
	q := tenancy.AuditQuery{
		From: date("from"), To: date("to"), Actor: faults.Text("actor", get("actor"), maxAuditText),
		Action: faults.Text("action", get("action"), maxAuditText),
		Page:   number("page", 0, 0, maxAuditPages), Limit: number("limit", auditPage, 1, tenancy.MaxAuditPage),
	}
	return q, faults.Err("audit.audit")
}

// maxAuditPages is the highest page number that a client can request. It limits how many entries a
// query has to skip.
const maxAuditPages = 10_000

// auditCSV returns the records as CSV with a header line.
func auditCSV(records []AuditRecord) ([]byte, error) {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	rows := [][]string{{"id", "at", "action", "actor", "actorId", "via", "keyId", "behind", "subject", "address"}}
	for _, r := range records {
		rows = append(rows, []string{
			r.ID, r.At, r.Action, r.Actor, text(r.ActorID), r.Via, text(r.KeyID), text(r.Impersonator), r.Subject,
			r.Address,
		})
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = harmless(cell)
		}
	}
	var file bytes.Buffer
	if err := csv.NewWriter(&file).WriteAll(rows); err != nil {
		return nil, fault.Wrap(fault.Internal, "audit.auditCSV", "", err)
	}
	return file.Bytes(), nil
}

// harmless returns cell, prefixed with an apostrophe if a spreadsheet would interpret it as a
// formula. Example: =1+1 becomes '=1+1.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
