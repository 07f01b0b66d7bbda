package memdb

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl"
)

// Findings returns what an admission is judged on.
func (tx *Tx) Findings(a pawl.Admission) pawl.Findings {
	m := tx.db.meta
	f := pawl.Findings{Now: tx.Now, Realm: m.Realm, Policy: m.Policy, IssuedNotBefore: m.Epoch.IssuedNotBefore}
	if row, ok := tx.Grant(a.Grant.Key); ok {
		f.Grant.Row = &row.Grant
	}
	if c, ok := tx.Claim(a.Grant.Key); ok {
		f.Grant.Claimed, f.Grant.ClaimedBy = true, c.Operation
	}
	if op, ok := tx.Operation(a.OperationID); ok {
		f.Operation = &op
	}
	return f
}

// Operation returns a copy of a record.
func (tx *Tx) Operation(id pawl.OperationID) (pawl.Operation, bool) {
	r, ok := tx.db.ops[id]
	if !ok {
		return pawl.Operation{}, false
	}
	return r.op.Clone(), true
}

// PutOperation writes a record, new or not.
func (tx *Tx) PutOperation(op pawl.Operation) {
	r, ok := tx.db.ops[op.ID]
	if !ok {
		r = &record{seq: tx.next(), byKey: map[string]int{}}
		tx.db.ops[op.ID] = r
		if !op.Grant.IsZero() {
			tx.db.byGrant[op.Grant] = op.ID
		}
	}
	r.op = op.Clone()
}

// DeleteOperation deletes a record with its log.
func (tx *Tx) DeleteOperation(id pawl.OperationID) {
	if r, ok := tx.db.ops[id]; ok && tx.db.byGrant[r.op.Grant] == id {
		delete(tx.db.byGrant, r.op.Grant)
	}
	delete(tx.db.ops, id)
}

// Forget gives a grant's key free of its operation: no right store does so.
func (tx *Tx) Forget(k pawl.GrantKey) { delete(tx.db.byGrant, k) }

// Used reports whether an operation was admitted under a grant's key, also when
// the claim is gone [A7].
func (tx *Tx) Used(k pawl.GrantKey) bool {
	_, used := tx.db.byGrant[k]
	return used
}

// Operations yields every record with its sequence number, oldest first. The
// pointed-to record is the table's own: neither to be changed nor kept.
func (tx *Tx) Operations() iter.Seq2[uint64, *pawl.Operation] {
	sorted := slices.SortedFunc(maps.Values(tx.db.ops), func(a, b *record) int { return cmp.Compare(a.seq, b.seq) })
	return func(yield func(uint64, *pawl.Operation) bool) {
		for _, r := range sorted {
			if !yield(r.seq, &r.op) {
				return
			}
		}
	}
}

// Apply writes a change: the record and its log entries together [M1]. Entries
// with equal keys become one with a count [M6].
func (tx *Tx) Apply(c pawl.Change) {
	if !c.Write {
		return
	}
	tx.PutOperation(c.Next)
	r := tx.db.ops[c.Next.ID]
	for _, e := range c.Entries {
		if at, ok := r.byKey[e.Key]; ok {
			r.entries[at].Count++
			r.entries[at].LastAt = e.LastAt
			continue
		}
		r.byKey[e.Key] = len(r.entries)
		r.entries = append(r.entries, e)
	}
}

// Note appends an entry that no statement made, such as a purge's [M9].
func (tx *Tx) Note(id pawl.OperationID, e pawl.Entry) {
	op, ok := tx.Operation(id)
	if !ok {
		return
	}
	op.Entries++
	e.Seq, e.At, e.LastAt, e.Count = op.Entries, tx.Now, tx.Now, 1
	e.Key = strconv.FormatUint(e.Seq, 10)
	tx.Apply(pawl.Change{Next: op, Entries: []pawl.Entry{e}, Write: true})
}

// Entries returns a copy of an operation's log.
func (tx *Tx) Entries(id pawl.OperationID) []pawl.Entry {
	if r, ok := tx.db.ops[id]; ok {
		return slices.Clone(r.entries)
	}
	return nil
}

// KeepEntries deletes the entries of a log that keep does not want and returns
// how many.
func (tx *Tx) KeepEntries(id pawl.OperationID, keep func(pawl.Entry) bool) (deleted int) {
	r, ok := tx.db.ops[id]
	if !ok {
		return 0
	}
	before := len(r.entries)
	r.entries = slices.DeleteFunc(r.entries, func(e pawl.Entry) bool { return !keep(e) })
	clear(r.byKey)
	for at, e := range r.entries {
		r.byKey[e.Key] = at
	}
	return before - len(r.entries)
}

// Claim returns the claim of a key.
func (tx *Tx) Claim(k pawl.GrantKey) (Claim, bool) {
	c, ok := tx.db.claims[k]
	return c, ok
}

// PutClaim writes a claim, new or not.
func (tx *Tx) PutClaim(k pawl.GrantKey, c Claim) { tx.db.claims[k] = c }

// DeleteClaim deletes a claim.
func (tx *Tx) DeleteClaim(k pawl.GrantKey) { delete(tx.db.claims, k) }

// Claims yields every claim, in no order. Deleting the one yielded is allowed.
func (tx *Tx) Claims() iter.Seq2[pawl.GrantKey, Claim] { return maps.All(tx.db.claims) }

// Grant returns the row of an issue.
func (tx *Tx) Grant(k pawl.GrantKey) (GrantRow, bool) {
	row, ok := tx.db.grants[k]
	if !ok {
		return GrantRow{}, false
	}
	return *row, true
}

// EraseGrant removes the details of a grant's row, where there is one.
func (tx *Tx) EraseGrant(k pawl.GrantKey) {
	if row, ok := tx.db.grants[k]; ok {
		row.Grant.Intent.Details = pawl.StoredDetails("{}")
	}
}

// GrantOfRequest returns the row that a request made.
func (tx *Tx) GrantOfRequest(issuer, id string) (GrantRow, bool) {
	k, ok := tx.db.requests[request{issuer, id}]
	if !ok {
		return GrantRow{}, false
	}
	return tx.Grant(k)
}

// PutGrant writes the row of an issue.
func (tx *Tx) PutGrant(row GrantRow) {
	row.Seq = tx.next()
	k := row.Grant.Key
	tx.db.grants[k] = &row
	tx.db.requests[request{k.Issuer, row.RequestID}] = k
}

// DeleteGrant deletes a row and its request.
func (tx *Tx) DeleteGrant(k pawl.GrantKey) {
	if row, ok := tx.db.grants[k]; ok {
		delete(tx.db.requests, request{k.Issuer, row.RequestID})
		delete(tx.db.grants, k)
	}
}

// Grants returns every row, oldest first.
func (tx *Tx) Grants() []GrantRow {
	rows := make([]GrantRow, 0, len(tx.db.grants))
	for _, row := range tx.db.grants {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b GrantRow) int { return cmp.Compare(a.Seq, b.Seq) })
	return rows
}
