package media_test

import (
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func FuzzUpload(f *testing.F) {
	s := edgetest.New(f, nil)
	good, kind := edgetest.UploadForm(f, "file", "a.png", strings.NewReader("content"))
	f.Add(kind, good.String())
	form := "multipart/form-data; boundary=b"
	for _, seed := range [][2]string{
		{form, ""}, {form, "--b"}, {form, "--b--\r\n"}, {form, "--b\r\n\r\n\r\n--b--"}, {"multipart/form-data", "x"}, {"multipart/mixed; boundary=b", "--b\r\n"},
		{form, "--b\r\nContent-Disposition: form-data; name=file\r\n\r\nx"}, {"", ""}, {";;;", "x"}, {form + "; boundary=c", "--b"},
		{form, "--b\r\n" + strings.Repeat("A: b\r\n", 20000) + "\r\n"},
		{form, "--b\r\nContent-Disposition: form-data; name=file; filename=\"../../x\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=zz\r\n--b--\r\n"},
		{form, "--b\r\nContent-Disposition: form-data; name=file; filename=x\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=z\a\r\n--b--\r\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, kind, body string) {
		for _, c := range []byte(kind) {
			if c < ' ' || c > '~' {
				t.Skip() // no HTTP client sends this
			}
		}
		edgetest.WantNoServerError(t, s.Call(t, "POST", "/public/v1/upload", body, "Authorization", edgetest.APIKey, "Content-Type", kind))
	})
}
