// Package memdb is the tables and the one lock under package memstore. It
// stands apart so that the wrong stores of storetest/broken can be written on
// the same tables with transactions of their own; it decides nothing.
package memdb
