/*
 * The protocol of Pawl as a model for spin: two attempts present one grant, each
 * for an operation of its own, recovery takes over what stalls, a revocation, a
 * purge and a joined attempt come in between, and time passes at any moment. The
 * provider states its contract and keeps it or, with -DUNSTATED, does neither.
 * Run by ./check with every mutation and every goal below.
 *
 * One step of a process is one atomic operation of the store or one message to
 * the provider; between two steps may be a pause of any length. A crash, or an
 * answer that is lost, is a pause that does not end. Every property is one of
 * the steps that could break it. A second admission is an error at once, so one
 * record is enough. Clauses in brackets are those of docs/contract.md.
 *
 * Mutations, each of which must be found (-DNAME):
 *   TWO_STEP_ADMIT     a use is looked for and claimed in two steps         [A2]
 *   NO_BOUND           an admission may last for ever                       [P1]
 *   PURGE_EARLY        purge does not wait for the margin                   [P1]
 *   REVOKE_OVERWRITES  a revocation overwrites a claim                      [R1]
 *   RUN_UNCONFIRMED    a lost answer to an admission counts as a yes        [A6]
 *   RETRY_EXECUTES     a joined attempt performs the effect                 [A8]
 *   SAME_FENCE         a takeover keeps the fence                           [O2]
 *   TAKE_LIVE          a takeover does not wait for the end of the lease    [O2]
 *   CREATE_LATE        creates after the submission deadline                [O5]
 *   CALL_WITHOUT_END   a pause after the check moves the end of the call    [O5]
 *   KEY_WITHOUT_CALL   the provider's key need not outlast the call         [T1]
 *   CREATE_UNSTATED    recovery creates at a provider that states nothing   [E5]
 *   NOT_FOUND_FAILS    a look-up that finds nothing is recorded as failed   [E2]
 *   LOWER_FINAL        a late "unknown" overwrites a final status           [M1]
 *   FAIL_UNDER_LEASE   a failure is applied under another's live lease      [M1]
 *   DROP_SUCCESS       a refused owner's success is dropped                 [M3]
 *
 * Goals, each of which must be reached (-DREACH_NAME, below): what a model never
 * comes to, it does not check.
 */

#define DEADLINE  1   /* of the grant: expiry + leeway */
#define BOUND     1   /* longest an admission lasts, enforced by the store */
#define LEASE     1
#define WINDOW    2   /* of submission, from admission */
#define CALL      1   /* longest a call takes to arrive */
#define END       5   /* time stops here */

#ifdef PURGE_EARLY
#define MARGIN    0
#else
#define MARGIN    2   /* > BOUND [P1] */
#endif
#ifdef KEY_WITHOUT_CALL
#define KEPT      (WINDOW)
#else
#define KEPT      (WINDOW + CALL)   /* how long the provider keeps a key, from its first use [T1] */
#endif

#define NONE      0
#define ADMITTED  10
#define UNKNOWN   20
#define NEEDS     30
#define FAILED    50
#define SUCCEEDED 60

#define REVOKED   3   /* as the holder of the claim; 1 and 2 are the operations */

byte now = 0;

/* the store */
byte claim = 0;
byte status = NONE;
byte fence = 0;
byte lease = 0;
byte submit_by = 0;
byte takeovers = 0;
bool deferred = false;    /* a failure waits for the end of the lease */

/* the provider */
#if defined(UNSTATED) || defined(CREATE_UNSTATED) || defined(REACH_RAISED)
#define stated false      /* it states no contract, and ignores keys */
#else
#define stated true       /* it states its contract and keeps it */
#endif
bool known = false;       /* the key is remembered */
bool refuses = false;     /* and this is what it answered last */
byte used_at = 0;
byte effects = 0;

