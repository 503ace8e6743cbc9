/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Numbers for failed look-ups that are told again and again.
 *
 * A look-up is told in full once, with a number; then the number will do. That is a sixth of the
 * bytes for the recorder to read and to write, and costs the task no more: what hashing takes,
 * the smaller record saves. Which numbers are valid stands in a table with two places for each
 * hash; a new look-up takes the first if it is free, else the second. Who gives a number owns the
 * place from before its record is in the ring until it can be found, and whoever comes meanwhile is
 * told without a number: so what can be found is what the last record of that place told. The number
 * is stored so that it can be read with its own hash only, and what cannot be read, because it is just
 * being written, is told in full again. Two look-ups with the same 64-bit hash would be taken for one;
 * the seed is random, so nobody can make two.
 */
#ifndef PROCTRACE_NAMED_BPF_H
#define PROCTRACE_NAMED_BPF_H

const volatile __u64 hash_seed = 0;

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
 * The same once more, each at the place of its number. Look-ups come in the order in which they
 * came before (a library is sought in directory after directory, by one process after the other),
 * so the one that follows the last is tried first. It lies next to it in memory, where a place by
 * hash is as good as never in the cache, nor its page in the TLB: 45 ns of the 500 that all of this takes.
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
	__u64 a, b;
	int i;

	if (!scratch)
		return 0;
	r = (void *)scratch->record;
	/* two chains, because each step waits for the one before it */
	a = mix(hash_seed, (__u64)r->flags << 32 | (__u32)r->dirfd);
	b = mix(~hash_seed, (__u64)len << 32 | (__u32)r->call << 16 | r->error);

	for (i = 0; i < PT_NAMED_PATH_MAX / 16 && i * 16 < len; i++) {
		a = mix(a, *word_at(&scratch->record[sizeof(*r) + i * 16]));
		b = mix(b, *word_at(&scratch->record[sizeof(*r) + i * 16 + 8]));
	}
	return mix(a, b);
}

/* The number by which a look-up was told before; 0 if it was not. */
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

/* The hash of no look-up: of a place that somebody owns. */
#define OWNED 1

/* Makes a place ours; returns the hash that it had, OWNED if it is somebody else's. */
static __always_inline __u64 own(struct named_lookup *named)
{
	return __sync_lock_test_and_set(&named->hash, OWNED);
}

static __always_inline void put(struct named_lookup *named, __u64 hash, __u32 number)
{
	named->sealed = SEAL(hash) ^ number;
	/* an exchange, so that the next owner sees the number, too */
	__sync_lock_test_and_set(&named->hash, hash);
}

/* Lets a place that is ours go, with a number that was told. Who had it before, under `old`, is not
 * found any more: readers forget it, too. */
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
