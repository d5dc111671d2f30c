// Command empty is a Fiber program that does nothing: the floor of the idle benchmark.
package main

import (
	"os"

	"github.com/gofiber/fiber/v2"
)

func main() {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/health", func(c *fiber.Ctx) error { return c.SendString("ok") })
	if err := app.Listen(os.Args[1]); err != nil {
		os.Exit(1)
	}
}
