package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
)

// part is one part of a post.
type part struct {
	text  string
	image []byte
	alt   string
}

// parts returns content that careless handling would alter.
func parts(content string) []part {
	text := "Zoë  wrote: \"1 < 2 & 3 > 2\"\n\n\té e\u0301 日本語 👩‍👩‍👧 #end"
	switch content {
	case "text":
		return []part{{text: text}}
	case "image":
		return []part{{text: text, image: drawing(), alt: "A \"drawing\" & 🎨\nof noise"}}
	default:
		return []part{{text: "1/3 " + text}, {text: "2/3 " + text}, {text: "3/3 " + text}}
	}
}

// drawing returns a picture of noise, different in every call.
func drawing() []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 120, 80))
	for y := range 80 {
		for x := range 120 {
			img.SetNRGBA(x, y, color.NRGBA{uint8(rand.N(256)), uint8(rand.N(256)), uint8(rand.N(256)), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil // the upload will refuse it
	}
	return b.Bytes()
}
