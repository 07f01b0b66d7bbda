//go:build !linux

package pgtest

import (
	"os/exec"
)

// linuxOnly is the answer everywhere else: the servers are Linux packages, and the rig finds processes in /proc.
type linuxOnly struct{}

func (linuxOnly) Error() string { return "the PostgreSQL test rig runs on Linux" }

type account struct{}

func serverAccount() (account, error) { return account{}, linuxOnly{} }

func (account) apply(*exec.Cmd) {}

func (account) own(string) error { return linuxOnly{} }

func (account) ownTree(string) error { return linuxOnly{} }

func (account) canRead(string) bool { return false }

func memoryDir() string { return "" }

func detach(*exec.Cmd) {}

func processesOf(string) ([]int, error) { return nil, linuxOnly{} }

func removeSharedMemory(string) error { return linuxOnly{} }

func segmentInUse(string) (bool, error) { return false, linuxOnly{} }

func reservePort() (port int, release func() error, err error) { return 0, nil, linuxOnly{} }

func portFree(int) bool { return false }
