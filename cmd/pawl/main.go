// Command pawl is Pawl's one binary: a demonstration, a server, and what an
// operator does to a store. Flags, environment, signals and exit codes live
// here and nowhere else; everything it does, a program can do with the library.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/pawl-go/pawl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], environment{in: os.Stdin, out: os.Stdout, err: os.Stderr, get: os.Getenv, now: time.Now})
	stop()
	os.Exit(code)
}

// environment is what a command may touch besides its flags.
type environment struct {
	in  io.Reader
	out io.Writer
	err io.Writer
	get func(string) string
	now func() time.Time // this host's clock, which decides nothing
}

// exitUsage is the exit code of a command line that cannot be read: the class of
// what is malformed.
const exitUsage = 2

// run is the whole command. The exit code is that of the error's class.
func run(ctx context.Context, args []string, env environment) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("pawl"),
		kong.Description("One-time authority and what becomes of it."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(env.out, env.err),
		kong.Exit(func(code int) { exited = code }),
		kong.Vars{"version": version()},
	)
	if err != nil {
		return report(env, err)
	}
	if kongcompletion.Register(parser); exited >= 0 {
		return exited
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		_, _ = fmt.Fprintf(env.err, "pawl: %v\n\nRun \"pawl --help\" for the commands.\n", err)
		return exitUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return report(env, command.Run(env))
}

// report prints an error and returns its exit code. A known class tells what to
// do next; the note is for operators, and this is the operators' tool.
func report(env environment, err error) int {
	if err == nil {
		return 0
	}
	if quiet, ok := errors.AsType[exitError](err); ok {
		return quiet.code
	}
	row, _ := pawl.Row(err)
	_, _ = fmt.Fprintf(env.err, "%v\n", err)
	if row.Class != 0 {
		_, _ = fmt.Fprintf(env.err, "  %s: %s\n", row.Name, row.Meaning)
	}
	return row.Exit
}

// exitError ends the command with a code when everything was already printed.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }
