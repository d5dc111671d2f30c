package key_test

import (
	"testing"

	"crier/tests/edgetest"
)

func TestAccounts_EveryRoute(t *testing.T) {
	t.Parallel()
	edgetest.CheckExchanges(t, []edgetest.Exchange{
		{
			As: edgetest.AdminSession, Method: "GET", Path: "/settings/api-keys", Status: 200, Calls: []string{"Keys"},
			Parts: []string{`"prefix":"crier_ab12…"`, `"lastUsedAt":"2026-01-02T03:04:05.000Z","expiresAt":null,"overlapUntil":null`,
				`"createdBy":{"id":"` + edgetest.PersonID.String() + `","email":"ada@example.org"}`},
		},
		{
			As: edgetest.AdminSession, Method: "POST", Path: "/settings/api-keys", Body: `{"name":"n","expiresAt":"2999-01-01"}`, Status: 201,
			Parts: []string{`"key":"` + edgetest.APIKey + `"`, `"expiresAt":"2999-01-01T00:00:00.000Z"`}, Calls: []string{"CreateKey n"},
		},
		{As: edgetest.AdminSession, Method: "POST", Path: "/settings/api-keys", Body: `{"name":"n","expiresAt":"2001-01-01"}`, Status: 400, Parts: []string{"expiresAt must be"}},
		{As: edgetest.AdminSession, Method: "PUT", Path: "/settings/api-keys/k1", Body: `{"name":"n"}`, Status: 200, Parts: []string{`"name":"n"`}, Calls: []string{"RenameKey k1 n"}},
		{As: edgetest.AdminSession, Method: "DELETE", Path: "/settings/api-keys/k1", Status: 200, Parts: []string{`{"id":"k1"}`}, Calls: []string{"DeleteKey k1"}},
		{As: edgetest.AdminSession, Method: "POST", Path: "/user/api-key/rotate", Status: 201, Parts: []string{`"apiKey":"` + edgetest.APIKey + `"`, `"name":"Key"`}, Calls: []string{"RotateKey  0"}},
		{As: edgetest.AdminSession, Method: "POST", Path: "/user/api-key/rotate", Body: `{"id":"k1","overlapHours":72}`, Status: 201, Calls: []string{"RotateKey k1 72"}},
		{As: edgetest.AdminSession, Method: "POST", Path: "/user/api-key/rotate", Body: `{"overlapHours":73}`, Status: 400, Parts: []string{"overlapHours"}},
	})
}
