//go:build tools

// Package tools names the commands that are built from this module.
package tools

import (
	_ "github.com/coredns/coredns"
)
