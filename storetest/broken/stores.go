package broken

import (
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/storetest"
)

// Store is one wrong store.
type Store struct {
	Name    string
	Harness storetest.Harness
}

// Right deploys the store without a mistake, the control of the experiment.
func Right() Store {
	return Store{"right", harness("right", func(r right) pawl.Store { return r }, false)}
}

// Stores returns every wrong store.
func Stores() []Store {
	var all []Store
	add := func(name string, m mistake) { all = append(all, Store{name, harness(name, m, false)}) }
	add("map per handle", func(r right) pawl.Store {
		return mapPerHandle{r, &sync.Mutex{}, map[pawl.GrantKey]pawl.OperationID{}}
	})
	add("read then write", func(r right) pawl.Store { return readThenWrite{r} })
	add("claim and operation in two commits", func(r right) pawl.Store { return twoCommits{r} })
	add("deadline on the process clock", func(r right) pawl.Store { return deadlineOnProcessClock{r} })
	add("deadline inclusive", func(r right) pawl.Store { return deadlineInclusive{r} })
	add("upsert on conflict", func(r right) pawl.Store { return upsertOnConflict{r} })
	add("lease extended on repeat", func(r right) pawl.Store { return extendOnRepeat{r} })
	add("zero rows read as success", func(r right) pawl.Store { return zeroRowsAsSuccess{r} })
	add("already admitted answers fresh", func(r right) pawl.Store { return alreadyAsFresh{r} })
	add("wrong realm accepted", func(r right) pawl.Store { return anyRealm{r} })
	add("epoch ignored", func(r right) pawl.Store { return anyEpoch{r} })
	add("issuer and id joined to one string", func(r right) pawl.Store { return joinedKey{r} })
	add("stored grant without a row", func(r right) pawl.Store { return noMissingRow{r} })
	add("cancelled read as refused", func(r right) pawl.Store { return cancelledAsRefused{r} })
	add("written before it is checked", func(r right) pawl.Store { return writesBeforeItChecks{r} })
	add("any lock joins", func(r right) pawl.Store { return anyLockJoins{r} })
	add("every issue is new", func(r right) pawl.Store { return issuesAgain{r} })

	add("revocation outside the claim", func(r right) pawl.Store { return revocationOutsideClaim{r} })
	add("revocation without proof", func(r right) pawl.Store { return revokesWithoutProof{r} })
	add("purge before retention ends", func(r right) pawl.Store { return purgesAtExpiry{r} })
	add("purge deletes nothing", func(r right) pawl.Store { return purgesNothing{r} })
	add("retention from creation", func(r right) pawl.Store { return retainsFromCreation{r} })
	add("grant freed with its operation", func(r right) pawl.Store { return freesWithOperation{r} })
	add("clock without a floor", func(r right) pawl.Store { return clockFollowsBack{r} })
	add("status shown to another caller", func(r right) pawl.Store { return statusToOthers{r} })
	add("foreign told from absent", func(r right) pawl.Store { return tellsForeignFromAbsent{r} })
	add("memory shared with the caller", func(r right) pawl.Store {
		return sharesMemory{r, map[pawl.OperationID]pawl.Operation{}}
	})

	add("owner door ignores the fence", func(r right) pawl.Store { return doorOpen{r} })
	add("lease not asked before a create", func(r right) pawl.Store { return leaseNotAsked{r} })
	add("joined token accepted as owner", func(r right) pawl.Store { return joinedOwns{r} })
	add("renewal without end", func(r right) pawl.Store { return renewsForEver{r} })
	add("takeover without a new fence", func(r right) pawl.Store { return keepsFence{r} })
	add("takeover under a live lease", func(r right) pawl.Store { return takesLive{r} })
	add("takeover of what was found before", func(r right) pawl.Store { return findsThenTakes{r} })
	add("lease from before the wait", func(r right) pawl.Store { return leaseFromBeforeWait{r} })

	add("unconditional status write", func(r right) pawl.Store { return writesStatus{r} })
	add("success accepted whatever the fingerprint", func(r right) pawl.Store { return anyFingerprint{r} })
	add("statement accepted under any generation", func(r right) pawl.Store { return anyGeneration{r} })
	add("revocation by the row's expiry alone", func(r right) pawl.Store { return revokesByRow{r} })
	add("grant released on unknown", func(r right) pawl.Store { return releasesOnUnknown{r} })
	add("failed applied under another's lease", func(r right) pawl.Store { return failsUnderAnothersLease{r} })
	add("deferred failure forgotten", func(r right) pawl.Store { return forgetsDeferred{r} })
	add("result cleared by a weaker write", func(r right) pawl.Store { return lastWordWins{r} })
	add("fence kept at a final outcome", func(r right) pawl.Store { return keepsFenceAtEnd{r} })
	add("evidence without proof accepted", func(r right) pawl.Store { return withoutProof{r} })
	add("mismatch answered with the record", func(r right) pawl.Store { return showsMismatch{r} })
	add("flags cleared", func(r right) pawl.Store { return clearsFlags{r} })
	add("full log drops everything", func(r right) pawl.Store { return fullLog{r} })
	add("log without a bound", func(r right) pawl.Store { return endlessLog{r} })
	add("refusals at the owner's door not logged", func(r right) pawl.Store { return silentAtOwnersDoor{r} })

	timeout := harness("timeout read as unused", func(r right) pawl.Store { return r }, true)
	return append(all, Store{"timeout read as unused", timeout})
}
