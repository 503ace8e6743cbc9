// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every record as a global variable, so that clang describes its layout in BTF. Compiled only for
 * the test that compares it with the Rust side (crates/wire/tests/it/layout.rs); never loaded.
 */
#include "vmlinux_min.h"
#include "wire.h"

struct pt_head head;
struct pt_attach attach;
struct pt_fork fork;
struct pt_exec exec;
struct pt_exec_args exec_args;
struct pt_env env;
struct pt_miss miss;
struct pt_exit exit_;
struct pt_rename rename;
struct pt_sample sample;
struct pt_tick tick;
struct pt_loss loss;
struct pt_blind blind;
struct pt_memory memory;
struct pt_named named;
struct pt_again again;
struct pt_moved moved;
struct pt_written written;
struct pt_workdir workdir;
struct pt_lookup_time lookup_time;
struct pt_place place;
struct pt_mounts mounts;
struct pt_wait wait;
struct pt_signal signal;
