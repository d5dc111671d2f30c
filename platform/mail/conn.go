package mail

import (
	"errors"
	"net"
)

// maxAnswers is how many bytes a server may send on one connection. A TLS handshake and a dozen
// replies need less.
const maxAnswers = 1 << 20

// boundedConn is a connection that fails once left bytes have been read. SMTP clients collect a
// reply in memory until its last line, so a server could otherwise exhaust the memory.
type boundedConn struct {
	net.Conn
	left int
}

// Read reads at most left bytes, and fails if left is 0.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the mail server sent too much")
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
