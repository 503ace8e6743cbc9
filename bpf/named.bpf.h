/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Numbers for repeated failed look-ups.
 *
 * A look-up is recorded in full once, with a number; repetitions contain only the number. This is a
 * sixth of the bytes for the recorder to read and write, and costs the task no more: the smaller
 * record saves what hashing costs. A table with two slots for each hash holds the valid numbers; a
 * new look-up uses the first if it is free, else the second. The task that assigns a number owns
 * the slot from before its record is in the ring until the number is published, and concurrent
 * tasks record their look-ups without a number: so a published number always refers to the last
 * record of that slot. The number is stored so that only its own hash decodes it; one that cannot
 * be decoded, because it is just being written, is treated as absent and the look-up recorded in
 * full. Two look-ups with the same 64-bit hash would be taken for one; the seed is random, so
 * nobody can construct such a pair.
 */
#ifndef PROCTRACE_NAMED_BPF_H
#define PROCTRACE_NAMED_BPF_H

struct named_lookup {
	__u64 hash;
	__u64 sealed;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PT_NAMED_SLOTS);
	__type(key, __u32);
	__type(value, struct named_lookup);
} named_lookups SEC(".maps");

#define SEAL(hash) ((hash) * 0xd6e8feb86659fd93ULL)

/*
 * The same entries, indexed by number. Look-ups repeat in the same order (one process after the
 * other searches directory after directory for a library), so the successor of the last one is
 * tried first. It is adjacent in memory, whereas a slot chosen by hash is almost never in the
 * cache, nor its page in the TLB: this saves 45 of about 500 ns for the whole look-up record.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PT_NAMED_SLOTS);
	__type(key, __u32);
	__type(value, struct named_lookup);
} lookups_in_order SEC(".maps");

STEP __u64 hash_miss(__u32 slot, __u32 len)
{
	struct scratch *scratch = scratch_at(slot);
	struct pt_named *r;
	__u64 a, b, seed;
	int i;

	if (!scratch)
		return 0;
	seed = seed_for(scratch);
	r = (void *)scratch->record;
	/* two independent chains, because each step depends on the one before it */
	a = mix(seed, (__u64)r->flags << 32 | (__u32)r->dirfd);
	b = mix(~seed, (__u64)len << 32 | (__u32)r->call << 16 | r->error);

	for (i = 0; i < PT_NAMED_PATH_MAX / 16 && i * 16 < len; i++) {
		a = mix(a, *word_at(&scratch->record[sizeof(*r) + i * 16]));
		b = mix(b, *word_at(&scratch->record[sizeof(*r) + i * 16 + 8]));
	}
	return mix(a, b);
}

/* The number of a look-up recorded before; 0 if there is none. */
static __always_inline __u32 number_of(const struct named_lookup *named, __u64 hash)
{
	__u64 number;

	if (named->hash != hash)
		return 0;
	number = named->sealed ^ SEAL(hash);
	return number >> 32 ? 0 : number;
}

static __always_inline struct named_lookup *place(__u32 slot)
{
	return bpf_map_lookup_elem(&named_lookups, &slot);
}

static __always_inline struct named_lookup *place_in_order(__u32 number)
{
	__u32 at = number & (PT_NAMED_SLOTS - 1);

	return bpf_map_lookup_elem(&lookups_in_order, &at);
}

/* The number of what has this hash. If it has none, returns 0, and the slot that it may get. */
static __always_inline __u32 find_number(struct scratch *scratch, __u64 hash, __u32 *slot,
					 struct named_lookup **named)
{
	__u32 number;

	*slot = 0;
	*named = place_in_order(scratch->last_number + 1);
	number = *named ? number_of(*named, hash) : 0;
	if (!number) {
		*slot = hash & (PT_NAMED_SLOTS - 1);
		*named = place(*slot);
		number = *named ? number_of(*named, hash) : 0;
		if (!number && *named && (*named)->hash) {
			*slot = hash >> 32 & (PT_NAMED_SLOTS - 1);
			*named = place(*slot);
			number = *named ? number_of(*named, hash) : 0;
		}
	}
	if (number)
		scratch->last_number = number;
	return number;
}

/* Returns whether there was room for it. */
static __always_inline bool write_again(__u16 kind, __u32 serial, __u32 number, __u64 now,
					__u64 flags)
{
	struct pt_again *r = bpf_ringbuf_reserve(&lookups, sizeof(*r), 0);

	if (!r) {
		count_loss(kind == PT_LOOKUP_AGAIN ? PT_LOOKUP_FAILED : PT_OPENED_NAMED,
			   PT_LOSS_RING_FULL);
		return false;
	}
	set_head(&r->head, kind, sizeof(*r), serial, now);
	r->number = number;
	r->pad = 0;
	bpf_ringbuf_submit(r, flags);
	return true;
}

/* Not a valid hash: marks a slot that is owned. */
#define OWNED 1

/* Acquires a slot; returns its previous hash, or OWNED if another task owns it. */
static __always_inline __u64 own(struct named_lookup *named)
{
	return __sync_lock_test_and_set(&named->hash, OWNED);
}

static __always_inline void put(struct named_lookup *named, __u64 hash, __u32 number)
{
	named->sealed = SEAL(hash) ^ number;
	/* an exchange, so that the number is visible to the next owner */
	__sync_lock_test_and_set(&named->hash, hash);
}

/* Releases an owned slot, publishing a recorded number. The look-up that had the slot before, with
 * hash `old`, can no longer be found: readers discard it, too. */
static __always_inline void let_go(struct named_lookup *named, __u64 old, __u64 hash, __u32 number)
{
	struct named_lookup *in_order;

	if (old) {
		in_order = place_in_order(named->sealed ^ SEAL(old));
		if (in_order && in_order->hash == old)
			in_order->hash = 0;
	}
	in_order = place_in_order(number);
	if (in_order)
		put(in_order, hash, number);
	put(named, hash, number);
}

#endif
