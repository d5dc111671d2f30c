package main

import (
	"context"
	"errors"
)

func mutantNames() string { return "" }

func mutantSQL(string) string { return "" }

func mutate(context.Context, string, string) (string, error) {
	return "", errors.New("there is no such mutant")
}

func testOfTheTest(context.Context, settings) int { return 1 }