#if defined(REACH_RECOVERED)
#define GOAL (status == SUCCEEDED && takeovers > 0)
#elif defined(REACH_LATE)             /* a success was settled by one who was no owner any more */
#define GOAL (late)
#elif defined(REACH_SECOND_CALL)      /* and the key made one effect of it */
#define GOAL (calls == 2 && effects == 1 && status == SUCCEEDED)
#elif defined(REACH_THIRD_OWNER)
#define GOAL (takeovers == 2)
#elif defined(REACH_DEFERRED)         /* a failure waited for the end of a lease, and was read */
#define GOAL (was_read && status == FAILED)
#elif defined(REACH_RAISED)           /* a success after it was left to a person */
#define GOAL (raised)
#elif defined(REACH_FAILED)
#define GOAL (status == FAILED && takeovers == 0)
#elif defined(REACH_NEEDS)
#define GOAL (status == NEEDS)
#elif defined(REACH_REVOKED)
#define GOAL (claim == REVOKED)
#elif defined(REACH_ABORTED)          /* an admission met its bound */
#define GOAL (aborted)
#elif defined(REACH_PURGED)           /* while the operation is at work */
#define GOAL (purged && open)
#endif

/* history */
byte owner = 0;           /* who is it: 1 and 2 the attempts, 3 and 4 recovery */
bool revoked = false;
#ifdef GOAL
bool aborted = false;
bool purged = false;
bool late = false;
bool raised = false;
bool was_read = false;
byte calls = 0;           /* create calls that arrived */
#define saw(x) x
#else
#define saw(x) skip
#endif

#define open   (status == ADMITTED || status == UNKNOWN)
#define final  (status == FAILED || status == SUCCEEDED)
#define live   (now < lease)

/* Every write of a status: nothing lowers one [M1], failed means that the provider
 * said so [E2], succeeded that the effect exists [E1]. */
inline put(s) {
	assert(s >= status);
	assert(s != FAILED || (refuses && effects == 0));
	assert(s != SUCCEEDED || effects == 1);
	status = s
}

/* A create call arrives. A key is honoured while it is kept; then it is a new
 * request. The reply may be lost. */
inline create(reply) {
	assert(status != NONE);                                   /* [A6] */
	saw(calls++);
	if
	:: stated && known -> skip
	:: else ->
		known = true; used_at = now;
		if
		:: refuses = true
		:: refuses = false; effects++;
			assert(effects == 1);                             /* [A8, E5, O5] */
			assert(status != FAILED)                          /* [E2] */
		fi
	fi;
	if
	:: reply = UNKNOWN
	:: refuses -> reply = FAILED
	:: !refuses -> reply = SUCCEEDED
	fi
}

/* What a final outcome through the evidence door does beside [M2]. */
inline move_fence() { fence++; owner = 0; lease = 0 }

/* The evidence door, for a matching lock; f is what the speaker's token proves [M1]. */
inline evidence(s, f) {
	if
	:: s == SUCCEEDED && status != SUCCEEDED ->
		saw(late = (f != fence)); saw(raised = (status == NEEDS));
		put(SUCCEEDED); move_fence()
	:: s == FAILED && !final ->
		if
#ifndef FAIL_UNDER_LEASE
		:: live && f != fence -> deferred = true
#endif
		:: else ->
			assert(!live || f == fence);
			put(FAILED); move_fence()
		fi
	:: s == UNKNOWN && status == ADMITTED -> put(UNKNOWN)
	:: else ->
#ifdef LOWER_FINAL
		if
		:: s == UNKNOWN && status != NONE -> put(UNKNOWN)
		:: else -> skip
		fi
#else
		skip
#endif
	fi
}

/* An owner records: its own door under its fence [O1], else, with something
 * definite, the evidence door. A success that came to the record stands in it [M3]. */
inline record(me, s, f) {
	if
	:: open && f == fence ->
		assert(owner == me);
		put(s);
		lease = (s == UNKNOWN -> lease : 0)
	:: else ->
#ifdef DROP_SUCCESS
		skip
#else
		if
		:: s == UNKNOWN || s == NEEDS -> skip
		:: else -> evidence(s, f)
		fi
#endif
	fi;
	assert(s != SUCCEEDED || status == SUCCEEDED)
}

#ifdef CREATE_LATE
#define may_submit(f) (open && f == fence && live)
#else
#define may_submit(f) (open && f == fence && live && now < submit_by)
#endif

/* A call arrives before its end, which is an instant on its owner's clock. */
#if defined(CREATE_LATE) || defined(CALL_WITHOUT_END)
#define in_time (true)
#else
#define in_time (now < submit_by + CALL)
#endif

/* From the submission check to the record. */
inline perform(me, f, reply) {
	atomic {
		if
		:: may_submit(f) -> assert(owner == me)
		:: else -> goto done
		fi
	};
	atomic {
		if
		:: in_time -> create(reply)
		:: else -> goto done
		fi
	};
	atomic { record(me, reply, f); reply = 0 }
}

byte begun = 0;           /* attempts whose admission has begun, or never will */

proctype attempt(byte me) {
	byte since, reply;
#ifdef TWO_STEP_ADMIT
	bool free;
#endif
	/* The two are alike, so the first may begin first. The deadline is checked on
	 * the statement's time [A4] … */
	atomic { begun == me - 1 && now < DEADLINE -> begun = me; since = now };
#ifdef TWO_STEP_ADMIT
	free = (claim == 0);
#else
#define free (claim == 0)
#endif
	/* … and the claim is made within the bound, or the statement is aborted [P1]. */
	atomic {
#ifndef NO_BOUND
		if
		:: now > since + BOUND -> saw(aborted = true); goto done
		:: else -> skip
		fi;
#endif
		if
		:: free ->
			assert(status == NONE && !revoked);               /* [A2, R1] */
			claim = me; put(ADMITTED); fence = 1; owner = me; lease = now + LEASE; submit_by = now + WINDOW
		:: else -> goto done                                  /* refused */
		fi
	};
	perform(me, 1, reply);
done:
#ifdef RUN_UNCONFIRMED
	atomic { if :: status == NONE -> create(reply) :: else -> skip fi };
#endif
	skip
}

/* One takeover and what follows [E5]. The second worker waits for the first, for
 * the two are alike. */
proctype recovery(byte me) {
	byte mine, reply, found;
	atomic {
#ifdef TAKE_LIVE
		open && takeovers == me - 3 ->
#else
		open && !live && takeovers == me - 3 ->
#endif
		assert(!live);                                        /* [O2] */
		takeovers++; lease = now + LEASE; owner = me;
#ifndef SAME_FENCE
		fence++;
#endif
		mine = fence
	};
	atomic {                                                  /* a look-up may lag, or not answer */
		if
		:: effects > 0 -> found = SUCCEEDED
		:: found = NONE
		:: found = UNKNOWN
		fi
	};
	atomic {
		if
		:: found == SUCCEEDED -> evidence(SUCCEEDED, mine); goto done
		:: found == UNKNOWN ->                                /* left alone for a while [E6] */
			lease = (mine == fence && open -> 0 : lease); goto done
#ifdef NOT_FOUND_FAILS
		:: found == NONE -> record(me, FAILED, mine); goto done
#endif
		:: found == NONE && deferred -> saw(was_read = true); record(me, FAILED, mine); goto done
#if defined(CREATE_UNSTATED) || defined(CREATE_LATE)
		:: found == NONE && !deferred -> skip
#else
		:: found == NONE && !deferred && (!stated || now >= submit_by) -> record(me, NEEDS, mine); goto done
		:: found == NONE && !deferred && stated && now < submit_by -> skip
#endif
		fi
	};
	perform(me, mine, reply);
done:	skip
}

/* Everything from outside: time, a revocation, a purge, and an attempt that
 * joined, which may observe and never own [O1, A8]. What is over is forgotten, so
 * that it makes no difference. */
active proctype world() {
	byte reply;
end:	do
#ifdef GOAL
	:: (GOAL) -> assert(false)
#endif
	:: atomic { now < DEADLINE && claim == 0 && !revoked -> claim = REVOKED; revoked = true }
	:: atomic {
		now < END -> now++;
		lease = (lease > now -> lease : 0);
		submit_by = (submit_by + CALL > now -> submit_by : 0);
		if
		:: known && now >= used_at + KEPT -> known = false; used_at = 0
		:: else -> skip
		fi
	   }
#ifdef REVOKE_OVERWRITES
	:: atomic { now < DEADLINE && claim != 0 && !revoked -> claim = REVOKED; revoked = true; assert(status == NONE) }
#endif
	:: atomic { now >= DEADLINE + MARGIN && claim != 0 -> claim = 0; saw(purged = true) }
#ifdef RETRY_EXECUTES
	:: atomic { status != NONE -> create(reply); evidence(reply, 0); reply = 0 }
#else
	:: atomic { status != NONE -> evidence(UNKNOWN, 0) }
#endif
	od
}

init {
	atomic {
		run attempt(1); run attempt(2); run recovery(3); run recovery(4)
	}
}
