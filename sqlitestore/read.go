package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"

	"github.com/pawl-go/pawl"
)

const defaultPage = 100

// Get implements pawl.Store.
func (s *Store) Get(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (pawl.Operation, error) {
	return read(ctx, s, func(a asker) (pawl.Operation, error) { return visible(a, id, as) })
}

// Log implements pawl.Store.
func (s *Store) Log(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (pawl.Timeline, error) {
	return read(ctx, s, func(a asker) (pawl.Timeline, error) {
		op, err := visible(a, id, as)
		if err != nil {
			return pawl.Timeline{}, err
		}
		tl := pawl.Timeline{Operation: op, Entries: []pawl.Entry{pawl.AdmissionEntry(op)}}
		if op.WeakEntries > pawl.MaxWeak {
			tl.NotKept = op.WeakEntries - pawl.MaxWeak // [M6]
		}
		err = a.each("list_entries", func(rows *sql.Rows) error {
			e, err := scanEntry(rows)
			tl.Entries = append(tl.Entries, e)
			return err
		}, named("operation_id", id[:]))
		return tl, err
	})
}

// visible answers the same for what is absent and for what is another's [S1].
func visible(a asker, id pawl.OperationID, as pawl.Viewer) (pawl.Operation, error) {
	r, err := findOperation(a, id)
	if err != nil {
		return pawl.Operation{}, err
	}
	if r == nil || !as.Sees(r.op) {
		return pawl.Operation{}, pawl.NotFound()
	}
	return r.op, nil
}

func scanEntry(rows *sql.Rows) (e pawl.Entry, err error) {
	var seq, at, lastAt, count, fence int64
	var leaseUntil *int64
	var kind, verdict, disposition string
	var digest []byte
	err = rows.Scan(&seq, &e.Key, &kind, &at, &lastAt, &count, &fence, &e.Source, &verdict, &disposition,
		&e.Contradiction, &e.MismatchOf, &digest, &e.Reason, &leaseUntil)
	if err != nil {
		return e, err
	}
	e.Seq, e.Count, e.Fence = uint64(seq), uint64(count), uint64(fence)
	e.Type, e.Disposition = pawl.EntryType(kind), pawl.Disposition(disposition)
	e.At, e.LastAt, e.LeaseUntil = timeOf(at), timeOf(lastAt), timeOrZero(leaseUntil)
	copy(e.ResultDigest[:], digest)
	e.Verdict, err = pawl.ParseVerdict(verdict)
	return e, err
}

// List implements pawl.Store.
func (s *Store) List(ctx context.Context, f pawl.Filter) (pawl.Page, error) {
	limit, before, err := pageOf(f.Limit, f.Cursor)
	if err != nil {
		return pawl.Page{}, err
	}
	waiting := len(f.Statuses) > 0 // what waits for a person has an index of its own
	statuses := any(nil)
	for _, st := range f.Statuses {
		if !st.Valid() {
			return pawl.Page{}, malformed("no such status")
		}
		waiting = waiting && (st == pawl.StatusNeedsReconciliation || st == pawl.StatusConflict)
	}
	if len(f.Statuses) > 0 {
		numbers := make([]int, len(f.Statuses))
		for i, st := range f.Statuses {
			numbers[i] = int(st)
		}
		statuses = jsonList(numbers)
	}
	var principal any
	if f.Principal.Principal != "" {
		principal = f.Principal.Principal
	}
	name := "list_operations"
	if waiting {
		name = "list_waiting"
	}
	return read(ctx, s, func(a asker) (page pawl.Page, err error) {
		found, err := records(a, name,
			named("before", before), named("statuses", statuses), named("kinds", choice(f.Kinds)),
			named("tenants", choice(f.Tenants)), named("issuers", choice(f.Issuers)), named("principal", principal),
			named("tenant", f.Principal.Tenant), named("authority", f.Principal.Authority),
			named("limit", int64(limit)+1),
		)
		if len(found) > limit {
			found = found[:limit]
			page.Next = cursor(found[limit-1].rowID)
		}
		for _, r := range found {
			page.Operations = append(page.Operations, r.op)
		}
		return page, err
	})
}

// records reads whole records.
func records(a asker, name string, args ...any) (found []*record, err error) {
	err = a.each(name, func(rows *sql.Rows) error {
		r := &record{}
		if err := rows.Scan(r.dest()...); err != nil {
			return err
		}
		found = append(found, r)
		return r.read()
	}, args...)
	return found, err
}

func (t *txn) records(name string, args ...any) ([]*record, error) {
	return records(t.asker, name, args...)
}

// A cursor is the place of the last row of a page in the order of writing. Its
// first byte is its version.
const cursorVersion = 1

func cursor(place int64) string {
	b := binary.BigEndian.AppendUint64([]byte{cursorVersion}, uint64(place))
	return base64.RawURLEncoding.EncodeToString(b)
}

// pageOf reads the two members that every filter has.
func pageOf(limit int, cursor string) (int, int64, error) {
	if limit < 0 || limit > pawl.MaxPage {
		return 0, 0, malformed("limit is not 1 to 1000")
	}
	if limit == 0 {
		limit = defaultPage
	}
	if cursor == "" {
		return limit, math.MaxInt64, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) != 9 || b[0] != cursorVersion {
		return 0, 0, malformed("no such cursor")
	}
	place := int64(binary.BigEndian.Uint64(b[1:]))
	if place < 1 {
		return 0, 0, malformed("no such cursor")
	}
	return limit, place, nil
}

// ids reads a list of operation ids.
func ids(a asker, name string, args ...any) (found []pawl.OperationID, err error) {
	err = a.each(name, func(rows *sql.Rows) error {
		var raw []byte
		var id pawl.OperationID
		if err := rows.Scan(&raw); err != nil {
			return err
		}
		if !fill(id[:], raw) {
			return errSize
		}
		found = append(found, id)
		return nil
	}, args...)
	return slices.Clip(found), err
}
