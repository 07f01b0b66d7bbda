// Package pawl is one-time authority and what becomes of it.
//
// A [Grant] is authority for exactly one [Intent]. A [Store] that all instances
// share admits it at most once: one atomic write claims the grant and records
// the [Operation] it allowed [A2]. The write answers with an [Owner]; only the
// owner moves the operation forward, behind a lease and a fence [O1]. What is
// learnt later is merged one way only [M1]: evidence for exactly the reserved
// [Lock] may raise the record, and nothing lowers it.
//
// Most programs need three things: a store (package sqlitestore or pgstore), a
// [Verifier] (package jwtgrant) and a [Gate]. The calls of [Store] are public
// for queue workers and for those who write a store; most callers do not need
// them, and package storetest says whether a store keeps the contract.
//
// Clauses in brackets, such as [A2], are those of docs/contract.md.
//
// # What callers must not assume
//
// Admission limits who may run an effect, and how often authority is used. It
// does not make the effect happen exactly once in another system: that needs a
// provider that honours the idempotency key. An error is never permission:
// nothing runs unless [Admitted] was confirmed [A6].
package pawl
