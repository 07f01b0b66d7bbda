package pgstore

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-go/pawl"
)

// Get implements pawl.Store.
func (s *Store) Get(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (pawl.Operation, error) {
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (pawl.Operation, error) {
		var op pawl.Operation
		if err := on.run(ctx, s.getStep(id, &op)); err != nil {
			return pawl.Operation{}, err
		}
		return visible(op, as)
	})
}

func (s *Store) getStep(id pawl.OperationID, op *pawl.Operation) step {
	return step{sql: s.sql[stmtGetOperation], args: []any{uuid.UUID(id)}, each: func(scan scanner) (err error) {
		var row operationRow
		if err := scan(row.columns()...); err != nil {
			return err
		}
		*op, err = row.operation()
		return err
	}}
}

// visible answers the same for what is absent and for what is another's [S1].
func visible(op pawl.Operation, as pawl.Viewer) (pawl.Operation, error) {
	if op.ID.IsZero() || !as.Sees(op) {
		return pawl.Operation{}, pawl.NotFound()
	}
	return op, nil
}

// Log implements pawl.Store. Record and log are read in one snapshot.
func (s *Store) Log(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (pawl.Timeline, error) {
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (pawl.Timeline, error) {
		var op pawl.Operation
		var entries []pawl.Entry
		log := step{sql: s.sql[stmtListEntries], args: []any{uuid.UUID(id)}, each: func(scan scanner) error {
			e, err := scanEntry(scan)
			entries = append(entries, e)
			return err
		}}
		err := on.run(ctx, step{sql: beginReadSQL}, s.getStep(id, &op), log, step{sql: commitSQL})
		if err != nil {
			rollBack(ctx, on)
			return pawl.Timeline{}, err
		}
		if op, err = visible(op, as); err != nil {
			return pawl.Timeline{}, err
		}
		tl := pawl.Timeline{Operation: op, Entries: append([]pawl.Entry{pawl.AdmissionEntry(op)}, entries...)}
		if op.WeakEntries > pawl.MaxWeak {
			tl.NotKept = op.WeakEntries - pawl.MaxWeak // [M6]
		}
		return tl, nil
	})
}

func scanEntry(scan scanner) (pawl.Entry, error) {
	var e pawl.Entry
	var seq, count, fence, verdict int64
	var kind, disposition string
	var lease *time.Time
	var digest []byte
	err := scan(&e.Key, &seq, &kind, &e.At, &e.LastAt, &count, &fence, &e.Source, &verdict, &disposition, &e.Contradiction,
		&e.MismatchOf, &digest, &e.Reason, &lease)
	e.Seq, e.Count, e.Fence, e.Verdict = uint64(seq), uint64(count), uint64(fence), pawl.Verdict(verdict)
	e.Type, e.Disposition = pawl.EntryType(kind), pawl.Disposition(disposition)
	e.At, e.LastAt, e.LeaseUntil = e.At.UTC(), e.LastAt.UTC(), timeOf(lease)
	copy(e.ResultDigest[:], digest)
	return e, err
}

const defaultPage = 100

// List implements pawl.Store.
func (s *Store) List(ctx context.Context, f pawl.Filter) (pawl.Page, error) {
	limit, err := pageLimit(f.Limit)
	if err != nil {
		return pawl.Page{}, err
	}
	after, id, err := position(f.Cursor)
	if err != nil {
		return pawl.Page{}, err
	}
	var authority, principal, tenant *string
	if c := f.Principal; c.Principal != "" {
		authority, principal, tenant = &c.Authority, &c.Principal, &c.Tenant
	}
	args := []any{
		listed(f.Statuses, func(v pawl.Status) int16 { return int16(v) }), listed(f.Kinds, kindName),
		listed(f.Tenants, itself), listed(f.Issuers, itself), authority, principal, tenant, after, id, limit + 1,
	}
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (page pawl.Page, err error) {
		err = on.run(ctx, step{sql: s.sql[stmtListOperations], args: args, each: func(scan scanner) error {
			var row operationRow
			if err := scan(row.columns()...); err != nil {
				return err
			}
			op, err := row.operation()
			page.Operations = append(page.Operations, op)
			return err
		}})
		if len(page.Operations) > limit {
			page.Operations = page.Operations[:limit]
			last := page.Operations[limit-1]
			page.Next = cursor(strconv.FormatInt(last.CreatedAt.UnixMicro(), 10) + "/" + last.ID.String())
		}
		return page, err
	})
}

// pageLimit reads the limit of a filter.
func pageLimit(limit int) (int, error) {
	if limit < 0 || limit > pawl.MaxPage {
		return 0, malformed("limit is not 1 to 1000")
	}
	if limit == 0 {
		limit = defaultPage
	}
	return limit, nil
}

// position reads the cursor of a page: the last row of the page before.
func position(text string) (after *time.Time, id *uuid.UUID, err error) {
	if text == "" {
		return nil, nil, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, nil, malformed("no such cursor")
	}
	micros, name, _ := strings.Cut(string(raw), "/")
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return nil, nil, malformed("no such cursor")
	}
	op, err := pawl.ParseOperationID(name)
	if err != nil {
		return nil, nil, malformed("no such cursor")
	}
	at, u := time.UnixMicro(n), uuid.UUID(op)
	return &at, &u, nil
}

func cursor(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// listed turns a filter's list into an argument; an empty list wants everything
// and is null.
func listed[T, V any](list []T, value func(T) V) []V {
	var out []V
	for _, v := range list {
		out = append(out, value(v))
	}
	return out
}

func itself(s string) string      { return s }
func kindName(k pawl.Kind) string { return string(k) }
func malformed(note string) error {
	return &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonMalformed, Note: note}
}
