package main

import (
	"runtime/debug"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

// cli is every command. Each is one file, named for it.
type cli struct {
	Demo  demoCommand  `cmd:"" help:"Show the double credit with a process-local record, and one credit with Pawl."`
	Serve serveCommand `cmd:"" help:"Serve the HTTP API."`

	Issue      issueCommand      `cmd:"" help:"Issue a grant."`
	Admit      admitCommand      `cmd:"" help:"Admit a grant for an operation you will perform."`
	Status     statusCommand     `cmd:"" help:"Show one operation."`
	Explain    explainCommand    `cmd:"" help:"Tell an operation's whole timeline."`
	Operations operationsCommand `cmd:"" help:"List operations."`
	Grants     grantsCommand     `cmd:"" help:"List issued grants and what became of them."`
	Revoke     revokeCommand     `cmd:"" help:"Withdraw grants that were not admitted yet."`
	Resolve    resolveCommand    `cmd:"" help:"Settle an operation that waits for a person."`

	Check    checkCommand    `cmd:"" help:"Read the deployment and say what it promises."`
	Migrate  migrateCommand  `cmd:"" help:"Create or upgrade a store's schema."`
	Purge    purgeCommand    `cmd:"" help:"Delete what retention no longer needs."`
	Restored restoredCommand `cmd:"" help:"After a restore from backup: refuse every grant issued before."`
	Erase    eraseCommand    `cmd:"" help:"Remove details and results of one principal's settled operations."`
	Keys     keysCommand     `cmd:"" help:"Manage an issuer's signing keys."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	NewID      newIDCommand              `cmd:"" name:"new-id" help:"Print a fresh operation id."`
	Version    versionCommand            `cmd:"" help:"Print the version."`
	Completion kongcompletion.Completion `cmd:"" help:"Print the code that turns on shell completion."`
}

// version is the module's version as the build recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
