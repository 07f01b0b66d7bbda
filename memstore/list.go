package memstore

import (
	"context"
	"encoding/base64"
	"math"
	"strconv"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

const defaultPage = 100

// List implements pawl.Store.
func (s *Store) List(ctx context.Context, f pawl.Filter) (page pawl.Page, err error) {
	limit, before, err := pageOf(f.Limit, f.Cursor)
	if err != nil {
		return pawl.Page{}, err
	}
	for _, st := range f.Statuses {
		if !st.Valid() {
			return pawl.Page{}, malformed("no such status")
		}
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		page.Operations, page.Next = newest(tx.Operations(), limit, before, func(op *pawl.Operation) (pawl.Operation, bool) {
			return op.Clone(), chosen(f, op)
		})
		return nil
	})
	return page, err
}

func chosen(f pawl.Filter, op *pawl.Operation) bool {
	return among(f.Statuses, op.Status) && among(f.Kinds, op.Intent.Kind) && among(f.Tenants, op.Caller.Tenant) &&
		among(f.Issuers, op.Grant.Issuer) && (len(f.Issuers) == 0 || !op.Grant.IsZero()) &&
		(f.Principal.Principal == "" || f.Principal.Same(op.Caller))
}

// newest takes one page from rows that come oldest first, each with its
// sequence number, and returns it newest first with the cursor of the next.
func newest[R, V any](rows func(func(uint64, R) bool), limit int, before uint64, choose func(R) (V, bool)) (page []V, next string) {
	type row struct {
		seq uint64
		r   R
	}
	var all []row
	for seq, r := range rows {
		if seq < before {
			all = append(all, row{seq, r})
		}
	}
	last := before
	for i := len(all) - 1; i >= 0; i-- {
		v, ok := choose(all[i].r)
		if !ok {
			continue
		}
		if len(page) == limit {
			return page, cursor(last)
		}
		page, last = append(page, v), all[i].seq
	}
	return page, ""
}

func cursor(seq uint64) string {
	return base64.RawURLEncoding.EncodeToString(strconv.AppendUint(nil, seq, 10))
}

// pageOf reads the two members that every filter has.
func pageOf(limit int, cursor string) (int, uint64, error) {
	if limit < 0 || limit > pawl.MaxPage {
		return 0, 0, malformed("limit is not 1 to 1000")
	}
	if limit == 0 {
		limit = defaultPage
	}
	if cursor == "" {
		return limit, math.MaxUint64, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return 0, 0, malformed("no such cursor")
	}
	seq, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0, 0, malformed("no such cursor")
	}
	return limit, seq, nil
}

func malformed(note string) error {
	return &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonMalformed, Note: note}
}
