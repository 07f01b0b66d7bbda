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
	switch hint := hints()[pawl.ReasonOf(err)]; {
	case hint != "":
		_, _ = fmt.Fprintf(env.err, "  %s\n", hint)
	case row.Class != 0 && row.Class != pawl.ErrInvalid:
		_, _ = fmt.Fprintf(env.err, "  %s\n", row.Meaning)
	}
	return row.Exit
}

// hints say what to do about a reason, where its class alone does not.
func hints() map[pawl.Reason]string {
	return map[pawl.Reason]string{
		pawl.ReasonUsed:           "the grant was admitted for another operation; a retry repeats the operation id of the first attempt",
		pawl.ReasonOperationTaken: "the operation id belongs to another operation; the grant is unspent: take a fresh id (pawl new-id)",
		pawl.ReasonRevoked:        "the grant was withdrawn before it was used",
		pawl.ReasonExpired:        "the grant's deadline is past on the store's clock; an operation it admitted is still there: pawl status",
		pawl.ReasonBeforeEpoch:    "the grant was issued before the store was restored from a backup, or within the issue skew after; issue a new one",
		pawl.ReasonSubject:        "the grant is for another principal or tenant; it is unspent",
		pawl.ReasonIntent:         "the grant is for another kind or other details; it is unspent",
		pawl.ReasonRealm:          "the grant names another store: compare its audience with the realm that pawl check shows",
		pawl.ReasonIssuerUnknown:  "no key of this issuer is trusted here: --trust ISSUER=FILE, or --dev for pawl-dev",
		pawl.ReasonGrantUnknown:   "there is no stored grant of this key",
		pawl.ReasonNotYetValid:    "the grant is dated ahead of the store's clock",
		pawl.ReasonNotResolvable: "a person decides on unknown, needs_reconciliation or conflict, and only while no lease is live; " +
			"an admitted operation is first taken over (POST /v1/takeovers, or a running gate)",
		pawl.ReasonNotProven: "present the signed grant with --token, or name one that this store issued",
	}
}

// exitError ends the command with a code when everything was already printed.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }
