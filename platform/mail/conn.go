package mail

import (
	"errors"
	"net"
)

// maxAnswers is how many bytes a server may send on one connection. A TLS handshake and a dozen
// replies need less.
const maxAnswers = 1 << 20

// boundedConn is a connection whose reads fail after a limited number of bytes. left is how many
// more can be read. SMTP clients buffer a whole reply in memory, so without a limit, a server could
// exhaust the memory.
type boundedConn struct {
	net.Conn
	left int
}

// Read reads at most c.left bytes, and fails if c.left is 0.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the mail server sent too much")
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
