package billing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	kindCredit  = "credit"
	kindRefusal = "refusal"
	kindClock   = "clock"
)

// event is one line of the journal. A credit and the reply its key remembers are one line, hence one
// write: a killed provider has both or neither. Kept says that the key remembers this reply.
type event struct {
	Kind   string        `json:"kind"`
	Credit *Credit       `json:"credit,omitempty"`
	Key    string        `json:"key,omitempty"`
	Asked  *params       `json:"asked,omitempty"`
	Seen   time.Time     `json:"seen,omitzero"` // when the key was first seen
	Made   time.Time     `json:"made,omitzero"` // when the credit was made
	Reply  *reply        `json:"reply,omitempty"`
	Kept   bool          `json:"kept,omitempty"`
	Offset time.Duration `json:"offset_ns,omitempty"` // of the clock, in all
}

func (e event) valid() error {
	complete := e.Asked != nil && e.Reply != nil && (!e.Kept || e.Key != "")
	switch e.Kind {
	case kindClock:
		return nil
	case kindRefusal:
		if complete {
			return nil
		}
	case kindCredit:
		if complete && e.Credit != nil && e.Credit.ID != "" {
			_, err := parseAmount(e.Credit.Amount)
			return err
		}
	}
	return fmt.Errorf("incomplete event of kind %q", e.Kind)
}

// journal is an append-only file of JSON lines. Every line is handed to the operating system before
// anyone is answered, so it survives the death of the process; it is not synced to the disk, so it
// may not survive the death of the machine. One process may have it open at a time.
type journal struct {
	file   *os.File
	size   int64
	broken error // set when a failed write could not be undone; nothing more is accepted
}

// openJournal reads all events and positions the file for appending. A last line without its end
// was never answered and is cut off; any other unreadable line is an error.
func openJournal(path string) (_ *journal, _ []event, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("billing: open the books: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	raw, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, fmt.Errorf("billing: read the books: %w", err)
	}
	j := &journal{file: f, size: int64(bytes.LastIndexByte(raw, '\n') + 1)}
	var events []event
	for line := range bytes.Lines(raw[:j.size]) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, nil, fmt.Errorf("billing: the books are damaged at line %d: %w", len(events)+1, err)
		}
		if err := e.valid(); err != nil {
			return nil, nil, fmt.Errorf("billing: the books are damaged at line %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	if err := j.rewind(); err != nil {
		return nil, nil, err
	}
	return j, events, nil
}

// append writes one event whole or not at all. A nil journal keeps nothing: books in memory.
func (j *journal) append(e event) error {
	if j == nil {
		return nil
	}
	if j.broken != nil {
		return j.broken
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("billing: encode an event: %w", err)
	}
	n, err := j.file.Write(append(line, '\n'))
	if err != nil {
		j.broken = j.rewind()
		return errors.Join(fmt.Errorf("billing: write the books: %w", err), j.broken)
	}
	j.size += int64(n)
	return nil
}

// rewind cuts the file back to the last whole line.
func (j *journal) rewind() error {
	if err := j.file.Truncate(j.size); err != nil {
		return fmt.Errorf("billing: cut the books to the last whole line: %w", err)
	}
	if _, err := j.file.Seek(j.size, io.SeekStart); err != nil {
		return fmt.Errorf("billing: cut the books to the last whole line: %w", err)
	}
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("billing: close the books: %w", err)
	}
	return nil
}
