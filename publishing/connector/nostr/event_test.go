package nostr

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/bech32"
	"pgregory.net/rapid"

	"crier/tests/relay"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSign_FollowsBIP340(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct{ key, pub, aux, message, sig string }{
		"vector 0 gives the published signature": {
			key:     "0000000000000000000000000000000000000000000000000000000000000003",
			pub:     "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9",
			aux:     "0000000000000000000000000000000000000000000000000000000000000000",
			message: "0000000000000000000000000000000000000000000000000000000000000000",
			sig:     "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca821525f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0",
		},
		"vector 1 gives the published signature": {
			key:     "b7e151628aed2a6abf7158809cf4f3c762e7160f38b4da56a784d9045190cfef",
			pub:     "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
			aux:     "0000000000000000000000000000000000000000000000000000000000000001",
			message: "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
			sig:     "6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de33418906d11ac976abccb20b091292bff4ea897efcb639ea871cfa95f6de339e4b0a",
		},
		"vector 2 gives the published signature": {
			key:     "c90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b14e5c9",
			pub:     "dd308afec5777e13121fa72b9cc1b7cc0139715309b086c960e18fd969774eb8",
			aux:     "c87aa53824b4d7ae2eb035a2b5bbbccc080e76cdc6d1692c4b0b62d798e6d906",
			message: "7e2d58d8b3bcdf1abadec7829054f90dda9805aab56c77333024b9d0a508b75c",
			sig:     "5831aaeed7b44bb74e5eab94ba9d4294c49bcf2a60728d8b4c200f50dd313c1bab745879a5ad954a72c45a91c3a51d3c7adea98d82f8481e0e1e03674a6f3fb7",
		},
		"vector 3 gives the published signature": {
			key: "0b432b2677937381aef05bb02a66ecd012773062cf3fa2549e44f58ed2401710",
			pub: "25d1dff95105f5253c4022f628a996ad3a0d95fbf21d468a1b33f8c160d8f517",
			aux: strings.Repeat("f", 64), message: strings.Repeat("f", 64),
			sig: "7eb0509757e246f19449885651611cb965ecc1a187dd51b64fda1edc9637d5ec97582b9cb13db3933705b32ba982af5af25fd78881ebb32771fc5922efc66ea3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := parseKey(v.key)
			if err != nil {
				t.Fatal(err)
			}
			if got := publicKey(key); got != v.pub {
				t.Errorf("got the public key %s, want %s", got, v.pub)
			}
			sig, err := sign(key, [32]byte(unhex(t, v.message)), [32]byte(unhex(t, v.aux)))
			if err != nil || hex.EncodeToString(sig) != v.sig {
				t.Errorf("got the signature %x, %v; want %s", sig, err, v.sig)
			}
		})
	}
}

func TestDecodeBech32_FollowsNIP19(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct{ prefix, hex, text string }{
		"an npub goes both ways": {
			prefix: "npub", hex: "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e",
			text: "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg",
		},
		"another npub too": {
			prefix: "npub", hex: "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d",
			text: "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6",
		},
		"an nsec goes both ways": {
			prefix: "nsec", hex: "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa",
			text: "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5",
		},
		"an nprofile goes both ways": {prefix: "nprofile", hex: "00203bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d" +
			"010d" + hex.EncodeToString([]byte("wss://r.x.com")) + "0115" + hex.EncodeToString([]byte("wss://djbas.sadkb.com")),
			text: "nprofile1qqsrhuxx8l9ex335q7he0f09aej04zpazpl0ne2cgukyawd24mayt8gpp4mhxue69uhhytnc9e3k7mgpz4mhxue69uhkg6nzv9ejuumpv34kytnrdaksjlyr9p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := bech32.EncodeFromBase256(v.prefix, unhex(t, v.hex)); err != nil || got != v.text {
				t.Errorf("encoded: got %s, %v; want %s", got, err, v.text)
			}
			for _, text := range []string{v.text, strings.ToUpper(v.text)} {
				if prefix, data, err := decodeBech32(text); err != nil || prefix != v.prefix || hex.EncodeToString(data) != v.hex {
					t.Errorf("decoded: got %s %x, %v; want %s %s", prefix, data, err, v.prefix, v.hex)
				}
			}
		})
	}
}

func TestDecodeBech32_RefusesInvalid(t *testing.T) {
	t.Parallel()
	bech32m, err := bech32.EncodeM("nsec", make([]byte, 52))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "1", "npub1", "npub1qqqqqq", "1qqqqqqqq", "npub10Elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg", "npub1b0lfcs4",
		"npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptq", bech32m} {
		t.Run(bad+" is refused", func(t *testing.T) {
			t.Parallel()
			if _, _, err := decodeBech32(bad); err == nil {
				t.Error("got no error, want one")
			}
		})
	}
}

func TestCanonical_EscapesLikeNIP01(t *testing.T) {
	t.Parallel()
	e := event{PubKey: "ab", CreatedAt: 1700000000, Kind: 1, Tags: [][]string{{"e", "x", ""}, {"t", "<&>\"\t"}},
		Content: "a\nb\"c\\d\re\tf\bg\fh<>&/\u2028\u2029é😀\x7f\x01"}
	want := `[0,"ab",1700000000,1,[["e","x",""],["t","<&>\"\t"]],"a\nb\"c\\d\re\tf\bg\fh<>&/` + "\u2028\u2029é😀\x7f\x01" + `"]`
	if got := string(e.canonical()); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	want = `[0,"",0,0,[],""]`
	if got := string((event{Tags: [][]string{}}).canonical()); got != want {
		t.Errorf("an empty event: got %s, want %s", got, want)
	}
}

// A signed event must still be valid after it is encoded as JSON and decoded by independent code.
func TestSigned_IsValidForAnyText(t *testing.T) {
	t.Parallel()
	key, err := parseKey(strings.Repeat("1", 64))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		e, err := event{
			CreatedAt: 1, Kind: 1, Tags: [][]string{{"alt", rapid.String().Draw(t, "alt")}},
			Content: rapid.String().Draw(t, "content"),
		}.signed(key)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		var there relay.Event
		if err := json.Unmarshal(raw, &there); err != nil {
			t.Fatal(err)
		}
		if fault := there.Check(); fault != "" || !e.valid() {
			t.Fatalf("the relay finds %q in %q, want a valid event", fault, raw)
		}
		e.Content += "!"
		if e.valid() {
			t.Fatal("a changed event is valid, want it refused")
		}
	})
}
