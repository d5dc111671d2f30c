package nostr

import (
	"errors"
	"strings"
)

// bech32 of BIP-173, without its limit of 90 characters, as NIP-19 uses it.
const (
	charset  = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	checkLen = 6
)

var errBech32 = errors.New("not a bech32 string")

func encodeBech32(prefix string, data []byte) string {
	groups := regroup8to5(data)
	sum := polymod(append(expand(prefix), append(groups, make([]byte, checkLen)...)...)) ^ 1
	for i := range checkLen {
		groups = append(groups, byte(sum>>(5*(checkLen-1-i)))&31)
	}
	var b strings.Builder
	b.WriteString(prefix + "1")
	for _, g := range groups {
		b.WriteByte(charset[g])
	}
	return b.String()
}

func decodeBech32(s string) (prefix string, data []byte, err error) {
	lower := strings.ToLower(s)
	if lower != s && strings.ToUpper(s) != s {
		return "", nil, errBech32 // mixed case is forbidden
	}
	cut := strings.LastIndexByte(lower, '1')
	if cut < 1 || len(lower)-cut-1 < checkLen {
		return "", nil, errBech32
	}
	prefix = lower[:cut]
	var groups []byte
	for _, c := range []byte(lower[cut+1:]) {
		g := strings.IndexByte(charset, c)
		if g < 0 {
			return "", nil, errBech32
		}
		groups = append(groups, byte(g))
	}
	if polymod(append(expand(prefix), groups...)) != 1 {
		return "", nil, errBech32
	}
	data, err = regroup5to8(groups[:len(groups)-checkLen])
	return prefix, data, err
}

func polymod(groups []byte) uint32 {
	generator := [5]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3}
	sum := uint32(1)
	for _, g := range groups {
		top := sum >> 25
		sum = (sum&0x1ffffff)<<5 ^ uint32(g)
		for i, gen := range generator {
			if top>>i&1 == 1 {
				sum ^= gen
			}
		}
	}
	return sum
}

func expand(prefix string) []byte {
	out := make([]byte, 2*len(prefix)+1)
	for i, c := range []byte(prefix) {
		out[i], out[len(prefix)+1+i] = c>>5, c&31
	}
	return out
}

func regroup8to5(data []byte) []byte {
	var out []byte
	var bits, have uint
	for _, b := range data {
		bits, have = bits<<8|uint(b), have+8
		for have >= 5 {
			have -= 5
			out = append(out, byte(bits>>have)&31)
		}
	}
	if have > 0 {
		out = append(out, byte(bits<<(5-have))&31)
	}
	return out
}

// regroup5to8 refuses padding that is not the shortest run of zeros.
func regroup5to8(groups []byte) ([]byte, error) {
	var out []byte
	var bits, have uint
	for _, g := range groups {
		bits, have = bits<<5|uint(g), have+5
		if have >= 8 {
			have -= 8
			out = append(out, byte(bits>>have))
		}
	}
	if have >= 5 || bits&(1<<have-1) != 0 {
		return nil, errBech32
	}
	return out, nil
}
