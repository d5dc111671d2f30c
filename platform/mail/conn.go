package mail

import (
	"errors"
	"net"
)

// maxAnswers limits the bytes that a server sends in one connection: the TLS handshake and a dozen answers.
const maxAnswers = 1 << 20

// boundedConn is a connection that fails after left bytes were read. Clients of SMTP collect an answer in memory until
// its last line, so that a server could fill it.
type boundedConn struct {
	net.Conn
	left int
}

// Read reads at most left bytes, and fails when there are none.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the mail server sent too much")
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
